"""Scheduling tools: agents create triggers and make promises, within limits."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.work import NodeStatus
from agiraph.core.services.lifecycle import teams
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.services.triggers import promises
from agiraph.models.base import Request
from agiraph.testing import Says, World, call, says
from agiraph.testing.scripted import ReactiveModel
from tests.services.stages import pass_time
from tests.wording import Wording

DONE = says(call("finish", summary="done"))


async def run_team(world: World, *lines: Any, **more: Any) -> NewTeam:
    world.script("ada", *lines)
    founded = await world.found("Keep watch", mode="infinite", **more)
    await world.settle()
    return founded


async def tool_answers(world: World, founded: NewTeam) -> list[str]:
    assert founded.node is not None
    return [t.text for t in await world.turns(founded.node.id) if t.role == "tool"]


def schedule_call(type: str, config: Any, action: Any = "Check the build") -> Any:
    return call("schedule", type=type, config=config, action=action)


async def test_an_agent_creates_lists_and_cancels_its_triggers(world: World) -> None:
    def cancel(request: Request) -> Says:
        found = re.findall(r"trig_\w+", list(request.transcript.spoken())[-1].text)
        return says(call("cancel_trigger", trigger_id=found[-1]))

    founded = await run_team(
        world,
        says(
            schedule_call("scheduled", {"cron": "0 9 * * MON", "zone": "Europe/Berlin"}),
            schedule_call("heartbeat", {"interval_seconds": 1800}),
            schedule_call("on_event", {"event_pattern": "node.completed"}),
            schedule_call("delayed", {"delay_seconds": 3600},
                      {"type": "send_message", "to": "human", "content": "An hour has passed"}),
        ),
        says(call("list_triggers")),
        cancel,
        DONE,
    )  # fmt: skip
    *made, listed, cancelled, _ = await tool_answers(world, founded)
    cron, beat, event, delayed = await world.triggers(founded.team.id)
    assert made[0] == (
        f"Set: {cron.id} scheduled: it is scheduled for '0 9 * * MON' (Europe/Berlin); next at "
        "2026-01-12 09:00 Europe/Berlin; fired 0 times: Check the build"
    )
    assert [line.split("; ")[1] for line in listed.splitlines()] == [
        "next at 2026-01-12 09:00 Europe/Berlin",
        "next after you have rested",
        "when it happens",
        "next at 2026-01-05 10:00 UTC",
    ]
    assert cancelled == f"Cancelled {delayed.id}."
    assert [t.status for t in (cron, beat, event, delayed)] == ["active"] * 3 + ["cancelled"]
    assert {t.made_by for t in (cron, beat, event, delayed)} == {founded.coordinator.id}
    assert founded.node is not None
    assert cron.payer_id == founded.node.id
    assert beat.due_at == world.clock.now() + timedelta(seconds=1800)


REFUSED = [
    schedule_call("delayed", {"delay_seconds": 5}),
    schedule_call("heartbeat", {"interval_seconds": 59}),
    schedule_call("on_idle", {"idle_seconds": 1}),
    schedule_call("at_time", {"at": "2026-01-05T09:00:30"}),
    schedule_call("on_event", {"event_pattern": "node.*", "min_seconds": 0}),
    schedule_call("webhook", {}),
    schedule_call("scheduled", {"cron": "never"}),
    schedule_call("delayed", {"delay_seconds": 60}, ""),
    schedule_call("delayed", {"delay_seconds": 60}, {"type": "run_callback", "callback": "x"}),
    call("cancel_trigger", trigger_id="trig_1"),
    call("promise", what="cake", when="someday"),
    call("promise", what="cake", when="10 s"),
    call("promise", what="cake", when="99999 days"),
]


async def test_a_trigger_that_is_not_allowed_is_refused_with_a_reason(
    world: World, wording: Wording
) -> None:
    founded = await run_team(world, says(*REFUSED), DONE)
    *told, _ = await tool_answers(world, founded)
    wording({str(one.arguments): said for one, said in zip(REFUSED, told, strict=True)})
    assert await world.triggers(founded.team.id) == []


async def test_an_agent_cannot_cancel_a_trigger_that_it_did_not_create(world: World) -> None:
    def cancel(request: Request) -> Says:
        [listed] = re.findall(r"trig_\w+", list(request.transcript.spoken())[-1].text)
        return says(call("cancel_trigger", trigger_id=listed))

    founded = await run_team(world, says(call("list_triggers")), cancel, DONE, heartbeat=3600)
    [born] = await world.triggers(founded.team.id)
    refused = f"{born.id} was not set up by you; ask the human if it should go."
    assert (await tool_answers(world, founded))[1] == refused
    assert born.status == "active"


async def test_an_agent_has_at_most_20_active_triggers(world: World) -> None:
    each = [schedule_call("scheduled", {"cron": f"{n} 3 * * *"}) for n in range(21)]
    founded = await run_team(world, says(*each), DONE)
    *_, refused, _ = await tool_answers(world, founded)
    assert refused == (
        "You have 20 active triggers, which is the limit. Cancel those you no longer need "
        "(list_triggers, cancel_trigger), or put several things into one."
    )
    assert len(await world.triggers(founded.team.id)) == 20


@pytest.mark.slow
async def test_an_agent_that_keeps_scheduling_itself_is_stopped(world: World) -> None:
    refusals: list[str] = []

    def restless(request: Request) -> Says:
        turns = list(request.transcript.spoken())
        said = [turn.text for turn in turns if turn.role == "tool"]
        if not said:
            return says(schedule_call("delayed", {"delay_seconds": 60}, "Go on for ever"))
        refusals.extend(text for text in said if not text.startswith("Set: "))
        return DONE

    world.model("ada", ReactiveModel("scripted/ada", restless))
    founded = await world.found("Go on", mode="infinite")
    await world.settle()
    for _ in range(60):
        await pass_time(world, 60)
    # The first node, and 25 that triggers started.
    assert len(await world.board(founded.team.id)) == 26
    assert refusals == [
        "You have woken yourself 24 times in a row, each time by a new trigger. Submit what you "
        "have, or ask the human whether this should go on."
    ]
    await world.restart()
    await pass_time(world, 86_400)
    assert len(await world.board(founded.team.id)) == 26


async def test_a_promise_wakes_its_agent_and_is_recorded_as_kept(world: World) -> None:
    given = call("promise", what="Send the report", when="in 2 hours")
    kept = says(call("send_message", to="human", content="Here it is"), call("finish", summary="k"))
    founded = await run_team(world, says(given), DONE, kept)
    agent = founded.coordinator
    [promise] = await world.store.read(promises.open_of_agent, agent.id)
    assert (promise.what, promise.to, promise.state) == ("Send the report", OWNER, "open")
    assert promise.trigger.due_at == datetime(2026, 1, 5, 11, tzinfo=UTC)
    await world.restart()
    await pass_time(world, 7200)
    *_, node = await world.board(founded.team.id)
    assert node.title == "Send the report"
    assert "You made a promise to the human on 2026-01-05 09:00 UTC" in node.task
    assert await world.store.read(promises.open_of_agent, agent.id) == []
    [promise] = await world.store.read(promises.of_agent, agent.id)
    assert (promise.state, node.status) == ("kept", NodeStatus.COMPLETED)


async def test_an_open_promise_of_a_stopped_team_is_broken(world: World) -> None:
    founded = await run_team(world, says(call("promise", what="cake", when="1 day")), DONE)
    await world.store.write(teams.stop, founded.team.id)
    [promise] = await world.store.read(promises.of_agent, founded.coordinator.id)
    assert promise.state == "broken"
