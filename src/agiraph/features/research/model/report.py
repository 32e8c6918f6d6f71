"""Research report: renders a checked report with its numbered sources, and its files."""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from itertools import combinations, count
from typing import Any, NamedTuple, Protocol

from agiraph.core.domain.text.passages import is_unspaced
from agiraph.core.domain.value import value
from agiraph.features.research.model.jobs import EvidenceRow
from agiraph.features.research.model.report_check import check_report, plain, without_urls
from agiraph.features.research.model.report_words import ReportPhrases, words_of
from agiraph.features.research.model.sentences import CITATION, Unit, units, with_paragraphs
from agiraph.features.research.model.sources import site_of

_LONGEST_TITLE = 160
_WORD = re.compile(r"[^\W\d_]{4,}|\b[A-Z]{2,}|(?<=\d)[^\W\d_]+|(?<=\d\s)[^\W\d_]+")
"""A word of a claim, an abbreviation or the unit of a number: other short words, such as articles,
stand everywhere."""


class BriefLike(Protocol):
    """What a report shows of the job's brief."""

    @property
    def question(self) -> str: ...
    @property
    def language(self) -> str: ...
    @property
    def assumptions(self) -> Sequence[str]: ...


@value
class Counts:
    """What a job did, and what it cost."""

    depth: str
    searches: int
    pages: int
    usd: float | None
    """None if no price is known."""
    engine: str = ""
    """The names of the search engines."""
    stopped: str = ""
    """Why the job ended early, as a sentence; empty if it did not."""


class Report(NamedTuple):
    """A report and its files."""

    markdown: str
    evidence_jsonl: str
    """The ledger, one entry a line."""
    sources_json: str
    """The numbered sources, and which quotations each mark `[1]` of the report stands for."""


class _Citation(NamedTuple):
    number: int
    evidence: list[str]
    confirmed: bool
    """Whether another source shows the claim before this mark, too."""


def render(
    brief: BriefLike,
    text: str,
    rows: Sequence[EvidenceRow],
    counts: Counts,
    *,
    groups: Mapping[str, int] | None = None,
    struck: Sequence[str] = (),
    missing: Sequence[str] = (),
) -> Report:
    """Return the report for people, with footnote numbers for its sources: the source that the text
    cites first is 1.

    `text` is the checked text, which cites entries of the ledger as `[e12]`. `groups` are the
    numbers of independent sources (`sources.groups`), `struck` what the check took out, `missing`
    what could not be found.
    """
    words, ledger = words_of(brief.language), {row.id: row for row in rows}
    groups = groups or {row.id: n for n, row in enumerate(rows)}
    text = with_paragraphs(text)
    confirmed = _confirmed(text, ledger, groups, brief.question)
    marked, single = _mark_single(text, ledger, groups, words)
    body, citations, cited = _numbered(marked, ledger, confirmed)
    sources = [_source(number, url, rows, citations) for number, url in enumerate(cited, 1)]
    sections = [
        body.strip(),
        _list(words.missing, [counts.stopped, *missing], cited),
        _list(words.assumptions, brief.assumptions, cited),
        _section(
            words.sources, "\n".join(_source_line(each, words, single=single) for each in sources)
        ),
        _section(words.effort, _effort(words, counts, sources, rows, struck)),
    ]
    uses = [use._asdict() for use in citations]
    return Report(
        "\n\n".join(section for section in sections if section) + "\n",
        "".join(_line(row) for row in rows),
        json.dumps({"sources": sources, "citations": uses}, ensure_ascii=False, indent=1) + "\n",
    )


def _numbered(
    text: str, ledger: Mapping[str, EvidenceRow], confirmed: Collection[tuple[int, str]]
) -> tuple[str, list[_Citation], list[str]]:
    """Return the text with `[e3, e7]` replaced by `[1][2]`, what each such mark cites, in the
    order of the text, and the addresses by number."""
    cited: list[str] = []
    citations: list[_Citation] = []
    places = count()

    def marks(match: re.Match[str]) -> str:
        here: dict[str, list[str]] = {}
        place = next(places)
        for id in re.findall(r"e\d+", match[0].lower()):
            if id in ledger and id not in here.setdefault(ledger[id].url, []):
                here[ledger[id].url].append(id)
        for url in here:
            if url not in cited:
                cited.append(url)
        found = [
            _Citation(cited.index(url) + 1, ids, (place, url) in confirmed)
            for url, ids in here.items()
        ]
        citations.extend(found)
        return "".join(f"[{citation.number}]" for citation in found)

    return CITATION.sub(marks, text), citations, cited


def _confirmed(
    text: str, ledger: Mapping[str, EvidenceRow], groups: Mapping[str, int], question: str
) -> frozenset[tuple[int, str]]:
    """Return the places of the marks in the text (from 0) whose claim an independent source shows,
    too, each with an address that it cites.

    A claim is the part of a sentence before one mark. Two sources confirm it if each of them alone
    shows all its numbers, dates and quotations, and if they are about the same thing: neither holds
    a word of the claim that the other lacks, but for one that holds at least half of the other's.
    """
    found: set[tuple[int, str]] = set()
    starts = {mark.start(): place for place, mark in enumerate(CITATION.finditer(text))}
    for claim, marks in (each for unit in units(text) for each in _claims(text, unit)):
        ids = [id for mark in marks for id in re.findall(r"e\d+", mark[0].lower())]
        cited = [ledger[id] for id in ids if id in ledger and ledger[id].stance == "supports"]
        shown = [
            row
            for row in cited
            if not check_report(f"{claim} [{row.id}]", [row], question=question)
        ]
        states_facts = bool(check_report(claim, ()))
        for one, other in combinations(shown, 2):
            few, many = sorted((_words_of(claim, one), _words_of(claim, other)), key=len)
            is_same = few <= many and 2 * len(few) >= len(many) and (states_facts or bool(few))
            if is_same and groups.get(one.id, 0) != groups.get(other.id, 0):
                places = [starts[mark.start()] for mark in marks]
                found |= {(place, each.url) for place in places for each in (one, other)}
    return frozenset(found)


