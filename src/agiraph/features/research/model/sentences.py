"""Sentences: splits the Markdown of a report into the units that its check looks at.

A unit is a sentence with the ids of its evidence, a heading, a row of a table or a block of code.
The writer gives each sentence a line of its own with its ids at the end, so no language has to be
read: a sentence ends where ids stand beside its full stop, or with a line that ends in a full stop
or in ids. No unit ends inside a quotation.
"""

import re
import unicodedata
from collections.abc import Iterator
from itertools import pairwise
from typing import Literal

from agiraph.core.domain.value import value
from agiraph.late_patterns import late

UnitKind = Literal["sentence", "heading", "row", "code"]

_FENCE = late(r" {0,3}(```+|~~~+)")
_HEADING = late(r" {0,3}#{1,6}(?:[ \t]|$)")
_UNDERLINE = late(r" {0,3}(?:=+|-+)[ \t]*$")
_RULE = late(r"[ \t]*+(?:\|[ \t]*+)?:?-++:?[ \t]*+(?:\|[ \t]*+:?-++:?[ \t]*+)*+(?:\|[ \t]*+)?$")
_ITEM = late(r"[ \t]*(?:>[ \t]?)*[ \t]*(?:[-*+][ \t]+|\d{1,3}[.)][ \t]+)?(?:>[ \t]*)*")
_NEW_BLOCK = late(r"[ \t]*(?:[-*+][ \t]|\d{1,3}[.)][ \t]|>)")
_IDS = r"\[\s*e\d{1,6}(?:\s*[,;]\s*e\d{1,6})*\s*\]"
CITATION = late(_IDS, re.IGNORECASE)
_STOPS = (
    ".!?\u2026\u3002\uff01\uff1f\uff61\uff0e\u061f\u06d4\u0964\u0965\u0589\u1362\u17d4\u104a\u104b"
)
"""The marks that end a sentence, of any script."""
_CLOSING_MARKS = "\"'\u201d\u201c\u2018\u2019\u203a\u00bb\u300d\u300f)*_"
_TAIL = late(
    rf"(?:{_IDS}|[{_STOPS}{_CLOSING_MARKS}])(?:[ \t]*+{_IDS}|[{_STOPS}{_CLOSING_MARKS}])*+",
    re.IGNORECASE,
)
"""Ids and full stops side by side, with the marks that close a quotation or a bracket."""
_LINE_END = late(r"[ \t]*+[\r\n\v\f\x1c-\x1e\x85\u2028\u2029]")
_LINE_BREAK = late(r"\n[ \t]*")
_LONGEST_QUOTED = 1198
_DOUBLE = (
    # Behind a digit, the straight mark stands for inches.
    *(('(?<!\\d)"', '"'), ("\u201c", "\u201d"), ("\u201d", "\u201d"), ("\u201e", "\u201c\u201d")),
    *(("\u00ab", "\u00bb"), ("\u00bb", "\u00ab"), ("\u300c", "\u300d"), ("\u300e", "\u300f")),
)
"""Quotation marks, each with those that close it. One that is not closed quotes the rest."""
_SINGLE = (
    *(("\u2018", "\u2019"), ("\u201a", "\u2018\u2019")),
    *(("\u2039", "\u203a"), ("\u203a", "\u2039")),
)
"""Single quotation marks. They are also apostrophes and arrows, so each has to stand at the edge of
a word, and one that is not closed quotes nothing."""
_QUOTED = late(
    "|".join(
        [
            *(
                rf"{mark}([^{ends}]{{0,{_LONGEST_QUOTED}}}(?:(?=[{ends}])|.*+))[{ends}]?"
                for mark, ends in _DOUBLE
            ),
            *(
                rf"(?<![^\W_]){mark}(?=\S)(.{{1,{_LONGEST_QUOTED}}}?)(?<!\s)[{ends}](?![^\W_])"
                for mark, ends in _SINGLE
            ),
            r"<(?P<element>q|blockquote)\b[^<>]*>(.*?)(?:</(?P=element)\s*>|\Z)",
        ]
    ),
    re.DOTALL | re.IGNORECASE,
)


@value
class Unit:
    """A part of a report that is checked, and struck, as one."""

    kind: UnitKind
    start: int
    end: int
    text: str
    """Without the marks of a list or a quotation at its beginning."""
    is_quotation: bool = False
    """Whether it stands in a block quotation."""
    is_item: bool = False
    """Whether it stands in an item of a list."""

    @property
    def ids(self) -> list[str]:
        """The ids that it cites, each once."""
        cited = "".join(CITATION.findall(self.text)).lower()
        return list(dict.fromkeys(re.findall(r"e\d+", cited)))

    @property
    def words(self) -> str:
        """The text without its citations."""
        return CITATION.sub(" ", self.text)


def units(report: str) -> list[Unit]:
    """Return the units of a report, in order; what lies between two of them is white space, marks
    of Markdown, or a rule."""
    return [unit for block in _blocks(report) for unit in _split(report, *block) if unit.text]


