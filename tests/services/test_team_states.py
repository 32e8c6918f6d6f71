"""The state of a team in one word, pauses, and what keeps work from starting."""

from typing import Any

import pytest

from agiraph.api.presenters import team_view
from agiraph.core.domain.agents import Limits, TeamState
from agiraph.core.domain.ids import NodeId
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.work import Budget, HeldBy, NodeStatus
from agiraph.core.services.board import jobs, planning
from agiraph.core.services.lifecycle import endings, restarts, teams
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.services.members import roster
from agiraph.core.store import nodes
from agiraph.core.store.lists import overview
from agiraph.core.store.teams import TEAMS
from agiraph.core.store.tx import Tx
from agiraph.testing import World, call, says
from tests.services.teams import NO_MODEL_CALLS, add_child, found_waiting_team

S = NodeStatus


async def state(world: World, founded: NewTeam) -> TeamState:
    """Return the state of a team, which all its views agree on."""

    def look(tx: Tx) -> set[TeamState]:
        team = TEAMS.get(tx, founded.team.id)
        listed = overview.read(tx, OWNER, archived=team.status == "archived")
        return {team_view(tx, team, OWNER).state, *(t.state for t in listed if t.id == team.id)}

    [one] = await world.store.read(look)
    return one


async def held(world: World, founded: NewTeam) -> dict[str, HeldBy]:
    def look(tx: Tx) -> dict[str, HeldBy]:
        found = nodes.board(tx, founded.team.id)
        by = jobs.held(tx, found)
        listed = {job.node.id: job.held_by for job in jobs.of_team(tx, founded.team.id)}
        assert {node_id: one for node_id, one in listed.items() if one} == by
        return {node.task: by[node.id] for node in found if node.id in by}

    return await world.store.read(look)


async def answer_all(world: World, founded: NewTeam) -> None:
    for question in await world.questions(founded.team.id):
        await world.answer(question, "Yes.")
    await world.settle()


async def test_a_team_has_one_state_through_its_life(world: World) -> None:
    world.script("ada")
    idle = await world.found("Rest", name="idle", start=False)
    assert await state(world, idle) == "running"
    founded, _ = await found_waiting_team(world, "bob")
    assert await state(world, founded) == "needs_you"
    await world.store.write(teams.pause, founded.team.id)
    assert await state(world, founded) == "paused"
    await world.store.write(teams.resume, founded.team.id)
    await world.store.write(teams.stop_all, by="me")
    assert await state(world, founded) == "paused"
    await world.store.write(teams.resume_all)
    await world.store.write(teams.stop, founded.team.id, by=OWNER)
    assert await state(world, founded) == "stopped"
    await world.store.write(restarts.resume, founded.team.id, by=OWNER)
    assert await state(world, founded) == "running"
    await world.settle()
    await answer_all(world, founded)
    assert await state(world, founded) == "done"
    await world.store.write(teams.archive, founded.team.id, by=OWNER)
    assert await state(world, founded) == "done"


async def test_a_team_whose_goal_was_stopped_or_failed_says_so(world: World) -> None:
    founded, _ = await found_waiting_team(world)
    assert founded.node is not None
    await world.store.write(endings.stop, founded.node.id, by=OWNER)
    assert (await world.team(founded.team.id)).status == "active"
    assert await state(world, founded) == "stopped"
    failed = await world.found("Fail", name="failed", budget=NO_MODEL_CALLS)
    await world.settle()
    assert await state(world, failed) == "failed"


async def test_a_completed_team_with_open_work_is_paused_and_completes_again(world: World) -> None:
    world.script("ada", says(call("finish", summary="done")))
    founded = await world.found("Count")
    await world.settle()
    assert await state(world, founded) == "done"
    world.script("bob", says(call("ask_human", question="Which?")),
                 *[says(call("publish", summary="told"))] * 2)  # fmt: skip

    def ask(tx: Tx) -> NodeId:
        bob = roster.hire(tx, founded.team.id, name="bob", role="worker", model="scripted/bob")
        return planning.create(
            tx,
            team_id=founded.team.id,
            task="Ask",
            source="delegation",
            creator_id=founded.coordinator.id,
            parent_id=founded.node.id if founded.node else None,
            assignee_id=bob.id,
        ).id

    task = await world.store.write(ask)
    await world.settle()
    assert (await world.team(founded.team.id)).status == "completed"
    assert await state(world, founded) == "needs_you"

    await world.store.write(teams.pause, founded.team.id)
    await answer_all(world, founded)
    assert await state(world, founded) == "paused"
    assert (await world.node(task)).status is S.ASSIGNED
    assert await held(world, founded) == {"Ask": "team_paused"}
    await world.store.write(restarts.resume, founded.team.id, by=OWNER)
    await world.settle()
    assert (await world.node(task)).status is S.COMPLETED
    assert (await world.team(founded.team.id)).status == "completed"
    assert await state(world, founded) == "done"


async def test_work_that_ended_in_a_pause_ends_its_team_on_resuming(world: World) -> None:
    world.script("ada", says(call("finish", summary="done")))
    founded = await world.found("Count")
    await world.settle()
    await world.store.write(teams.pause, founded.team.id)
    assert await state(world, founded) == "paused"
    await world.store.write(restarts.resume, founded.team.id, by=OWNER)
    assert (await world.team(founded.team.id)).status == "completed"


async def test_work_says_what_keeps_it_from_starting(world: World) -> None:
    founded, workers = await found_waiting_team(world, "bob", "cyd", "dee")
    first = await add_child(world, founded, "wonder", to=workers["bob"])
    await add_child(world, founded, "after", to=workers["cyd"], depends_on=[first])
    failing = await add_child(world, founded, "failing", to=workers["dee"], budget=NO_MODEL_CALLS)
    await add_child(
        world, founded, "unsure", to=workers["dee"], depends_on=[failing], if_unmet="ask"
    )
    await world.settle()
    assert await held(world, founded) == {"after": "dependencies", "unsure": "decision"}
    await world.store.write(teams.stop_all, by="me")
    assert await held(world, founded) == dict.fromkeys(("after", "unsure"), "all_stopped")
    await world.store.write(teams.resume_all)


async def test_work_waits_for_a_free_agent_and_for_money(world: World) -> None:
    founded, _ = await found_waiting_team(world, limits=Limits(agents=1))
    await add_child(world, founded, "homeless")
    await world.store.write(_assign_unowned, founded)
    assert await held(world, founded) == {"homeless": "nobody_free"}

    def spend_all(tx: Tx) -> Any:
        assert founded.node is not None
        nodes.NODES.update(tx, founded.node.id, budget=Budget(model_calls=1))

    await world.store.write(spend_all)
    assert await held(world, founded) == {"homeless": "budget"}


def _assign_unowned(tx: Tx, founded: NewTeam) -> None:
    planning.assign_unowned(tx, founded.team.id)


@pytest.mark.parametrize("mode", ["finite", "infinite"])
async def test_a_resting_team_that_works_in_cycles_is_running(world: World, mode: Any) -> None:
    world.script("ada", says(call("finish", summary="done")))
    founded = await world.found("Watch", mode=mode)
    await world.settle()
    assert await state(world, founded) == ("done" if mode == "finite" else "running")
