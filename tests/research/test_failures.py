"""Research whose readers or writer fail: the person is told that it failed, and why."""

from pathlib import Path
from typing import NoReturn

from agiraph.core.domain.errors import ModelMissing
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.work import NodeStatus, StopReason
from agiraph.core.services.lifecycle import continuations
from agiraph.core.store import messages
from agiraph.models.base import Request
from agiraph.testing import call, says
from tests.research.kit import FACTS, QUESTION, TALL, Cast, Scene, Step, brief_of, reads, scene

READER = reads(FACTS, ("It is 330 metres tall.", TALL))
SECOND = "What did the survey find?"
NO_MODEL = "models.example answered 404: no such model."


def refuses(_: Request) -> NoReturn:
    raise ModelMissing(NO_MODEL)


async def _last_words(it: Scene) -> str:
    """Return what the coordinator told the person last."""
    lead = it.team.coordinator.id
    said = await it.world.store.read(messages.conversation, it.team.team.id, lead, OWNER)
    return said[-1].text


async def test_a_job_whose_readers_all_fail_fails_with_their_reason(
    tmp_path: Path, database_url: str
) -> None:
    brief = brief_of(QUESTION, SECOND, kind="comparison")
    cast = Cast(brief=[says(brief)], readers={QUESTION: [refuses], SECOND: [refuses]})
    async with scene(tmp_path, cast, database_url=database_url) as it:
        job = await it.start()
        assert (job.status, job.stop_reason) == (NodeStatus.FAILED, StopReason.MODEL_REFUSED)
        [item] = await it.world.inbox()
        assert (item.kind, NO_MODEL in item.text) == ("failure", True)
        assert item.text.startswith("There is no report.")
        told = await _last_words(it)
        assert told.startswith("I could not finish the research you asked for")
        assert NO_MODEL in told


async def test_a_job_fails_if_one_reader_failed_and_the_other_found_nothing(tmp_path: Path) -> None:
    brief = brief_of(QUESTION, SECOND, kind="comparison")
    for failing in (QUESTION, SECOND):
        cast = Cast(brief=[says(brief)], readers={failing: [refuses]})
        async with scene(tmp_path / failing[:4], cast) as it:
            job = await it.start()
            assert (job.status, job.stop_reason) == (NodeStatus.FAILED, StopReason.MODEL_REFUSED)
            assert NO_MODEL in await _last_words(it)


async def test_a_job_whose_readers_found_nothing_is_not_reached_and_tells_so(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path, Cast()) as it:
        job = await it.start()
        assert (job.status, job.stop_reason) == (NodeStatus.FAILED, StopReason.NOT_REACHED)
        assert (await it.report()).startswith("No evidence was found")
        [item] = await it.world.inbox()
        assert (item.kind, item.title) == ("report", f"Research: {QUESTION}")
        told = await _last_words(it)
        assert told.startswith(f"The research found nothing (Research: {QUESTION})")


async def test_a_failed_job_that_is_tried_again_reads_its_questions_again(tmp_path: Path) -> None:
    cast = Cast(readers={QUESTION: [refuses]})
    async with scene(tmp_path, cast) as it:
        job = await it.start()
        assert job.status is NodeStatus.FAILED
        cast.readers = {QUESTION: READER}
        await it.world.store.write(continuations.retry, job.id)
        await it.world.settle()
        assert (await it.job()).status is NodeStatus.COMPLETED
        assert (await it.report()).startswith("## Answer\n\nThe tower is 330 metres tall [1].")


async def test_a_report_names_the_questions_whose_readers_failed(tmp_path: Path) -> None:
    brief = brief_of(QUESTION, SECOND, kind="comparison")
    cast = Cast(brief=[says(brief)], readers={QUESTION: READER, SECOND: [refuses]})
    async with scene(tmp_path, cast) as it:
        job = await it.start()
        assert job.status is NodeStatus.COMPLETED
        assert f"- {SECOND} (the reader's model cannot be used)" in await it.report()


async def test_a_report_that_no_model_could_write_says_why(tmp_path: Path) -> None:
    cast = Cast(readers={QUESTION: READER}, writing=[refuses])
    async with scene(tmp_path, cast) as it:
        await it.start()
        report = await it.report()
        assert "It is 330 metres tall [1]" in report
        assert NO_MODEL in report


async def test_a_follow_up_that_nobody_could_read_for_is_no_report(tmp_path: Path) -> None:
    """The ledger of the job that it continues is no result of its own."""
    cast = Cast(readers={QUESTION: READER})
    async with scene(tmp_path, cast) as it:
        first = await it.start()
        cast.brief, cast.readers = [says(brief_of(SECOND))], {SECOND: [refuses]}
        second = await it.start("Compare it with the survey.", continues=first.id)
        assert (second.status, second.stop_reason) == (NodeStatus.FAILED, StopReason.MODEL_REFUSED)
        assert [m.kind for m in await it.world.inbox()].count("report") == 1


async def test_a_report_whose_reader_wanted_more_pages_than_it_had_says_so(tmp_path: Path) -> None:
    more: list[Step] = [*READER[:2], says(call("web_fetch", url=f"{FACTS}?2")), *READER[2:]]
    cast = Cast(readers={QUESTION: more})
    async with scene(tmp_path, cast) as it:
        job = await it.start(max_pages=1)
        assert job.status is NodeStatus.COMPLETED
        told = "(its reader wanted more searches or pages than it had)"
        assert f"- {QUESTION} {told}" in await it.report()


async def test_the_chat_says_that_a_limit_ended_a_research(tmp_path: Path) -> None:
    brief = brief_of(QUESTION, SECOND, kind="comparison")
    cast = Cast(brief=[says(brief)], readers={QUESTION: READER, SECOND: READER})
    async with scene(tmp_path, cast) as it:
        job = await it.start(max_searches=0, max_pages=1)
        assert (job.status, job.stop_reason) == (NodeStatus.PARTIAL, StopReason.CALLS_SPENT)
        told = await _last_words(it)
        assert told.startswith("The research ended early: its searches and pages are used up")
