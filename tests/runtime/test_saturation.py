"""Workers with more work than their machine has cores keep their leases."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from agiraph.app import open_store
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.times.time import SystemClock
from agiraph.core.domain.work import ANSWER, NodeStatus
from agiraph.core.services.lifecycle import teams
from agiraph.core.store import nodes, spend
from agiraph.core.store.database import Store
from agiraph.core.store.engine.notify import Notification, listen
from agiraph.core.store.engine.postgres import EVENTS_CHANNEL
from agiraph.core.store.nodes import NODES
from agiraph.core.store.tx import Tx
from agiraph.testing import ModelServer, call, says
from agiraph.testing.script import Says, Seen
from tests.cli.shell import Shell
from tests.conftest import Server, SweepLog

STEPS = 4
"""Notes that each node writes before it finishes: one model call each, and one for the end."""


@asynccontextmanager
async def cpu_load() -> AsyncIterator[None]:
    """Run busy loops until three processes per core compete with the workers."""
    many = max(0, 3 * (os.cpu_count() or 1) - int(os.getloadavg()[0]))
    programs = [
        await asyncio.create_subprocess_exec("sh", "-c", "while :; do :; done") for _ in range(many)
    ]
    try:
        yield
    finally:
        for program in programs:
            program.kill()
            await program.wait()


def note_after_note(seen: Seen) -> Says:
    done = sum(message.role == "assistant" for message in seen.messages)
    if done < STEPS:
        return says(call("checkpoint", summary=f"note {done}"))
    return says(call("finish", summary=f"{done} notes"))


async def wait_for_empty_queues(url: str, store: Store, seconds: float) -> None:
    """Wait until no queue has work left; check again at each notification of an event."""
    happened = asyncio.Event()

    async def look() -> None:
        happened.set()

    async def take(_: Notification) -> None:
        happened.set()

    listening = asyncio.create_task(
        listen(url, (EVENTS_CHANNEL,), on_connect=look, on_notification=take)
    )
    try:
        async with asyncio.timeout(seconds):
            while await store.read(nodes.queues):
                await happened.wait()
                happened.clear()  # before the next read, so that no later notification is lost
    finally:
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)


def all_nodes(tx: Tx) -> list[tuple[NodeStatus, int]]:
    return [(node.status, node.attempt) for node in NODES.select(tx, "true")]


async def saturate(path: Path, url: str, *, teams_: int, seconds: float) -> str:
    """Let two workers do the work of many teams; check that no node is taken over or paid twice."""
    store = await open_store(url, SystemClock())
    agiraph = Shell(path / "home")
    async with AsyncExitStack() as stack, ModelServer(note_after_note) as server:
        await stack.enter_async_context(cpu_load())
        stack.push_async_callback(store.close)
        agiraph.environment |= {
            "AGIRAPH_DATABASE_URL": url,
            "OPENAI_API_KEY": "sk-canary-canary",
            "OPENAI_BASE_URL": server.openai_url,
            "AGIRAPH_LOG": "error",
        }
        founded = [
            await store.write(
                teams.create,
                owner_id=OWNER,
                goal=f"Team {n}",
                model="openai/test",
                learns=False,
                acceptance=(ANSWER,),
                review="never",
            )
            for n in range(teams_)
        ]
        workers = [await stack.enter_async_context(agiraph.start("work")) for _ in range(2)]
        await wait_for_empty_queues(url, store, seconds)
        found = await store.read(all_nodes)
        spent = [s for f in founded for s in await store.read(spend.of_team, f.team.id)]
        paid, lost = sum(s.calls for s in spent), sum(s.lost for s in spent)
        asked = len(server.requests)
        taken = sum(attempt > 1 for _, attempt in found)
        summary = (
            f"{teams_} nodes: {taken} taken from live workers, {asked} calls, {lost} of them lost"
        )
        assert [w.process.returncode for w in workers] == [None, None], summary
        assert {status for status, _ in found} == {NodeStatus.COMPLETED}, summary
        assert (taken, lost, asked, paid) == (0, 0, *[teams_ * (STEPS + 1)] * 2), summary
    return summary


async def test_two_overloaded_workers_keep_their_work(
    tmp_path: Path, postgres: Server, sweep_log: SweepLog
) -> None:
    sweep_log.append(await saturate(tmp_path, postgres.fresh(), teams_=8, seconds=90))


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("run", range(10))
async def test_two_heavily_overloaded_workers_keep_their_work(
    tmp_path: Path, postgres: Server, sweep_log: SweepLog, run: int
) -> None:
    summary = await saturate(tmp_path, postgres.fresh(), teams_=200, seconds=500)
    sweep_log.append(f"run {run}: {summary}")
