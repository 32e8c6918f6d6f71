"""Report check: compares a research report with the ledger of evidence that it cites.

A model writes the report; nothing that it claims is taken on trust. Each number, date and quotation
of a sentence has to stand in the quotations of the evidence that the sentence cites, and each
address has to be that of a page in the ledger. What does not is put back to the writer once
(`describe`), then struck (`enforce`).
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Literal

from agiraph.domain import dates, figures
from agiraph.domain.evidence import EvidenceRow
from agiraph.domain.page_quotes import Normal, has_words
from agiraph.domain.sentences import Quotation, Unit, quotations, units
from agiraph.domain.sums import find_sums
from agiraph.domain.superlatives import superlative
from agiraph.domain.value import value

FaultKind = Literal["unknown_id", "uncited", "not_in_quotes", "wrong_sum", "foreign_url"]
MOST_DESCRIBED = 40
_SHOWN = 200

_URL = re.compile(
    r"""\b[a-z][a-z0-9+.-]{1,20}://[^\s<>"\u201d\u00bb`|\]]+ | \bwww\.[^\s<>"`|\]]+""",
    re.IGNORECASE | re.VERBOSE,
)
_BARE = re.compile(
    r"""(?<![\w/.@-]) (?!\d+\.[a-z]+/ | ASP\.NET/)            # 3.May/4.June
    (?:[a-z0-9-]{1,63}\.){1,10}
    (?!(?:js|ts|json|html?|txt|csv|ya?ml|toml|java|cpp)/)     # Node.js/Deno
    [a-z][a-z0-9-]{1,23} (?::\d{1,5})? /[^\s<>"\u201d\u00bb`|\]]+""",
    re.IGNORECASE | re.VERBOSE,
)
"""An address without its scheme: `host.example/path`."""
_LINK = re.compile(
    r"""\]\(\s*<?([^\s)>]+)
      | ^\s{0,3}\[[^\]\n]+\]:\s*<?(\S+?)>?(?:\s+(?:"[^"]*"|'[^']*'|\([^)]*\)))?\s*$
      | <([a-z]{2,12}:[^\s<>]+)>""",
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
_ATTRIBUTE = re.compile(r"""\b(?:href|src|srcset|action|data)\s*=\s*["']?([^\s"'>]+)""", re.I)
_EMPTY_SECTION = re.compile(r"^(#{1,6})[ \t].*+\n*+(?=^\1(?!#)|\s*+\Z)", re.MULTILINE)
_END_OF_URL = ".,;:!?)*_'\u2019\u201c"


@value
class Fault:
    """What is wrong with one unit of a report."""

    kind: FaultKind
    sentence: str
    what: str
    """The id, number, date, quotation, calculation or address that is wrong."""
    start: int
    end: int
    """Where the unit stands in the report."""
    ids: tuple[str, ...] = ()
    """The evidence that the unit cites."""

    @property
    def message(self) -> str:
        """What is wrong and what to do, for the model that wrote the report."""
        cited = ", ".join(self.ids) or "none"
        return {
            "unknown_id": f"there is no evidence {self.what}. Cite only ids of the ledger.",
            "uncited": f"it states {self.what} and cites no evidence. Add the id of the evidence "
            "that shows it, as in [e1], or leave it out.",
            "not_in_quotes": f"{self.what} stands in none of the quotations that it cites "
            f"({cited}). Write it as the quotation does, cite the evidence in which it stands, or "
            "leave it out. If you computed it, show the calculation: (330 m - 300 m = 30 m).",
            "wrong_sum": f"the calculation {self.what} is wrong. Correct it or leave it out.",
            "foreign_url": f"the address {self.what} is none of a page in the ledger. Leave "
            "addresses out: cite ids, and the addresses are added.",
        }[self.kind]


class _Haystack:
    """The quotations, titles and dates in which the statements of a unit have to stand."""

    def __init__(self, rows: Sequence[EvidenceRow], question: str) -> None:
        said = [row.quote for row in rows]
        about = [text for row in rows for text in (row.title, row.published) if text]
        # Each text is read by itself: the end of one and the beginning of the next say nothing.
        texts = [*said, *about]
        self._texts = [Normal(text) for text in texts]
        self.dates = [
            reading for text in [*texts, question] for date in dates.find(text)
            for reading in date.readings
        ]  # fmt: skip
        self.figures = [f for text in said for f in figures.find_all(figures.without_dates(text))]
        years = [f for text in [*about, question] for f in figures.find_all(text) if _is_year(f)]
        self.figures += years
        self.years = {date.year for date in self.dates}

    def has_date(self, found: dates.FoundDate) -> bool:
        return any(mine.is_in(its) for mine in found.readings for its in self.dates)

    def has_figure(self, figure: figures.Figure) -> bool:
        if any(figure.stands_for(its) for its in self.figures):
            return True
        return _is_year(figure) and any(value in self.years for value in figure.values)

    def has_words(self, quotation: Quotation) -> bool:
        return any(has_words(text, quotation.text) for text in self._texts)


def _is_year(figure: figures.Figure) -> bool:
    return not figure.unit and any(
        value.denominator == 1 and 1000 <= value <= 2199 for value in figure.values
    )


class _Checker:
    def __init__(self, rows: Sequence[EvidenceRow], question: str) -> None:
        self._rows: Mapping[str, EvidenceRow] = {row.id: row for row in rows}
        known = {_same_url(row.url) for row in rows}
        bare = {url.partition("://")[2] for url in known}
        self._urls = known | bare | {url.removeprefix("www.") for url in bare}
        self._question = question
        self._asked_dates = [d for found in dates.find(question) for d in found.readings]
        self._asked_years = {str(year) for year in re.findall(r"\b\d{4}\b", question)}
        self._haystacks: dict[tuple[str, ...], _Haystack] = {}

    def _haystack(self, ids: tuple[str, ...]) -> _Haystack:
        if ids not in self._haystacks:
            self._haystacks[ids] = _Haystack([self._rows[id] for id in ids], self._question)
        return self._haystacks[ids]

    def faults(self, unit: Unit) -> Iterator[Fault]:
        ids = unit.ids
        known = tuple(id for id in ids if id in self._rows)
        for url in urls(unit.text):
            if _same_url(url) not in self._urls:
                yield self._fault("foreign_url", unit, url)
        for id in ids:
            if id not in self._rows:
                yield self._fault("unknown_id", unit, id)
        words = _BARE.sub(" ", _URL.sub(" ", unit.words))
        if unit.kind == "heading":
            yield from self._unlike(unit, words, self._haystack(tuple(self._rows)))
        elif known:
            yield from self._unlike(unit, words, self._haystack(known))
        elif not ids and (what := self._needs_evidence(unit, words)):
            yield self._fault("uncited", unit, what)

    def _needs_evidence(self, unit: Unit, words: str) -> str | None:
        """Return the first thing in a sentence without citation that needs one.

        A date of the question may be repeated: it is the person's own.
        """
        if unit.is_quotation and words.strip():
            return f"the quotation “{_shortened(words)}”"
        for quotation in quotations(words):
            return f"the quotation “{_shortened(quotation.text)}”"
        for found in dates.find(words):
            if not any(mine.is_in(its) for mine in found.readings for its in self._asked_dates):
                return f"the date {words[found.start : found.end]}"
        for figure in figures.find(figures.without_dates(words)):
            if not (_is_year(figure) and figure.text.strip() in self._asked_years):
                return f"the number {figure.text.strip()}"
        found = superlative(words)
        return f"a superlative ({found})" if found else None

    def _unlike(self, unit: Unit, words: str, haystack: _Haystack) -> Iterator[Fault]:
        """Yield the numbers, dates and quotations that a unit states and its evidence does not
        contain."""
        said = quotations(words)
        if unit.is_quotation:
            said = [Quotation(text=words, start=0, end=len(words))]
        for quotation in said:
            if not haystack.has_words(quotation):
                shown = _shortened(quotation.text)
                yield self._fault("not_in_quotes", unit, f"the quotation “{shown}”")
        for found in dates.find(words):
            if not haystack.has_date(found):
                said_so = words[found.start : found.end]
                yield self._fault("not_in_quotes", unit, f"the date {said_so}")
        yield from self._unlike_numbers(unit, figures.without_dates(words), haystack)

    def _unlike_numbers(self, unit: Unit, words: str, haystack: _Haystack) -> Iterator[Fault]:
        computed: list[figures.Figure] = []
        in_sums: set[int] = set()
        for shown in find_sums(words):
            sources = [*computed, *haystack.figures]
            sourced = [o for o in shown.operands if any(o.stands_for(its) for its in sources)]
            if not shown.is_right:
                yield self._fault("wrong_sum", unit, shown.text)
            elif sourced and all(o in sourced or _is_plain(o) for o in shown.operands):
                computed.append(shown.result)
                in_sums |= {o.start for o in shown.operands}
        for figure in figures.find(words):
            is_computed = any(figure.stands_for(result) for result in computed)
            if not is_computed and figure.start not in in_sums and not haystack.has_figure(figure):
                yield self._fault("not_in_quotes", unit, f"the number {figure.text.strip()}")

    def _fault(self, kind: FaultKind, unit: Unit, what: str) -> Fault:
        return Fault(
            kind=kind,
            sentence=_shortened(unit.text),
            what=what,
            start=unit.start,
            end=unit.end,
            ids=tuple(unit.ids),
        )


def _is_plain(figure: figures.Figure) -> bool:
    """Whether it is a number that calculations may use without a source, such as 100 in a
    percentage."""
    return figure.text.strip(" %") in ("100", "2", "12")


def check_report(text: str, rows: Sequence[EvidenceRow], *, question: str = "") -> list[Fault]:
    """Return what is wrong with a report, in the order of its text.

    `question` are the words that the report answers: their dates and years need no evidence.
    """
    checker = _Checker(rows, question)
    return [fault for unit in units(text) for fault in checker.faults(unit)]


def describe(faults: Sequence[Fault]) -> str:
    """Return the faults as a list for the model that wrote the report."""
    lines = [f'{n}. "{f.sentence}": {f.message}' for n, f in enumerate(faults[:MOST_DESCRIBED], 1)]
    if more := len(faults) - MOST_DESCRIBED:
        lines += [f"… and {more} more of these kinds."] if more > 0 else []
    return "\n".join(lines)


def strike(text: str, faults: Sequence[Fault]) -> tuple[str, list[str]]:
    """Take the faulty units out of a report; return the rest and what was taken out."""
    spans = sorted({(fault.start, fault.end) for fault in faults})
    struck = [" ".join(text[start:end].split()) for start, end in spans]
    return without_spans(text, spans), struck


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
        before, (text, gone) = text, strike(text, faults)
        struck += gone
        if not faults:
            text = without_empty_sections(text)
        if text == before:
            return text, struck


def without_empty_sections(text: str) -> str:
    """Leave out headings below which nothing was left, and the empty lines in place of others."""
    kept = re.sub(r"\n{3,}", "\n\n", _EMPTY_SECTION.sub("", text)).strip()
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
