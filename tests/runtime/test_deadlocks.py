"""Deadlocks: every wait ends, or the board and the inbox show whom it waits for."""

import asyncio
import os
import re
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from agiraph.core.domain.ids import NodeId
from agiraph.core.domain.outcomes import Answer, Pending
from agiraph.core.domain.work import NodeStatus, StopReason, WaitingOn, WorkNode
from agiraph.core.run_context import RunContext
from agiraph.core.services.board import planning
from agiraph.core.services.lifecycle import endings
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.services.members import roster
from agiraph.core.store import teams, waits
from agiraph.core.store.nodes import NODES
from agiraph.core.store.tx import Tx
from agiraph.core.tools.base import Tool, tool
from agiraph.core.tools.delegation import task_output
from agiraph.models.base import Request
from agiraph.testing import Says, World, call, says
from agiraph.testing.scripted import ReactiveModel
from tests.fences import opened
from tests.runtime.waiting import Gate, until
from tests.services.teams import NO_MODEL_CALLS, add_child, follow_task, found_waiting_team
from tests.thinking import ThinkingModel

S = NodeStatus
WorldWith = Callable[..., AbstractAsyncContextManager[World]]
on_postgres = pytest.mark.parametrize("database_url", ["postgres"], indirect=True)


@pytest.fixture
def world_with(tmp_path: Path, database_url: str) -> WorldWith:
    """Return a function that opens a world with the test's own tools."""

    @asynccontextmanager
    async def open_world(*tools: Tool) -> AsyncGenerator[World]:
        async with World(
            tmp_path / "home", database_url=database_url, tools=tools, easy_endings=True
        ) as world:
            yield world

    return open_world


async def children(world: World, founded: NewTeam) -> list[WorkNode]:
    return [n for n in await world.board(founded.team.id) if n.parent_id is not None]


async def tool_answers(world: World, node_id: NodeId) -> list[str]:
    return [t.text for t in await world.turns(node_id) if t.role == "tool"]


async def answer_yes(world: World, node: WorkNode | None) -> None:
    assert node is not None
    [question] = [q for q in await world.questions(node.team_id) if q.node_id == node.id]
    await world.answer(question, "Yes.")
    await world.settle()


@pytest.mark.slow
async def test_two_nodes_cannot_wait_for_each_others_results(world: World) -> None:
    ids: dict[str, NodeId] = {}
    world.script(
        "bea",
        lambda _: says(call("task_output", id=ids["cyd"], blocking=True)),
        says(call("publish", summary="bea is done")),
    )
    world.script(
        "cyd",
        says(call("ask_human", question="Ready?")),
        lambda _: says(
            call("task_output", id=ids["bea"], blocking=True),
            call("task_output", id=ids["cyd"], blocking=True),
            call("assign_task", agent="bea", task="Help.", description="help"),
        ),
        says(call("publish", summary="cyd is done")),
    )
    helped = says(call("publish", summary="helped"))
    founded, _ = await found_waiting_team(world)
    bea, cyd = [await hire(world, founded, name) for name in ("bea", "cyd")]
    ids["cyd"] = await add_child(world, founded, "c", to=cyd)
    await world.settle()
    ids["bea"] = await add_child(world, founded, "b", to=bea)
    await world.settle()
    world.runtime.models.resolve("scripted/bea").lines.insert(0, helped)  # type: ignore[attr-defined]
    await answer_yes(world, await world.node(ids["cyd"]))

    answers = await tool_answers(world, ids["cyd"])
    assert answers[1:3] == [
        f"{ids['bea']} needs or waits for your own work, so neither would ever end. Go on without "
        "it, or submit what you have first.",
        "That is your own work; nobody else will end it.",
    ]
    assert opened(answers[3]).endswith(" helped")  # a waiting agent can still do another task
    assert [n.status for n in await children(world, founded)] == [S.COMPLETED] * 3
    assert "cyd is done" in (await tool_answers(world, ids["bea"]))[0]


async def hire(world: World, founded: NewTeam, name: str) -> Any:
    return await world.store.write(
        roster.hire, founded.team.id, name=name, role="worker", model=f"scripted/{name}"
    )


