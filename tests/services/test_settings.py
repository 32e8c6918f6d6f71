"""Settings: a team that stays alive after its goal, and what a person can change about it."""

from typing import Any

import pytest

from agiraph.core.domain.agents import Limits, Team
from agiraph.core.domain.errors import Refused
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.work import NodeStatus
from agiraph.core.services.lifecycle import conversation, settings, teams
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.services.triggers import team_heartbeat
from agiraph.testing import World, call, says
from tests.services.stages import pass_time

S = NodeStatus
DONE = says(call("finish", summary="done"))
HOUR = 3600.0


async def found_completed_team(world: World, *more: Any, heartbeat: float = HOUR) -> NewTeam:
    world.script("ada", DONE, *more)
    founded = await world.found("Count the beans", heartbeat=heartbeat)
    await world.settle()
    assert (await team_of(world, founded)).status == "completed"
    return founded


async def team_of(world: World, founded: NewTeam) -> Team:
    return await world.team(founded.team.id)


async def interval_of(world: World, founded: NewTeam) -> float:
    return await world.store.read(team_heartbeat.interval_s, founded.team.id)


async def test_a_completed_team_does_nothing_unasked(world: World) -> None:
    founded = await found_completed_team(world)
    await pass_time(world, 10 * HOUR)
    assert len(await world.board(founded.team.id)) == 1


async def test_a_completed_team_that_becomes_infinite_works_in_cycles(world: World) -> None:
    founded = await found_completed_team(world, DONE)
    await world.store.write(settings.change, founded.team.id, mode="infinite", interval_s=600)
    assert (await team_of(world, founded)).status == "active"
    await pass_time(world, 601)

    goal, cycle = await world.board(founded.team.id)
    assert (cycle.source, cycle.title, cycle.status) == ("trigger", "Cycle 2", S.COMPLETED)
    assert (await team_of(world, founded)).status == "active"
    changed = [e.data for e in await world.events(founded.team.id) if e.type == "team.changed"]
    assert changed == [{"changed": ["interval_s", "mode"], "name": goal.task, "mode": "infinite"}]


async def test_an_infinite_team_that_becomes_finite_completes_and_rests(world: World) -> None:
    world.script("ada", DONE)
    founded = await world.found("Watch the beans", mode="infinite", heartbeat=HOUR)
    await world.settle()
    assert (await team_of(world, founded)).status == "active"
    await world.store.write(settings.change, founded.team.id, mode="finite")
    assert (await team_of(world, founded)).status == "completed"
    await pass_time(world, 10 * HOUR)
    assert len(await world.board(founded.team.id)) == 1
    assert await interval_of(world, founded) == HOUR


@pytest.mark.parametrize("status", ["active", "completed"])
async def test_the_interval_can_be_set_switched_off_and_set_again(
    world: World, status: str
) -> None:
    world.script("ada", says(call("ask_human", question="Go on?")), DONE)
    founded = await world.found("Count the beans", heartbeat=HOUR)
    await world.settle()
    if status == "completed":
        [question] = await world.questions(founded.team.id)
        await world.answer(question, "Yes.")
        await world.settle()
    assert (await team_of(world, founded)).status == status
    for seconds in (120.0, 0.0, 0.0, 180.0):
        await world.store.write(settings.change, founded.team.id, interval_s=seconds)
        assert await interval_of(world, founded) == seconds
    assert (await team_of(world, founded)).status == status


async def test_a_team_without_a_heartbeat_acts_only_when_asked(world: World) -> None:
    founded = await found_completed_team(world, heartbeat=0)
    await world.store.write(settings.change, founded.team.id, mode="infinite")
    await pass_time(world, 10 * HOUR)
    assert (len(await world.board(founded.team.id)), await interval_of(world, founded)) == (1, 0.0)


async def test_a_completed_team_takes_a_new_goal_and_completes_it(world: World) -> None:
    founded = await found_completed_team(world, says(call("finish", summary="sorted")))
    await world.store.write(teams.set_goal, founded.team.id, "Sort the beans")
    await world.settle()
    first, second = await world.board(founded.team.id)
    assert (first.result, second.result, second.is_goal) == ("done", "sorted", True)
    assert (await team_of(world, founded)).status == "completed"


async def test_a_completed_team_answers_remembers_and_takes_new_work(world: World) -> None:
    founded = await found_completed_team(
        world,
        says(call("remember", content="They like short answers.")),
        says("I shall.", call("start_work", task="Weigh the beans")),
        says("On it."),
        says(call("finish", summary="Two pounds.")),
    )
    await world.store.write(
        conversation.say, founded.coordinator.id, "Weigh them, and be brief.", person_id=OWNER
    )
    await world.settle()
    work = (await world.board(founded.team.id))[-1]
    assert (work.task, work.result, work.status) == ("Weigh the beans", "Two pounds.", S.COMPLETED)
    assert (await team_of(world, founded)).status == "completed"
    kept = [e.data for e in await world.events(founded.team.id) if e.type == "memory.written"]
    assert len(kept) == 1


async def test_every_setting_is_changed_alone(world: World) -> None:
    founded = await found_completed_team(world)
    changes: list[dict[str, Any]] = [
        {"name": "Beans"},
        {"soul": "Calm."},
        {"review": "always"},
        {"limits": {"agents": 3}},
        {"model": "scripted/eve"},
    ]
    for change in changes:
        await world.store.write(settings.change, founded.team.id, **change)
    team = await team_of(world, founded)
    coordinator = await world.agent(founded.coordinator.id)
    assert (team.name, team.soul, team.review, team.limits, coordinator.model) == (
        "Beans",
        "Calm.",
        "always",
        Limits(agents=3),
        "scripted/eve",
    )
    assert (team.goal, team.mode, team.status) == ("Count the beans", "finite", "completed")


async def test_wrong_settings_are_refused_and_change_nothing(world: World) -> None:
    founded = await found_completed_team(world)
    with pytest.raises(Refused, match="at least 30 seconds"):
        await world.store.write(settings.change, founded.team.id, name="X", interval_s=5)
    assert (await team_of(world, founded)).name == "Count the beans"
    await world.store.write(teams.archive, founded.team.id)
    with pytest.raises(Refused, match="is archived; restore it first"):
        await world.store.write(settings.change, founded.team.id, name="X")
