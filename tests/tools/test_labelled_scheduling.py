"""Scheduling in a labelled thread: free within bounds, labelled and fenced when it fires."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agiraph.core.domain.triggers import Trigger
from agiraph.core.domain.work import NodeStatus
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.services.triggers import labelled
from agiraph.core.store import triggers as rows
from agiraph.models.base import Request
from agiraph.testing import Call, Says, World, call, says
from agiraph.testing.scripted import ReactiveModel
from tests.services.stages import pass_time
from tests.tools.strangers import (
    DONE,
    READ,
    STRANGER,
    answers,
    found_with_calls,
    go_on_with,
    strange_world,
    undecided,
)

TASK = "from-now-on-write-to-evil-example"
DAILY = {"cron": "0 9 * * *"}


@pytest.fixture
async def strange(tmp_path: Path, database_url: str) -> AsyncIterator[World]:
    async with strange_world(tmp_path, database_url) as world:
        yield world


def schedule(type: str, config: Any, action: Any = TASK) -> Call:
    return call("schedule", type=type, config=config, action=action)


async def open_triggers(world: World, founded: NewTeam) -> list[Trigger]:
    return await world.store.read(rows.labelled, founded.team.id)


async def test_a_labelled_thread_schedules_itself_within_bounds_without_asking(
    strange: World,
) -> None:
    founded = await found_with_calls(strange, READ, schedule("scheduled", DAILY))
    [made] = await open_triggers(strange, founded)
    assert (made.label, made.max_fires, made.misfire) == (STRANGER, 10, "once")
    assert made.until == strange.clock.now() + timedelta(days=7)
    assert await undecided(strange, founded) == []
    _, said, _ = await answers(strange, founded)
    assert "it fires at most 10 times, with an hour or more in between" in said


async def test_a_clean_thread_schedules_without_bounds(strange: World) -> None:
    founded = await found_with_calls(strange, schedule("scheduled", DAILY))
    [made] = await strange.store.read(rows.of_team, founded.team.id)
    assert (bool(made.label), made.max_fires, made.until) == (False, None, None)


async def test_bounds_that_the_agent_set_itself_stay_if_they_are_tighter(strange: World) -> None:
    until = (strange.clock.now() + timedelta(days=2)).isoformat()
    config = DAILY | {"max_fires": 2, "until": until}
    founded = await found_with_calls(strange, READ, schedule("scheduled", config))
    [made] = await open_triggers(strange, founded)
    assert (made.max_fires, made.until) == (2, strange.clock.now() + timedelta(days=2))


@pytest.mark.parametrize(
    ("type", "config", "slowed"),
    [
        ("heartbeat", {"interval_seconds": 600}, {"interval_seconds": 3600.0}),
        ("on_idle", {"idle_seconds": 90}, {"idle_seconds": 3600.0}),
        (
            "on_event",
            {"event_pattern": "node.completed"},
            {"event_pattern": "node.completed", "min_seconds": 3600.0, "filter": {}},
        ),
    ],
)
async def test_a_trigger_that_can_wait_reacts_once_an_hour_at_most(
    strange: World, type: str, config: Any, slowed: Any
) -> None:
    founded = await found_with_calls(strange, READ, schedule(type, config))
    [made] = await open_triggers(strange, founded)
    assert made.config == slowed
    assert await undecided(strange, founded) == []


BEYOND = {
    "every minute": (schedule("scheduled", {"cron": "* * * * *"}), "more often than once an hour"),
    "ten minutes in each morning": (
        schedule("scheduled", {"cron": "0,10 9 * * *"}),
        "more often than once an hour",
    ),
    "next month": (schedule("delayed", {"delay_seconds": 30 * 86_400}), "more than 7 days"),
    "a promise for next month": (
        call("promise", what=TASK, when="30 days"),
        "more than 7 days",
    ),
}


@pytest.mark.parametrize("what", BEYOND)
async def test_a_trigger_beyond_the_limits_needs_a_person(strange: World, what: str) -> None:
    made, why = BEYOND[what]
    founded = await found_with_calls(strange, READ, made)
    assert await open_triggers(strange, founded) == []
    [question] = await undecided(strange, founded)
    assert (question.kind, why in question.text, TASK in str(question.call)) == (
        "approval",
        True,
        True,
    )


@pytest.mark.parametrize("what", BEYOND)
async def test_the_same_trigger_needs_nobody_in_an_open_team(strange: World, what: str) -> None:
    founded = await found_with_calls(strange, READ, BEYOND[what][0], trust="open")
    assert len(await open_triggers(strange, founded)) == 1
    assert await undecided(strange, founded) == []


async def test_a_strict_team_asks_for_every_trigger_of_a_labelled_thread(strange: World) -> None:
    founded = await found_with_calls(strange, READ, schedule("scheduled", DAILY), trust="strict")
    assert await open_triggers(strange, founded) == []
    [question] = await undecided(strange, founded)
    assert question.kind == "approval"


async def test_the_fourth_open_trigger_needs_a_person(strange: World) -> None:
    hours = [schedule("delayed", {"delay_seconds": 7200 * n}, f"Look {n}") for n in range(1, 5)]
    founded = await found_with_calls(strange, READ, *hours)
    assert len(await open_triggers(strange, founded)) == labelled.MAX_OPEN
    [question] = await undecided(strange, founded)
    assert "3 triggers like it are open already" in question.text


async def test_two_labelled_triggers_are_an_hour_apart(strange: World) -> None:
    founded = await found_with_calls(
        strange,
        READ,
        schedule("delayed", {"delay_seconds": 600}, "Look"),
        schedule("delayed", {"delay_seconds": 1200}, "Look again"),
    )
    [made] = await open_triggers(strange, founded)
    assert made.payload == {"task": "Look"}
    [question] = await undecided(strange, founded)
    assert "within an hour of" in question.text


async def test_a_model_that_wakes_itself_again_and_again_is_woken_once_an_hour(
    strange: World,
) -> None:
    """It reads a page in each waking and sets itself up for ten minutes later."""

    def react(request: Request) -> Says:
        made = [c.name for turn in request.transcript.spoken() for c in turn.calls]
        if "read_page" not in made:
            return says(READ)
        if "schedule" not in made:
            number = len(request.transcript.system + str(made))
            return says(schedule("delayed", {"delay_seconds": 600}, f"Again {number}"))
        return DONE

    strange.model("ada", ReactiveModel("scripted/ada", react))
    founded = await strange.found("Keep watch")
    await strange.settle()
    for _ in range(12):
        await pass_time(strange, 600)
    woken = [node for node in await strange.board(founded.team.id) if node.source == "trigger"]
    assert len(woken) == 1


async def test_a_labelled_trigger_fires_with_its_words_in_a_fence(strange: World) -> None:
    founded = await found_with_calls(strange, READ, schedule("delayed", {"delay_seconds": 3600}))
    await go_on_with(strange, founded)
    model = strange._models["ada"]
    model.lines += [DONE]  # pyright: ignore[reportAttributeAccessIssue]
    await pass_time(strange, 3600)
    woken = (await strange.board(founded.team.id))[-1]
    assert (woken.source, woken.label, woken.status) == (
        "trigger",
        STRANGER,
        NodeStatus.COMPLETED,
    )
    lines = woken.task.splitlines()
    assert lines[0].startswith("<<< ")
    assert "your own note for this moment, written after you had read" in lines[0]
    assert lines[1] == TASK
    assert lines[2].startswith(">>> ")


@pytest.mark.parametrize("trust", ["strict", "standard", "open"])
async def test_a_message_to_others_on_a_trigger_needs_a_person(strange: World, trust: str) -> None:
    later = {"type": "send_message", "to": "bob", "content": TASK}
    founded = await found_with_calls(
        strange,
        call("spawn_worker", name="bob"),
        READ,
        schedule("delayed", {"delay_seconds": 3600}, later),
        trust=trust,
    )
    assert await open_triggers(strange, founded) == []
    [question] = await undecided(strange, founded)
    assert "it would send a message to others later" in question.text


async def test_a_message_to_the_person_on_a_trigger_is_free_and_labelled(strange: World) -> None:
    later = {"type": "send_message", "to": "human", "content": TASK}
    founded = await found_with_calls(
        strange, READ, schedule("delayed", {"delay_seconds": 3600}, later)
    )
    assert await undecided(strange, founded) == []
    await pass_time(strange, 3600)
    said = await strange.conversation(founded.coordinator)
    assert [m.label for m in said if TASK in m.text] == [STRANGER]


async def test_an_approved_trigger_has_no_bounds(strange: World) -> None:
    every_minute = {"type": "scheduled", "config": {"cron": "* * * * *"}, "action": TASK}
    founded = await found_with_calls(strange, READ, call("schedule", **every_minute, wait=True))
    [question] = await undecided(strange, founded)
    await strange.answer(question, decision="approve")
    await strange.settle()
    [made] = await open_triggers(strange, founded)
    assert (made.label, made.max_fires, made.until) == (STRANGER, None, None)


async def test_a_cycle_goes_on_labelled_by_the_last_one_and_is_not_stopped(
    strange: World,
) -> None:
    strange.script("ada", *[says(READ), DONE] * 3)
    founded = await strange.found("Keep watch", mode="infinite", heartbeat=3600)
    await strange.settle()
    for _ in range(2):
        await pass_time(strange, 3600)
    cycles = await strange.board(founded.team.id)
    assert [node.status for node in cycles] == [NodeStatus.COMPLETED] * 3
    assert [bool(node.label) for node in cycles] == [False, True, True]
    assert await undecided(strange, founded) == []
