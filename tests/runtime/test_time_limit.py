"""A time limit holds during model calls and tools, with the real clock and real HTTP."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from agiraph.core.domain.outcomes import Answer, Done
from agiraph.core.domain.times.time import SystemClock
from agiraph.core.domain.work import Budget, NodeStatus, StopReason, WorkNode
from agiraph.core.run_context import RunContext
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.store import spend
from agiraph.core.store.tx import Aftermath
from agiraph.core.tools.base import tool
from agiraph.models.facts.prices import Prices, Terms
from agiraph.models.registry import Account, Keys
from agiraph.testing import ModelServer, World, call, says
from agiraph.testing.model_server import Seen, Stall, Status, Step, Trickle

LIMIT = Budget(seconds=1.0)
ROOMY = Budget(seconds=2.5)
"""Enough for a first reply on a busy machine."""
FAR_LESS_THAN_A_STALL = 60
"""Seconds for a whole test: the providers' own limit for a silent server is twice as long."""
DRIPS = Trickle(1, says("drip " * 10_000), seconds=0.02)
MODEL = "openai/test"


@tool(effect="repeatable")
async def hang(ctx: RunContext) -> Answer:
    """Never end."""
    await asyncio.Event().wait()
    return Done("never")


@tool(effect="once")
async def hang_once(ctx: RunContext) -> Answer:
    """Never end, and act once."""
    await asyncio.Event().wait()
    return Done("never")


@asynccontextmanager
async def world_with_server(
    path: Path, script: Callable[[Seen], Step], **more: Any
) -> AsyncGenerator[tuple[World, ModelServer]]:
    async with asyncio.timeout(FAR_LESS_THAN_A_STALL), ModelServer(script) as server:
        keys = Keys({"openai": Account(key="sk-test", base_url=server.openai_url)})
        async with World(
            path / "home", clock=SystemClock(), keys=keys, **more, easy_endings=True
        ) as world:
            yield world, server


async def wait_for_end(world: World, founded: NewTeam) -> WorkNode:
    assert founded.node is not None
    moved = asyncio.Event()

    def move(_: Aftermath) -> None:
        moved.set()

    world.store.subscribe(move)
    while not (node := await world.node(founded.node.id)).status.is_final:
        await moved.wait()
        moved.clear()
    return node


@pytest.mark.parametrize("hangs", [Stall(0), Stall(40), DRIPS], ids=["silent", "stalls", "drips"])
async def test_a_model_that_hangs_ends_the_node_when_its_time_is_up(
    tmp_path: Path, database_url: str, hangs: Step
) -> None:
    """The call for the last answer hangs, too; it has its own limit."""
    async with world_with_server(tmp_path, lambda _: hangs, database_url=database_url) as (
        world,
        server,
    ):
        node = await wait_for_end(world, await world.found("Wait", model=MODEL, budget=LIMIT))
        rows = await world.store.read(spend.of_node, node.id)
    assert (node.status, node.stop_reason) == (NodeStatus.FAILED, StopReason.TIME_SPENT)
    # Every call may have cost something; on a busy machine the first one is not even made.
    assert 1 <= len(server.requests) <= 2
    assert [(row.calls, row.lost) for row in rows] == [(0, len(server.requests))]


async def test_the_last_answer_is_kept_when_it_arrives_in_time(tmp_path: Path) -> None:
    def script(seen: Seen) -> Step:
        is_last = "Write the final answer now" in seen.messages[-1].text
        return says("I got half of it.") if is_last else Stall(0)

    async with world_with_server(tmp_path, script) as (world, _):
        node = await wait_for_end(world, await world.found("Wait", model=MODEL, budget=LIMIT))
    assert (node.stop_reason, node.result) == (StopReason.TIME_SPENT, "I got half of it.")


async def test_the_time_limit_holds_while_a_thread_is_summarised(tmp_path: Path) -> None:
    """The second reply fills the window; the calls that shorten the thread hang."""
    replies = [
        says(call("write_file", path="a.md", content="a"), input_tokens=1_000),
        says(call("write_file", path="b.md", content="b"), input_tokens=9_000),
    ]

    def script(seen: Seen) -> Step:
        return replies[seen.index] if seen.index < len(replies) else Stall(0)

    prices = Prices({MODEL: Terms(window=10_000)})
    async with world_with_server(tmp_path, script, prices=prices) as (world, server):
        node = await wait_for_end(world, await world.found("Wait", model=MODEL, budget=ROOMY))
    assert node.stop_reason is StopReason.TIME_SPENT
    assert len(server.requests) == 4


async def test_a_child_has_no_more_time_than_its_parent_has_left(tmp_path: Path) -> None:
    def script(seen: Seen) -> Step:
        if "CHILD" in seen.messages[0].text:
            return Stall(0)
        if len(seen.messages) > 1:
            return says(call("finish", summary="The child is too slow."))
        return says(call("assign_task", agent=f"new:{MODEL}", task="CHILD: wait", description="x"))

    async with world_with_server(tmp_path, script) as (world, _):
        founded = await world.found("Let wait", model=MODEL, budget=ROOMY)
        node = await wait_for_end(world, founded)
        _, child = await world.board(founded.team.id)
    assert (child.status, child.stop_reason) == (NodeStatus.FAILED, StopReason.TIME_SPENT)
    assert child.budget.seconds is not None
    assert child.budget.seconds < 2.5
    assert node.status is NodeStatus.COMPLETED


async def test_retry_after_of_a_provider_does_not_outlast_the_time_limit(tmp_path: Path) -> None:
    limited = Status(429, "come back in an hour", {"retry-after": "3600"})
    async with world_with_server(tmp_path, lambda _: limited) as (world, _):
        node = await wait_for_end(world, await world.found("Wait", model=MODEL, budget=LIMIT))
        rows = await world.store.read(spend.of_node, node.id)
    assert (node.status, node.stop_reason) == (NodeStatus.FAILED, StopReason.TIME_SPENT)
    assert rows == []  # nothing was used


@pytest.mark.parametrize(
    ("made", "answer"),
    [
        (call("bash", command="sleep 600", timeout=600), "it ran out of time]"),
        (call("hang"), "Stopped: the time limit of this work is reached."),
        (call("hang_once"), "It may or may not have happened. Find out before you make it again."),
    ],
    ids=["bash", "repeatable", "once"],
)
async def test_a_tool_that_outlasts_the_time_limit_is_stopped(
    tmp_path: Path, made: Any, answer: str
) -> None:
    def script(seen: Seen) -> Step:
        return says(made) if seen.index == 0 else says("It took too long.")

    async with world_with_server(tmp_path, script, tools=(hang, hang_once)) as (world, _):
        node = await wait_for_end(world, await world.found("Wait", model=MODEL, budget=ROOMY))
        turns = await world.turns(node.id)
    assert (node.stop_reason, node.result) == (StopReason.TIME_SPENT, "It took too long.")
    assert [t.text.endswith(answer) for t in turns if t.role == "tool"] == [True]


async def test_time_worked_before_a_restart_counts_towards_the_limit(tmp_path: Path) -> None:
    """A runtime that is stopped and started again does not give the work its time anew."""
    asked = asyncio.Event()

    def script(seen: Seen) -> Step:
        asked.set()
        return Stall(0)

    async with world_with_server(tmp_path, script) as (world, _):
        founded = await world.found("Wait", model=MODEL, budget=Budget(seconds=30.0))
        await asked.wait()
        await world.stop()
        await world.start()
        assert founded.node is not None
        node = await world.node(founded.node.id)
        assert node.worked_seconds > 0
