"""Report check: compares a research report with the ledger of evidence that it cites.

A model writes the report; nothing that it claims is taken on trust. Each number in digits and each
quotation of a sentence has to stand in the words that the sentence cites: the quotations of its
evidence, or the title or date of their pages. Each address has to be that of a page in the ledger.
What does not is put back to the writer once (`describe`), then struck (`enforce`).

It reads characters and no language. Whether a unit, a sum or a superlative is right is left to the
question whether the quotations support the sentence (`delivery.to_compare`).
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from html import unescape
from typing import Literal

from agiraph.core.domain.value import value
from agiraph.features.research.model.jobs import EvidenceRow
from agiraph.features.research.model.page_quotes import Normal, has_words
from agiraph.features.research.model.sentences import Quotation, Unit, quotations, units
from agiraph.late_patterns import late

FaultKind = Literal["unknown_id", "uncited", "not_in_quotes", "foreign_url"]
MOST_DESCRIBED = 40
_SHOWN = 200

_URL = late(
    r"""\b[a-z][a-z0-9+.-]{1,20}://[^\s<>"\u201d\u00bb`|\]]+ | \bwww\.[^\s<>"`|\]]+""",
    re.IGNORECASE | re.VERBOSE,
)
_BARE = late(
    r"""(?<![\w/.@-]) (?!\d+\.[a-z]+/ | ASP\.NET/)            # 3.May/4.June
    (?:[a-z0-9-]{1,63}\.){1,10}
    (?!(?:js|ts|json|html?|txt|csv|ya?ml|toml|java|cpp)/)     # Node.js/Deno
    [a-z][a-z0-9-]{1,23} (?::\d{1,5})? /[^\s<>"\u201d\u00bb`|\]]+""",
    re.IGNORECASE | re.VERBOSE,
)
"""An address without its scheme: `host.example/path`."""
_LINK = late(
    r"""\]\(\s*<?([^\s)>]+)
      | ^\s{0,3}\[[^\]\n]+\]:\s*<?(\S+?)>?(?:\s+(?:"[^"]*"|'[^']*'|\([^)]*\)))?\s*$
      | <([a-z]{2,12}:[^\s<>]+)>""",
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
_ATTRIBUTE = late(r"""\b(?:href|src|srcset|action|data)\s*=\s*["']?([^\s"'>]+)""", re.I)
_EMPTY_SECTION = late(r"^(#{1,6})[ \t].*+\n*+(?=^\1(?!#)|\s*+\Z)", re.MULTILINE)
_EMPTY_TABLE = late(
    r"""^.*\|.*\n (?=.*\|)                                 # its head
    [ \t]*+(?:\|[ \t]*+)?:?-++:?[ \t]*+ (?:\|[ \t]*+:?-++:?[ \t]*+)*+ (?:\|[ \t]*+)? (?:\n|\Z)
    (?!.*\|)""",
    re.MULTILINE | re.VERBOSE,
)
"""The head of a table and the rule below it, with no row below them."""
_END_OF_URL = ".,;:!?)*_'\u2019\u201c"

_GROUPING = r".,'\u2019\u066c \u00a0\u2009\u202f"
_DIGITS = late(
    rf"(?<![\d.,])\d{{1,3}}(?:[{_GROUPING}]\d{{3}})+(?!\d)(?:[.,\u066b]\d+)*"
    r"|\d+(?:[.,\u066b\u066c]\d+)*|(?<![\w.])\.\d+"
)
"""A number: `1 234,5`, `4.50`, `1.2.3` or `.5`, in the digits of any script."""
_GROUPED = late(
    rf"(?P<whole>[1-9]\d{{0,2}}(?P<mark>[{_GROUPING}])(?:\d{{2,3}}(?P=mark))*\d{{3}})"
    r"(?:(?!(?P=mark))[.,\u066b](?P<rest>\d+))?"
)
_UNSEEN = late(r"[*_`~\\\u00ad\u200b-\u200d\u2060\ufeff]")
"""Marks of Markdown and characters without a sign: they may stand inside a number."""
_NAME = late(r"(?<!\w)[^\W\d_]+[-\u2010\u2011]?\d\w*")
_YEAR = late(r"(?<!\d)(?<!\d[.,])\d{4}(?!\d|[.,]\d)")
"""Four digits, which are a year from 1000 to 2199."""


@value
class Fault:
    """What is wrong with one unit of a report."""

    kind: FaultKind
    unit: Unit
    what: str
    """The id, number, quotation or address that is wrong."""

    @property
    def message(self) -> str:
        """What is wrong and what to do, for the model that wrote the report."""
        cited = ", ".join(self.unit.ids) or "none"
        return {
            "unknown_id": f"there is no evidence {self.what}. Cite only ids of the ledger.",
            "uncited": f"it states {self.what} and cites no evidence. Add the id of the evidence "
            "that shows it, as in [e1], or leave it out.",
            "not_in_quotes": f"{self.what} stands in none of the words that it cites "
            f"({cited}). Write it as they do, cite the evidence in which it stands, or leave it "
            "out.",
            "foreign_url": f"the address {self.what} is none of a page in the ledger. Leave "
            "addresses out: cite ids, and the addresses are added.",
        }[self.kind]


def numbers(text: str) -> dict[str, str]:
    """Return the numbers that a text writes in the digits of any script, as they stand there by
    their plain form.

    The plain form has no separators between groups of digits, a point before decimals and no
    leading zeros. `1,234.5`, `1.234,5` and `1 234,5` are one number; so are `1.234` and `1234`.
    """
    shown = _UNSEEN.sub("", unescape(text))
    return {_plain_number(match[0]): match[0] for match in _DIGITS.finditer(shown)}


def _plain_number(said: str) -> str:
    digits = "".join(str(int(c)) if c.isdecimal() else c for c in said)
    if (grouped := _GROUPED.fullmatch(digits)) is not None:
        whole = "".join(c for c in grouped["whole"] if c.isdigit())
        return f"{whole}.{grouped['rest']}" if grouped["rest"] else whole
    parts = re.split(r"[.,\u066b\u066c]", digits)
    if len(parts) > 2:  # a version, or a date
        return digits
    return ".".join([parts[0].lstrip("0") or "0", *parts[1:]])


class _Cited:
    """The words in which the statements of a unit have to stand."""

    def __init__(self, rows: Sequence[EvidenceRow]) -> None:
        texts = [t for row in rows for t in (row.quote, row.title, row.published) if t]
        # Each text is read by itself: the end of one and the beginning of the next say nothing.
        self._texts = [Normal(text) for text in texts]
        # In the compatible form, `CO₂` holds a digit.
        forms = [form for text in texts for form in (text, unicodedata.normalize("NFKC", text))]
        self.numbers = {number for form in forms for number in numbers(form)}

    def has_words(self, quotation: Quotation) -> bool:
        return any(has_words(text, quotation.text) for text in self._texts)


class _Checker:
    def __init__(self, rows: Sequence[EvidenceRow], question: str) -> None:
        self._rows: Mapping[str, EvidenceRow] = {row.id: row for row in rows}
        known = {_same_url(row.url) for row in rows}
        bare = {url.partition("://")[2] for url in known}
        self._urls = known | bare | {url.removeprefix("www.") for url in bare}
        self._asked = _find_asked(question)
        self._cited: dict[tuple[str, ...], _Cited] = {}

    def _read(self, ids: tuple[str, ...]) -> _Cited:
        if ids not in self._cited:
            self._cited[ids] = _Cited([self._rows[id] for id in ids])
        return self._cited[ids]

    def faults(self, unit: Unit) -> Iterator[Fault]:
        ids = unit.ids
        known = tuple(id for id in ids if id in self._rows)
        for url in urls(unit.text):
            if _same_url(url) not in self._urls:
                yield Fault(kind="foreign_url", unit=unit, what=url)
        for id in ids:
            if id not in self._rows:
                yield Fault(kind="unknown_id", unit=unit, what=id)
        words = _BARE.sub(" ", _URL.sub(" ", unit.words))
        said = quotations(words)
        if unit.is_quotation and words.strip():
            said = [Quotation(text=words, start=0, end=len(words))]
        stated = numbers(self._asked.sub(" ", words))
        if unit.kind == "heading":
            yield from self._unlike(unit, said, stated, self._read(tuple(self._rows)))
        elif known:
            yield from self._unlike(unit, said, stated, self._read(known))
        elif not ids:
            yield from self._uncited(unit, said, stated)

    def _uncited(
        self, unit: Unit, said: Sequence[Quotation], stated: Mapping[str, str]
    ) -> Iterator[Fault]:
        """Yield the first thing in a sentence without ids that needs evidence."""
        what = [f"the quotation “{_shortened(each.text)}”" for each in said]
        what += [f"the number {number}" for number in stated.values()]
        if what:
            yield Fault(kind="uncited", unit=unit, what=what[0])

    def _unlike(
        self, unit: Unit, said: Sequence[Quotation], stated: Mapping[str, str], cited: _Cited
    ) -> Iterator[Fault]:
        """Yield the quotations and numbers that a unit states and the words that it cites do not
        contain."""
        for quotation in said:
            if not cited.has_words(quotation):
                shown = _shortened(quotation.text)
                yield Fault(kind="not_in_quotes", unit=unit, what=f"the quotation “{shown}”")
        for plain_form, number in stated.items():
            if plain_form not in cited.numbers:
                yield Fault(kind="not_in_quotes", unit=unit, what=f"the number {number}")


def _find_asked(question: str) -> re.Pattern[str]:
    """Return a pattern of the years and names with digits (`A380`) of a question: a report may
    repeat them without evidence, because they are the person's own.

    Other numbers need evidence: in "Is it 330 m tall?" the number is what is asked.
    """
    words = {match[0] for match in _YEAR.finditer(question) if 1000 <= int(match[0]) < 2200}
    # Before a digit of a name stand letters with a small and a capital form: other scripts put no
    # space between a word and a number.
    words |= {
        match[0]
        for match in _NAME.finditer(question)
        if all(c.lower() != c.upper() for c in match[0] if c.isalpha())
    }
    # The longest first: one name may begin with another.
    any_word = "|".join(sorted(map(re.escape, words), key=len, reverse=True)) or "(?!)"
    return re.compile(rf"(?<!\d)(?<!\d[.,])(?:{any_word})(?!\d|[.,]\d)", re.IGNORECASE)


def check_report(text: str, rows: Sequence[EvidenceRow], *, question: str = "") -> list[Fault]:
    """Return what is wrong with a report, in the order of its text.

    `question` are the words that the report answers: their years and names need no evidence.
    """
    checker = _Checker(rows, question)
    return [fault for unit in units(text) for fault in checker.faults(unit)]


def describe(faults: Sequence[Fault]) -> str:
    """Return the faults as a list for the model that wrote the report."""
    lines = [
        f'{n}. "{_shortened(f.unit.text)}": {f.message}'
        for n, f in enumerate(faults[:MOST_DESCRIBED], 1)
    ]
    if more := len(faults) - MOST_DESCRIBED:
        lines += [f"… and {more} more of these kinds."] if more > 0 else []
    return "\n".join(lines)


def strike(text: str, found: Iterable[Unit]) -> tuple[str, list[str]]:
    """Take units out of a report; return the rest and what was taken out."""
    spans = sorted({(unit.start, unit.end) for unit in found})
    return without_spans(text, spans), [" ".join(text[a:b].split()) for a, b in spans]


def without_spans(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """Return a text without the units that stand at these places."""
    for start, end in sorted(spans, reverse=True):
        before = text[:start]
        line = before.rpartition("\n")[2]
        rest = text[end:].partition("\n")[0]
        if not line.strip(" \t>-*+0123456789.)|#") and not rest.strip(" \t|"):
            # Nothing is left of the line, so its mark goes too.
            before, after = before[: len(before) - len(line)], text[end + len(rest) :]
            text = before + after.removeprefix("\n")
        else:
            text = before + (" " if before[-1:].strip() else "") + text[end:].lstrip(" \t")
    return text


def enforce(text: str, rows: Sequence[EvidenceRow], *, question: str = "") -> tuple[str, list[str]]:
    """Strike what is wrong with a report until nothing is; return the rest and what was struck."""
    struck: list[str] = []
    while True:
        faults = check_report(text, rows, question=question)
        before, (text, gone) = text, strike(text, (fault.unit for fault in faults))
        struck += gone
        if not faults:
            text = without_empty_sections(text)
        if text == before:
            return text, struck


def without_empty_sections(text: str) -> str:
    """Leave out heads of tables and headings below which nothing was left, and the empty lines in
    place of others."""
    kept = _EMPTY_SECTION.sub("", _EMPTY_TABLE.sub("", text))
    kept = re.sub(r"\n{3,}", "\n\n", kept).strip()
    return f"{kept}\n" if kept else ""


def urls(text: str) -> list[str]:
    """Return the addresses in a text, in every form that Markdown or HTML makes a link of."""
    found = [match[0].rstrip(_END_OF_URL) for match in _URL.finditer(text)]
    for match in _LINK.finditer(text):
        found.append(next(part for part in match.groups() if part))
    found += [match[1] for match in _ATTRIBUTE.finditer(text)]
    found += [match[0].rstrip(_END_OF_URL) for match in _BARE.finditer(_URL.sub(" ", text))]
    return list(dict.fromkeys(found))


def without_urls(text: str, known: Collection[str] = ()) -> str:
    """Return a text with `…` in place of each address that is not known."""
    for url in sorted(set(urls(text)) - set(known), key=len, reverse=True):
        text = text.replace(url, "…")
    return text


def plain(text: str) -> str:
    """Return words of a page in one line, for a place where nobody checks them: without addresses
    and without the characters that Markdown reads as marks."""
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", " ".join(without_urls(text).split()))


def _same_url(url: str) -> str:
    """Return the form in which two addresses of one page are equal."""
    return url.rstrip(_END_OF_URL).rstrip("/")


def _shortened(text: str) -> str:
    said = " ".join(text.split())
    return said if len(said) <= _SHOWN else said[: _SHOWN - 1] + "…"
