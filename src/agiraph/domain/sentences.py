"""Sentences: splits the Markdown of a report into the units that its check looks at.

A unit is a sentence with the citations behind it, a heading, a row of a table or a block of code.
No unit ends inside a quotation.
"""

import re
from collections.abc import Iterator
from typing import Literal

from agiraph.domain.value import value

UnitKind = Literal["sentence", "heading", "row", "code"]

_FENCE = re.compile(r" {0,3}(```+|~~~+)")
_HEADING = re.compile(r" {0,3}#{1,6}(?:[ \t]|$)")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)[ \t]*$")
_RULE = re.compile(
    r"[ \t]*+(?:\|[ \t]*+)?:?-++:?[ \t]*+(?:\|[ \t]*+:?-++:?[ \t]*+)*+(?:\|[ \t]*+)?$"
)
_ITEM = re.compile(r"[ \t]*(?:>[ \t]?)*[ \t]*(?:[-*+][ \t]+|\d{1,3}[.)][ \t]+)?(?:>[ \t]*)*")
_NEW_BLOCK = re.compile(r"[ \t]*(?:[-*+][ \t]|\d{1,3}[.)][ \t]|>)")
CITATION = re.compile(r"\[\s*(?:e\d{1,6})(?:\s*[,;]\s*(?:e\d{1,6}))*\s*\]", re.IGNORECASE)
_CITED = r"(?:[ \t]*\[\s*e\d{1,6}(?:\s*[,;]\s*e\d{1,6})*\s*\])*"
_END = re.compile(
    rf"""(?:(?<![.!?…])[.!?…]++["'\u201d\u201c\u2018\u2019\u203a»)\]*_]*+{_CITED}[*_]*(?=\s|$)|[\u3002\uff01\uff1f][」』”]?{_CITED})""",
    re.IGNORECASE,
)
_ABBREVIATION = re.compile(
    r"(?:(?<!\w)(?:[^\W\d_]|z\.\s?B|d\.\s?h|u\.\s?a|i\.\s?d|e\.g|i\.e|p\.\s?ej|ca|bzw|Nr|No|Nos|vgl|"
    r"usw|etc|vs|Mr|Mrs|Ms|Dr|Prof|St|Inc|Ltd|Co|Corp|approx|est|pp?|figs?|Sr|Sra|Mme|env|av|apr|"
    r"jan|feb|mar|jun|jul|aug|sept?|oct|okt|nov|dec|dez|Mio|Mrd|Tsd|Art|Abs|Bd|Jh|cf|al|resp|ggf|"
    r"inkl|max|min|U\.S|U\.K|n)|(?<!\d)\d{1,2})\.$",
    re.IGNORECASE,
)
"""What a full stop may follow without ending a sentence: an abbreviation, an initial, a day."""
_OPENING = {
    "\u201c": "\u201d",
    "\u201d": "\u201d",
    "\u201e": "\u201c\u201d",
    "\u00ab": "\u00bb",
    "\u00bb": "\u00ab",
    "\u300c": "\u300d",
    "\u300e": "\u300f",
}
_SINGLE = {"\u2018": "\u2019", "\u201a": "\u2018\u2019", "\u2039": "\u203a", "\u203a": "\u2039"}
"""Single quotation marks. They are also apostrophes and arrows, so each has to stand at the edge of
a word, and one that is not closed quotes nothing."""
_CLOSING = {mark: re.compile(rf"(?<!\s)[{ends}](?![^\W_])") for mark, ends in _SINGLE.items()}
_ELEMENT = re.compile(r"<(q|blockquote)\b[^<>]*>", re.IGNORECASE)
LONGEST_QUOTED = 1200


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
    is_quotation = ">" in mark[0]
    for first, last in _sentences(report, mark.end(), end):
        yield Unit(
            kind="sentence",
            start=first,
            end=last,
            text=report[first:last].strip(),
            is_quotation=is_quotation,
        )


def _sentences(report: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the beginning and end of each sentence, with the citations behind its full stop."""
    quoted = _quoted_spans(report[start:end])
    for match in _END.finditer(report, start, end):
        place = match.start() - start
        if any(first < place < last - 1 for first, last in quoted):
            continue
        if report[match.start()] == "." and _continues(report, start, match, end):
            continue
        if report[start : match.end()].strip():
            yield start, match.end()
            quoted = [(a - (match.end() - start), b - (match.end() - start)) for a, b in quoted]
            start = match.end()
    if report[start:end].strip():
        yield start, end


def _continues(report: str, start: int, match: re.Match[str], end: int) -> bool:
    """Whether a full stop belongs to an abbreviation or a number, so that the sentence goes on."""
    stop = match.start() + 1
    following = report[match.end() : end].lstrip()
    if CITATION.search(match[0]) or not following:
        return False
    is_short = _ABBREVIATION.search(report[max(start, stop - 12) : stop]) is not None
    return is_short or following[0].islower()


def _quoted_spans(text: str) -> list[tuple[int, int]]:
    return [(found.start, found.end) for found in quotations(text)]


@value
class Quotation:
    """Words between quotation marks."""

    text: str
    start: int
    end: int


def quotations(text: str) -> list[Quotation]:
    """Return the text between each pair of quotation marks, or in an element `<q>`. A mark without
    its closing one quotes the rest of the text."""
    found: list[Quotation] = []
    place = 0
    while place < len(text):
        inside = _inside_marks(text, place)
        if inside is None:
            place += 1
            continue
        first, last, end = inside
        found.append(Quotation(text=text[first:last], start=place, end=end))
        place = end
    return [each for each in found if each.text.strip()]


def _inside_marks(text: str, place: int) -> tuple[int, int, int] | None:
    """Return the beginning and the end of the words that a mark at this place quotes, and the end
    of the closing mark; None if no quotation begins here."""
    mark = text[place]
    if mark in _SINGLE:
        return _inside_single(text, place)
    if mark == "<" and (element := _ELEMENT.match(text, place)):
        closing = re.compile(rf"</{element[1]}\s*>", re.IGNORECASE).search(text, element.end())
        if closing is None:
            return element.end(), len(text), len(text)
        return element.end(), closing.start(), closing.end()
    if mark == '"' and place and text[place - 1].isdigit():  # inches
        return None
    marks = '"' if mark == '"' else _OPENING.get(mark)
    if marks is None:
        return None
    ends = (text.find(c, place + 1, place + LONGEST_QUOTED) for c in marks)
    end = min((e for e in ends if e >= 0), default=len(text))
    return place + 1, end, min(end + 1, len(text))


def _inside_single(text: str, place: int) -> tuple[int, int, int] | None:
    before, after = text[max(0, place - 1) : place], text[place + 1 : place + 2]
    if before.isalnum() or not after.strip():
        return None
    closing = _CLOSING[text[place]].search(text, place + 2, place + LONGEST_QUOTED)
    return (place + 1, closing.start(), closing.end()) if closing else None
