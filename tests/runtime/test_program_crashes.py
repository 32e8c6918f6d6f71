"""A program that the runtime's death cut off is never started again unasked, and loses nothing."""

import contextlib
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import pytest

from agiraph import faultpoints
from agiraph.app import open_store
from agiraph.domain.messages import Decision
from agiraph.domain.persons import OWNER
from agiraph.domain.time import SystemClock
from agiraph.domain.work import NodeStatus, StopReason, WorkNode
from agiraph.runtime.command_line import Command
from agiraph.services.lifecycle import retries
from agiraph.services.mail import bus
from agiraph.store import messages
from agiraph.store.tx import Tx
from agiraph.testing import PowerCut, World, call, says
from tests.runtime.programs import (
    Crowd,
    Gate,
    context_of,
    events_of,
    folder_of,
    give,
    given,
    runtime,
    said_by,
)

HANDS_IN = "echo 'It is done.' > _result.md"
COUNTED = "echo run >> runs.txt"


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    return Gate.at(tmp_path / "gate")


@pytest.fixture
def crowd(gate: Gate) -> Crowd:
    return Crowd(gate)


async def waiting(home: Path, command: str, **more: Any) -> WorkNode:
    """Create a program's task for the next runtime to take up."""
    home.mkdir()
    store = await open_store(f"sqlite:///{home / 'agiraph.db'}", SystemClock())
    node = await store.write(give, command, **more)
    await store.close()
    return node


def next_world(home: Path, commands: Mapping[str, Command] | None = None) -> World:
    return World(home, clock=SystemClock(), commands=commands)


def runs(world: World, node: WorkNode) -> int:
    """Count the starts of a program that begins with COUNTED."""
    return (folder_of(world, node) / "scratch" / "runs.txt").read_text().count("run")


async def failures(world: World, node: WorkNode) -> list[str]:
    def find(tx: Tx) -> list[str]:
        found = messages.MESSAGES.select(tx, "node_id = :id and kind = 'failure'", id=node.id)
        return [message.text for message in found]

    return await world.store.read(find)


# ---- cut off in the middle ------------------------------------------------------------------


async def test_a_task_from_an_agent_fails_to_that_agent_and_is_not_run_again(
    tmp_path: Path, crowd: Crowd
) -> None:
    home = tmp_path / "home"
    begins = f"{COUNTED}; echo '@human: Begun.' >> _outbox.md; cat {crowd.gate}; "
    speaks = "echo '@human: Half way.' >> _outbox.md; echo At it.; "
    node = await waiting(home, begins + speaks + crowd.command, creator="coordinator")
    async with runtime(home) as killed:
        await killed.tells("message.sent")
        await crowd.gate.say("go on")
        await crowd.gate.heard()

    async with next_world(home) as world:
        world.script("ada", says(call("finish", summary="I know.")))
        await world.settle()
        node = await world.node(node.id)
        [told] = await failures(world, node)
        said = await said_by(world, node, to=OWNER)
        published = world.published(node)
        answers = [t.text for t in await world.turns(node.id) if t.role == "tool"]
        count = runs(world, node)
    assert (node.status, node.stop_reason) == (NodeStatus.FAILED, StopReason.NO_RESULT)
    assert (count, crowd.alive()) == (1, [])
    assert said == ["Begun.", "Half way."]
    assert published == {"runs.txt": "run\n"}
    assert "The program was cut off by a crash of the runtime after " in told
    assert "It may or may not have done what it was asked to do." in told
    assert "Assign the task again to run it again. Its last words: go on\nAt it." in told
    assert f"Its files so far are in nodes/{node.id}/published." in told
    assert [answer.splitlines()[1:] for answer in answers] == [["go on", "At it."]]


