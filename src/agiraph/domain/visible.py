"""Visible: show untrusted text with every hidden or control character as a code point.

A person decides by what they see. An escape sequence, a carriage return, a bidirectional mark or a
zero-width character makes a screen show something other than what a command does.
"""

import json
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any

_IGNORABLE = frozenset(
    chr(code)
    for first, last in (
        *((0x034F, 0x034F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F)),
        *((0x2800, 0x2800), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFFA0, 0xFFA0)),
        *((0x16FE4, 0x16FE4), (0x1D159, 0x1D159), (0xE0100, 0xE01EF)),
    )
    for code in range(first, last + 1)
)
"""Characters that Unicode counts as letters, marks or symbols although they draw nothing."""
_OPENING = "\N{MATHEMATICAL LEFT ANGLE BRACKET}"
"""The mark in front of a code point. A literal one is shown as a code point itself, so that the
result is unambiguous."""


def visible(text: str, *, keep: str = "\n") -> str:
    """Return the text with every hidden or control character as `⟨U+202E⟩`, except those in `keep`.

    The result is unambiguous: a literal `⟨` is shown as a code point too.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c in keep or _is_plain(c) else f"{_OPENING}U+{ord(c):04X}⟩" for c in text)


def call_lines(name: str, arguments: Mapping[str, Any], *, width: int = 0) -> list[str]:
    """Return a tool call as lines of plain text, complete to the last character.

    Each line of an argument stands behind a bar, so that no argument can imitate the next one or
    the question below. `width` in columns cuts longer lines; their rest stands behind `┊`.
    """
    shown = {visible(n, keep=""): _lines(value) for n, value in arguments.items()}
    margin = max((len(n) for n in shown), default=0)
    found = [visible(name, keep="")]
    for label, lines in shown.items():
        bar = "│"
        for number, line in enumerate(lines):
            before = f"  {label if number == 0 else '':{margin}} "
            for piece in _pieces(line, width - len(before) - 2 if width else 0):
                found.append(f"{before}{bar} {piece}")
                before, bar = " " * len(before), "┊"
            bar = "│"
    return found


def _lines(value: object) -> list[str]:
    said = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return visible(said).split("\n")


def _is_plain(character: str) -> bool:
    return character.isprintable() and character not in _IGNORABLE and character != _OPENING


def _pieces(line: str, columns: int) -> Iterator[str]:
    """Cut a line into pieces of at most that many columns of a terminal; 0: as long as it is."""
    start = taken = 0
    for place, character in enumerate(line):
        # A line that the terminal wraps by itself would begin at its left edge, where our own lines
        # begin.
        wide = 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if 0 < columns < taken + wide and place > start:
            yield line[start:place]
            start, taken = place, 0
        taken += wide
    yield line[start:]
