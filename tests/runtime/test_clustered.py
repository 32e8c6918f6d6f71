"""Several processes on one PostgreSQL: one that dies or hangs is replaced and fenced."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import psycopg
import pytest

from agiraph.app import open_store
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.times.time import SystemClock
from agiraph.core.domain.work import ANSWER, NodeStatus, WorkNode
from agiraph.core.services.board import planning
from agiraph.core.services.lifecycle import endings, teams
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.store import events, nodes, threads
from agiraph.core.store.database import Store
from agiraph.testing import World
from tests.postgres_server import Server
from tests.runtime.worker import SECONDS, Worker

TAKEOVER_SECONDS = 20.0
"""Three health checks, a second apart, and a large margin for a machine that stands still."""


class Cluster:
    """One database, one home, workers that start and stop, and the test's own store."""

    def __init__(self, url: str, store: Store, home: Path) -> None:
        self.url = url
        self.store = store
        self.home = home
        self.ledger = home.parent / "ledger"
        self.workers: list[Worker] = []

    async def worker(self, *flags: str) -> Worker:
        self.workers.append(await Worker.start(self.home, self.url, self.ledger, *flags))
        return self.workers[-1]

    async def found(self, notes: int) -> NewTeam:
        goal = f"Notes: {notes}"
        return await self.store.write(
            teams.create,
            owner_id=OWNER,
            goal=goal,
            model="scripted/ada",
            learns=False,
            acceptance=(ANSWER,),
            review="never",
        )

    async def node(self, founded: NewTeam) -> WorkNode:
        [node] = await self.store.read(nodes.board, founded.team.id)
        return node

    def calls_per_step(self) -> Counter[int]:
        """Return how often the model was called for each step."""
        return Counter(int(line.split()[1]) for line in self.ledger.read_text().splitlines())

    async def check_done_once(self, founded: NewTeam, notes: int) -> WorkNode:
        node = await self.node(founded)
        [thread] = await self.store.read(threads.of_agent, founded.coordinator.id)
        turns = await self.store.read(threads.turns, thread.id)
        told = await self.store.read(events.after, founded.team.id, 0)
        assert (node.status, node.result) == (NodeStatus.COMPLETED, f"{notes} notes")
        answers = [t.text for t in turns if t.role == "tool"]
        assert answers == ["Noted."] * notes + ["Published: no files."]
        assert [t.seq for t in turns] == list(range(1, len(turns) + 1))
        assert [e.seq for e in told] == list(range(1, len(told) + 1))
        assert [e.type for e in told].count("node.completed") == 1
        return node


@pytest.fixture
async def cluster(tmp_path: Path, postgres: Server) -> AsyncIterator[Cluster]:
    url = postgres.fresh()
    opened = Cluster(url, await open_store(url, SystemClock()), tmp_path / "home")
    yield opened
    for worker in opened.workers:
        if worker.process.returncode is None:
            await worker.kill()
    await opened.store.close()


async def test_another_process_continues_the_work_of_a_killed_one(cluster: Cluster) -> None:
    first = await cluster.worker("--hold")
    founded = await cluster.found(notes=2)
    await first.says("asked 0")
    first.go_on()
    await first.says("asked 1")
    second = await cluster.worker()
    await first.kill()
    killed_at = time.monotonic()
    await second.says("asked 1")
    assert time.monotonic() - killed_at < TAKEOVER_SECONDS
    await second.says("ended")
    node = await cluster.check_done_once(founded, notes=2)
    assert (node.attempt, node.crashes) == (2, 1)
    assert cluster.calls_per_step() == {0: 1, 1: 2, 2: 1}
    await second.stop()


async def test_a_process_that_hung_is_fenced_and_does_not_take_its_work_back(
    cluster: Cluster,
) -> None:
    first = await cluster.worker("--hold")
    founded = await cluster.found(notes=2)
    await first.says("asked 0")
    first.go_on()
    await first.says("asked 1")
    first.freeze()
    second = await cluster.worker("--hold", "--quick")
    await second.says("asked 1")
    first.thaw()
    first.go_on()
    await first.says(f"log {(await cluster.node(founded)).id} was claimed by another process")
    await first.stop()  # all its writes to the job queue are done

    node = await cluster.node(founded)
    with psycopg.connect(cluster.url) as connection:
        jobs = connection.execute("select 'job ' || id from pgqueuer").fetchall()
    assert (node.status, (node.owner,) in jobs) == (NodeStatus.RUNNING, True)
    for line in ("asked 2", "ended"):
        second.go_on()
        await second.says(line)
    await cluster.check_done_once(founded, notes=2)
    assert cluster.calls_per_step() == {0: 1, 1: 2, 2: 1}
    await second.stop()


