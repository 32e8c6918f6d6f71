"""A research on the known web, without any key: open sources, a PDF, script data, a long page."""

import re
from dataclasses import replace
from pathlib import Path

from agiraph.domain.work import NodeStatus
from agiraph.providers.base import Request
from agiraph.services.board import costs
from agiraph.testing import call, says
from agiraph.testing.script import Says
from tests import open_source_apis
from tests.known_web import FACTS, SITES, Fact
from tests.research.kit import Cast, Step, brief_of, scene
from tests.web.sites import unused_port

QUESTION = "How do people live on the islands?"
ASKED = {
    "How many residents do all islands have together?": "13,560",
    "How many berths does Tern Harbour have?": "118",
    "What is the mooring fee?": "9.40 crowns",
    "When did the Sound Bridge open?": "14 May 2019",
}
_ENTRY = re.compile(r"^\[(e\d+)\] (.*)$", re.MULTILINE)


def _fact(question: str) -> Fact:
    return next(fact for fact in FACTS if fact.question == question)


def _reader(question: str) -> list[Step]:
    """Return the replies of a reader that searches, tries a dead link, and reads up the fact."""
    fact = _fact(question)
    note = call("note_evidence", claim=fact.answer, quote=fact.quote, url=fact.url)
    return [
        says(call("web_search", query="Sound Bridge Marrow Tern")),
        says(call("web_fetch", url="http://herald.example/2018/residents")),
        says(call("web_fetch", url=fact.url)),
        says(call("find_in_page", url=fact.url, words=fact.quote[:60])),
        says(note),
        says(call("done", summary="Found.")),
    ]


async def test_facts_of_a_pdf_a_script_page_and_deep_in_a_page_are_cited_without_a_key(
    tmp_path: Path,
) -> None:
    cast = Cast(
        brief=[says(brief_of(*ASKED, question=QUESTION, kind="survey"))],
        readers={question: _reader(question) for question in ASKED},
        writing=[_write],
    )
    async with scene(tmp_path, cast, sites=SITES, access=lambda served: served.open_access) as it:
        job = await it.start(QUESTION, depth="standard")
        report, ledger = await it.report(), await it.ledger(job)
        bills = await it.world.store.read(costs.of_team, it.team.team.id)
        visits = it.web.visited("herald.example")
    assert job.status is NodeStatus.COMPLETED
    assert sorted(quote for _, _, quote in ledger) == sorted(_fact(q).quote for q in ASKED)
    for question in ASKED:
        assert f"- {_fact(question).quote} [" in report
        assert _fact(question).url in report
    # The report says which engine it had, and each search is a row of the costs, although free.
    assert "(open)" in report
    assert bills.by_model["search:open"].calls == len(ASKED)
    assert visits == ["/2018/residents"] * len(ASKED)
    assert len(it.web.queries) == 3 * len(ASKED) + 1  # and one look whether a source answers


def _write(request: Request) -> Says:
    """Cite the entry of the ledger with each answer."""
    ids = {answer: id for id, answer in _ENTRY.findall(request.transcript.system)}
    lines = [f"- {_fact(question).quote} [{ids[answer]}]" for question, answer in ASKED.items()]
    return says("## Answer\n\nThis is known of it.\n\n## Key findings\n\n" + "\n".join(lines))


async def test_without_a_reachable_source_a_job_names_the_settings_and_asks_no_model(
    tmp_path: Path,
) -> None:
    engine = open_source_apis.engine(f"http://127.0.0.1:{unused_port()}")
    cast = Cast()
    async with scene(
        tmp_path, cast, access=lambda served: replace(served.access, engine=engine)
    ) as it:
        job = await it.start()
        [item] = [m for m in await it.world.inbox() if m.kind == "failure"]
    assert job.status is NodeStatus.FAILED
    assert item.text.startswith("There is no report. The web cannot be searched: no search engine")
    assert "BRAVE_API_KEY" in item.text
    assert cast.requests == []
