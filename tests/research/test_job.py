"""A research job: brief, readers, gaps, report, check and delivery, each a node."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.provenance.labels import SEARCH, of_page
from agiraph.core.domain.work import NodeStatus
from agiraph.core.services.board import jobs
from agiraph.core.store import messages
from agiraph.core.store.texts import passages
from agiraph.features.research.model.kinds import part_of
from agiraph.features.research.routes import research_view
from agiraph.testing import call, says
from tests.doubts import doubts_of
from tests.research.kit import (
    EVIL,
    FACTS,
    NEWS,
    OLD,
    OLD_GUIDE,
    OPENED,
    ORDER,
    QUESTION,
    SECRET,
    SURVEY,
    SURVEYED,
    TALL,
    Cast,
    brief_of,
    reads,
    scene,
)

SEARCHES = says(call("web_search", query="grand tower metres"))


async def test_a_quick_job_delivers_a_report_whose_sentences_have_sources(
    tmp_path: Path, database_url: str
) -> None:
    reader = [SEARCHES, *reads(FACTS, ("It is 330 metres tall.", TALL))]
    cast = Cast(readers={QUESTION: reader})
    async with scene(tmp_path, cast, database_url=database_url) as it:
        job = await it.start()
        assert (job.status, doubts_of(job), job.asked_of) == (
            NodeStatus.COMPLETED,
            None,
            it.team.coordinator.id,
        )
        reading, writing = await it.parts(job)
        assert [(part_of(n), (not n.kind.sees_team), n.status) for n in (reading, writing)] == [
            ("reader", True, NodeStatus.COMPLETED),
            ("writing", True, NodeStatus.COMPLETED),
        ]
        assert await it.ledger(job) == [("e1", "It is 330 metres tall.", TALL)]
        report = await it.report()
        assert report.startswith("## Answer\n\nThe tower is 330 metres tall [1].")
        assert FACTS in report
        files = it.world.published(job)
        assert set(files) == {"report.md", "evidence.jsonl", "sources.json"}
        assert files["report.md"].strip() == report
        [entry] = map(json.loads, files["evidence.jsonl"].splitlines())
        assert (entry["quote"], entry["url"]) == (TALL, FACTS)
        [item] = [m for m in await it.world.inbox() if m.node_id == job.id]
        assert item.label == SEARCH | of_page(FACTS)
        said = await it.world.store.read(
            messages.conversation, it.team.team.id, it.team.coordinator.id, OWNER
        )
        assert said[-1].text.endswith("The tower is 330 metres tall [1].")
        hits = await it.world.store.read(
            passages.find, "tower metres tall", team_id=it.team.team.id, owner="", limit=5
        )
        labels = {hit.label for hit in hits if hit.kind == "report"}
        assert labels == {SEARCH | of_page(FACTS)}
        listed = await it.world.store.read(jobs.of_team, it.team.team.id)
        assert dict(next(j for j in listed if j.node.id == job.id).used) == {
            "web_search": 1,
            "web_fetch": 1,
        }
        how = await it.world.store.read(research_view, job.id)
        assert (how.phase, how.searches, len(how.pages)) == ("ended", 1, 1)
        assert (how.searches_limit, how.pages_limit) == (4, 6)


QUESTIONS = ("How tall is it?", "When was it opened?", "What did the survey find?")


@pytest.mark.slow
async def test_three_readers_work_side_by_side(tmp_path: Path) -> None:
    """All three have begun before one of them may end."""
    barrier = asyncio.Barrier(3)
    arrived: set[str] = set()
    cast = Cast(
        brief=[says(brief_of(*QUESTIONS, kind="comparison"))],
        readers={
            QUESTIONS[0]: reads(FACTS, ("It is 330 metres tall.", TALL)),
            QUESTIONS[1]: reads(FACTS, ("It was opened in 1889.", OPENED)),
            QUESTIONS[2]: reads(SURVEYED, ("The survey found 330 metres.", SURVEY)),
        },
        writing=[
            says(
                "## Answer\n\nThe tower is 330 metres tall [e1, e3].\n\n## Key findings\n\n"
                "- It is 330 metres tall [e1, e3].\n- It was opened on 31 March 1889 [e2].\n"
            )
        ],
    )

    async def wait_for_all() -> None:
        task = cast.requests[-1][2]
        if task not in arrived:
            arrived.add(task)
            await barrier.wait()

    cast.before_reading = wait_for_all
    async with scene(tmp_path, cast) as it:
        job = await it.start()
        parts = await it.parts(job)
        assert [part_of(n) for n in parts] == [*["reader"] * 3, "gaps", "writing", "support"]
        assert job.status is NodeStatus.COMPLETED
        assert len({n.assignee_id for n in parts[:3]}) == 3
        assert len(await it.ledger(job)) == 3


async def test_gaps_are_read_for_before_the_report_is_written(tmp_path: Path) -> None:
    further = "What did the survey find?"
    cast = Cast(
        brief=[says(brief_of(QUESTION, kind="survey"))],
        readers={
            QUESTION: reads(FACTS, ("It is 330 metres tall.", TALL)),
            further: reads(SURVEYED, ("The survey found 330 metres.", SURVEY)),
        },
        gaps=[says(json.dumps({"missing": [], "next": [{"question": further}]}))],
        writing=[says("## Answer\n\nThe tower is 330 metres tall [e1, e2].\n")],
    )
    async with scene(tmp_path, cast) as it:
        job = await it.start()
        parts = [part_of(n) for n in await it.parts(job)]
        assert parts == ["reader", "gaps", "reader", "writing", "support"]
        assert [quote for _, _, quote in await it.ledger(job)] == [TALL, SURVEY]
        # The words of a page led to the second question: it stands in a fence.
        assert "<<<" in cast.asked("reader")[-1][1]
        assert (await it.report()).startswith("## Answer\n\nThe tower is 330 metres tall [1][2].")


async def test_what_does_not_hold_goes_back_once_and_is_then_struck(tmp_path: Path) -> None:
    wrong = "## Answer\n\nThe tower is 330 metres tall [e1]. It weighs 10,100 tonnes [e1].\n"
    cast = Cast(
        readers={QUESTION: reads(FACTS, ("It is 330 metres tall.", TALL))},
        writing=[says(wrong), says(wrong)],
    )
    async with scene(tmp_path, cast) as it:
        await it.start()
        report = await it.report()
        assert report.startswith("## Answer\n\nThe tower is 330 metres tall [1].\n\n## Sources")
        assert report.endswith("Sentences left out, because no source shows them: 1.")
        assert "It weighs" not in report
        assert len(cast.asked("writing")) == 2


async def test_a_sentence_that_its_quotation_does_not_support_is_struck(tmp_path: Path) -> None:
    cast = Cast(
        brief=[says(brief_of(QUESTION, kind="how-to"))],
        readers={QUESTION: reads(FACTS, ("It is 330 metres tall.", TALL))},
        writing=[
            says(
                "## Answer\n\nThe tower is 330 metres tall [e1].\n\n## Key findings\n\n"
                "- It is 330 metres tall [e1].\n- Visitors love the 330 metres [e1].\n"
            )
        ],
        support=[
            says('{"verdicts": [{"pair": 1, "verdict": "yes"}, {"pair": 2, "verdict": "no"}]}')
        ],
    )
    async with scene(tmp_path, cast) as it:
        job = await it.start()
        found = await it.findings(job.id)
        assert "Visitors" not in found.job.draft
        assert [line for line in found.job.struck if "Visitors" in line]


async def test_contradicting_pages_are_both_told_and_never_averaged(tmp_path: Path) -> None:
    reader = [
        says(call("web_fetch", url=FACTS)),
        says(call("web_fetch", url=OLD_GUIDE)),
        says(call("note_evidence", claim="It is 330 m tall.", quote=TALL, url=FACTS)),
        says(
            call(
                "note_evidence",
                claim="It is 330 m tall.",
                quote=OLD,
                url=OLD_GUIDE,
                stance="contradicts",
            )
        ),
        says(call("done")),
    ]
    told = "One page says 330 metres [e1], an old guide says 312 metres [e2]."
    cast = Cast(
        readers={QUESTION: reader},
        writing=[says(f"## Answer\n\n{told} On average it is 321 metres tall [e1, e2].\n")],
    )
    async with scene(tmp_path, cast) as it:
        await it.start()
        shown = cast.asked("writing")[0][0]
        assert "contradicts" in shown
        body = (await it.report()).partition("\n## ")[0]
        assert "330 metres [1]" in body
        assert "312 metres [2]" in body
        assert "321" not in body


async def test_two_pages_with_the_same_words_are_one_source(tmp_path: Path) -> None:
    words = "the tower will be painted again next year"
    reader = [
        *(says(call("web_fetch", url=url)) for url in NEWS),
        *(
            says(call("note_evidence", claim="It is painted again.", quote=words, url=url))
            for url in NEWS
        ),
        says(call("done")),
    ]
    cast = Cast(
        readers={QUESTION: reader},
        writing=[
            says("## Answer\n\nYes [e1].\n\n## Key findings\n\n- It will be painted [e1, e2].\n")
        ],
    )
    async with scene(tmp_path, cast) as it:
        await it.start()
        report = await it.report()
        assert "- It will be painted [1][2]. (one source)" in report or "one source" in report
        assert "source 1" in cast.asked("writing")[0][0]
        assert "source 2" not in cast.asked("writing")[0][0]


async def test_a_page_that_gives_orders_finds_nothing_to_send_and_nobody_to_hire(
    tmp_path: Path, database_url: str
) -> None:
    """The reader is public: nothing of the team's is in its prompt, and it has none of the
    tools that the page asks for."""
    obeys = [
        says(call("web_fetch", url=EVIL)),
        says(
            call("send_message", to="human", text=SECRET),
            call("memory_write", path="MEMORY.md", content=ORDER),
            call("spawn_worker", name="eve", role="worker"),
        ),
        says(call("note_evidence", claim="Iron.", quote="The tower is made of iron.", url=EVIL)),
        says(call("done", summary=ORDER)),
    ]
    cast = Cast(
        readers={QUESTION: obeys}, writing=[says("## Answer\n\nThe tower is made of iron [e1].\n")]
    )
    async with scene(tmp_path, cast, database_url=database_url) as it:
        job = await it.start()
        [reading, _] = await it.parts(job)
        turns = await it.world.turns(reading.id)
        refused = [turn for turn in turns if turn.role == "tool" and turn.failed]
        assert len(refused) == 3
        seen = [(part, system, task) for part, system, task in cast.requests if part != "brief"]
        assert not any(SECRET in system + task for _, system, task in seen[:1])
        assert SECRET not in "".join(turn.text for turn in turns if turn.role in ("system", "user"))
        [item] = [m for m in await it.world.inbox() if m.kind == "report"]
        assert of_page(EVIL).sources[0] in item.label.sources
        assert [a for a in it.web.visited("evil.example")] == ["/page"]


async def test_the_report_is_written_in_the_language_of_the_person(tmp_path: Path) -> None:
    cast = Cast(
        brief=[says(brief_of("Wie hoch ist der Turm?", language="German"))],
        readers={"Wie hoch": reads(FACTS, ("Er ist 330 Meter hoch.", TALL))},
        writing=[says("## Antwort\n\nDer Turm ist 330 Meter hoch [e1].\n")],
    )
    async with scene(tmp_path, cast) as it:
        await it.start("Wie hoch ist der Turm?")
        assert "Language of the report: German" in cast.asked("writing")[0][0]
        assert "## Quellen" in await it.report()


@pytest.mark.parametrize("name", ["rob", "eve"])
async def test_readers_may_have_a_cheaper_model(tmp_path: Path, name: str) -> None:
    cast = Cast(readers={QUESTION: reads(FACTS, ("It is 330 metres tall.", TALL))})
    cheap = Cast(readers=cast.readers)
    more: dict[str, Any] = {"reader_model": "scripted/eve"} if name == "eve" else {}
    async with scene(tmp_path, cast, **more) as it:
        it.world.model("eve", cheap)
        await it.start()
        mine = cheap if name == "eve" else cast
        assert mine.asked("reader")
        assert cast.asked("writing")
