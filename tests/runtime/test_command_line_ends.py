"""A program ends with its time, with a cancel, with its team and with the runtime: all of it."""

from pathlib import Path

import pytest

from agiraph.app import open_store
from agiraph.domain.ids import HUMAN
from agiraph.domain.time import SystemClock
from agiraph.domain.work import Budget, NodeStatus, StopReason, WorkNode
from agiraph.services import endings, mail, teams
from agiraph.testing import World, call, says
from tests.runtime.programs import (
    Crowd,
    Gate,
    context_of,
    done,
    events_of,
    folder_of,
    give,
    given,
    runtime,
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


# ---- the runtime ----------------------------------------------------------------------------


async def test_a_stop_of_the_runtime_ends_all_of_it_and_the_next_begins_it_anew(
    world: World, crowd: Crowd
) -> None:
    again = f"[ -e begun.txt ] && {{ {HANDS_IN}; exit; }}; touch begun.txt;"
    node = await given(world, again + crowd.command)
    await crowd.gate.heard()
    await world.stop()
    left = crowd.alive()
    await world.start()
    await world.settle()

    node = await world.node(node.id)
    assert left == []
    assert (node.status, node.result, node.crashes) == (NodeStatus.COMPLETED, "It is done.", 0)
    assert context_of(world, node)["attempt"] == 2


async def waiting(home: Path, command: str) -> WorkNode:
    """A program's work, for the next runtime to take up."""
    home.mkdir()
    store = await open_store(f"sqlite:///{home / 'agiraph.db'}", SystemClock())
    node = await store.write(give, command)
    await store.close()
    return node


async def test_a_kill_of_the_runtime_ends_all_of_it_and_nothing_is_said_twice(
    tmp_path: Path, crowd: Crowd
) -> None:
    home = tmp_path / "home"
    first = f"echo '@human: Begun.' >> _outbox.md; touch begun.txt; cat {crowd.gate}; "
    second = f"echo '@human: Again.' >> _outbox.md; {HANDS_IN}; exit"
    node = await waiting(home, f"[ -e begun.txt ] && {{ {second}; }}; {first}{crowd.command}")
    async with runtime(home) as killed:
        await killed.tells("message.sent")
        await crowd.gate.say("go on")
        await crowd.gate.heard()

    async with World(home, clock=SystemClock()) as world:
        await world.settle()
        node = await world.node(node.id)
        context = context_of(world, node)
        said = await said_by(world, node, to=HUMAN)
        published = set(world.published(node))
        ends = await events_of(world, node, "node.completed")
    assert (node.status, node.result) == (NodeStatus.COMPLETED, "It is done.")
    assert (node.attempt, context["attempt"]) == (2, 2)
    assert said == ["Begun.", "Again."]
    assert published == {"_result.md", "begun.txt"}
    assert (len(ends), crowd.alive()) == (1, [])


async def test_what_was_handed_in_when_the_runtime_was_killed_counts(
    tmp_path: Path, gate: Gate
) -> None:
    home = tmp_path / "home"
    command = f"echo run >> runs.txt; {HANDS_IN}; echo ready > {gate}; exec sleep 1000"
    node = await waiting(home, command)
    async with runtime(home):
        await gate.heard()

    async with World(home, clock=SystemClock()) as world:
        await world.settle()
        node = await world.node(node.id)
        published = world.published(node)
    assert (node.status, node.result, node.doubts) == (NodeStatus.COMPLETED, "It is done.", None)
    assert published == {"_result.md": "It is done.\n", "runs.txt": "run\n"}


async def test_what_it_was_told_before_the_kill_is_in_its_inbox_afterwards(
    tmp_path: Path, gate: Gate
) -> None:
    home = tmp_path / "home"
    first = f"until grep -q Hello _inbox.md; do sleep 0.01; done; touch begun.txt; echo > {gate}"
    second = f"cp _inbox.md heard.txt; {HANDS_IN}; exit"
    node = await waiting(home, f"[ -e begun.txt ] && {{ {second}; }}; {first}; exec sleep 1000")
    assert node.assignee_id is not None
    store = await open_store(f"sqlite:///{home / 'agiraph.db'}", SystemClock())
    await store.write(
        mail.send, team_id=node.team_id, sender=HUMAN, recipient=node.assignee_id, text="Hello."
    )
    await store.close()
    async with runtime(home):
        await gate.heard()

    async with World(home, clock=SystemClock()) as world:
        await world.settle()
        node = await world.node(node.id)
        assert world.published(node)["heard.txt"] == "[Message from human] Hello.\n\n"


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
    assert await said_by(world, that, to=HUMAN) == ["Begun.", "Begun."]
    assert "Do that." in (folder_of(world, that) / "_task.md").read_text()
    assert context_of(world, that)["earlier"] == [str(folder_of(world, this) / "published")]
