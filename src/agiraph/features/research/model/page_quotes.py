"""Page quotes: finds a quotation in the text of a fetched page, and says where it stands.

A quotation counts as found if the page has the same words. Marks of Markdown, line breaks,
hyphenation, kinds of quotation marks and capital letters may differ; numbers may not. The work is
linear in the length of the page.
"""

import re
import unicodedata
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice

from agiraph.core.domain.text.passages import is_unspaced
from agiraph.core.domain.value import dataclass
from agiraph.late_patterns import late

SHORTEST_NEAREST = 40
"""The fewest characters of a page that are compared with a quotation that is not on it."""
SPAN = 2000
"""Characters of a page within which the parts around an ellipsis must stand."""
SHORTEST_PART = 8
MOST_PARTS = 6
NEAREST_CHARS = 300
_MOST_PLACES = 1000
"""The most places of a page where the quotation is compared; only a page that repeats itself has
more."""
_LONGEST_WORD = 40
_GRAM = 5
_ALIKE = 0.25
"""The share of a quotation's letter groups that the nearest words on a page must contain."""

_HYPHENS = "\u00ad\u2010\u2011\u2012\u2013\u2014\u2015-"
_DASHES = "\u2012\u2013\u2014\u2015"
_UNSEEN = "\u200b\u200c\u200d\u2060\ufeff"
_TOKEN = late(
    rf"""
    (?P<gone>                                     # What is left out of the comparison:
        (?P<aside>
            (?<=\])\((?:[^()\s]|\([^()\s]*\))*(?:\s+"[^"\n]*")?\)    # the address of a link
          | !?\[\[(?:\d{{1,3}}|[a-z])\]\]                             # the mark of a footnote
          | !?\[(?:\d{{1,3}}|[a-z])\](?!\((?!\#))
        )
      | (?:(?<=\n)|\A)[ \t]*(?:\#{{1,6}}|>[> \t]*|[-*+])(?=[ \t])    # heading, quotation, list
      | (?:(?<=\n)|\A)[ \t]*+(?:\|[ \t]*+)?:?-{{3,}}+[-:| \t]*+(?=\n|\Z)  # the rule of a table
      | (?<=[^\W\d_])[{_HYPHENS}]++(?:[ \t]*+\r?\n\s*+)?(?=[^\W\d_])    # a hyphen inside a word
      | [\[\]*_`~\\\u00ad{_UNSEEN}]
    )
  | (?P<space> [^\S\n]+ | \n | \| )
  | (?P<run> [{_HYPHENS}] | [^\s\[\]*_`~\\|{_UNSEEN}{_HYPHENS}]{{1,64}}[\u0300-\u036f]* )
    """,
    re.VERBOSE,
)
_PLAIN = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u02bc\u00b4", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u00ab\u00bb\u2033\u2039\u203a", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d", "-"),
    }
)
_BROKEN_WORD = late(r"(?<=[^\W\d_])-\s+(?=[^\W\d_])")
_ELLIPSIS = late(r"(?:(?<!\s)\s++)?[\[(]?(?:\u2026|\.\s?\.\s?\.+)[\])]?\s*+")
_EDGES = " \t\r\n\"'\u201c\u201d\u201e\u2018\u2019\u00ab\u00bb\u2039\u203a\u300c\u300d\u300e\u300f"
_STOPS = ".,;:!? \u3002\uff0c"
_MAGNITUDE = late(
    r" ?(?:%|‰|per ?cent\b|prozent\b|pour cent\b|por ciento\b|thousand\b|[mbt]illions?\b"
    r"|tausend\b|millionen?\b|milliarden?\b|milliards?\b|mill[oó]n(?:es)?\b|mio\b|mrd\b|bn\b"
    r"|[百千万萬亿億만억])|[km]\b"
)
"""A word that belongs to the number before it: without the word it is another number."""


@dataclass(frozen=True, slots=True)
class QuoteFound:
    """The quotation stands on the page."""

    offset: int
    """Where it begins in the page's text."""
    text: str
    """The page's own words, without the addresses of links and the marks of footnotes; parts left
    out are shown as ` … `. It may be much longer than the quotation: the page may have any number
    of marks and spaces between two words."""


