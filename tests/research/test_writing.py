"""The writing of a report: limits, messages that arrive meanwhile, and the words of its frame."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.work import Extension, NodeStatus, StopReason
from agiraph.core.services.lifecycle import continuations
from agiraph.features.research.model import report_check
from agiraph.features.research.model.kinds import part_of
from agiraph.features.research.model.report_words import english, words_of
from agiraph.features.research.verbs import frame
from agiraph.models.base import OnDelta, Reply, Request
from agiraph.testing import says
from tests.research.kit import FACTS, QUESTION, REPORT, TALL, Cast, brief_of, once, reads, scene

READER = reads(FACTS, ("It is 330 metres tall.", TALL))
SECOND = "What did the survey find?"


@pytest.mark.slow
async def test_time_that_runs_out_in_writing_is_told_and_can_be_extended(tmp_path: Path) -> None:
    cast = Cast(readers={QUESTION: READER})
    async with scene(tmp_path, cast) as it:

        def is_slow(_: Any) -> Any:
            it.world.clock.advance(seconds=1000)
            return says("Wait.")

        cast.writing = [is_slow]
        job = await it.start(depth="quick")
        assert (job.status, job.stop_reason) == (NodeStatus.PARTIAL, StopReason.TIME_SPENT)
        assert "The research stopped early: its time is used up." in await it.report()
        cast.writing = [says(REPORT)]
        await it.world.store.write(continuations.extend, job.id, Extension(seconds=3000), by=OWNER)
        await it.world.settle()
        assert (await it.job()).status is NodeStatus.COMPLETED
        assert (await it.report()).startswith("## Answer\n\nThe tower is 330 metres tall [1].")


async def test_money_that_runs_out_in_the_repair_is_told(tmp_path: Path) -> None:
    cast = Cast(readers={QUESTION: READER})
    cast.writing = [replace(says(f"{REPORT}- It has 9 lifts [e1].\n"), input_tokens=900_000)]
    async with scene(tmp_path, cast) as it:
        job = await it.start(depth="quick")
        assert (job.status, job.stop_reason) == (NodeStatus.PARTIAL, StopReason.TOKENS_SPENT)
        report = await it.report()
        assert report.startswith("## Answer\n\nThe tower is 330 metres tall [1].")
        assert "9 lifts" not in report


@dataclass(slots=True)
class Interrupted(Cast):
    """A cast whose person says something whenever a report is written."""

    tell: Any = None

    async def reply(self, request: Request, on_delta: OnDelta | None = None) -> Reply:
        if request.transcript.system.startswith("You write the report"):
            await self.tell()
        return await Cast.reply(self, request, on_delta)


async def test_a_report_that_cannot_be_written_again_is_kept(tmp_path: Path) -> None:
    cast = Interrupted(readers={QUESTION: READER})
    written: list[str] = []

    def first_only(_: Any) -> Any:
        written.append(REPORT)
        return says(REPORT if len(written) == 1 else "I will not.")

    cast.writing = [first_only]
    async with scene(tmp_path, cast) as it:
        cast.tell = once(lambda: it.tell("Take only the survey of 2022."))
        await it.start(depth="quick")
        assert len(written) > 1
        report = await it.report()
        assert report.startswith("## Answer\n\nThe tower is 330 metres tall [1].")
        assert english().not_used in report


@pytest.mark.slow
async def test_messages_make_a_job_write_again_only_a_few_times(tmp_path: Path) -> None:
    cast = Interrupted(readers={QUESTION: READER})
    async with scene(tmp_path, cast) as it:
        cast.tell = lambda: it.tell("And once more.")
        job = await it.start(depth="quick")
        parts = [part_of(n) for n in await it.parts(job)]
        assert parts.count("writing") == frame.MOST_WRITINGS
        assert job.status is NodeStatus.COMPLETED
        assert english().not_used in await it.report()


@pytest.mark.slow
async def test_sentences_that_nobody_compared_are_counted_in_the_report(tmp_path: Path) -> None:
    cast = Cast(readers={QUESTION: READER}, support=[says("I like it.")])
    async with scene(tmp_path, cast) as it:
        await it.start(depth="standard")
        told = "Sentences that a model compared with their quotations: 0 of 1."
        assert (await it.report()).rstrip().endswith(told)
        cast.support = [says('{"verdicts": [{"pair": 1, "verdict": "yes"}]}')]
        await it.start(depth="standard")
        assert "were compared" not in await it.report()


async def test_the_frame_of_a_report_is_in_the_language_of_the_question(tmp_path: Path) -> None:
    cast = Cast(brief=[says(brief_of(QUESTION, SECOND, language="German", kind="survey"))])
    cast.readers = {QUESTION: READER}
    cast.writing = [says("Nein.")]
    async with scene(tmp_path, cast) as it:
        job = await it.start(max_searches=0, max_pages=1)
        assert job.stop_reason is StopReason.CALLS_SPENT
        report = await it.report()
        words = words_of("German")
        assert words.not_written in report
        assert "Die Recherche endete vorzeitig: ihre Suchen und Seiten sind verbraucht." in report
        assert "model calls" not in report


@pytest.mark.parametrize("language", ["en", "de", "fr", "es", "it", "pt", "nl"])
def test_the_check_of_reports_leaves_the_words_of_the_frame(language: str) -> None:
    words = words_of(language)
    assert report_check.check_report(words.not_written, []) == []
    said = {
        words.stopped.format(reason=words.of_limit(reason))
        for reason in StopReason
        if reason.is_limit
    }
    assert len(said) == 5
    assert words.compared.format(done=3, all=7).count("3") == 1
