"""Notes: an agent's MEMORY.md and the Markdown files in its memory/ folder.

The coordinator's notes are the team's. Every other agent has its own, in its desk folder.
"""

import hashlib
import re
from collections.abc import Generator
from contextlib import contextmanager
from datetime import date, timedelta

from agiraph.core.domain.errors import NotFound, OutOfScope, Refused
from agiraph.core.domain.value import dataclass
from agiraph.core.home import file_versions
from agiraph.core.home.file_versions import (
    ARCHIVE,
    DAY,
    INDEX,
    LONGEST,
    LONGEST_SUMMARY,
    SUMMARY,
    UNVERIFIED,
    Kind,
    kind_of_note,
)
from agiraph.core.home.file_versions import EARLIER as EARLIER_NAME
from agiraph.core.home.safe_folder import Folder, split
from agiraph.core.home.scopes import Scope, Want

EARLIER = f"{ARCHIVE}/{EARLIER_NAME}"
"""Prefix of the notes that hold what was replaced. They are read, and not searched."""
MOST = 1000
DEEPEST = 3
KEPT_DAYS = 30
"""Daily logs older than this are moved to the archive, where a search still finds them."""

_HEADING = re.compile(r"\s*#+\s*(.+)")
_BEGINNING = """\
# Index

What is kept where, one line for each file; it is kept up to date by itself.

"""
_UNVERIFIED = (
    "- `unverified/`: {count} with words from outside the team, which nobody has confirmed; "
    "memory_search finds them\n"
)


@dataclass(frozen=True, slots=True)
class Written:
    path: str
    """The full path of the note."""
    changed: bool
    earlier: str | None = None
    """The note that holds what this one held before, if it was replaced."""
    lines: int = 0
    """How many lines it held before."""
    lost: int = 0
    """How many of these it no longer holds."""

    @property
    def lost_most(self) -> bool:
        """Whether most of what stood there is gone."""
        return self.lost > self.lines / 2