@pytest.mark.parametrize("how", ["failed before", "failed", "cancelled"])
async def test_a_waiting_node_is_told_when_the_awaited_node_does_not_succeed(
    world: World, how: str
) -> None:
    ids: dict[str, NodeId] = {}
    lead = (
        says(call("ask_human", question="Begin?")),
        lambda _: says(call("task_output", id=ids["bob"], blocking=True)),
        says(call("finish", summary="it was not done")),
    )
    founded, workers = await found_waiting_team(world, "bob", lead=lead)
    budget = {"budget": NO_MODEL_CALLS} if how == "failed before" else {}
    ids["bob"] = await add_child(world, founded, "wonder", to=workers["bob"], **budget)
    await world.settle()
    await answer_yes(world, founded.node)
    if how == "cancelled":
        await world.store.write(endings.cancel, ids["bob"])
    elif how == "failed":
        await world.store.write(_exhaust_budget, ids["bob"])
        await answer_yes(world, await world.node(ids["bob"]))
    await world.settle()

    assert founded.node is not None
    goal = await world.node(founded.node.id)
    answer = [t for t in await world.turns(goal.id) if t.role == "tool"][1]
    ended = {
        "failed before": "failed (calls_spent)",  # it has nothing to show
        "failed": "partial (calls_spent)",
        "cancelled": "cancelled (cancelled)",
    }[how]
    assert f"Status: {ended}" in answer.text
    assert (answer.failed, goal.result) == (True, "it was not done")


def _exhaust_budget(tx: Tx, node_id: NodeId) -> None:
    NODES.update(tx, node_id, budget=NO_MODEL_CALLS)


async def test_a_chain_of_waits_that_ends_at_a_person_shows_on_the_board_and_in_the_inbox(
    world: World,
) -> None:
    lead = (
        says(call("assign_task", agent="new:scripted/hand", task="wonder", description="Wonder")),
        says(call("check_board")),
        lambda request: says(call("task_output", id=board_ids(request)[1], blocking=True)),
        says(call("finish", summary="all done")),
    )
    founded, _ = await found_waiting_team(world, lead=lead)
    [errand] = await children(world, founded)
    await world.say(founded.coordinator.id, "How is it?", team_id=founded.team.id)
    await world.settle()

    assert founded.node is not None
    shown = (await tool_answers(world, founded.node.id))[1]
    assert shown.splitlines() == [
        "Work:",
        f"- {founded.node.id} [running] Get to work on the goal (coordinator); this is yours",
        f"  - {errand.id} [waiting] Wonder (hand); waits: asked the human: May I?",
        "Team:",
        "- coordinator (coordinator, scripted/ada): working",
        "- hand (worker, scripted/hand): waiting_for_you",
    ]
    assert [(m.text, m.node_id) for m in await world.inbox()] == [("May I?", errand.id)]
    goal = await world.node(founded.node.id)
    assert (goal.status, goal.waiting_reason) == (
        S.WAITING,
        f"the result of 'Wonder' ({errand.id})",
    )

    await answer_yes(world, errand)
    assert (await world.node(goal.id)).status is S.COMPLETED
    assert [m.kind for m in await world.inbox()] == ["question", "result"]


def board_ids(request: Request) -> list[str]:
    return re.findall(r"- (node_\w+) \[", request.transcript.turns[-2].text)


def alive(marker: str) -> list[str]:
    """Return the processes with this text in their command line."""
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            if marker in command:
                found.append(command)
    return found


@pytest.mark.slow
async def test_a_cancelled_parent_ends_its_children_and_their_processes(
    world: World, tmp_path: Path
) -> None:
    seconds = str(int.from_bytes(tmp_path.name.encode()[-4:]) + 10_000)
    marker = f"sleep {seconds}"
    begun = [tmp_path / name for name in ("bash", "cli")]
    for fifo in begun:
        os.mkfifo(fifo)
    world.script("basher", says(call("bash", command=f"echo > {begun[0]}; {marker}")))
    program = tmp_path / "agent.sh"
    program.write_text(f"echo > {begun[1]}\n{marker} & {marker}\n")
    lead = (
        says(
            call("assign_task", agent="new:scripted/basher", task="a", description="bash",
                 run_in_background=True),
            call("assign_task", agent=f"cli:bash {program}", task="b", description="cli",
                 run_in_background=True),
            call("assign_task", agent="new:scripted/hand", task="wonder", description="ask"),
        ),
    )  # fmt: skip
    world.script("ada", *lead)
    world.model("hand", ReactiveModel("scripted/hand", follow_task))
    founded = await world.found("Run things")
    for fifo in begun:
        await asyncio.to_thread(fifo.read_text)
    assert founded.node is not None
    goal = founded.node.id

    async def waits() -> bool:
        return [n.status for n in await world.board(founded.team.id)] == [
            S.WAITING, S.RUNNING, S.RUNNING, S.WAITING,
        ]  # fmt: skip

    await until(world, waits)
    assert len(alive(marker)) >= 3
    await world.store.write(endings.cancel, goal)
    await world.settle()

    assert alive(marker) == []
    assert [(n.status, n.stop_reason) for n in await world.board(founded.team.id)] == (
        [(S.CANCELLED, StopReason.CANCELLED)] * 4
    )
    members = await world.store.read(teams.members, founded.team.id)
    assert [m.name for m in members] == ["coordinator"]