def _blocks(report: str) -> Iterator[tuple[UnitKind, int, int]]:
    """Yield the kind, the beginning and the end of each paragraph, heading, row and code block."""
    lines = list(_lines(report))
    place = 0
    while place < len(lines):
        start, end = lines[place]
        line = report[start:end]
        last = place
        if not line.strip() or _RULE.match(line):
            place += 1
            continue
        kind: UnitKind = "sentence"
        if mark := _FENCE.match(line):
            kind, last = "code", _code_end(report, lines, place, mark[1])
        elif _HEADING.match(line) or _is_head(report, lines, place):
            kind = "heading"
        elif line.lstrip().startswith("|"):
            kind = "row"
        else:
            last = _paragraph_end(report, lines, place)
        yield kind, start, lines[last][1]
        place = last + 1


def _lines(report: str) -> Iterator[tuple[int, int]]:
    start = 0
    for line in report.splitlines(keepends=True):
        yield start, start + len(line.rstrip("\r\n\v\f\x1c\x1d\x1e\x85\u2028\u2029"))
        start += len(line)


def _is_head(report: str, lines: list[tuple[int, int]], place: int) -> bool:
    """Whether the next line makes this one a heading: by a rule below it, of a table or a title."""
    if place + 1 == len(lines):
        return False
    below = report[slice(*lines[place + 1])]
    line = report[slice(*lines[place])]
    is_table = "|" in line and "|" in below and "-" in below and bool(_RULE.match(below))
    return is_table or (bool(_UNDERLINE.match(below)) and not _NEW_BLOCK.match(line))


def _code_end(report: str, lines: list[tuple[int, int]], place: int, fence: str) -> int:
    """Return the line that closes a block of code, or that cites evidence right behind it."""
    last = next(
        (n for n in range(place + 1, len(lines)) if report[slice(*lines[n])].strip() == fence),
        len(lines) - 1,
    )
    below = report[slice(*lines[last + 1])].strip() if last + 1 < len(lines) else ""
    return last + 1 if below and not CITATION.sub("", below).strip() else last


def _paragraph_end(report: str, lines: list[tuple[int, int]], place: int) -> int:
    while place + 1 < len(lines):
        line = report[slice(*lines[place + 1])]
        is_other = _NEW_BLOCK.match(line) or _HEADING.match(line) or _FENCE.match(line)
        if not line.strip() or is_other or line.lstrip().startswith("|"):
            return place
        if _is_head(report, lines, place + 1):
            return place
        place += 1
    return place


def _split(report: str, kind: UnitKind, start: int, end: int) -> Iterator[Unit]:
    if kind != "sentence":
        said = report[start:end]
        yield Unit(kind=kind, start=start, end=end, text=said.lstrip("# \t").rstrip())
        return
    mark = _ITEM.match(report, start, end)
    assert mark is not None
    is_quotation, is_item = ">" in mark[0], bool(mark[0].strip(" \t>"))
    for first, last in _sentences(report, mark.end(), end):
        yield Unit(
            kind="sentence",
            start=first,
            end=last,
            text=report[first:last].strip(),
            is_quotation=is_quotation,
            is_item=is_item,
        )


def _sentences(report: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the beginning and end of each sentence of a paragraph, with its ids."""
    quoted = [(start + each.start, start + each.end) for each in quotations(report[start:end])]
    ends = [
        tail.end()
        for tail in _TAIL.finditer(report, start, end)
        if _closes(report, tail, end)
        and not any(first < tail.end() < last for first, last in quoted)
    ]
    for place in [*ends, end]:
        said = report[start:place]
        if said.strip():
            yield start + len(said) - len(said.lstrip()), place
        start = place


def _closes(report: str, tail: re.Match[str], end: int) -> bool:
    """Whether ids and full stops end a sentence: both stand here, or the line ends with them."""
    marks = CITATION.sub("", tail[0])
    cites, stops = len(marks) < len(tail[0]), any(mark in _STOPS for mark in marks)
    ends_line = _LINE_END.match(report, tail.end(), end) is not None
    return (cites and stops) or ((cites or stops) and ends_line)


def with_paragraphs(report: str) -> str:
    """Return a report whose sentences stand side by side, not on a line each."""
    for one, other in reversed(list(pairwise(units(report)))):
        is_text = one.kind == other.kind == "sentence"
        if is_text and _LINE_BREAK.fullmatch(report, one.end, other.start):
            # Scripts with wide letters have no space between sentences.
            is_wide = unicodedata.east_asian_width(report[one.end - 1]) in "WF"
            report = report[: one.end] + ("" if is_wide else " ") + report[other.start :]
    return report


@value
class Quotation:
    """Words between quotation marks."""

    text: str
    start: int
    end: int


def quotations(text: str) -> list[Quotation]:
    """Return the text between each pair of quotation marks, or in an element such as `<q>`."""
    found = (
        Quotation(text=match[match.lastindex or 0], start=match.start(), end=match.end())
        for match in _QUOTED.finditer(text)
    )
    return [each for each in found if each.text.strip()]
