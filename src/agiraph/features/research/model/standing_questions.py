"""Standing questions: what is new when a research question is asked again.

Words are new if no earlier job has noted them, and if they did not stand on the page when an
earlier job read it. So a page that changed its date, or a reader that quotes another sentence of an
old page, is no news.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from agiraph.features.research.model.evidence import EvidenceRow
from agiraph.features.research.model.page_quotes import QuoteFound, find_quote, normal
from agiraph.features.research.model.report_check import plain, without_spans
from agiraph.features.research.model.report_words import words_of
from agiraph.features.research.model.sentences import units

MOST_LISTED = 20
"""Quotations that the list of what is new shows."""


def news(
    own: Sequence[EvidenceRow],
    earlier: Sequence[EvidenceRow],
    pages: Mapping[str, Sequence[str]],
) -> list[EvidenceRow]:
    """Return the entries of a job whose words are new.

    `earlier` are the entries of the jobs before it, and `pages` the texts in which those jobs have
    read each address.
    """
    known = [normal(row.quote) for row in earlier]
    hashes = {row.page_hash for row in earlier}
    # By page: the normal form of a page is kept for the next quotation on it.
    fresh = [row for row in sorted(own, key=lambda row: row.url) if row.page_hash not in hashes]
    fresh = [row for row in fresh if not any(normal(row.quote) in said for said in known)]
    found = {row.id for row in fresh if not _stood_there(row, pages.get(row.url, ()))}
    return [row for row in own if row.id in found]


def _stood_there(row: EvidenceRow, texts: Sequence[str]) -> bool:
    found = (find_quote(row.quote, text, wants_nearest=False) for text in texts)
    return any(isinstance(each, QuoteFound) for each in found)


def only_new(text: str, new_ids: Collection[str]) -> str:
    """Return a report without the sentences that cite only what was known before."""
    old = [
        (unit.start, unit.end)
        for unit in units(text)
        if unit.ids and not any(id in new_ids for id in unit.ids)
    ]
    return without_spans(text, old)


def difference(fresh: Sequence[EvidenceRow], *, since: datetime, language: str) -> str:
    """Return the section with the words that are new since the last report, without the links and
    marks that a page puts into them."""
    words = words_of(language)
    heading = words.new_since.format(date=f"{since:%Y-%m-%d}")
    lines = [f"- “{plain(row.quote)}” [{row.id}]" for row in fresh[:MOST_LISTED]]
    if len(fresh) > MOST_LISTED:
        lines.append(f"- … (+{len(fresh) - MOST_LISTED})")
    return f"## {heading}\n\n" + "\n".join(lines) + "\n"
