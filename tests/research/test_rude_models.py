"""Research with models that do what they should not: the job ends with an honest report."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from agiraph.core.domain.work import NodeStatus, StopReason
from agiraph.features.research.model.kinds import part_of
from agiraph.features.research.model.report_words import english
from agiraph.testing import call, says
from tests.research.kit import (
    FACTS,
    OPENED,
    QUESTION,
    REPORT,
    SURVEY,
    TALL,
    Cast,
    Step,
    brief_of,
    reads,
    scene,
)

READER = reads(FACTS, ("It is 330 metres tall.", TALL))
INVENTED = call(
    "note_evidence", claim="Giants built it.", quote="The tower was built by giants.", url=FACTS
)
BRIEFS: dict[str, Sequence[Step]] = {
    "prose": [says("I will look into the tower and tell you what I find.")],
    "other fields": [says('{"plan": ["search", "read"], "confidence": 1}')],
    "nothing": [says("")],
    "a call in text": [says('web_search(query="tower")'), says('{"name": "web_search"}')],
    "a report at once": [says("## Summary\n\nThe tower is 999 metres tall [1].")],
    "a list": [says("1. How tall is it?\n2. Since when?")],
    "seven hundred questions": [
        says(brief_of(*(f"{QUESTION} ({n})" for n in range(700)), kind="fact"))
    ],
}


@pytest.mark.parametrize("name", BRIEFS)
async def test_a_job_goes_on_without_a_readable_brief(tmp_path: Path, name: str) -> None:
    cast = Cast(brief=BRIEFS[name], readers={QUESTION: READER})
    async with scene(tmp_path, cast) as it:
        job = await it.start()
        assert job.status is NodeStatus.COMPLETED
        assert (await it.report()).startswith("## Answer\n\nThe tower is 330 metres tall [1].")
        assert "999" not in await it.report()


READERS: dict[str, list[Step]] = {
    "ends at once": [says(call("done", summary="I know that it is 999 metres tall."))],
    "quotes a page that it never opened": [
        says(call("note_evidence", claim="330 m.", quote=TALL, url=FACTS)),
        says(call("done")),
    ],
    "quotes a search result": [
        says(call("web_search", query="grand tower metres")),
        says(call("note_evidence", claim="330 m.", quote=TALL, url=FACTS)),
        says(call("done")),
    ],
    "gives one page the words of another": [
        says(call("web_fetch", url=FACTS)),
        says(call("note_evidence", claim="330 m.", quote=SURVEY, url=FACTS)),
        says(call("done")),
    ],
    "claims that it was noted": [
        says(call("web_fetch", url=FACTS)),
        says(INVENTED),
        says(call("done", summary="Noted as e1: giants built it in 999 days.")),
    ],
    "opens dead links only": [
        says(call("web_fetch", url="http://dead.example/")),
        says(call("web_fetch", url=f"{FACTS}/gone")),
        says(call("done")),
    ],
    "sends wrong arguments": [
        says(call("note_evidence", quote=TALL)),
        says(call("note_evidence", claim="x", quote=TALL, url=FACTS, stance="maybe")),
        says(call("done", nothing=1)),
        says(call("done")),
    ],
}


@pytest.mark.parametrize("name", READERS)
async def test_without_evidence_the_report_says_so_and_states_nothing(
    tmp_path: Path, name: str
) -> None:
    """Nobody is asked to write: a model without evidence would make it up."""
    cast = Cast(readers={QUESTION: READERS[name]}, writing=[says("It is 999 metres tall.")])
    async with scene(tmp_path, cast) as it:
        job = await it.start()
        assert (job.status.is_final, await it.ledger(job)) == (True, [])
        report = await it.report()
        assert report.startswith(english().nothing)
        assert "999" not in report
        assert "giants" not in report
        assert QUESTION in report  # under what could not be found
        assert cast.asked("writing") == []


FAILING: dict[str, tuple[StopReason, list[Step]]] = {
    "answers in words": (StopReason.SILENT, [says("The tower is 999 metres tall.")]),
    "waits in words": (StopReason.SILENT, [says("I will wait for the others to finish.")]),
    "says nothing": (StopReason.SILENT, [says("")]),
    "invents a quotation again and again": (
        StopReason.LOOPING,
        [says(call("web_fetch", url=FACTS)), says(INVENTED)],
    ),
}


@pytest.mark.parametrize("name", FAILING)
async def test_a_job_whose_reader_fails_without_evidence_fails_in_words_of_the_runtime(
    tmp_path: Path, name: str
) -> None:
    reason, steps = FAILING[name]
    async with scene(tmp_path, Cast(readers={QUESTION: steps})) as it:
        job = await it.start()
        assert (job.status, job.stop_reason) == (NodeStatus.FAILED, reason)
        [item] = await it.world.inbox()
        assert (item.kind, item.text) == (
            "failure",
            f"There is no report. It failed at “Read: {QUESTION}”: {reason.words}.",
        )


WRITERS: dict[str, Sequence[Step]] = {
    "nothing": [says("")],
    "a refusal": [says("I cannot help with that.")],
    "a promise": [says("I will write the report now. Please wait a moment.")],
    "no ids": [says("## Answer\n\nEverybody knows that the tower is very tall indeed.")],
    "unknown ids": [says("## Answer\n\nThe tower is 999 metres tall [e7].\n\nIt is old [e99].")],
    "numbers of its own": [says("## Answer\n\nThe tower is 999 metres tall [e1].")],
    "an address of its own": [says("## Answer\n\nSee http://evil.example/buy for it [e1].")],
    "an invented quotation": [says('## Answer\n\nThe page says "giants built it" [e1].')],
    "a call in text": [says('publish(summary="The tower is 999 metres tall")')],
    "JSON": [says(json.dumps({"report": "The tower is 999 metres tall."}))],
}


@pytest.mark.parametrize("name", WRITERS)
async def test_a_report_that_does_not_hold_is_replaced_by_what_was_noted(
    tmp_path: Path, name: str
) -> None:
    cast = Cast(readers={QUESTION: READER}, writing=WRITERS[name])
    async with scene(tmp_path, cast) as it:
        job = await it.start()
        assert job.status is NodeStatus.COMPLETED
        stated = (await it.report()).partition("\n## Sources")[0]
        assert "It is 330 metres tall [1]" in stated
        for wrong in ("999", "giants", "evil.example", "[e"):
            assert wrong not in stated
        assert len(cast.asked("writing")) <= 3


async def test_a_claim_with_a_number_of_its_own_is_replaced_by_the_words_of_its_page(
    tmp_path: Path,
) -> None:
    claims = ("It is 0.33 km tall.", TALL), ("It opened in spring.", OPENED)
    cast = Cast(readers={QUESTION: reads(FACTS, *claims)}, writing=[says("I cannot help.")])
    async with scene(tmp_path, cast) as it:
        await it.start()
        noted = [line for line in (await it.report()).splitlines() if line.startswith("- ")]
        one = "(one source)"
        assert noted == [f"- “{TALL}” [1]. {one}", f"- It opened in spring [1]. {one}"]


@pytest.mark.parametrize(
    "gaps",
    [
        [says("Everything is fine.")],
        [says('{"next": ["' + QUESTION + '"], "missing": ["the tower weighs 10,100 tonnes"]}')],
        [says("")],
    ],
)
async def test_an_unreadable_look_for_gaps_leads_to_the_report(
    tmp_path: Path, gaps: Sequence[Step]
) -> None:
    cast = Cast(
        brief=[says(brief_of(QUESTION, kind="survey"))], readers={QUESTION: READER}, gaps=gaps
    )
    async with scene(tmp_path, cast) as it:
        job = await it.start()
        assert job.status is NodeStatus.COMPLETED
        assert [part_of(n) for n in await it.parts(job)].count("reader") == 1
        assert "10,100" not in await it.report()


async def test_verdicts_in_words_strike_nothing(tmp_path: Path) -> None:
    cast = Cast(
        brief=[says(brief_of(QUESTION, kind="how-to"))],
        readers={QUESTION: READER},
        writing=[says(REPORT)],
        support=[says("All sentences are wrong, strike everything.")],
    )
    async with scene(tmp_path, cast) as it:
        await it.start()
        assert (await it.report()).startswith("## Answer\n\nThe tower is 330 metres tall [1].")
