"""Standing questions: research on a schedule that reports only what is new."""

from datetime import timedelta
from pathlib import Path

import pytest

from agiraph.domain.errors import Refused
from agiraph.domain.persons import OWNER
from agiraph.domain.work import NodeStatus, StopReason
from agiraph.services.triggers import definitions
from agiraph.store import triggers
from agiraph.testing import says
from tests.research.kit import (
    FACTS,
    OPENED,
    QUESTION,
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


async def test_a_run_that_could_read_nothing_is_told_and_no_silence(tmp_path: Path) -> None:
    cast = Cast(readers={QUESTION: reads(FACTS, ("It is 330 metres tall.", TALL))})
    async with scene(tmp_path, cast) as it:
        await ask_daily(it)
        await pass_time(it.world, DAY)
        cast.readers = {}
        await pass_time(it.world, DAY)
        assert len(await reports(it)) == 2
        assert "Nothing new was found since the last report." in (await reports(it))[-1]


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
