"""`finish` ends only the node that calls it; only the goal's own `finish` completes the team."""

from typing import Any

import pytest

from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.work import NodeStatus, Source, StopReason
from agiraph.core.services.board import planning
from agiraph.core.services.lifecycle import conversation
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.services.members import roster
from agiraph.core.services.triggers import definitions
from agiraph.core.store import triggers as trigger_rows
from agiraph.core.store.tx import Tx
from agiraph.models.base import Request
from agiraph.testing import Says, World, call, says
from agiraph.testing.scripted import ReactiveModel
from tests.services.stages import pass_time

S = NodeStatus


def create_side_node(
    tx: Tx, founded: NewTeam, source: Source, creator: str, *, child: bool
) -> None:
    planning.create(
        tx,
        team_id=founded.team.id,
        task="Do something else",
        source=source,
        creator_id=creator,
        parent_id=founded.node.id if child and founded.node is not None else None,
        assignee_id=founded.coordinator.id,
    )


def lead(request: Request) -> Says:
    """Ask about the goal, and finish everything else."""
    first = next(iter(request.transcript.spoken())).text
    said = [t for t in request.transcript.spoken() if t.role == "tool"]
    if first == "Reach it" and not said:
        return says(call("ask_human", question="Shall we?"))
    return says(call("finish", summary="done"))


async def found_waiting_goal(world: World, **more: Any) -> NewTeam:
    """Found a team whose goal waits for the person."""
    world.model("ada", ReactiveModel("scripted/ada", lead))
    founded = await world.found("Reach it", **more)
    await world.settle()
    return founded


async def team_status(world: World, founded: NewTeam) -> str:
    return (await world.team(founded.team.id)).status


@pytest.mark.parametrize(
    ("source", "creator", "child"),
    [
        ("user", OWNER, False),
        ("delegation", "coordinator", False),
        ("trigger", OWNER, False),
        ("self", "coordinator", False),
        ("delegation", "coordinator", True),
    ],
)
async def test_finish_in_a_side_node_ends_only_that_node(
    world: World, source: Source, creator: str, child: bool
) -> None:
    founded = await found_waiting_goal(world, heartbeat=3600.0)
    creator = founded.coordinator.id if creator == "coordinator" else creator
    await world.store.write(create_side_node, founded, source, creator, child=child)
    await world.settle()

    goal, other = await world.board(founded.team.id)
    assert (other.status, other.stop_reason) == (S.COMPLETED, StopReason.FINISHED)
    assert (goal.status, await team_status(world, founded)) == (S.WAITING, "active")
    [question] = await world.questions(founded.team.id)
    [heartbeat] = await world.store.read(trigger_rows.active_of_team, founded.team.id)
    assert heartbeat.type == "heartbeat"
    await world.answer(question, "Yes.")
    await world.settle()
    goal, _ = await world.board(founded.team.id)
    assert (goal.result, await team_status(world, founded)) == ("done", "completed")


async def test_finish_in_a_node_made_from_a_message_ends_only_that_node(world: World) -> None:
    world.script(
        "ada",
        says(call("assign_task", agent="new:scripted/bob", task="Help", description="Help")),
    )
    world.script("bob", says(call("ask_human", question="May I?")))
    founded = await world.found("Reach it")
    await world.settle()
    other = await world.store.write(hire, founded)
    world.script(
        "cyd", says(call("finish", summary="thanks")), says(call("publish", summary="thanks"))
    )
    await world.say(other, "Hello", team_id=founded.team.id)
    await world.settle()

    goal, child, said = await world.board(founded.team.id)
    assert (goal.status, child.status, said.status) == (S.WAITING, S.WAITING, S.COMPLETED)
    assert await team_status(world, founded) == "active"


def hire(tx: Tx, founded: NewTeam) -> str:
    return roster.hire(tx, founded.team.id, name="cyd", role="coordinator", model="scripted/cyd").id


async def test_a_completed_team_completes_again_after_an_additional_request(
    world: World,
) -> None:
    founded = await found_waiting_goal(world, heartbeat=3600.0)
    [question] = await world.questions(founded.team.id)
    await world.answer(question, "Yes.")
    await world.settle()
    assert await team_status(world, founded) == "completed"
    await world.store.write(
        conversation.say, founded.coordinator.id, "And JSON?", nudge=True, person_id=OWNER
    )
    await world.store.write(reopen, founded)
    await world.settle()

    assert await team_status(world, founded) == "completed"
    assert await world.store.read(trigger_rows.active_of_team, founded.team.id) == []


def reopen(tx: Tx, founded: NewTeam) -> None:
    """Start more work that a person asked for; the completed team becomes active again."""
    conversation.start_work(tx, founded.coordinator, founded.node.id, "More")  # type: ignore[union-attr]


async def test_a_completed_team_is_woken_by_its_schedule_and_completes_again(world: World) -> None:
    founded = await found_waiting_goal(world, heartbeat=3600.0)

    def schedule(tx: Tx) -> None:
        definitions.create(
            tx,
            agent_id=founded.coordinator.id,
            type="scheduled",
            config={"cron": "*/10 * * * *"},
            payload={"task": "Look"},
            made_by=OWNER,
        )

    await world.store.write(schedule)
    [question] = await world.questions(founded.team.id)
    await world.answer(question, "Yes.")
    await world.settle()
    assert await team_status(world, founded) == "completed"
    await pass_time(world, 601)

    woken = (await world.board(founded.team.id))[-1]
    assert (woken.source, woken.status) == ("trigger", S.COMPLETED)
    assert await team_status(world, founded) == "completed"
    active = await world.store.read(trigger_rows.active_of_team, founded.team.id)
    assert [t.type for t in active] == ["scheduled"]  # the heartbeat rests
