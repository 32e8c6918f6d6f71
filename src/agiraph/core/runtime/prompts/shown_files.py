"""Shown files: the text of note files that a prompt shows; the files may hold untrusted text.

A thread that holds untrusted text already is shown the newest version, in a fence. A clean thread
is shown the last clean version, and one line of the runtime that says that there is a newer one.
Of MEMORY.md every thread is shown the confirmed lines; the others stand in a fence behind them.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import field

from agiraph.core.domain.agents import Trust
from agiraph.core.domain.errors import Refused
from agiraph.core.domain.provenance.labels import CLEAN, Label
from agiraph.core.domain.records.notes import fits, unverified_lines
from agiraph.core.domain.text.fence import enclose_foreign
from agiraph.core.domain.text.passages import search_words
from agiraph.core.domain.text.plurals import counted
from agiraph.core.domain.text.prompt_lines import Line, show
from agiraph.core.domain.value import dataclass
from agiraph.core.home.layout import INDEX, MEMORY, PLAN, TeamFolder
from agiraph.core.store.texts.file_labels import FileLabel

NOTES_BYTES = 16 * 1024
"""Bytes of an identity and of a notebook that go into a prompt."""
LOG_BYTES = 2000
"""Bytes of a daily log, from its end."""
UNWRITTEN = frozenset({MEMORY.strip(), INDEX.strip(), PLAN.strip()})
"""Notes files as they are before anybody has written in them."""
MORE = "… more: read_file({path!r})"
NEWER = (
    "(There is a newer unverified version of {at:%d %b}, from {by}: read_file({path!r}) shows it.)"
)
UNCHECKED = "({lines} in it nobody has checked, from {by}: read_file({path!r}) shows them.)"
UNVERIFIED_LINES = "Lines that nobody has checked:"
_HEADING_ONLY = re.compile(r"#[^\n]*")


@dataclass(slots=True)
class ShownFiles:
    """The files of a team as one new thread is shown them."""

    folder: TeamFolder
    thread: str = ""
    labelled: Mapping[str, FileLabel] = field(default_factory=dict[str, FileLabel])
    """What is known of the files that carry a label, by path."""
    trust: Trust = "standard"
    is_labelled: bool = False
    """Whether the thread holds untrusted text anyway."""
    label: Label = CLEAN
    """The sources of the words that were shown in a fence so far."""
    query: str = ""
    """What the thread works on: unverified lines with these words are shown to it."""

    @property
    def shows_labelled(self) -> bool:
        """Whether untrusted text that was written down is shown, in a fence."""
        return self.trust == "open" or (self.trust == "standard" and self.is_labelled)

    def note(self, path: str, longest: int = NOTES_BYTES) -> str:
        """Return the beginning of a notes file; empty if there is none or nobody has written in
        it."""
        text, more = _beginning(path, self._data(path, longest + 1), longest)
        return self._versioned(path, text, more)

    def memory(self, path: str, longest: int) -> str:
        """Return the beginning of a MEMORY.md: its confirmed lines and, in a fence, the others, if
        the thread is labelled anyway or one of them fits its work."""
        file = self.labelled.get(path)
        if file is None or self.trust != "standard":
            return self.note(path, longest)
        confirmed = file.confirmed_text or ""
        text, more = _beginning(path, confirmed.encode(errors="replace")[: longest + 1], longest)
        written = self._read(path, NOTES_BYTES).decode(errors="ignore")
        if not (lines := unverified_lines(written, confirmed)):
            return text + more
        terms = search_words(self.query)
        if self.is_labelled or any(fits(line, terms) for line in lines):
            added = "\n".join(lines).encode(errors="replace")
            shown, others = _beginning(path, added[: longest + 1], longest)
            unverified = f"{UNVERIFIED_LINES}\n{self.fence(shown, file.label)}{others}"
        else:
            by, count = file.label.describe(()), counted(len(lines), "line")
            unverified = UNCHECKED.format(lines=count, by=by, path=path)
        return f"{text}{more}\n\n{unverified}".strip()

    def log(self, path: str) -> str:
        """Return the end of a daily log."""
        data = self._data(path, NOTES_BYTES)
        return self._versioned(path, data[-LOG_BYTES:].decode(errors="ignore").strip())

    def fence(self, text: str, label: Label) -> str:
        """Return untrusted text in a fence, and add its label to that of the thread."""
        self.label |= label
        # A stranger has chosen the names of hosts, so a prompt only counts them.
        return enclose_foreign(text, thread=self.thread, source=label.describe(()))

    def _data(self, path: str, limit: int) -> bytes:
        """Return the beginning of the version that is shown."""
        file = self.labelled.get(path)
        if file is not None and not self.shows_labelled:
            return (file.confirmed_text or "").encode(errors="replace")[:limit]
        return self._read(path, limit)

    def _read(self, path: str, limit: int) -> bytes:
        try:
            return self.folder.folder.read(path, limit=limit)
        except Refused:
            return b""

    def lines(self, lines: Sequence[Line], room: int) -> str:
        """Return lines of a prompt. Untrusted text in them is in a fence, or the runtime's words
        stand instead of it."""
        is_labelled = self.is_labelled and self.shows_labelled
        shown = show(lines, thread=self.thread, is_labelled=is_labelled, room=room)
        self.label |= shown.label
        return shown.text

    def _versioned(self, path: str, text: str, more: str = "") -> str:
        """Return the shown version of a file: in a fence if it holds untrusted text, with a
        remark if a newer one does."""
        if (file := self.labelled.get(path)) is None:
            return text + more
        if not self.shows_labelled:
            by = file.label.describe(())
            newer = NEWER.format(at=file.created_at, by=by, path=path)
            return f"{text}{more}\n\n{newer}".strip()
        return f"{self.fence(text, file.label)}{more}" if text else ""


def _beginning(path: str, data: bytes, longest: int) -> tuple[str, str]:
    """Return the beginning of a notes file, empty if nobody has written in it, and what says where
    the rest is."""
    text = data[:longest].decode(errors="ignore").strip()
    if text in UNWRITTEN or _HEADING_ONLY.fullmatch(text):
        return "", ""
    return text, "" if len(data) <= longest else f"\n{MORE.format(path=path)}"
