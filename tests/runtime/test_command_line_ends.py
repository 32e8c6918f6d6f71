"""A time limit, a cancel and a stop of the team end all processes of a program."""

from pathlib import Path

import pytest

from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.work import Budget, NodeStatus, StopReason
from agiraph.core.services.lifecycle import endings, teams
from agiraph.testing import World, call, says
from tests.doubts import doubts_of
from tests.runtime.programs import (
    MarkedProcesses,
    NamedPipe,
    context_of,
    folder_of,
    messages_from,
    run_program,
    start_program,
)

WRITES_RESULT = "echo 'It is done.' > _result.md"


@pytest.fixture
def pipe(tmp_path: Path) -> NamedPipe:
    return NamedPipe.create(tmp_path / "pipe")


@pytest.fixture
def processes(pipe: NamedPipe) -> MarkedProcesses:
    return MarkedProcesses(pipe)


# ---- time limit, cancel, stop ----------------------------------------------------------------


async def test_a_time_limit_ends_all_processes_of_a_program(
    world: World, processes: MarkedProcesses
) -> None:
    node = await start_program(world, "echo Begun.;" + processes.command, budget=Budget(seconds=3))
    assert await processes.pipe.read() == "ready"
    assert len(processes.alive()) >= 4
    await world.settle()

    node = await world.node(node.id)
    [told] = await world.inbox()
    assert (node.status, node.stop_reason) == (NodeStatus.FAILED, StopReason.TIME_SPENT)
    assert told.text.startswith("The command ran out of time [timed_out, exit code None, ")
    assert told.text.endswith("Its last words: Begun.")
    assert processes.alive() == []


async def test_a_result_written_before_the_time_limit_counts(world: World) -> None:
    node = await run_program(world, f"{WRITES_RESULT}; exec sleep 1000", budget=Budget(seconds=1))

    assert (node.status, node.result, doubts_of(node)) == (
        NodeStatus.COMPLETED,
        "It is done.",
        None,
    )


async def test_a_cancel_ends_all_processes_of_a_program(
    world: World, processes: MarkedProcesses
) -> None:
    node = await start_program(world, processes.command)
    await processes.pipe.read()
    await world.store.write(endings.cancel, node.id)
    await world.settle()

    node = await world.node(node.id)
    assert (node.status, node.stop_reason) == (NodeStatus.CANCELLED, StopReason.CANCELLED)
    assert processes.alive() == []


async def test_stopping_the_team_ends_all_processes_of_a_program(
    world: World, processes: MarkedProcesses
) -> None:
    node = await start_program(world, processes.command)
    await processes.pipe.read()
    await world.store.write(teams.stop, node.team_id)
    await world.settle()

    assert (await world.node(node.id)).status is NodeStatus.CANCELLED
    assert processes.alive() == []


async def test_a_pause_lets_a_running_program_finish_and_starts_nothing_new(
    world: World, pipe: NamedPipe
) -> None:
    node = await start_program(world, f"echo ready > {pipe}; cat {pipe}; {WRITES_RESULT}")
    assert node.assignee_id is not None
    await pipe.read()
    await world.store.write(teams.pause, node.team_id)
    await pipe.write("go on")
    await world.settle()
    await world.say(node.assignee_id, "Once more.", team_id=node.team_id)
    await world.settle()
    paused = [n.status for n in await world.board(node.team_id)]
    await world.store.write(teams.resume, node.team_id)
    await pipe.read()
    await pipe.write("go on")
    await world.settle()

    resumed = [n.status for n in await world.board(node.team_id)]
    assert paused == [NodeStatus.COMPLETED, NodeStatus.ASSIGNED]
    assert resumed == [NodeStatus.COMPLETED] * 2


# ---- resumed tasks --------------------------------------------------------------------------


async def test_a_resumed_task_runs_the_program_again_in_the_same_thread(world: World) -> None:
    """In the same thread, but with its own task text, folder and outbox."""
    command = f"echo '@human: Begun.' >> _outbox.md; {WRITES_RESULT}"
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
    assert await messages_from(world, that, to=OWNER) == ["Begun.", "Begun."]
    assert "Do that." in (folder_of(world, that) / "_task.md").read_text()
    assert context_of(world, that)["earlier"] == [str(folder_of(world, this) / "published")]