@pytest.mark.parametrize(
    ("decision", "status", "count"),
    [("approve", NodeStatus.COMPLETED, 2), ("deny", NodeStatus.FAILED, 1)],
)
async def test_a_task_from_a_person_waits_for_their_decision(
    tmp_path: Path, gate: Gate, decision: Decision, status: NodeStatus, count: int
) -> None:
    home = tmp_path / "home"
    again = f"{COUNTED}; [ $(wc -l < runs.txt) = 2 ] && {{ {HANDS_IN}; exit; }}; "
    node = await waiting(home, f"{again} echo ready > {gate}; exec sleep 1000")
    async with runtime(home):
        await gate.heard()

    for _ in range(3):  # however often the runtime comes back, it asks once and runs nothing
        async with next_world(home) as world:
            await world.settle()
            node = await world.node(node.id)
            assert (node.status, runs(world, node)) == (NodeStatus.WAITING, 1)
            assert len(await world.questions(node.team_id)) == 1
    async with next_world(home) as world:
        [question] = await world.questions(node.team_id)
        await world.answer(question, decision=decision)
        await world.settle()
        node = await world.node(node.id)
        assert (node.status, runs(world, node)) == (status, count)
    assert question.text.startswith("The program was cut off by a crash of the runtime after ")
    assert "Approve to run it again, deny to give up." in question.text


async def test_a_stop_of_the_runtime_ends_all_of_it_and_the_next_asks(
    world: World, crowd: Crowd
) -> None:
    again = f"{COUNTED}; [ $(wc -l < runs.txt) = 2 ] && {{ {HANDS_IN}; exit; }}; "
    node = await given(world, again + crowd.command)
    await crowd.gate.heard()
    await world.stop()
    left = crowd.alive()
    await world.start()
    await world.settle()
    [question] = await world.questions(node.team_id)
    assert question.text.startswith("The program was cut off by a stop of the runtime after ")
    assert (left, runs(world, node)) == ([], 1)
    await world.answer(question, decision="approve")
    await world.settle()

    node = await world.node(node.id)
    assert (node.status, node.result, node.crashes) == (NodeStatus.COMPLETED, "It is done.", 0)
    assert context_of(world, node)["attempt"] == 2


async def test_a_message_for_the_run_that_died_does_not_start_the_program_again(
    tmp_path: Path, gate: Gate
) -> None:
    home = tmp_path / "home"
    command = f"{COUNTED}; echo ready > {gate}; exec sleep 1000"
    node = await waiting(home, command, creator="coordinator")
    async with runtime(home):
        await gate.heard()
    store = await open_store(f"sqlite:///{home / 'agiraph.db'}", SystemClock())
    await store.write(
        bus.send,
        team_id=node.team_id,
        sender=node.creator_id,
        recipient=str(node.assignee_id),
        text="Hurry up.",
    )
    await store.close()

    async with next_world(home) as world:
        world.script("ada", says(call("finish", summary="I know.")))
        await world.settle()
        of_program = [
            n for n in await world.board(node.team_id) if n.assignee_id == node.assignee_id
        ]
        heard = [turn.text for turn in await world.turns(node.id)]
        assert [n.id for n in of_program] == [node.id]
        assert "[Message from coordinator] Hurry up." in heard
        assert runs(world, node) == 1


async def test_a_retry_of_what_failed_so_runs_it_again_without_a_question(
    tmp_path: Path, gate: Gate
) -> None:
    home = tmp_path / "home"
    again = f"{COUNTED}; [ $(wc -l < runs.txt) = 2 ] && {{ {HANDS_IN}; exit; }}; "
    command = f"{again} echo ready > {gate}; exec sleep 1000"
    node = await waiting(home, command, creator="coordinator")
    async with runtime(home):
        await gate.heard()

    async with next_world(home) as world:
        world.script("ada", says(call("finish", summary="I know.")))
        await world.settle()
        failed = await world.node(node.id)
        await world.store.write(retries.retry, node.id)
        await world.settle()
        node = await world.node(node.id)
        assert (failed.status, node.status) == (NodeStatus.FAILED, NodeStatus.COMPLETED)
        assert (runs(world, node), await world.questions(node.team_id)) == (2, [])


async def test_a_program_that_resumes_is_run_again_and_says_nothing_twice(
    tmp_path: Path, crowd: Crowd
) -> None:
    home = tmp_path / "home"
    first = f"echo '@human: Begun.' >> _outbox.md; touch begun.txt; cat {crowd.gate}; "
    second = f"echo '@human: Again.' >> _outbox.md; {HANDS_IN}; exit"
    script = f"[ -e begun.txt ] && {{ {second}; }}; {first}{crowd.command}"
    node = await waiting(home, script)
    async with runtime(home) as killed:
        await killed.tells("message.sent")
        await crowd.gate.say("go on")
        await crowd.gate.heard()

    async with next_world(home, {script: Command(command=script, resumes=True)}) as world:
        await world.settle()
        node = await world.node(node.id)
        context = context_of(world, node)
        said = await said_by(world, node, to=OWNER)
        published = set(world.published(node))
        ends = await events_of(world, node, "node.completed")
    assert (node.status, node.result) == (NodeStatus.COMPLETED, "It is done.")
    assert (node.attempt, context["attempt"]) == (2, 2)
    assert said == ["Begun.", "Again."]
    assert published == {"_result.md", "begun.txt"}
    assert (len(ends), crowd.alive()) == (1, [])


