"""A program interrupted by a crash of the runtime is not run again unasked, and loses nothing."""

import contextlib
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import pytest

from agiraph import faultpoints
from agiraph.app import open_store
from agiraph.core.domain.agents import Command
from agiraph.core.domain.errors import Refused
from agiraph.core.domain.messages import Decision, Draft
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.times.time import SystemClock
from agiraph.core.domain.work import NodeStatus, StopReason, WorkNode
from agiraph.core.services.board import requests
from agiraph.core.services.lifecycle import answers, continuations
from agiraph.core.services.mail import bus
from agiraph.core.store import messages
from agiraph.core.store.tx import Tx
from agiraph.testing import PowerCut, World, call, says
from tests.doubts import doubts_of
from tests.fences import opened
from tests.runtime.programs import (
    MarkedProcesses,
    NamedPipe,
    context_of,
    create_program_task,
    events_of,
    folder_of,
    messages_from,
    runtime_process,
    start_program,
)

pytestmark = pytest.mark.slow

WRITES_RESULT = "echo 'It is done.' > _result.md"
COUNTED = "echo run >> runs.txt"


@pytest.fixture
def pipe(tmp_path: Path) -> NamedPipe:
    return NamedPipe.create(tmp_path / "pipe")


@pytest.fixture
def processes(pipe: NamedPipe) -> MarkedProcesses:
    return MarkedProcesses(pipe)


async def queue_task(home: Path, command: str, **more: Any) -> WorkNode:
    """Create a program's task for the next runtime to start."""
    home.mkdir()
    store = await open_store(f"sqlite:///{home / 'agiraph.db'}", SystemClock())
    node = await store.write(create_program_task, command, **more)
    await store.close()
    return node


def next_world(home: Path, commands: Mapping[str, Command] | None = None) -> World:
    return World(home, clock=SystemClock(), commands=commands, easy_endings=True)


def runs(world: World, node: WorkNode) -> int:
    """Count the starts of a program that begins with COUNTED."""
    return (folder_of(world, node) / "scratch" / "runs.txt").read_text().count("run")


async def failures(world: World, node: WorkNode) -> list[str]:
    def find(tx: Tx) -> list[str]:
        found = messages.MESSAGES.select(tx, "node_id = :id and kind = 'failure'", id=node.id)
        return [message.text for message in found]

    return await world.store.read(find)


# ---- interrupted by a crash -----------------------------------------------------------------


async def test_an_interrupted_task_from_an_agent_fails_and_is_not_run_again(
    tmp_path: Path, processes: MarkedProcesses
) -> None:
    home = tmp_path / "home"
    begins = f"{COUNTED}; echo '@human: Begun.' >> _outbox.md; cat {processes.pipe}; "
    speaks = "echo '@human: Half way.' >> _outbox.md; echo At it.; "
    node = await queue_task(home, begins + speaks + processes.command, creator="coordinator")
    async with runtime_process(home) as killed:
        await killed.wait_for("message.sent")
        await processes.pipe.write("go on")
        await processes.pipe.read()

    async with next_world(home) as world:
        world.script("ada", says(call("finish", summary="I know.")))
        await world.settle()
        node = await world.node(node.id)
        [told] = await failures(world, node)
        said = await messages_from(world, node, to=OWNER)
        published = world.published(node)
        answers = [t.text for t in await world.turns(node.id) if t.role == "tool"]
        count = runs(world, node)
    assert (node.status, node.stop_reason) == (NodeStatus.FAILED, StopReason.NO_RESULT)
    assert (count, processes.alive()) == (1, [])
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
async def test_an_interrupted_task_from_a_person_waits_for_their_decision(
    tmp_path: Path, pipe: NamedPipe, decision: Decision, status: NodeStatus, count: int
) -> None:
    home = tmp_path / "home"
    again = f"{COUNTED}; [ $(wc -l < runs.txt) = 2 ] && {{ {WRITES_RESULT}; exit; }}; "
    node = await queue_task(home, f"{again} echo ready > {pipe}; exec sleep 1000")
    async with runtime_process(home):
        await pipe.read()

    for _ in range(3):  # however often the runtime restarts, it asks once and runs nothing
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