@dataclass(frozen=True, slots=True)
class QuoteMissing:
    """The quotation does not stand on the page."""

    nearest: str
    """The words of the page that are most like it; empty if none are."""


class Normal:
    """A text in the form in which quotations are compared, with the way back to its offsets."""

    __slots__ = ("_at", "_from", "source", "text")
    source: str
    text: str
    """The text as it is compared."""

    def __init__(self, source: str) -> None:
        self.source = source
        # Where each piece begins in the normal text, and where in the source.
        self._at, self._from = array("Q"), array("Q")
        pieces: list[str] = []
        length = 0
        for piece, start in _pieces(source):
            self._at.append(length)
            self._from.append(start)
            pieces.append(piece)
            length += len(piece)
        self.text = "".join(pieces)

    def offset(self, place: int) -> int:
        """Return where a character of the normal text begins in the source."""
        return self._in_source(place)[0]

    def words(self, start: int, end: int) -> str:
        """Return the source's own words for a part of the normal text, without the addresses of
        links and the marks of footnotes: they are not words of the page."""
        first, last = self._in_source(start)[0], self._in_source(end - 1)[1]
        tokens = _TOKEN.finditer(self.source, first, last)
        return "".join(token[0] for token in tokens if not token["aside"])

    def is_inside_word(self, place: int) -> bool:
        """Whether a word of the normal text goes on over this place."""
        if not 0 < place < len(self.text):
            return False
        if not (_is_spaced(self.text[place - 1]) and _is_spaced(self.text[place])):
            return False
        piece = bisect_right(self._at, place) - 1
        if self._at[piece] < place:
            return True
        # A dash between two words is left out of the comparison like a hyphen, and divides them.
        between = self.source[self._from[piece - 1] : self._from[piece]]
        return not any(dash in between for dash in _DASHES)

    def _in_source(self, place: int) -> tuple[int, int]:
        """Return the beginning and end of a character of the normal text in the source."""
        piece = bisect_right(self._at, place) - 1
        start, inside = self._from[piece], place - self._at[piece]
        run = self.source[start : start + 64 + _LONGEST_WORD]
        # A character may become several ("ß"), or none.
        taken = next((n for n in range(1, len(run) + 1) if len(_plain(run[:n])) > inside), 1)
        return start + taken - 1, start + taken


def normal(text: str) -> str:
    """Return a text in the form in which quotations are compared."""
    return Normal(text).text


def _is_spaced(letter: str) -> bool:
    """Whether a character is a letter of a script that puts spaces between words."""
    return letter.isalpha() and not is_unspaced(letter)


def _plain(run: str) -> str:
    if run.isascii():
        return run.lower()
    return unicodedata.normalize("NFKC", run).translate(_PLAIN).casefold()


def _pieces(source: str) -> Iterator[tuple[str, int]]:
    """Yield the pieces of the normal text, each with its offset in the source."""
    space = -1
    is_first = True
    for match in _TOKEN.finditer(source):
        if match.lastgroup == "space":
            space = match.start() if space < 0 else space
        elif match.lastgroup == "run" and (plain := _plain(match[0])):
            if space >= 0 and not is_first:
                yield " ", space
            yield plain, match.start()
            space, is_first = -1, False


@lru_cache(maxsize=4)
def _page(text: str) -> Normal:
    return Normal(text)


def find_quote(
    quote: str, page_text: str, *, wants_nearest: bool = True
) -> QuoteFound | QuoteMissing:
    """Find a quotation on a page: in one piece, or in parts around an ellipsis that stand in this
    order and close to each other.

    The words that are most like a missing one take the most time; they may be unwanted.
    """
    page, wanted = _page(page_text), quote.strip(_EDGES)
    ways = (quote, wanted, _BROKEN_WORD.sub("", wanted), wanted.rstrip(_STOPS))
    forms = [form for form in dict.fromkeys(normal(way) for way in ways) if form]
    for form in forms:
        if (place := next(_places(page, form), None)) is not None:
            return _found(page, [(place, place + len(form))])
    parts = [part for part in _ELLIPSIS.split(wanted) if part]
    if len(parts) > 1 and (spans := _in_order(page, [normal(part) for part in parts])):
        return _found(page, spans)
    return QuoteMissing(_nearest(page, forms[0]) if forms and wants_nearest else "")