async def test_what_it_was_told_before_the_kill_is_in_its_inbox_afterwards(
    tmp_path: Path, gate: Gate
) -> None:
    home = tmp_path / "home"
    first = f"until grep -q Hello _inbox.md; do sleep 0.01; done; touch begun.txt; echo > {gate}"
    second = f"cp _inbox.md heard.txt; {HANDS_IN}; exit"
    script = f"[ -e begun.txt ] && {{ {second}; }}; {first}; exec sleep 1000"
    node = await waiting(home, script)
    assert node.assignee_id is not None
    store = await open_store(f"sqlite:///{home / 'agiraph.db'}", SystemClock())
    await store.write(
        bus.send, team_id=node.team_id, sender=OWNER, recipient=node.assignee_id, text="Hello."
    )
    await store.close()
    async with runtime(home):
        await gate.heard()

    resumes = {script: Command(command=script, resumes=True)}
    async with next_world(home, resumes) as world:
        await world.settle()
        node = await world.node(node.id)
        assert world.published(node)["heard.txt"] == "[Message from human] Hello.\n\n"


# ---- what it had written already ------------------------------------------------------------


@contextlib.contextmanager
def power_cut_at(wanted: str) -> Generator[None]:
    """Let the runtime die at this point; it stays dead until it is restarted."""

    def cut(point: str) -> None:
        if point == wanted:
            raise PowerCut

    faultpoints.armed = cut
    try:
        yield
    finally:
        faultpoints.armed = None


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_program_that_ended_before_the_crash_has_its_real_result(world: World) -> None:
    command = f"{COUNTED}; {HANDS_IN}; printf '@human: The last line' >> _outbox.md"
    with power_cut_at("fx:after:command"):
        node = await given(world, command)
        await world.settle()
    await world.restart()
    await world.settle()

    node = await world.node(node.id)
    assert (node.status, node.result, node.doubts) == (NodeStatus.COMPLETED, "It is done.", None)
    assert world.published(node) == {"_result.md": "It is done.\n", "runs.txt": "run\n"}
    assert await said_by(world, node, to=OWNER) == ["The last line"]
    [run] = await events_of(world, node, "tool.result")
    assert run["text"] == "[exited, exit code 0, 0 s]"


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_program_that_ended_in_vain_before_the_crash_is_not_run_again(
    world: World,
) -> None:
    with power_cut_at("fx:after:command"):
        node = await given(world, f"{COUNTED}; exit 3")
        await world.settle()
    await world.restart()
    await world.settle()

    node = await world.node(node.id)
    [told] = await world.inbox()
    assert (node.status, runs(world, node)) == (NodeStatus.FAILED, 1)
    assert told.text.startswith("The command ended without writing _result.md [exited, exit code 3")


async def test_a_result_that_was_there_at_the_crash_counts_with_a_doubt(
    tmp_path: Path, gate: Gate
) -> None:
    home = tmp_path / "home"
    node = await waiting(home, f"{COUNTED}; {HANDS_IN}; echo ready > {gate}; exec sleep 1000")
    async with runtime(home):
        await gate.heard()

    async with next_world(home) as world:
        await world.settle()
        node = await world.node(node.id)
        published = world.published(node)
    doubts = "its command was cut off with the runtime: _result.md may not be complete"
    assert (node.status, node.result, node.doubts) == (NodeStatus.COMPLETED, "It is done.", doubts)
    assert published == {"_result.md": "It is done.\n", "runs.txt": "run\n"}


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_program_that_never_began_is_simply_run(world: World) -> None:
    with power_cut_at("fx:before:spawn"):
        node = await given(world, f"{COUNTED}; {HANDS_IN}")
        await world.settle()
    await world.restart()
    await world.settle()

    node = await world.node(node.id)
    assert (node.status, runs(world, node)) == (NodeStatus.COMPLETED, 1)
