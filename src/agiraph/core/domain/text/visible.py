"""Visible: show untrusted text with every hidden or control character as a code point.

A person decides by what they see. An escape sequence, a carriage return, a bidirectional mark or a
zero-width character makes a screen show something other than what a command does. So does a letter
that looks like another one: the call of an approval shows those as code points, too. The web UI has
the same rules in `web/src/reading/visible.ts`.
"""

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from textwrap import wrap
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


_SCRIPTS = (
    *("CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC", "LISU", "DESERET", "OSAGE"),
    *("OLD ITALIC", "TIFINAGH", "CANADIAN SYLLABICS"),
)
"""Scripts with letters that look like Latin ones, as the names of their characters begin."""
_DISGUISED = re.compile(
    "[\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\U0001d400-\U0001d7ff\U0001f130-\U0001f149\u037e"
    "\u2044\u2215\u29f8\u2236\ua789\u01c3\u01c0\u2223\ufe68\u2216\u29f5\u2024\u0589]"
)
"""Letters and digits of other alphabets for the same Latin letters, and signs that look like a sign
with a meaning in commands: ; / : ! | \\ ."""
_WORD = re.compile(r"\w+")
_LATIN = re.compile("[A-Za-z]")
_SPACES_AT_END = re.compile("(?<! ) +$", re.MULTILINE)


def visible(text: str, *, keep: str = "\n") -> str:
    """Return the text with every hidden or control character as `⟨U+202E⟩`, except those in `keep`.

    The result is unambiguous: a literal `⟨` is shown as a code point too.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c in keep or _is_plain(c) else _code(c) for c in text)


def suspect(text: str, *, keep: str = "\n") -> str:
    """Return the text of a call as `visible` does, and show look-alike characters as code points.

    These are a letter of another script inside a Latin word, a character that imitates a Latin
    letter or a sign of the shell, and spaces at the end of a line. A word that is entirely in
    another script stays as it is.
    """
    shown = visible(text, keep=keep)
    if not text.isascii():
        shown = _WORD.sub(_plain_word, shown)
        shown = _DISGUISED.sub(lambda found: _code(found[0]), shown)
    return _SPACES_AT_END.sub(lambda run: _code(" ", len(run[0])), shown)


def other_scripts(text: str) -> list[str]:
    """Return the scripts of a text that have letters which look like Latin ones."""
    found = {script for c in text if not c.isascii() and (script := _script_of(c))}
    return [script.title() for script in _SCRIPTS if script in found]


def _plain_word(word: re.Match[str]) -> str:
    """Return a word with code points for its letters of another script, if it has Latin ones."""
    if word[0].isascii() or not _LATIN.search(word[0]):
        return word[0]
    return "".join(_code(c) if not c.isascii() and _script_of(c) else c for c in word[0])


def _script_of(character: str) -> str:
    name = unicodedata.name(character, "")
    return next((script for script in _SCRIPTS if name.startswith(script)), "")


def _code(character: str, count: int = 1) -> str:
    times = f"\N{MULTIPLICATION SIGN}{count}" if count > 1 else ""
    return f"{_OPENING}U+{ord(character):04X}{times}⟩"


def call_lines(name: str, arguments: Mapping[str, Any], *, width: int = 0) -> list[str]:
    """Return a tool call as lines of plain text, complete to the last character.

    Each line of an argument stands behind a bar, so that no argument can imitate the next one or
    the question below. `width` in columns cuts longer lines; their rest stands behind `┊`.
    """
    shown = {suspect(n, keep=""): _lines(value) for n, value in arguments.items()}
    margin = max((len(n) for n in shown), default=0)
    found = [*_pieces(suspect(name, keep=""), width)]
    for label, lines in shown.items():
        bar = "│"
        for number, line in enumerate(lines):
            before = f"  {label if number == 0 else '':{margin}} "
            for piece in _pieces(line, max(width - len(before) - 2, 1) if width else 0):
                found.append(f"{before}{bar} {piece}")
                before, bar = " " * len(before), "┊"
            bar = "│"
    if scripts := other_scripts(json.dumps([name, dict(arguments)], ensure_ascii=False)):
        said = f"! It has {', '.join(scripts)} letters. Some look like Latin ones."
        found += wrap(said, width, subsequent_indent="  ") if width else [said]
    return found


def _lines(value: object) -> list[str]:
    said = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return suspect(said).split("\n")


def is_blank(text: str) -> bool:
    """Whether a text has nothing that a person could see: only spaces and characters that draw
    nothing."""
    return not any(c.isprintable() and not c.isspace() and c not in _IGNORABLE for c in text)


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