async def test_stopping_the_runtime_ends_the_program_and_the_next_start_asks_to_repeat(
    world: World, processes: MarkedProcesses
) -> None:
    again = f"{COUNTED}; [ $(wc -l < runs.txt) = 2 ] && {{ {WRITES_RESULT}; exit; }}; "
    node = await start_program(world, again + processes.command)
    await processes.pipe.read()
    await world.stop()
    left = processes.alive()
    await world.start()
    await world.settle()
    [question] = await world.questions(node.team_id)
    assert question.text.startswith("The program was cut off by a stop of the runtime after ")
    assert (left, runs(world, node)) == ([], 1)
    assert requests.offer(question) is None  # what is run again next time is decided then
    with pytest.raises(Refused, match="decided run by run"):
        await world.store.write(
            answers.answer_question,
            *(question.id, ""),
            person_id=OWNER,
            decision="approve",
            always=True,
        )
    await world.answer(question, decision="approve")
    await world.settle()

    node = await world.node(node.id)
    assert (node.status, node.result, node.crashes) == (NodeStatus.COMPLETED, "It is done.", 0)
    assert context_of(world, node)["attempt"] == 2


async def test_a_message_for_the_interrupted_run_does_not_start_the_program_again(
    tmp_path: Path, pipe: NamedPipe
) -> None:
    home = tmp_path / "home"
    command = f"{COUNTED}; echo ready > {pipe}; exec sleep 1000"
    node = await queue_task(home, command, creator="coordinator")
    async with runtime_process(home):
        await pipe.read()
    store = await open_store(f"sqlite:///{home / 'agiraph.db'}", SystemClock())
    await store.write(
        bus.send,
        Draft(
            team_id=node.team_id,
            sender=node.creator_id,
            recipient=str(node.assignee_id),
            text="Hurry up.",
        ),
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
        assert "[Message from coordinator] Hurry up." in [opened(text) for text in heard]
        assert runs(world, node) == 1


async def test_retrying_an_interrupted_task_runs_it_again_without_a_question(
    tmp_path: Path, pipe: NamedPipe
) -> None:
    home = tmp_path / "home"
    again = f"{COUNTED}; [ $(wc -l < runs.txt) = 2 ] && {{ {WRITES_RESULT}; exit; }}; "
    command = f"{again} echo ready > {pipe}; exec sleep 1000"
    node = await queue_task(home, command, creator="coordinator")
    async with runtime_process(home):
        await pipe.read()

    async with next_world(home) as world:
        world.script("ada", says(call("finish", summary="I know.")))
        await world.settle()
        failed = await world.node(node.id)
        await world.store.write(continuations.retry, node.id)
        await world.settle()
        node = await world.node(node.id)
        assert (failed.status, node.status) == (NodeStatus.FAILED, NodeStatus.COMPLETED)
        assert (runs(world, node), await world.questions(node.team_id)) == (2, [])


async def test_a_program_with_resumes_is_run_again_and_sends_nothing_twice(
    tmp_path: Path, processes: MarkedProcesses
) -> None:
    home = tmp_path / "home"
    first = f"echo '@human: Begun.' >> _outbox.md; touch begun.txt; cat {processes.pipe}; "
    second = f"echo '@human: Again.' >> _outbox.md; {WRITES_RESULT}; exit"
    script = f"[ -e begun.txt ] && {{ {second}; }}; {first}{processes.command}"
    node = await queue_task(home, script)
    async with runtime_process(home) as killed:
        await killed.wait_for("message.sent")
        await processes.pipe.write("go on")
        await processes.pipe.read()

    async with next_world(home, {script: Command(command=script, resumes=True)}) as world:
        await world.settle()
        node = await world.node(node.id)
        context = context_of(world, node)
        said = await messages_from(world, node, to=OWNER)
        published = set(world.published(node))
        ends = await events_of(world, node, "node.completed")
    assert (node.status, node.result) == (NodeStatus.COMPLETED, "It is done.")
    assert (node.attempt, context["attempt"]) == (2, 2)
    assert said == ["Begun.", "Again."]
    assert published == {"_result.md", "begun.txt"}
    assert (len(ends), processes.alive()) == (1, [])


async def test_messages_from_before_the_kill_are_in_the_programs_inbox_afterwards(
    tmp_path: Path, pipe: NamedPipe
) -> None:
    home = tmp_path / "home"
    first = f"until grep -q Hello _inbox.md; do sleep 0.01; done; touch begun.txt; echo > {pipe}"
    second = f"cp _inbox.md heard.txt; {WRITES_RESULT}; exit"
    script = f"[ -e begun.txt ] && {{ {second}; }}; {first}; exec sleep 1000"
    node = await queue_task(home, script)
    assert node.assignee_id is not None
    store = await open_store(f"sqlite:///{home / 'agiraph.db'}", SystemClock())
    await store.write(
        bus.send,
        Draft(team_id=node.team_id, sender=OWNER, recipient=node.assignee_id, text="Hello."),
    )
    await store.close()
    async with runtime_process(home):
        await pipe.read()

    resumes = {script: Command(command=script, resumes=True)}
    async with next_world(home, resumes) as world:
        await world.settle()
        node = await world.node(node.id)
        assert world.published(node)["heard.txt"] == "[Message from human] Hello.\n\n"


# ---- a result before the crash --------------------------------------------------------------


@contextlib.contextmanager
def power_cut_at(wanted: str) -> Generator[None]:
    """Let the runtime crash at this fault point; it stays down until it is restarted."""

    def cut(point: str) -> None:
        if point == wanted:
            raise PowerCut

    faultpoints.armed = cut
    try:
        yield
    finally:
        faultpoints.armed = None


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_program_that_ended_before_the_crash_keeps_its_result(world: World) -> None:
    command = f"{COUNTED}; {WRITES_RESULT}; printf '@human: The last line' >> _outbox.md"
    with power_cut_at("fx:after:command"):
        node = await start_program(world, command)
        await world.settle()
    await world.restart()
    await world.settle()

    node = await world.node(node.id)
    assert (node.status, node.result, doubts_of(node)) == (
        NodeStatus.COMPLETED,
        "It is done.",
        None,
    )
    assert world.published(node) == {"_result.md": "It is done.\n", "runs.txt": "run\n"}
    assert await messages_from(world, node, to=OWNER) == ["The last line"]
    [run] = await events_of(world, node, "tool.result")
    assert run["text"] == "[exited, exit code 0, 0 s]"


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_program_that_ended_without_a_result_before_the_crash_is_not_run_again(
    world: World,
) -> None:
    with power_cut_at("fx:after:command"):
        node = await start_program(world, f"{COUNTED}; exit 3")
        await world.settle()
    await world.restart()
    await world.settle()

    node = await world.node(node.id)
    [told] = await world.inbox()
    assert (node.status, runs(world, node)) == (NodeStatus.FAILED, 1)
    assert told.text.startswith("The command ended without writing _result.md [exited, exit code 3")


async def test_a_result_written_before_the_crash_is_accepted_with_a_doubt(
    tmp_path: Path, pipe: NamedPipe
) -> None:
    home = tmp_path / "home"
    node = await queue_task(
        home, f"{COUNTED}; {WRITES_RESULT}; echo ready > {pipe}; exec sleep 1000"
    )
    async with runtime_process(home):
        await pipe.read()

    async with next_world(home) as world:
        await world.settle()
        node = await world.node(node.id)
        published = world.published(node)
    doubts = "its command was cut off with the runtime: _result.md may not be complete"
    assert (node.status, node.result, doubts_of(node)) == (
        NodeStatus.COMPLETED,
        "It is done.",
        doubts,
    )
    assert published == {"_result.md": "It is done.\n", "runs.txt": "run\n"}


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_program_that_had_not_started_before_the_crash_is_run(world: World) -> None:
    with power_cut_at("fx:before:spawn"):
        node = await start_program(world, f"{COUNTED}; {WRITES_RESULT}")
        await world.settle()
    await world.restart()
    await world.settle()

    node = await world.node(node.id)
    assert (node.status, runs(world, node)) == (NodeStatus.COMPLETED, 1)
