"""Prompt lines: lines of a prompt that may hold untrusted text, cut to the room there is."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from agiraph.core.domain.provenance.labels import CLEAN, Label
from agiraph.core.domain.text.fence import OF_TEAM, enclose_retold

LOOK = 'look_into("{id}") shows what it holds'
"""Where a clean reader finds untrusted text that a line leaves out."""


class Line(NamedTuple):
    """A line of a list in a prompt, or several lines that belong together."""

    text: str
    label: Label = CLEAN
    plain: str = ""
    """What a clean reader is shown instead of untrusted text, in the runtime's words."""


class Shown(NamedTuple):
    """A section of a prompt."""

    text: str
    label: Label


def show(
    lines: Iterable[Line], *, thread: str, is_labelled: bool, room: int, more: str = ""
) -> Shown:
    """Return as many of the lines, in their order, as fit into `room` bytes.

    A labelled reader sees untrusted text in a fence, a clean one the runtime's words instead of
    them. The label is that of the words which are shown. `more` says what to do about the lines
    that are left out; `{left}` in it is their number.
    """
    shown: list[str] = []
    label, left = CLEAN, 0
    for line in lines:
        text = line.text
        if line.label:
            text = _fenced(line, thread) if is_labelled else line.plain
        size = size_of(text) + 1
        if not text or left or size > room:
            left += bool(text)
            continue
        room -= size
        shown.append(text)
        if line.label and is_labelled:
            label |= line.label
    if left and more:
        shown.append(more.format(left=left))
    return Shown("\n".join(shown), label)


def newest(lines: Sequence[Line], *, room: int) -> Sequence[Line]:
    """Return the last of these lines that fit into `room` bytes together."""
    kept = 0
    for line in reversed(lines):
        room -= size_of(line.text) + 2
        if room < 0:
            break
        kept += 1
    return lines[len(lines) - kept :]


def size_of(text: str) -> int:
    """Return the bytes of a text; a token is counted as four of them."""
    return len(text) if text.isascii() else len(text.encode(errors="replace"))


def _fenced(line: Line, thread: str) -> str:
    source = str(line.label)
    return enclose_retold(line.text, thread=thread, author=OF_TEAM, source=source)