@dataclass(frozen=True, slots=True)
class Composed:
    """A note before and after a change."""

    name: str
    path: str
    """The full path of the note."""
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Notes:
    """One agent's notes."""

    scope: Scope
    labelled: frozenset[str] = frozenset()
    """Names of notes that hold untrusted text: their headings are in no index."""

    @property
    def root(self) -> str:
        """Return the prefix of every note's full path."""
        return "" if self.scope.role == "coordinator" else f"agents/{self.scope.agent}/"

    def name(self, path: str) -> str:
        """Return a model's path as `MEMORY.md` or as a path below memory/; raise `OutOfScope`."""
        names = split(path)
        if names[:2] == ("agents", self.scope.agent) and self.root:
            names = names[2:]
        if names == (SUMMARY,):
            return SUMMARY
        if names[:1] == ("memory",):
            names = names[1:]
        deepest = DEEPEST + (names[:1] == (UNVERIFIED,))
        if not names or names[0] in ("agents", "nodes") or len(names) > deepest:
            raise OutOfScope(
                f"{path[:200]!r} is not a path for a note. Use MEMORY.md, today's log "
                "(YYYY-MM-DD.md), or knowledge/…, experiences/…, preferences/… ending in .md."
            )
        if not names[-1].endswith(".md") or any(n.startswith(".") for n in names):
            raise Refused(f"Notes are Markdown: give {path[:200]!r} a plain name that ends in .md.")
        return "/".join(names)

    def full(self, name: str) -> str:
        """Return the path of a note in the team's folder."""
        return f"{self.root}{name}" if name == SUMMARY else f"{self.root}memory/{name}"

    def read(self, path: str) -> str:
        name = self.name(path)
        with self._opened(name, "r") as (folder, rest):
            return folder.read(rest, limit=LONGEST).decode(errors="replace")

    def compose(self, path: str, content: str, *, today: date) -> Composed:
        """Return the note as `write` would leave it; raise `Refused` where `write` would."""
        name = self.name(path)
        before, after = self._composed(name, content, today)
        return Composed(name, self.full(name), before, after)

    def write_unverified(self, name: str, content: str, front: str) -> Written:
        """Write a note that nobody has confirmed to unverified/, below a line that says so."""
        return self._write(*self._unverified(name, content, front))

    def compose_unverified(self, name: str, content: str, front: str) -> Composed:
        """Return the unverified note as `write_unverified` would leave it; raise `Refused` where
        it would."""
        kept, before, after = self._unverified(name, content, front)
        return Composed(kept, self.full(kept), before, after)

    def _unverified(self, name: str, content: str, front: str) -> tuple[str, str, str]:
        if not (text := content.strip()):
            raise Refused("An empty note says nothing; write what is worth knowing.")
        kept, after = f"{UNVERIFIED}/{name}", f"{front}\n\n{text}\n"
        self._measure(kept, after)
        return kept, self._text(kept), after

    def remove_unverified(self, name: str, digest: str) -> None:
        """Remove an unverified note, unless somebody has changed the file since it had this
        hash."""
        kept = f"{UNVERIFIED}/{name}"
        with self._opened(kept, "w") as (folder, rest):
            try:
                data = folder.read(rest, limit=LONGEST)
            except NotFound:
                return
            if hashlib.sha256(data).hexdigest() == digest:
                folder.remove(rest)
        self.update_index()

    def write(self, path: str, content: str, *, today: date) -> Written:
        """Replace a note, or append to today's log; update the index."""
        name = self.name(path)
        return self._write(name, *self._composed(name, content, today))

    def _write(self, name: str, before: str, after: str) -> Written:
        replaced = bool(before) and after != before and not after.startswith(before.rstrip())
        if replaced:
            self._keep_earlier(name, before)
        if after != before:
            data = after.encode(errors="replace")
            with self._opened(name, "w") as (folder, rest):
                folder.write(rest, data)
            by, is_labelled = self.scope.agent, name in self.labelled
            team = self.scope.team.folder
            file_versions.keep(team, self.full(name), data, author=by, is_labelled=is_labelled)
        if name != SUMMARY:
            self.update_index()
        if not replaced:
            return Written(self.full(name), after != before)
        old, new = _lines(before), set(_lines(after))
        lost = sum(line not in new for line in old)
        return Written(self.full(name), True, earlier_of(name), len(old), lost)

    def _keep_earlier(self, name: str, text: str) -> None:
        """Keep what a note held before it is replaced; one earlier text for each note."""
        with self._opened(earlier_of(name), "w") as (folder, rest):
            folder.write(rest, text.encode(errors="replace"))

    def accepted_name(self, path: str, today: date) -> str:
        """Return the name of the note that gets what a person confirmed; a log entry goes into
        today's log."""
        return f"{today}.md" if DAY.fullmatch(path) else path

    def exists(self, name: str) -> bool:
        return bool(self._text(name))

    def files(self) -> dict[str, str]:
        """Return every note but the index, with its current text."""
        names = [n for n in self._names() if n != INDEX and not n.startswith(EARLIER)]
        found = {name: self._text(name) for name in names}
        if summary := self._text(SUMMARY):
            found[SUMMARY] = summary
        return {name: text for name, text in found.items() if text.strip()}

    def update_index(self) -> None:
        """Rewrite the index: one line for each file, with its heading."""
        names = [n for n in self._names() if n != INDEX and not n.startswith(f"{ARCHIVE}/")]
        # A heading, and the name of a note, are words of the note's author.
        hidden = {n for n in names if n.startswith(f"{UNVERIFIED}/")} | self.labelled
        counted = sum(kind_of_note(name) is not Kind.WORKING for name in hidden & set(names))
        lines = [
            f"- `{name}`: {_gist(self._text(name)) if name not in hidden else '(unverified)'}"
            for name in names
            if name not in hidden or kind_of_note(name) is Kind.WORKING
        ]
        of_strangers = _UNVERIFIED.format(count=_notes(counted)) if counted else ""
        text = _BEGINNING + of_strangers + "\n".join(lines) + "\n"
        with self._opened(INDEX, "w") as (folder, rest):
            folder.update(rest, text.encode(errors="replace"))

    def old_logs(self, today: date) -> list[str]:
        """Return the names of the logs older than `KEPT_DAYS`."""
        oldest = str(today - timedelta(days=KEPT_DAYS))
        return [n for n in self._names() if (day := DAY.fullmatch(n)) and day[1] < oldest]

    def archive(self, today: date) -> list[str]:
        """Move logs older than `KEPT_DAYS` into the archive; return their names."""
        if not (old := self.old_logs(today)):
            return []
        with self._opened(old[0], "w") as (folder, first):
            memory = first.removesuffix(old[0])
            folder.sub(f"{memory}{ARCHIVE}", create=True).close()
            for name in old:
                folder.rename(f"{memory}{name}", f"{memory}{ARCHIVE}/{name}")
        self.update_index()
        return old

    def _composed(self, name: str, content: str, today: date) -> tuple[str, str]:
        """Return a note's text before and after a change; raise `Refused` if it is not allowed."""
        text = content.strip()
        if name == INDEX:
            raise Refused("index.md is kept up to date by itself; write the note it should list.")
        if name.startswith(f"{ARCHIVE}/"):
            raise Refused(
                "Notes in the archive cannot be changed; put what matters into a new note."
            )
        if not text:
            raise Refused("An empty note says nothing; write what is worth knowing.")
        before = self._text(name)
        after = self.logged(name, before, text, today) if DAY.fullmatch(name) else f"{text}\n"
        self._measure(name, after)
        return before, after

    def logged(self, name: str, before: str, text: str, today: date) -> str:
        """Return a daily log with the text appended; only today's log may grow."""
        if name != f"{today}.md":
            raise Refused(f"A daily log is written on its day; today's is {today}.md.")
        if text in before:  # the same call once more, after a crash
            return before
        return f"{before.rstrip()}\n\n{text}\n" if before else f"# {today}\n\n{text}\n"

    def _measure(self, name: str, text: str) -> None:
        most = LONGEST_SUMMARY if name == SUMMARY else LONGEST
        if (size := len(text.encode(errors="replace"))) > most:
            advice = (
                "keep there only what every session needs, and the rest in memory/"
                if name == SUMMARY
                else "divide it by subject"
            )
            raise Refused(f"{name} would hold {size:,} bytes, more than {most:,}: {advice}.")
        names = self._names()
        if name != SUMMARY and name not in names and len(names) >= MOST:
            raise Refused(f"There are {MOST:,} notes already: put some of them together.")

    def _names(self) -> list[str]:
        """Return the Markdown files in memory/, sorted."""
        try:
            folder, rest = self.scope.resolve(f"{self.root}memory", "r")
            with folder, folder.sub(rest) as memory:
                return [e.name for e in memory.walk(limit=2 * MOST) if e.name.endswith(".md")]
        except NotFound:  # a desk has none until something is written
            return []

    def _text(self, name: str) -> str:
        try:
            with self._opened(name, "r") as (folder, rest):
                return folder.read(rest, limit=LONGEST).decode(errors="replace")
        except Refused:
            return ""

    @contextmanager
    def _opened(self, name: str, want: Want) -> Generator[tuple[Folder, str], None, None]:
        folder, rest = self.scope.resolve(self.full(name), want)
        with folder:
            yield folder, rest


def earlier_of(name: str) -> str:
    """Return the name under which the text that a note held before is kept."""
    return f"{EARLIER}{name.replace('/', '--')}"


def _notes(count: int) -> str:
    return f"{count} note{'' if count == 1 else 's'}"


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _gist(text: str) -> str:
    """Return a note's first heading, or its first line."""
    for line in text.splitlines():
        if said := (heading[1] if (heading := _HEADING.match(line)) else line).strip():
            return said[:100].replace("`", "'")
    return "(empty)"