async def test_a_failed_goal_cancels_its_running_children_and_stops_the_team(
    world: World, tmp_path: Path
) -> None:
    begun = tmp_path / "begun"
    os.mkfifo(begun)
    seconds = int.from_bytes(tmp_path.name.encode()[-4:]) + 20_000
    world.script("basher", says(call("bash", command=f"echo > {begun}; sleep {seconds}")))

    async def break_meanwhile() -> Says:
        await asyncio.to_thread(begun.read_text)
        raise RuntimeError("broke")

    give = call(
        "assign_task",
        agent="new:scripted/basher",
        task="a",
        description="a",
        run_in_background=True,
    )
    world.model("ada", ThinkingModel("scripted/ada", [says(give), break_meanwhile]))
    founded = await world.found("Break")
    await world.settle()

    goal, child = await world.board(founded.team.id)
    assert (goal.status, goal.stop_reason) == (S.FAILED, StopReason.BROKEN)
    assert child.status is S.CANCELLED
    assert (await world.store.read(teams.TEAMS.get, founded.team.id)).status == "stopped"
    assert alive(f"sleep {seconds}") == []


async def test_a_cancel_requested_while_the_node_parks_is_not_lost(world_with: WorldWith) -> None:
    @tool(effect="transaction")
    def be_cancelled(tx: Tx, ctx: RunContext) -> Answer:
        """Park while another process requests the cancellation."""
        NODES.update(tx, ctx.node.id, cancel_requested=True)
        return Pending(WaitingOn("node", "none"), "what never comes")

    async with world_with(be_cancelled) as world:
        world.script("ada", says(call("be_cancelled")))
        founded = await world.found("Be cancelled")
        await world.settle()
        [goal] = await world.board(founded.team.id)
        assert (goal.status, goal.stop_reason) == (S.CANCELLED, StopReason.CANCELLED)
        assert await world.store.read(waits.of_node, goal.id) == []


@on_postgres
async def test_two_simultaneous_waits_for_each_other_do_not_deadlock(
    world_with: WorldWith,
) -> None:
    together = threading.Barrier(2)

    @tool(effect="transaction")
    def wait_slowly(tx: Tx, ctx: RunContext, id: str) -> Answer:
        """Wait for another node's result, at the same time as that node does."""
        answer = task_output.act(tx, ctx, id, blocking=True)
        with suppress(threading.BrokenBarrierError):
            together.wait(0.5)
        return answer

    async with world_with(wait_slowly) as world:
        founded, _ = await found_waiting_team(world)
        nodes = [await add_child(world, founded, name) for name in ("a", "b")]
        gate = Gate()
        for name, other in (("a", nodes[1]), ("b", nodes[0])):
            model = world.script(
                name, says(call("wait_slowly", id=other)), says(call("publish", summary=name))
            )
            model.gate = gate
        for name, node_id in zip(("a", "b"), nodes, strict=True):
            worker = await hire(world, founded, name)
            await world.store.write(_reassign, node_id, worker)
        await gate.reached(2)
        gate.set()
        await world.settle()
        assert [n.status for n in await children(world, founded)] == [S.COMPLETED] * 2


def _reassign(tx: Tx, node_id: NodeId, worker: Any) -> None:
    planning.reassign(tx, NODES.get(tx, node_id), worker)


@on_postgres
async def test_a_node_that_ends_while_a_wait_for_it_is_written_is_not_missed(
    world_with: WorldWith,
) -> None:
    looked, may_commit = threading.Event(), threading.Event()

    @tool(effect="transaction")
    def wait_slowly(tx: Tx, ctx: RunContext, id: str) -> Answer:
        """Wait for another node's result; commit late."""
        answer = task_output.act(tx, ctx, id, blocking=True)
        looked.set()
        may_commit.wait(5)
        return answer

    async with world_with(wait_slowly) as world:
        ids: list[NodeId] = []
        lead = (
            says(call("ask_human", question="Begin?")),
            lambda _: says(call("wait_slowly", id=ids[0])),
            says(call("finish", summary="told")),
        )
        founded, workers = await found_waiting_team(world, "bob", lead=lead)
        ids.append(await add_child(world, founded, "wonder", to=workers["bob"]))
        await world.settle()
        [begin] = [q for q in await world.questions(founded.team.id) if q.text == "Begin?"]
        await world.answer(begin, "Yes.")
        await asyncio.to_thread(looked.wait)
        ending = asyncio.ensure_future(world.store.write(endings.cancel, ids[0]))
        await asyncio.wait({ending}, timeout=0.5)  # it ends now, unless a row lock delays it
        may_commit.set()
        await ending
        await world.settle()
        assert founded.node is not None
        assert (await world.node(founded.node.id)).result == "told"
