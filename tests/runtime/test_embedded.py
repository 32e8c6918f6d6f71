"""One process on one home: no wake is lost between a commit and the queue it concerns."""

import asyncio
import os
from pathlib import Path

import pytest

from agiraph.core.domain.errors import ModelUnavailable
from agiraph.core.domain.work import NodeStatus, StopReason, WorkNode
from agiraph.core.services.board import planning
from agiraph.core.services.lifecycle import endings, teams
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.store import spend
from agiraph.core.store.tx import Tx
from agiraph.models.base import Request
from agiraph.testing import Says, World, call, says
from agiraph.testing.scripted import ReactiveModel
from tests.runtime.waiting import Gate, nth_commit, until

DONE = says(call("finish", summary="done"))


def finishes(request: Request) -> Says:
    return DONE


async def assign(world: World, founded: NewTeam, *tasks: str) -> list[WorkNode]:
    """Create nodes for the coordinator in one transaction."""

    def create(tx: Tx) -> list[WorkNode]:
        return [
            planning.create(
                tx,
                team_id=founded.team.id,
                task=task,
                source="user",
                assignee_id=founded.coordinator.id,
            )
            for task in tasks
        ]

    return await world.store.write(create)


async def idle_team(world: World) -> NewTeam:
    return await world.found("Whatever comes", mode="infinite", start=False)


async def events_with_nodes(world: World, founded: NewTeam, *types: str) -> list[tuple[str, str]]:
    """Return a team's events of these types in order, each with its node."""
    return [
        (event.type, event.data["node_id"])
        for event in await world.events(founded.team.id)
        if event.type in types
    ]


# ---- queues ----------------------------------------------------------------------------------


@pytest.mark.slow
async def test_an_agent_runs_its_nodes_one_at_a_time_in_the_order_of_assignment(
    world: World,
) -> None:
    world.model("ada", ReactiveModel("scripted/ada", finishes))
    founded = await idle_team(world)
    given = [node.id for n in range(5) for node in await assign(world, founded, f"task {n}")]
    given += [node.id for node in await assign(world, founded, "task 5", "task 6")]
    await world.settle()
    assert await events_with_nodes(world, founded, "node.started", "node.completed") == [
        (type, node) for node in given for type in ("node.started", "node.completed")
    ]


async def test_while_one_node_runs_the_next_waits_in_the_queue(world: World) -> None:
    ada = world.script("ada", DONE, DONE)
    ada.gate = gate = Gate()
    founded = await idle_team(world)
    await assign(world, founded, "first", "second")
    await gate.reached()
    assert [(n.task, n.status) for n in await world.board(founded.team.id)] == [
        ("first", NodeStatus.RUNNING),
        ("second", NodeStatus.ASSIGNED),
    ]
    gate.set()
    await world.settle()
    assert {n.status for n in await world.board(founded.team.id)} == {NodeStatus.COMPLETED}


async def test_two_agents_work_in_parallel(world: World) -> None:
    ada = world.script("ada", DONE, DONE)
    ada.gate = gate = Gate()
    teams_ = [await world.found(f"goal {n}") for n in range(2)]
    await gate.reached(2)
    running = [n.status for team in teams_ for n in await world.board(team.team.id)]
    assert running == [NodeStatus.RUNNING, NodeStatus.RUNNING]
    gate.set()
    await world.settle()


@pytest.mark.parametrize("senders", [1, 8])
async def test_no_message_is_lost_that_arrives_around_the_end_of_a_node(
    world: World, senders: int
) -> None:
    world.model("ada", ReactiveModel("scripted/ada", finishes))
    founded = await idle_team(world)
    said = [f"note {sender}.{number}." for sender in range(senders) for number in range(6)]

    async def speak(sender: int) -> None:
        for text in said[sender::senders]:
            await world.say(founded.coordinator.id, text, team_id=founded.team.id)

    await asyncio.gather(*(speak(sender) for sender in range(senders)))
    await world.settle()
    board_ = await world.board(founded.team.id)
    heard = [t.text for n in board_ for t in await world.turns(n.id) if t.role == "user"]
    assert {n.status for n in board_} == {NodeStatus.COMPLETED}
    assert [sum(text in words for words in heard) for text in said] == [1] * len(said)


# ---- time ------------------------------------------------------------------------------------


