"""A program ends with its time, with a cancel and with its team: all of it."""

from pathlib import Path

import pytest

from agiraph.domain.persons import OWNER
from agiraph.domain.work import Budget, NodeStatus, StopReason
from agiraph.services.lifecycle import endings, teams
from agiraph.testing import World, call, says
from tests.runtime.programs import (
    Crowd,
    Gate,
    context_of,
    done,
    folder_of,
    given,
    said_by,
)

HANDS_IN = "echo 'It is done.' > _result.md"


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    return Gate.at(tmp_path / "gate")


@pytest.fixture
def crowd(gate: Gate) -> Crowd:
    return Crowd(gate)


# ---- its time, a cancel, its team -----------------------------------------------------------


async def test_when_its_time_is_over_all_of_it_ends(world: World, crowd: Crowd) -> None:
    node = await given(world, "echo Begun.;" + crowd.command, budget=Budget(seconds=3))
    assert await crowd.gate.heard() == "ready"
    assert len(crowd.alive()) >= 4
    await world.settle()

    node = await world.node(node.id)
    [told] = await world.inbox()
    assert (node.status, node.stop_reason) == (NodeStatus.FAILED, StopReason.TIME_SPENT)
    assert told.text.startswith("The command ran out of time [timed_out, exit code None, ")
    assert told.text.endswith("Its last words: Begun.")
    assert crowd.alive() == []


async def test_what_it_handed_in_before_its_time_was_over_counts(world: World) -> None:
    node = await done(world, f"{HANDS_IN}; exec sleep 1000", budget=Budget(seconds=1))

    assert (node.status, node.result, node.doubts) == (NodeStatus.COMPLETED, "It is done.", None)


async def test_a_cancel_ends_all_of_it(world: World, crowd: Crowd) -> None:
    node = await given(world, crowd.command)
    await crowd.gate.heard()
    await world.store.write(endings.cancel, node.id)
    await world.settle()

    node = await world.node(node.id)
    assert (node.status, node.stop_reason) == (NodeStatus.CANCELLED, StopReason.CANCELLED)
    assert crowd.alive() == []


async def test_a_stop_of_its_team_ends_all_of_it(world: World, crowd: Crowd) -> None:
    node = await given(world, crowd.command)
    await crowd.gate.heard()
    await world.store.write(teams.stop, node.team_id)
    await world.settle()

    assert (await world.node(node.id)).status is NodeStatus.CANCELLED
    assert crowd.alive() == []


async def test_a_pause_lets_it_work_to_its_end_and_begins_nothing_new(
    world: World, gate: Gate
) -> None:
    node = await given(world, f"echo ready > {gate}; cat {gate}; {HANDS_IN}")
    assert node.assignee_id is not None
    await gate.heard()
    await world.store.write(teams.pause, node.team_id)
    await gate.say("go on")
    await world.settle()
    await world.say(node.assignee_id, "Once more.", team_id=node.team_id)
    await world.settle()
    paused = [n.status for n in await world.board(node.team_id)]
    await world.store.write(teams.resume, node.team_id)
    await gate.heard()
    await gate.say("go on")
    await world.settle()

    resumed = [n.status for n in await world.board(node.team_id)]
    assert paused == [NodeStatus.COMPLETED, NodeStatus.ASSIGNED]
    assert resumed == [NodeStatus.COMPLETED] * 2


# ---- its earlier work -----------------------------------------------------------------------


async def test_a_task_that_is_taken_up_again_is_run_again(world: World) -> None:
    """In the same thread, but with its own words, its own folder and its own outbox."""
    command = f"echo '@human: Begun.' >> _outbox.md; {HANDS_IN}"
    ada = world.script(
        "ada",
        says(call("assign_task", agent=f"cli:{command}", task="Do this.", description="This")),
        lambda request: says(
            call(
                "assign_task",
                agent="echo",
                task="Do that.",
                description="That",
                resume=request.transcript.last_spoken.text.split("Id: ")[1].split()[0],
            )
        ),
        says(call("finish", summary="Both.")),
    )
    founded = await world.found("Have both done")
    await world.settle()

    goal, this, that = await world.board(founded.team.id)
    assert {n.status for n in (goal, this, that)} == {NodeStatus.COMPLETED}, ada.heard
    assert this.thread_id == that.thread_id
    assert await said_by(world, that, to=OWNER) == ["Begun.", "Begun."]
    assert "Do that." in (folder_of(world, that) / "_task.md").read_text()
    assert context_of(world, that)["earlier"] == [str(folder_of(world, this) / "published")]
