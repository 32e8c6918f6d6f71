"""A process ends, by order or by accident, and the next one goes on where it was."""

import asyncio
import os
from pathlib import Path

import pytest

from agiraph.app import open_store
from agiraph.domain.errors import HomeInUse
from agiraph.domain.persons import OWNER
from agiraph.domain.time import SystemClock
from agiraph.domain.work import NodeStatus, Queue, WorkNode
from agiraph.providers.base import Request
from agiraph.services.lifecycle import claims, teams
from agiraph.services.lifecycle.teams import NewTeam
from agiraph.store import events, nodes, threads
from agiraph.store import teams as rows
from agiraph.testing import PowerCut, Says, World, call, says
from agiraph.testing.scripted import ReactiveModel
from tests.runtime.waiting import Gate, commits
from tests.runtime.worker import Worker

DONE = says(call("finish", summary="done"))


async def test_a_stop_hands_the_node_back_and_the_next_start_takes_it_up(world: World) -> None:
    ada = world.script("ada", DONE, DONE)
    ada.gate = gate = Gate()
    founded = await world.found("Be stopped")
    await gate.reached()
    [node] = await world.board(founded.team.id)
    await world.stop()
    gate.set()
    await world.start()
    await world.settle()
    node = await world.node(node.id)
    assert (node.status, node.attempt, node.crashes) == (NodeStatus.COMPLETED, 1, 0)


@pytest.mark.parametrize("commit", range(7))
async def test_a_stop_at_any_commit_leaves_nothing_running(home: World, commit: int) -> None:
    """The claim itself may be what is under way."""
    home.model("ada", ReactiveModel("scripted/ada", lambda _: DONE))
    for later in range(3):
        stopping = asyncio.create_task(commits(home, commit))
        founded = await home.found("Be stopped")
        await stopping
        for _ in range(later):
            await asyncio.sleep(0)
        await home.stop()
        left = await seen_from_outside(home, founded)
        await home.start()
        assert left.status in (NodeStatus.ASSIGNED, NodeStatus.COMPLETED), later
        await home.settle()
        [node] = await home.board(founded.team.id)
        assert (node.status, node.attempt, node.crashes) == (NodeStatus.COMPLETED, 1, 0), later


async def seen_from_outside(world: World, founded: NewTeam) -> WorkNode:
    """The team's one node, as it is while no runtime works on the home."""
    store = await open_store(f"sqlite:///{world.path / 'agiraph.db'}", SystemClock())
    [node] = await store.read(nodes.board, founded.team.id)
    await store.close()
    return node


async def test_the_same_step_is_not_tried_for_ever(home: World) -> None:
    """Cut off again and again before anything is written: a person decides."""
    asked = 0

    def react(request: Request) -> Says:
        nonlocal asked
        asked += 1
        if all(turn.text != "Try again." for turn in request.transcript.turns):
            raise PowerCut
        return DONE

    home.model("ada", ReactiveModel("scripted/ada", react))
    founded = await home.found("Crash")
    await home.settle()
    while not await home.questions(founded.team.id):
        await home.restart()
        await home.settle()
    [node] = await home.board(founded.team.id)
    [question] = await home.questions(founded.team.id)
    reason = "crashed 3 times at the same step"
    assert (node.status, node.waiting_reason) == (NodeStatus.WAITING, reason)
    assert question.text.startswith("My work was cut off 3 times at the same step")
    assert asked in (3, 4)

    await home.answer(question, "Try again.")
    await home.settle()
    assert (await home.node(node.id)).status is NodeStatus.COMPLETED


async def test_who_was_cut_off_before_it_began_still_hears_its_task_first(home: World) -> None:
    """The person's answer must not stand where the agent is told what to do."""
    home.script("ada", DONE)
    await home.runtime.stop()
    founded = await home.found("Paint the fence")
    queue = Queue(founded.coordinator.id, "work")
    while not await home.questions(founded.team.id):
        await home.store.write(claims.claim, queue, owner="one that dies at once")
    [question] = await home.questions(founded.team.id)
    await home.answer(question, "Try again.")
    await home.restart()
    await home.settle()

    [node] = await home.board(founded.team.id)
    assert node.status is NodeStatus.COMPLETED
    [thread] = await home.store.read(threads.of_agent, founded.coordinator.id)
    system, task, answer = (await home.store.read(threads.turns, thread.id))[:3]
    assert (system.role, task.ref) == ("system", "assignment")
    assert "Paint the fence" in task.text
    assert answer.text.endswith("Try again.")


# ---- two on one home -------------------------------------------------------------------------


async def test_a_second_runtime_on_the_same_home_is_refused(home: World) -> None:
    with pytest.raises(HomeInUse, match=f"Process {os.getpid()} already works on"):
        await World(home.path).start()
    await home.stop()
    await home.start()


async def overtaken(tmp_path: Path, *flags: str) -> tuple[Worker, Worker]:
    """A frozen runtime that lost its lock, and another that has taken up its work."""
    home, ledger = tmp_path / "home", tmp_path / "ledger"
    url = f"sqlite:///{home / 'agiraph.db'}"
    home.mkdir()
    store = await open_store(url, SystemClock())
    await store.write(
        teams.create, owner_id=OWNER, goal="Notes: 3", model="scripted/ada", learns=False
    )
    await store.close()
    first = await Worker.start(home, url, ledger, "--hold", "--unlocked")
    await first.says("asked 0")
    first.go_on()
    await first.says("asked 1")
    first.freeze()
    second = await Worker.start(home, url, ledger, *flags)
    return first, second


async def is_done_once(tmp_path: Path) -> None:
    store = await open_store(f"sqlite:///{tmp_path / 'home' / 'agiraph.db'}", SystemClock())
    [team] = await store.read(rows.every)
    [node] = await store.read(nodes.board, team.id)
    assert node.assignee_id is not None
    [thread] = await store.read(threads.of_agent, node.assignee_id)
    turns = await store.read(threads.turns, thread.id)
    ends = [e for e in await store.read(events.after, team.id, 0) if e.type == "node.completed"]
    await store.close()
    assert (node.status, node.result, len(ends)) == (NodeStatus.COMPLETED, "3 notes", 1)
    answers = [t.text for t in turns if t.role == "tool"]
    assert answers == ["Noted."] * 3 + ["Published: no files."]
    assert [t.seq for t in turns] == list(range(1, len(turns) + 1))


async def test_a_runtime_that_was_overtaken_in_its_sleep_writes_nothing(tmp_path: Path) -> None:
    first, second = await overtaken(tmp_path)
    await second.says("idle")
    first.thaw()
    first.go_on()
    assert "was claimed by another process" in await first.says("log")
    await first.stop()
    await second.stop()
    await is_done_once(tmp_path)


async def test_a_runtime_that_was_overtaken_does_not_take_the_work_back(tmp_path: Path) -> None:
    first, second = await overtaken(tmp_path, "--hold")
    await second.says("asked 1")
    first.thaw()
    first.go_on()
    assert "was claimed by another process" in await first.says("log")
    assert await first.says("asked", "idle") == "idle"
    for step in (2, 3):
        second.go_on()
        await second.says(f"asked {step}")
    second.go_on()
    await second.says("idle")
    await first.stop()
    await second.stop()
    await is_done_once(tmp_path)