async def test_a_process_whose_event_loop_is_busy_keeps_its_work(cluster: Cluster) -> None:
    first = await cluster.worker("--busy")
    founded = await cluster.found(notes=0)
    await first.says("asked 0")
    second = await cluster.worker("--quick")
    await first.says("ended")
    node = await cluster.check_done_once(founded, notes=0)
    assert (node.attempt, node.crashes) == (1, 0)
    assert cluster.calls_per_step() == {0: 1}
    for worker in (first, second):
        await worker.stop()


async def test_a_process_that_stops_hands_its_work_over_at_once(cluster: Cluster) -> None:
    first = await cluster.worker("--hold")
    founded = await cluster.found(notes=1)
    await first.says("asked 0")
    second = await cluster.worker()
    await first.stop()
    await second.says("ended")
    node = await cluster.check_done_once(founded, notes=1)
    assert (node.attempt, node.crashes) == (1, 0)
    assert cluster.calls_per_step() == {0: 2, 1: 1}
    await second.stop()


async def test_a_cancel_reaches_the_process_that_runs_the_node(cluster: Cluster) -> None:
    workers = [await cluster.worker("--hold"), await cluster.worker("--hold")]
    founded = await cluster.found(notes=1)
    asked = [asyncio.create_task(worker.says("asked 0")) for worker in workers]
    done, others = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
    [runs] = [worker for worker, task in zip(workers, asked, strict=True) if task in done]
    for task in others:
        task.cancel()
    assert founded.node is not None
    await cluster.store.write(endings.cancel, founded.node.id)
    ended = [asyncio.create_task(worker.says("ended")) for worker in workers]
    await asyncio.wait(ended, return_when=asyncio.FIRST_COMPLETED)
    for task in ended:
        task.cancel()
    node = await cluster.node(founded)
    assert (node.status, node.owner) == (NodeStatus.CANCELLED, None)
    assert (cluster.calls_per_step(), runs.process.returncode) == ({0: 1}, None)


async def test_a_cancel_takes_effect_although_its_notification_was_lost(cluster: Cluster) -> None:
    worker = await cluster.worker("--hold")
    founded = await cluster.found(notes=1)
    await worker.says("asked 0")
    assert founded.node is not None
    with psycopg.connect(cluster.url, autocommit=True) as connection:
        cut = "select pg_terminate_backend(pid) from pg_stat_activity where query like 'LISTEN %%'"
        assert connection.execute(cut.encode() + b" and query like %s", ["%agiraph%"]).rowcount == 1
    await cluster.store.write(endings.cancel, founded.node.id)
    assert await worker.says("ended", "asked") == f"ended {founded.node.id}"
    node = await cluster.node(founded)
    assert (node.status, cluster.calls_per_step()) == (NodeStatus.CANCELLED, {0: 1})
    await worker.stop()


async def test_waiting_for_idle_ends_when_another_process_finishes_the_work(
    cluster: Cluster,
) -> None:
    worker = await cluster.worker("--hold")
    founded = await cluster.found(notes=0)
    await worker.says("asked 0")
    async with World(
        cluster.home, database_url=cluster.url, clock=SystemClock(), easy_endings=True
    ) as world:
        settled = asyncio.create_task(world.settle())
        worker.go_on()
        await worker.says("ended")
        async with asyncio.timeout(SECONDS):
            await settled
    await cluster.check_done_once(founded, notes=0)
    await worker.stop()


async def test_waiting_for_idle_does_not_wait_for_a_paused_team(cluster: Cluster) -> None:
    founded = await cluster.store.write(
        teams.create, owner_id=OWNER, goal="Rest", model="scripted/ada", start=False, learns=False
    )
    await cluster.store.write(teams.pause, founded.team.id)
    await cluster.store.write(
        planning.create,
        team_id=founded.team.id,
        task="Later",
        source="user",
        assignee_id=founded.coordinator.id,
    )
    async with World(
        cluster.home, database_url=cluster.url, clock=SystemClock(), easy_endings=True
    ) as world:
        async with asyncio.timeout(SECONDS):
            await world.settle()


async def test_a_run_survives_a_crash_of_the_database(cluster: Cluster, postgres: Server) -> None:
    worker = await cluster.worker("--hold")
    founded = await cluster.found(notes=2)
    await worker.says("asked 0")
    worker.go_on()
    await worker.says("asked 1")
    await asyncio.to_thread(postgres.stop, "immediate")
    worker.go_on()
    await worker.says("log the store failed")
    await asyncio.to_thread(postgres.start)
    while (await worker.says("asked", "ended")).startswith("asked"):
        worker.go_on()
    await cluster.check_done_once(founded, notes=2)
    assert set(cluster.calls_per_step()) == {0, 1, 2}
    assert max(cluster.calls_per_step().values()) <= 2
    await worker.stop()
