"""Workers that have more to do than their machine has cores keep what they work on."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from agiraph.app import open_store
from agiraph.domain.persons import OWNER
from agiraph.domain.time import SystemClock
from agiraph.domain.work import NodeStatus
from agiraph.services.lifecycle import teams
from agiraph.store import nodes, spend
from agiraph.store.database import Store
from agiraph.store.nodes import NODES
from agiraph.store.notify import Notification, listen
from agiraph.store.postgres import EVENTS_CHANNEL
from agiraph.store.tx import Tx
from agiraph.testing import ModelServer, call, says
from agiraph.testing.script import Says, Seen
from tests.cli.shell import Shell
from tests.conftest import Server, SweepLog

STEPS = 4
"""Notes that each node takes before it finishes; one model call each, and one for the end."""


@asynccontextmanager
async def other_load() -> AsyncIterator[None]:
    """Programs that take all they can get, until three for each core compete with the workers."""
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


async def work_off(url: str, store: Store, seconds: float) -> None:
    """Return when no queue has work left; each notification of an event makes it look again."""
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
                happened.clear()  # before the next look: what comes after it is looked at again
    finally:
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)


def everything(tx: Tx) -> list[tuple[NodeStatus, int]]:
    return [(node.status, node.attempt) for node in NODES.select(tx, "true")]


async def saturate(path: Path, url: str, *, teams_: int, seconds: float) -> str:
    """Let two workers do the work of many teams: nothing is taken from either or paid twice."""
    store = await open_store(url, SystemClock())
    agiraph = Shell(path / "home")
    async with AsyncExitStack() as stack, ModelServer(note_after_note) as server:
        await stack.enter_async_context(other_load())
        stack.push_async_callback(store.close)
        agiraph.environment |= {
            "AGIRAPH_DATABASE_URL": url,
            "OPENAI_API_KEY": "sk-canary-canary",
            "OPENAI_BASE_URL": server.openai_url,
            "AGIRAPH_LOG": "error",
        }
        founded = [
            await store.write(
                teams.create, owner_id=OWNER, goal=f"Team {n}", model="openai/test", learns=False
            )
            for n in range(teams_)
        ]
        workers = [await stack.enter_async_context(agiraph.start("work")) for _ in range(2)]
        await work_off(url, store, seconds)
        found = await store.read(everything)
        spent = [s for f in founded for s in await store.read(spend.of_team, f.team.id)]
        paid, lost = sum(s.calls for s in spent), sum(s.lost for s in spent)
        asked = len(server.requests)
        taken = sum(attempt > 1 for _, attempt in found)
        told = f"{teams_} nodes: {taken} taken from live workers, {lost} calls lost, {asked} asked"
        assert [w.process.returncode for w in workers] == [None, None], told
        assert {status for status, _ in found} == {NodeStatus.COMPLETED}, told
        assert (taken, lost, asked, paid) == (0, 0, *[teams_ * (STEPS + 1)] * 2), told
    return told


async def test_a_worker_with_too_much_to_do_keeps_its_work(
    tmp_path: Path, postgres: Server, sweep_log: SweepLog
) -> None:
    sweep_log.append(await saturate(tmp_path, postgres.fresh(), teams_=20, seconds=90))


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("run", range(10))
async def test_workers_with_far_too_much_to_do_keep_their_work(
    tmp_path: Path, postgres: Server, sweep_log: SweepLog, run: int
) -> None:
    told = await saturate(tmp_path, postgres.fresh(), teams_=200, seconds=500)
    sweep_log.append(f"run {run}: {told}")