def _found(page: Normal, spans: list[tuple[int, int]]) -> QuoteFound:
    said = " … ".join(page.words(start, end) for start, end in spans)
    return QuoteFound(page.offset(spans[0][0]), said)


def has_words(text: Normal, words: str) -> bool:
    """Whether a text has these words: in one piece, or in parts around an ellipsis that stand in
    this order. They begin and end with whole words and numbers."""
    parts = [normal(part) for part in _ELLIPSIS.split(words.strip(_EDGES + _STOPS + "…")) if part]
    if len(parts) > 1:
        return _in_order(text, parts) is not None
    return not any(parts) or next(_places(text, parts[0]), None) is not None


def _places(page: Normal, form: str, start: int = 0, end: int | None = None) -> Iterator[int]:
    """Yield the offsets at which the normalised quotation stands in the page's normal text without
    cutting a number or a word in two."""
    text = page.text
    place = text.find(form, start, end)
    while place >= 0:
        stop = place + len(form)
        is_cut = page.is_inside_word(place) or page.is_inside_word(stop)
        if not is_cut and _has_whole_numbers(text, place, stop):
            yield place
        place = text.find(form, place + 1, end)


def _has_whole_numbers(text: str, start: int, end: int) -> bool:
    """Whether the numbers at both ends of a part of a text are the text's whole numbers."""
    before, after = text[max(0, start - 2) : start], text[end : end + 24]
    if text[start].isdigit() and before:
        if before[-1].isdigit() or (before[-1] in ".,'" and before[:-1].isdigit()):
            return False
        if before[-1] == "-" and not before[:-1].isalnum():
            return False  # below zero
    if text[end - 1].isdigit() and after:
        continues = after[0].isdigit() or (after[0] in ".,'" and after[1:2].isdigit())
        return not continues and _MAGNITUDE.match(after) is None
    return True


def _in_order(page: Normal, parts: list[str]) -> list[tuple[int, int]] | None:
    if len(parts) > MOST_PARTS or min(map(len, parts)) < SHORTEST_PART:
        return None
    for first in islice(_places(page, parts[0]), _MOST_PLACES):
        spans = [(first, first + len(parts[0]))]
        for part in parts[1:]:
            place = next(_places(page, part, spans[-1][1], first + SPAN), None)
            if place is None:
                break
            spans.append((place, place + len(part)))
        else:
            return spans
    return None


def _whole_words(text: str, start: int, end: int) -> tuple[int, int]:
    first, last = start, end
    while first > 0 and start - first < _LONGEST_WORD and text[first - 1 : first + 1].isalnum():
        first -= 1
    while last < len(text) and last - end < _LONGEST_WORD and text[last - 1 : last + 1].isalnum():
        last += 1
    return first, last


def _nearest(page: Normal, form: str) -> str:
    """Return the words of the page that share the most letter groups with the normalised
    quotation."""
    text, grams = page.text, {form[i : i + _GRAM] for i in range(len(form) - _GRAM + 1)}
    size = max(len(form), SHORTEST_NEAREST)
    hits = [i for i in range(len(text) - _GRAM + 1) if text[i : i + _GRAM] in grams]
    counts = Counter(hit // size for hit in hits)
    scores = {block: counts[block] + counts[block + 1] for block in list(counts)}
    best = max(scores, key=lambda block: (scores[block], -block), default=None)
    if best is None or scores[best] < _ALIKE * len(grams):
        return ""
    inside = [hit for hit in hits if hit // size in (best, best + 1)]
    start, end = inside[0], min(inside[-1] + _GRAM, inside[0] + NEAREST_CHARS - 2 * _LONGEST_WORD)
    start, end = _whole_words(text, start, end)
    return " ".join(page.words(start, end).split())[:NEAREST_CHARS]
