"""A process stops or crashes, and the next one continues where it was."""

import asyncio
import os
from pathlib import Path

import pytest

from agiraph.app import open_store
from agiraph.core.domain.errors import HomeInUse
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.times.time import SystemClock
from agiraph.core.domain.work import ANSWER, NodeStatus, Queue, WorkNode
from agiraph.core.runtime.steps import CUT_OFF_AGAIN
from agiraph.core.services.lifecycle import claims, teams
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.store import events, nodes, threads
from agiraph.core.store import teams as rows
from agiraph.models.base import Request
from agiraph.testing import PowerCut, Says, World, call, says
from agiraph.testing.scripted import ReactiveModel
from tests.runtime.waiting import Gate, nth_commit
from tests.runtime.worker import Worker

DONE = says(call("finish", summary="done"))


async def test_a_stop_releases_the_node_and_the_next_start_continues_it(world: World) -> None:
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
    """The stop may even arrive during the claim."""
    home.model("ada", ReactiveModel("scripted/ada", lambda _: DONE))
    for later in range(3):
        stopping = asyncio.create_task(nth_commit(home, commit))
        founded = await home.found("Be stopped")
        await stopping
        for _ in range(later):
            await asyncio.sleep(0)
        await home.stop()
        left = await read_node_offline(home, founded)
        await home.start()
        assert left.status in (NodeStatus.ASSIGNED, NodeStatus.COMPLETED), later
        await home.settle()
        [node] = await home.board(founded.team.id)
        assert (node.status, node.attempt, node.crashes) == (NodeStatus.COMPLETED, 1, 0), later


async def read_node_offline(world: World, founded: NewTeam) -> WorkNode:
    """Read the team's only node while no runtime works on the home."""
    store = await open_store(f"sqlite:///{world.path / 'agiraph.db'}", SystemClock())
    [node] = await store.read(nodes.board, founded.team.id)
    await store.close()
    return node


async def test_a_step_that_crashes_three_times_waits_for_a_person(home: World) -> None:
    """The runtime crashes before it can store anything; then a person decides."""
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


@pytest.mark.parametrize(("kills", "made", "answer"), [(2, 3, "Survived."), (3, 3, CUT_OFF_AGAIN)])
async def test_a_call_that_kills_the_process_three_times_is_reported_and_not_made_again(
    tmp_path: Path, kills: int, made: int, answer: str
) -> None:
    """Each process is killed by the call itself; one that survives the third time is answered."""
    home, ledger = tmp_path / "home", tmp_path / "ledger"
    url = f"sqlite:///{home / 'agiraph.db'}"
    founded = await found_offline(home, url, "Perish")
    for _ in range(kills):
        worker = await Worker.start(home, url, ledger, "--deadly")
        await worker.dies()
    if kills < 3:
        ledger.with_name("calm").touch()
    worker = await Worker.start(home, url, ledger, "--deadly")
    await worker.says("ended")
    await worker.stop()

    store = await open_store(url, SystemClock())
    [node] = await store.read(nodes.board, founded.team.id)
    assert node.thread_id is not None
    turns = await store.read(threads.turns, node.thread_id)
    await store.close()
    tried = [line for line in ledger.read_text().splitlines() if line.startswith("perish")]
    assert (node.status, len(tried), node.result) == (NodeStatus.COMPLETED, made, answer)
    told = next((t.text, t.failed) for t in turns if t.role == "tool")
    assert told == (answer, answer == CUT_OFF_AGAIN)


async def test_after_crashes_before_its_first_turn_a_thread_still_starts_with_the_task(
    home: World,
) -> None:
    """The person's answer must not take the place of the assignment."""
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
        await World(home.path, easy_endings=True).start()
    await home.stop()
    await home.start()


async def found_offline(home: Path, url: str, goal: str) -> NewTeam:
    """Create a team while no runtime works on the home."""
    home.mkdir()
    store = await open_store(url, SystemClock())
    founded = await store.write(
        teams.create,
        owner_id=OWNER,
        goal=goal,
        model="scripted/ada",
        learns=False,
        acceptance=(ANSWER,),
        review="never",
    )
    await store.close()
    return founded


async def take_over(tmp_path: Path, *flags: str) -> tuple[Worker, Worker]:
    """Return a frozen runtime without its locks, and the runtime that took over its work."""
    home, ledger = tmp_path / "home", tmp_path / "ledger"
    url = f"sqlite:///{home / 'agiraph.db'}"
    await found_offline(home, url, "Notes: 3")
    first = await Worker.start(home, url, ledger, "--hold", "--unlocked")
    await first.says("asked 0")
    first.go_on()
    await first.says("asked 1")
    first.freeze()
    second = await Worker.start(home, url, ledger, *flags)
    return first, second


async def check_done_once(tmp_path: Path) -> None:
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


@pytest.mark.slow
async def test_a_frozen_runtime_whose_work_was_taken_over_writes_nothing(tmp_path: Path) -> None:
    first, second = await take_over(tmp_path)
    await second.says("idle")
    first.thaw()
    first.go_on()
    assert "was claimed by another process" in await first.says("log")
    await first.stop()
    await second.stop()
    await check_done_once(tmp_path)


@pytest.mark.slow
async def test_a_runtime_whose_work_was_taken_over_does_not_take_it_back(tmp_path: Path) -> None:
    first, second = await take_over(tmp_path, "--hold")
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
    await check_done_once(tmp_path)