async def test_timers_fire_in_the_order_they_are_due_and_survive_a_restart(world: World) -> None:
    founded: dict[str, NewTeam] = {}
    for name, seconds in (("late", 300.0), ("soon", 100.0), ("then", 200.0)):
        out = ModelUnavailable("The model is out.", retry_after=seconds)
        world.script(name, out, DONE)
        founded[name] = await world.found(name, model=f"scripted/{name}")
    await world.settle()

    async def completed() -> list[str]:
        ended = [
            (node.ended_at, name)
            for name, team in founded.items()
            for node in await world.board(team.team.id)
            if node.status is NodeStatus.COMPLETED
        ]
        return [name for _, name in sorted(ended)]

    async def are_done(*names: str) -> bool:
        return await completed() == [*names]

    assert await completed() == []
    world.clock.advance(seconds=150)
    await until(world, lambda: are_done("soon"))
    await world.restart()
    assert await completed() == ["soon"]
    world.clock.advance(seconds=60)
    await until(world, lambda: are_done("soon", "then"))
    world.clock.advance(seconds=3600)
    await until(world, lambda: are_done("soon", "then", "late"))


async def test_a_timer_that_came_due_while_no_process_ran_fires_at_the_start(world: World) -> None:
    world.script("ada", ModelUnavailable("The model is out.", retry_after=60), DONE)
    founded = await world.found("Wait")
    await world.settle()
    [node] = await world.board(founded.team.id)
    assert node.status is NodeStatus.WAITING
    await world.stop()
    world.clock.advance(days=2)
    await world.start()

    async def is_done() -> bool:
        return (await world.node(node.id)).status is NodeStatus.COMPLETED

    await until(world, is_done)


# ---- cancel, pause ---------------------------------------------------------------------------


def processes_with(marker: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                words = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if marker.encode() in words:
                found.append(int(entry.name))
    return found


async def test_a_cancel_ends_the_command_with_all_its_processes(
    world: World, tmp_path: Path
) -> None:
    marker, begun = f"sleeper-{tmp_path.name}", tmp_path / "begun"
    os.mkfifo(begun)
    nested = f"bash -c 'exec -a {marker} sleep 1000' & setsid bash -c 'exec -a {marker} sleep 1000'"
    command = f"({nested}) & echo begun > {begun}; exec -a {marker} sleep 1000"
    world.script("ada", says(call("bash", command=command)), DONE)
    founded = await world.found("Run for ever")
    assert await asyncio.to_thread(begun.read_text) == "begun\n"
    [node] = await world.board(founded.team.id)
    assert processes_with(marker) != []

    await world.store.write(endings.cancel, node.id)
    await world.settle()

    node = await world.node(node.id)
    assert (node.status, node.stop_reason) == (NodeStatus.CANCELLED, StopReason.CANCELLED)
    assert processes_with(marker) == []


@pytest.mark.parametrize("commit", range(7))
async def test_a_cancel_at_any_commit_ends_the_node(home: World, commit: int) -> None:
    home.model("ada", ReactiveModel("scripted/ada", finishes))
    for later in range(3):
        waiting = asyncio.create_task(nth_commit(home, commit))
        founded = await home.found("Be cancelled")
        await waiting
        for _ in range(later):
            await asyncio.sleep(0)
        assert founded.node is not None
        await home.store.write(endings.cancel, founded.node.id)
        await home.settle()
        [node] = await home.board(founded.team.id)
        assert node.status in (NodeStatus.CANCELLED, NodeStatus.COMPLETED), later


async def test_a_model_call_interrupted_by_a_cancel_is_charged(world: World) -> None:
    ada = world.script("ada", DONE)
    ada.gate = gate = Gate()
    founded = await world.found("Be cancelled")
    await gate.reached()
    assert founded.node is not None
    await world.store.write(endings.cancel, founded.node.id)
    await world.settle()
    [node] = await world.board(founded.team.id)
    [spent] = await world.store.read(spend.of_node, node.id)
    assert (node.status, spent.calls, spent.lost) == (NodeStatus.CANCELLED, 0, 1)


async def test_a_pause_takes_effect_at_the_yield_point_and_a_resume_goes_on(world: World) -> None:
    ada = world.script("ada", says(call("checkpoint", summary="one")), DONE)
    ada.gate = gate = Gate()
    founded = await world.found("Be paused")
    await gate.reached()
    await world.store.write(teams.pause, founded.team.id)
    gate.set()

    async def rests() -> bool:
        [node] = await world.board(founded.team.id)
        return node.status is NodeStatus.ASSIGNED

    await until(world, rests)
    await world.restart()
    assert (await rests(), len(ada.requests)) == (True, 1)

    await world.store.write(teams.resume, founded.team.id)
    await world.settle()
    [node] = await world.board(founded.team.id)
    assert (node.status, node.attempt, node.crashes) == (NodeStatus.COMPLETED, 1, 0)
    assert len(ada.requests) == 2
