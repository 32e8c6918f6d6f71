"""Standing questions: research on a schedule that reports only what is new."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from agiraph.core.domain.errors import Refused
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.work import NodeStatus, StopReason, WorkNode
from agiraph.core.services.triggers import definitions
from agiraph.core.store import triggers
from agiraph.core.store.teams import TEAMS
from agiraph.core.store.triggers import TRIGGERS
from agiraph.features.research.model import kinds as research_kinds
from agiraph.features.research.rows.jobs import JOBS
from agiraph.features.research.verbs import ledger, standing_questions
from agiraph.testing import says
from tests.local_web import Page
from tests.research.kit import (
    FACTS,
    OPENED,
    QUESTION,
    SITES,
    SURVEY,
    SURVEYED,
    TALL,
    Cast,
    Scene,
    reads,
    scene,
)
from tests.services.stages import pass_time

DAY = timedelta(days=1).total_seconds()
OLD_AND_NEW = "## Answer\n\nIt is 330 metres tall [e1].\n\nThe survey of 2022 agrees [e3].\n"


async def ask_daily(it: Scene) -> str:
    made = await it.world.store.write(
        definitions.create,
        agent_id=it.team.coordinator.id,
        type="scheduled",
        config={"cron": "0 9 * * *"},
        action="research",
        payload={"question": QUESTION, "depth": "quick", "model": "scripted/rob"},
        made_by=OWNER,
    )
    return made.trigger.id


async def reports(it: Scene) -> list[str]:
    return [m.text for m in await it.world.inbox() if m.kind in ("report", "failure")]


@pytest.mark.slow
async def test_a_repeated_question_reports_only_what_is_new(tmp_path: Path) -> None:
    cast = Cast(readers={QUESTION: reads(FACTS, ("It is 330 metres tall.", TALL))})
    async with scene(tmp_path, cast) as it:
        trigger = await ask_daily(it)
        await pass_time(it.world, DAY)
        first = await it.job()
        [report] = await reports(it)
        assert "330 metres tall [1]" in report

        # Another sentence of a page that says what it said is no news: nobody writes or is told.
        cast.readers = {QUESTION: reads(FACTS, ("It opened in 1889.", OPENED))}
        await pass_time(it.world, DAY)
        second = await it.job()
        assert second.id != first.id
        assert (second.status, second.stop_reason) == (
            NodeStatus.COMPLETED,
            StopReason.NOTHING_TO_DO,
        )
        assert (second.result or "").startswith("Nothing is new since ")
        assert len(await reports(it)) == 1
        assert len(cast.asked("writing")) == 1

        # A new page is news. What only repeats the last report is left out of it.
        cast.readers = {QUESTION: reads(SURVEYED, ("It measured 330 metres.", SURVEY))}
        cast.writing = [says(OLD_AND_NEW)]
        await pass_time(it.world, DAY)
        *_, newest = await reports(it)
        date = f"{first.ended_at:%Y-%m-%d}"
        assert newest.startswith(
            "## Answer\n\nThe survey of 2022 agrees [1].\n\n"
            f"## New since the report of {date}\n\n- “{SURVEY}” [1]"
        )
        system, _ = cast.asked("writing")[-1]
        assert "New are the entries e3; the others are known." in system
        firings = await it.world.store.read(triggers.firings, trigger, limit=10)
        assert [each.outcome for each in firings] == ["fired"] * 3


async def test_words_of_any_earlier_run_are_no_news(tmp_path: Path, database_url: str) -> None:
    """The page had them, lost them and has them again, at an address that is written otherwise; and
    the runs are more than a ledger goes back."""
    old, other = f"# The tower\n\n{TALL} {OPENED}\n", "# The tower\n\nThe page is closed.\n"
    async with scene(tmp_path, Cast(), database_url=database_url) as it:
        trigger = await it.world.store.read(TRIGGERS.get, await ask_daily(it))
        await it.world.store.write(TEAMS.update, it.team.team.id, status="paused")
        jobs = [
            await it.world.store.write(
                standing_questions.ACTION.start, it.team.coordinator, trigger
            )
            for _ in range(4)
        ]
        await kept(it, jobs[0], FACTS, old)
        await kept(it, jobs[1], FACTS, other)
        await noted(it, jobs[0], TALL)
        # As if so many runs lay between that the chain of jobs does not reach the first ones.
        await it.world.store.write(JOBS.update, jobs[3].id, continues=jobs[2].id)
        await it.world.store.write(JOBS.update, jobs[2].id, continues=None)
        again = FACTS.replace("http://", "https://www.") + "/"
        await kept(it, jobs[3], again, f"{old}\nA new line.\n{SURVEY}\n")
        for quote in (TALL, OPENED, SURVEY):
            await noted(it, jobs[3], quote, again)
        job = await it.world.store.read(JOBS.get, jobs[3].id)
        found = await it.world.store.read(standing_questions.news, job)
        assert found is not None
        assert [row.quote for row in found.rows] == [SURVEY]


async def kept(it: Scene, job: WorkNode, url: str, text: str) -> None:
    given = {"url": url, "title": "The tower", "text": text}
    await it.world.store.write(ledger.keep_page, reader_of(job), **given)


async def noted(it: Scene, job: WorkNode, quote: str, url: str = FACTS) -> None:
    reader, store = reader_of(job), it.world.store
    found = ledger.look_up(await store.read(ledger.pages_at, reader, url), quote)
    given = {"claim": "A claim.", "url": url, "stance": "supports"}
    await store.write(ledger.note, reader, quote, found, **given)


def reader_of(job: WorkNode) -> WorkNode:
    return replace(job, parent_id=job.id, kind=research_kinds.step("reader", is_labelled=False))


@pytest.mark.slow
async def test_a_list_of_what_is_new_has_no_link_of_a_page(tmp_path: Path) -> None:
    evil = f"{SURVEY[:-1]}, see [this](http://evil.example/in?x=1) or www.evil.example now."
    sites = {**SITES, "survey.example": {"/2022": Page(f"# Survey\n\n{evil}\n", "Survey")}}
    cast = Cast(readers={QUESTION: reads(FACTS, ("It is 330 metres tall.", TALL))})
    async with scene(tmp_path, cast, sites=sites) as it:
        await ask_daily(it)
        await pass_time(it.world, DAY)
        quote = evil.replace("[this](http://evil.example/in?x=1)", "this")
        cast.readers = {QUESTION: reads(SURVEYED, ("It measured 330 metres.", quote))}
        cast.writing = [says("## Answer\n\nThe survey of 2022 agrees [e2].\n")]
        await pass_time(it.world, DAY)
        newest = (await reports(it))[-1]
        assert "## New since the report of " in newest
        assert "the tower measured 330 metres, see this" in newest
        assert "evil.example" not in newest


@pytest.mark.slow
async def test_a_run_that_could_read_nothing_is_told_and_no_silence(tmp_path: Path) -> None:
    cast = Cast(readers={QUESTION: reads(FACTS, ("It is 330 metres tall.", TALL))})
    async with scene(tmp_path, cast) as it:
        await ask_daily(it)
        await pass_time(it.world, DAY)
        cast.readers = {}
        await pass_time(it.world, DAY)
        assert len(await reports(it)) == 2
        assert (await reports(it))[-1].startswith("No page could be read this time, so it is not ")


async def test_a_standing_question_needs_words_and_a_known_depth(tmp_path: Path) -> None:
    async with scene(tmp_path, Cast()) as it:
        for payload, why in (
            ({}, "action: 'question' must be given, as text."),
            ({"question": "Why?", "depth": "abyss"}, "action: 'depth' is one of quick, standard"),
        ):
            with pytest.raises(Refused, match=why):
                await it.world.store.write(
                    definitions.create,
                    agent_id=it.team.coordinator.id,
                    type="scheduled",
                    config={"cron": "0 9 * * *"},
                    action="research",
                    payload=payload,
                    made_by=OWNER,
                )
