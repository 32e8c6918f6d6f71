"""Triggers for one time: how they wait for a budget that is used up, and when they give up."""

from typing import Any

import pytest

from agiraph.api.presenters import trigger_view
from agiraph.core.domain.provenance.labels import SEARCH
from agiraph.core.domain.triggers import Trigger
from agiraph.core.domain.work import Budget, Extension, WorkNode
from agiraph.core.services.lifecycle import continuations, teams
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.services.triggers import due, promises
from agiraph.core.store import triggers as rows
from agiraph.core.store.nodes import NODES
from agiraph.testing import World
from tests.services.stages import pass_time
from tests.services.triggers import (
    DONE,
    create_task,
    create_trigger,
    firings,
    nodes_of,
    reload,
)


async def found_with_promise(world: World, **delay: Any) -> tuple[NewTeam, WorkNode, Trigger]:
    """Found a team whose goal has used its budget up, with a trigger for one time that it pays."""
    world.script("ada", DONE, *[DONE] * 5)
    founded = await world.found("Count", budget=Budget(model_calls=1))
    await world.settle()
    [goal] = await world.board(founded.team.id)
    made: dict[str, Any] = {"made_in": goal, "made_by": founded.coordinator.id} | delay
    config = made.pop("config", {"delay_seconds": 3600})
    return founded, goal, await create_trigger(world, founded, "delayed", config, **made)


async def told(world: World, trigger: Trigger, type: str) -> list[str]:
    """Return the reasons in the events of this type about a trigger."""
    found = [e for e in await world.events(trigger.team_id) if e.type == type]
    return [e.data["reason"] for e in found if e.data["trigger_id"] == trigger.id]


async def test_a_waiting_trigger_keeps_its_time_and_says_once_why_it_waits(world: World) -> None:
    founded, _, made = await found_with_promise(world, promised_to="human")
    for _ in range(3):
        await pass_time(world, 3600)
    found = await reload(world, made)
    assert (found.due_at, found.gated, found.gate) == (made.due_at, 3, "budget: calls_spent")
    assert await told(world, made, "trigger.postponed") == ["budget: calls_spent"]
    view = await world.store.read(trigger_view, found)
    assert (view.gate, view.is_overdue) == ("budget: calls_spent", False)
    assert await world.store.read(due.overdue, founded.team.id) == []
    [promise] = await world.store.read(promises.open_of_agent, founded.coordinator.id)
    assert "by 2026-01-05 10:00 UTC" in await world.store.read(promises.as_line, promise)


@pytest.mark.slow
async def test_a_waiting_trigger_gives_up_after_a_week(world: World) -> None:
    _, _, made = await found_with_promise(world)
    for _ in range(7 * 24 + 1):
        await pass_time(world, 3600)
    assert [found[1:] for found in await firings(world, made)] == [
        ("skipped", "budget: calls_spent")
    ]
    found = await reload(world, made)
    assert (found.status, found.gated, found.gate) == ("expired", 7 * 24, None)


async def test_a_new_goal_pays_for_a_trigger_that_an_earlier_one_left_waiting(world: World) -> None:
    founded, _, waits = await found_with_promise(world)
    aside = await world.store.write(create_task, founded.team.id, founded.coordinator.id, "Aside")
    made = {"made_in": aside, "made_by": founded.coordinator.id, "payload": {"task": "Aside"}}
    other = await create_trigger(world, founded, "delayed", {"delay_seconds": 9e5}, **made)
    await world.settle()
    await pass_time(world, 3600)
    assert (await reload(world, waits)).gate == "budget: calls_spent"
    budget = Budget(model_calls=50)
    await world.store.write(teams.set_goal, founded.team.id, "Peas", budget=budget)
    await world.settle()
    await pass_time(world, 1)
    peas = next(n for n in await world.board(founded.team.id) if n.budget.model_calls == 50)
    assert [node.payer_id for node in await nodes_of(world, waits)] == [peas.id]
    found = await reload(world, waits)
    assert (found.status, found.fired, found.gate) == ("expired", 1, None)
    # What a person asked for beside the goal has limits of its own.
    assert (await reload(world, other)).payer_id == aside.id


async def test_a_trigger_is_skipped_if_nobody_can_raise_its_budget_any_more(world: World) -> None:
    founded, goal, waits = await found_with_promise(world)
    budget = Budget(model_calls=50)
    await world.store.write(teams.set_goal, founded.team.id, "Peas", budget=budget)
    # An earlier release left the payer as it was.
    await world.store.write(rows.TRIGGERS.update, waits.id, payer_id=goal.id)
    await pass_time(world, 3600)
    assert await told(world, waits, "trigger.skipped") == ["budget: calls_spent"]
    assert (await reload(world, waits)).status == "expired"


async def test_a_trigger_that_fires_at_its_hourly_check_no_longer_says_why_it_waited(
    world: World,
) -> None:
    _, goal, waits = await found_with_promise(world)
    await pass_time(world, 3600)
    budget = Budget(model_calls=50)
    await world.store.write(NODES.update, goal.id, budget=budget)  # nobody makes the trigger due
    await pass_time(world, 3600)
    [(slot, outcome, _)] = await firings(world, waits)
    assert (slot, outcome) == ("2026-01-05T10:00:00+00:00", "fired")
    assert (await reload(world, waits)).gate is None


async def test_a_labelled_trigger_for_one_time_does_not_fire_after_its_end(world: World) -> None:
    _, goal, waits = await found_with_promise(world, label=SEARCH, is_bounded=True)
    for _ in range(3):
        await pass_time(world, 3600)
    assert (await reload(world, waits)).status == "active"
    await world.store.write(NODES.update, goal.id, budget=Budget(model_calls=50))
    await pass_time(world, 8 * 86_400)  # no process ran meanwhile
    assert [found[1:] for found in await firings(world, waits)] == [
        ("skipped", "its time was over on 2026-01-12 09:00")
    ]


async def test_labelled_triggers_that_waited_fire_an_hour_apart(world: World) -> None:
    founded, goal, first = await found_with_promise(world, label=SEARCH, is_bounded=True)
    made = {"made_in": goal, "made_by": founded.coordinator.id, "label": SEARCH, "is_bounded": True}
    later = [
        await create_trigger(world, founded, "delayed", {"delay_seconds": seconds}, **made)
        for seconds in (7200, 10800)
    ]
    for _ in range(3):
        await pass_time(world, 3600)
    more = Extension(turns=20)
    await world.store.write(continuations.extend_for_person, goal.id, more, by="human")
    fired: list[int] = []
    for _ in range(3):
        await pass_time(world, 1)
        await world.settle()
        fired.append(sum([(await reload(world, each)).fired for each in (first, *later)]))
        await pass_time(world, 3600)
    assert fired == [1, 2, 3]
