"""Agents set their own alarms and give their word, within limits they are told of."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agiraph.domain.persons import OWNER
from agiraph.domain.work import NodeStatus
from agiraph.providers.base import Request
from agiraph.services.lifecycle import teams
from agiraph.services.lifecycle.teams import NewTeam
from agiraph.services.triggers import promises
from agiraph.store import triggers as rows
from agiraph.testing import Says, World, call, says
from agiraph.testing.scripted import ReactiveModel
from tests.services.stages import pass_time

DONE = says(call("finish", summary="done"))


async def at_work(world: World, *lines: Any, **more: Any) -> NewTeam:
    world.script("ada", *lines)
    founded = await world.found("Keep watch", mode="infinite", **more)
    await world.settle()
    return founded


async def answers(world: World, founded: NewTeam) -> list[str]:
    assert founded.node is not None
    return [t.text for t in await world.turns(founded.node.id) if t.role == "tool"]


def scheduled(type: str, config: Any, action: Any = "Check the build") -> Any:
    return call("schedule", type=type, config=config, action=action)


async def test_an_agent_sets_lists_and_cancels_its_alarms(world: World) -> None:
    def cancel(request: Request) -> Says:
        found = re.findall(r"trig_\w+", list(request.transcript.spoken())[-1].text)
        return says(call("cancel_trigger", trigger_id=found[-1]))

    founded = await at_work(
        world,
        says(
            scheduled("scheduled", {"cron": "0 9 * * MON", "zone": "Europe/Berlin"}),
            scheduled("heartbeat", {"interval_seconds": 1800}),
            scheduled("on_event", {"event_pattern": "node.completed"}),
            scheduled("delayed", {"delay_seconds": 3600},
                      {"type": "send_message", "to": "human", "content": "An hour has passed"}),
        ),
        says(call("list_triggers")),
        cancel,
        DONE,
    )  # fmt: skip
    *made, listed, cancelled, _ = await answers(world, founded)
    cron, beat, event, delayed = await world.store.read(rows.of_team, founded.team.id)
    assert made[0] == (
        f"Set: {cron.id} scheduled: it is scheduled for '0 9 * * MON' (Europe/Berlin); next at "
        "2026-01-12 08:00 UTC; fired 0 times: Check the build"
    )
    assert [line.split("; ")[1] for line in listed.splitlines()] == [
        "next at 2026-01-12 08:00 UTC",
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


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (scheduled("delayed", {"delay_seconds": 5}), "That is too soon: 60 seconds is the least"),
        (scheduled("heartbeat", {"interval_seconds": 59}), "That is too soon"),
        (scheduled("on_idle", {"idle_seconds": 1}), "That is too soon"),
        (scheduled("at_time", {"at": "2026-01-05T09:00:30"}), "That is too soon"),
        (scheduled("on_event", {"event_pattern": "node.*", "min_seconds": 0}), "That is too soon"),
        (scheduled("webhook", {}), "Only a person sets up a webhook"),
        (scheduled("scheduled", {"cron": "never"}), "'never' has 1 fields. A schedule has five"),
        (scheduled("delayed", {"delay_seconds": 60}, ""), "action: say what is to be done then."),
        (
            scheduled("delayed", {"delay_seconds": 60}, {"type": "run_callback", "callback": "x"}),
            "action: there is no type 'run_callback'; there are wake_agent, send_message, run_node",
        ),
        (call("cancel_trigger", trigger_id="trig_1"), "There is no trigger 'trig_1'."),
        (call("promise", what="cake", when="someday"), "'someday' is not a time; write '2 hours'"),
        (call("promise", what="cake", when="10 s"), "That is too soon"),
        (call("promise", what="cake", when="99999 days"), "is too far away"),
    ],
)
async def test_what_an_agent_may_not_set_is_refused_with_a_reason(
    world: World, bad: Any, said: str
) -> None:
    founded = await at_work(world, says(bad), DONE)
    assert said in (await answers(world, founded))[0]
    assert await world.store.read(rows.of_team, founded.team.id) == []


async def test_nobody_cancels_what_is_not_of_their_making(world: World) -> None:
    def cancel(request: Request) -> Says:
        [listed] = re.findall(r"trig_\w+", list(request.transcript.spoken())[-1].text)
        return says(call("cancel_trigger", trigger_id=listed))

    founded = await at_work(world, says(call("list_triggers")), cancel, DONE, heartbeat=3600)
    [born] = await world.store.read(rows.of_team, founded.team.id)
    refused = f"{born.id} was not set up by you; ask the human if it should go."
    assert (await answers(world, founded))[1] == refused
    assert born.status == "active"


async def test_an_agent_has_so_many_alarms_and_no_more(world: World) -> None:
    each = [scheduled("scheduled", {"cron": f"{n} 3 * * *"}) for n in range(21)]
    founded = await at_work(world, says(*each), DONE)
    *_, refused, _ = await answers(world, founded)
    assert refused == (
        "You have 20 active triggers, which is the limit. Cancel those you no longer need "
        "(list_triggers, cancel_trigger), or put several things into one."
    )
    assert len(await world.store.read(rows.of_team, founded.team.id)) == 20


async def test_an_agent_that_schedules_itself_without_end_is_stopped(world: World) -> None:
    refusals: list[str] = []

    def restless(request: Request) -> Says:
        turns = list(request.transcript.spoken())
        said = [turn.text for turn in turns if turn.role == "tool"]
        if not said:
            return says(scheduled("delayed", {"delay_seconds": 60}, "Go on for ever"))
        refusals.extend(text for text in said if not text.startswith("Set: "))
        return DONE

    world.model("ada", ReactiveModel("scripted/ada", restless))
    founded = await world.found("Go on", mode="infinite")
    await world.settle()
    for _ in range(60):
        await pass_time(world, 60)
    assert len(await world.board(founded.team.id)) == 26  # the first, and 25 wakings
    assert refusals == [
        "You have woken yourself 24 times in a row, each time by a new trigger. Hand in what you "
        "have, or ask the human whether this should go on."
    ]
    await world.restart()
    await pass_time(world, 86_400)
    assert len(await world.board(founded.team.id)) == 26


async def test_a_promise_wakes_whoever_gave_it_and_stays_on_record(world: World) -> None:
    given = call("promise", what="Send the report", when="in 2 hours")
    kept = says(call("send_message", to="human", content="Here it is"), call("finish", summary="k"))
    founded = await at_work(world, says(given), DONE, kept)
    agent = founded.coordinator
    [promise] = await world.store.read(promises.open_of_agent, agent.id)
    assert (promise.what, promise.to, promise.state) == ("Send the report", OWNER, "open")
    assert promise.trigger.due_at == datetime(2026, 1, 5, 11, tzinfo=UTC)
    await world.restart()
    await pass_time(world, 7200)
    *_, node = await world.board(founded.team.id)
    assert node.title == "Promise: Send the report"
    assert "You made a promise to human on 2026-01-05 09:00 UTC" in node.task
    assert await world.store.read(promises.open_of_agent, agent.id) == []
    [promise] = await world.store.read(promises.of_agent, agent.id)
    assert (promise.state, node.status) == ("kept", NodeStatus.COMPLETED)


async def test_a_promise_that_came_to_nothing_is_broken(world: World) -> None:
    founded = await at_work(world, says(call("promise", what="cake", when="1 day")), DONE)
    await world.store.write(teams.stop, founded.team.id)
    [promise] = await world.store.read(promises.of_agent, founded.coordinator.id)
    assert promise.state == "broken"