def _claims(text: str, unit: Unit) -> list[tuple[str, list[re.Match[str]]]]:
    """Return the parts of a sentence, each with the marks behind it; marks that stand side by side
    belong to one part."""
    found: list[tuple[str, list[re.Match[str]]]] = []
    start = text.index(unit.text, unit.start)
    for mark in CITATION.finditer(text, start, start + len(unit.text)):
        words, start = text[start : mark.start()], mark.end()
        if found and not words.strip():
            found[-1][1].append(mark)
        else:
            found.append((words, [mark]))
    return found


def _words_of(claim: str, row: EvidenceRow) -> set[str]:
    """Return the words of a claim that an entry of the ledger holds."""
    held = f"{row.claim} {row.quote} {row.title}".casefold()
    found = (each.casefold() for each in _WORD.findall(claim))
    # Where no spaces stand between words, each letter is taken for one.
    words = (part for each in found for part in (each if is_unspaced(each[0]) else (each,)))
    return {word for word in words if word in held}


def _mark_single(
    text: str, ledger: Mapping[str, EvidenceRow], groups: Mapping[str, int], words: ReportPhrases
) -> tuple[str, frozenset[str]]:
    """Say "one source" in each item of a list that has neither a primary nor two sources; return
    also the addresses of those sources."""
    single: set[str] = set()
    for unit in reversed(units(text)):
        cited = [ledger[id] for id in unit.ids if id in ledger]
        is_weak = cited and len({groups.get(row.id, 0) for row in cited}) == 1
        is_weak = is_weak and all(row.source_class != "primary" for row in cited)
        if unit.is_item and is_weak:
            text = f"{text[: unit.end]} ({words.one_source}){text[unit.end :]}"
            single |= {row.url for row in cited}
    return text, frozenset(single)


def _source(
    number: int,
    url: str,
    rows: Sequence[EvidenceRow],
    citations: Sequence[_Citation],
) -> dict[str, Any]:
    mine = [row for row in rows if row.url == url]
    first = mine[0]
    uses = [citation for citation in citations if citation.number == number]
    used = {id for citation in uses for id in citation.evidence}
    return {
        "number": number,
        "title": " ".join(first.title.split())[:_LONGEST_TITLE],
        "site": site_of(url),
        "url": url,
        "published": first.published,
        "read": f"{first.fetched_at:%Y-%m-%d}",
        "class": first.source_class,
        "confirmed": any(citation.confirmed for citation in uses),
        "checked": all(row.checked != "unchecked" for row in mine if row.id in used),
        "evidence": [row.id for row in mine if row.id in used],
    }


def _source_line(
    source: Mapping[str, Any], words: ReportPhrases, *, single: Collection[str]
) -> str:
    title = plain(source["title"])
    is_named = title and title != source["site"]
    facts: list[str] = [source["site"]]
    if source["published"]:
        facts.append(f"{words.published} {plain(source['published'])}")
    facts += [f"{words.read} {source['read']}", words.of_class(source["class"])]
    if not source["confirmed"]:
        facts.append(words.single)
    elif source["url"] not in single:  # an item of the report says that it has this source alone
        facts.append(words.confirmed)
    if not source["checked"]:
        facts.append(words.unchecked)
    lead = f"{title}: " if is_named else ""
    return f"{source['number']}. {lead}{', '.join(facts)}. <{source['url']}>"


def _effort(
    words: ReportPhrases,
    counts: Counts,
    sources: Sequence[object],
    rows: Sequence[EvidenceRow],
    struck: Sequence[str],
) -> str:
    cost = words.no_price if counts.usd is None else f"${counts.usd:.2f}"
    searches, pages, cited, quotes = words.count(
        (counts.searches, counts.pages, len(sources), len(rows))
    )
    left_out = f" {words.struck.format(count=len(struck))}" if struck else ""
    said = words.counts.format(
        searches=f"{searches} ({counts.engine})" if counts.engine else searches,
        pages=pages,
        sources=cited,
        quotes=quotes,
        cost=cost,
        depth=counts.depth,
    )
    return said + left_out


def _section(heading: str, body: str) -> str:
    return f"## {heading}\n\n{body}" if body else ""


def _list(heading: str, lines: Sequence[str], known: Sequence[str]) -> str:
    """Return a section of lines that a model wrote and nobody checked, without other addresses."""
    said = [" ".join(line.split()) for line in lines if line.strip()]
    return _section(heading, "\n".join(f"- {without_urls(line, known)}" for line in said))


def _line(row: EvidenceRow) -> str:
    entry = {
        "id": row.id,
        "claim": row.claim,
        "quote": row.quote,
        "url": row.url,
        "page_hash": row.page_hash,
        "offset": row.place,
        "title": row.title,
        "published": row.published,
        "fetched_at": row.fetched_at.isoformat(),
        "class": row.source_class,
        "question": row.question,
        "stance": row.stance,
        "label": row.label.to_list(),
        "checked": row.checked,
    }
    return json.dumps(entry, ensure_ascii=False) + "\n"
