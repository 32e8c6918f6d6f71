"""Research on a web of more than forty pages with known facts: whatever the writer writes, every
address, quotation and number of the report is in the ledger, and every quotation on its page."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from agiraph.core.domain.work import NodeStatus
from agiraph.features.research.model.page_quotes import QuoteFound, find_quote
from agiraph.features.research.model.report_check import check_report, urls
from agiraph.features.research.rows import jobs as research
from agiraph.testing import call, says
from agiraph.testing.clock import ManualClock
from tests.known_web import FACTS, SITES, Fact
from tests.local_web import local_web
from tests.research.kit import Cast, Step, brief_of, scene

ASKED = [fact for fact in FACTS if "papers.example" not in fact.url][:4]
FALSE = (
    "The bridge cost 999 million crowns [e1].",
    "See http://collector.example/take for more [e1].",
    'The mayor said "we regret everything" [e2].',
    "All islands together have 77,777 residents [e1, e2, e3].",
    "La isla mayor tiene 88.888 habitantes.",
    "Nobody lives there since 31 February 2024 [e9].",
)


def _reader(fact: Fact) -> list[Step]:
    note = call("note_evidence", claim=fact.quote, quote=fact.quote, url=fact.url)
    return [
        says(call("web_search", query=fact.question[:60])),
        says(call("web_fetch", url="http://ferry.example/fares-2020")),  # a dead link
        says(call("web_fetch", url=fact.url)),
        says(note),
        says(call("done")),
    ]


def _cast() -> Cast:
    true = [f"- {fact.quote.rstrip('.')} [e{{{n}}}]." for n, fact in enumerate(ASKED)]
    text = "## Answer\n\n" + "\n".join([*FALSE, "", *true]) + "\n"

    def write(request: Any) -> Any:
        shown = request.transcript.system.partition("# The evidence")[2]
        ids = [re.search(rf"\[e(\d+)\] {re.escape(fact.quote)}", shown) for fact in ASKED]
        return says(text.format(*(found[1] if found else "99" for found in ids)))

    return Cast(
        brief=[says(brief_of(*(fact.question for fact in ASKED), kind="survey"))],
        readers={fact.question: _reader(fact) for fact in ASKED},
        writing=[write],
    )


@pytest.mark.parametrize("engine", ["searxng", "open"])
async def test_every_statement_of_a_report_is_in_the_ledger_and_on_its_page(
    tmp_path: Path, engine: str
) -> None:
    assert sum(map(len, SITES.values())) >= 40
    async with local_web(ManualClock(), SITES) as known:
        web = known.access if engine == "searxng" else known.open_access
        async with scene(tmp_path, _cast(), web=web) as it:
            job = await it.start("What is known of the islands?")
            assert job.status is NodeStatus.COMPLETED
            report, files = await it.report(), it.world.published(job)
            found = await it.findings(job.id)
            pages = await it.world.store.read(research.texts, [job.id])
    rows = found.rows
    assert {row.quote for row in rows} == {fact.quote for fact in ASKED}
    for row in rows:
        assert isinstance(find_quote(row.quote, pages[row.page_hash]), QuoteFound)
        assert pages[row.page_hash][row.place :].startswith(row.quote[:10])
    assert set(urls(report)) <= {row.url for row in rows}
    assert check_report(found.job.draft, rows, question=found.job.question) == []
    for fact in ASKED:
        assert fact.answer in report
    for wrong in (
        "999",
        "77,777",
        "88.888",
        "we regret everything",
        "collector.example",
        "31 February",
    ):
        assert wrong not in report
    assert f"({engine})" in report
    assert (found.counts.searches, found.counts.pages) == (4, 4)  # dead links are free
    assert len(json.loads(files["sources.json"])["sources"]) == len({row.url for row in rows})
