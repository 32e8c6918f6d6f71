"""Clustered: the engine of any number of processes over one PostgreSQL, on PgQueuer.

PgQueuer delivers, notices dead processes by their heartbeats and hands their jobs to others.
Ownership stays with the rows: a claim raises the epoch, and a stale owner's writes are refused.
"""

# asyncpg has no types of its own.
# pyright: basic

import asyncio
import contextlib
import logging
import random
from datetime import timedelta

import asyncpg
from pgqueuer import PgQueuer, Queries
from pgqueuer.db import AsyncpgDriver, AsyncpgPoolDriver
from pgqueuer.errors import RetryRequested
from pgqueuer.models import Job

from agiraph.domain.errors import StoreUnavailable
from agiraph.domain.ids import TeamId
from agiraph.domain.time import Clock
from agiraph.domain.work import Queue
from agiraph.runtime import timers
from agiraph.runtime.engine import Drive
from agiraph.runtime.rounds import go_round
from agiraph.services import work
from agiraph.store import nodes, waits
from agiraph.store.database import Store
from agiraph.store.listening import Notice, listen
from agiraph.store.postgres import CONTROL, WORK_OFF
from agiraph.store.teams import AGENTS
from agiraph.store.tx import Aftermath

log = logging.getLogger("agiraph.engine")

HEARTBEAT = timedelta(seconds=4)
LOOK = timedelta(seconds=1)
"""How often a process that hears of nothing looks for the jobs of dead ones."""
RECONCILE_SECONDS = 4.0
RESTART_SECONDS = 0.3
LOCK = 4712
"""The advisory lock that lets one process at a time look for forgotten work."""


async def install(url: str) -> None:
    """PgQueuer's own tables, beside ours."""
    connection = await asyncpg.connect(url)
    try:
        queries = Queries(AsyncpgDriver(connection))
        if not await queries.schema_is_installed():
            await queries.install()
        else:
            await queries.upgrade()
    finally:
        await connection.close()


class ClusteredEngine:
    def __init__(self, url: str, store: Store, clock: Clock, drive: Drive) -> None:
        self._url = url
        self._store = store
        self._clock = clock
        self._drive = drive
        self._running: dict[Queue, asyncio.Task[None]] = {}
        self._again: set[Queue] = set()
        self._alarm = asyncio.Event()
        self._changed = asyncio.Event()
        self._stopping = asyncio.Event()
        self._queuer: PgQueuer | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._only: TeamId | None = None

    async def start(self, only: TeamId | None = None) -> None:
        self._only = only
        self._pool = await asyncpg.create_pool(self._url, min_size=1, max_size=6)
        self._store.subscribe(self._notice)
        await self._reconcile()
        control = listen(self._url, (CONTROL,), look=self._catch_up_on_cancels, take=self._control)
        # Kept in a list: a task nobody refers to may be collected while it runs.
        self._tasks = [
            asyncio.create_task(self._consume(), name="queue"),
            asyncio.create_task(control, name="control"),
            asyncio.create_task(
                go_round("keeping time", self._keep_time, self._clock), name="timers"
            ),
            asyncio.create_task(
                go_round("looking for forgotten work", self._reconcile_soon, self._clock),
                name="reconcile",
            ),
        ]

    async def stop(self) -> None:
        self._stopping.set()
        if not self._tasks:
            return  # it was never started
        consume, *others = self._tasks
        for task in others:
            task.cancel()
        if self._queuer is not None:
            # Never cancelled from outside: that would delete the rows of running jobs.
            self._queuer.shutdown.set()
        await asyncio.gather(consume, *others, return_exceptions=True)
        await self._pool.close()

    async def idle(self) -> None:
        while True:
            self._changed.clear()  # before looking: what changes meanwhile is looked at again
            if not (self._running or await self._store.read(nodes.queues)):
                return
            # Another process may do the last of it, and nobody tells us.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK.total_seconds()):
                    await self._changed.wait()

    def _notice(self, aftermath: Aftermath) -> None:
        if aftermath.alarm:
            self._alarm.set()
        self._changed.set()

    async def _consume(self) -> None:
        """PgQueuer's run() ends with its connection, so it is begun again until we stop."""
        while not self._stopping.is_set():
            queuer = self._queuer = PgQueuer(AsyncpgPoolDriver(self._pool))
            queuer.entrypoint(WORK_OFF)(self._run_job)
            try:
                await queuer.run(dequeue_timeout=LOOK, heartbeat_timeout=HEARTBEAT)
            except Exception as error:
                log.warning("the queue was lost, going on: %r", error)
                await asyncio.sleep(RESTART_SECONDS)

    async def _run_job(self, job: Job) -> None:
        assert job.payload is not None
        queue = Queue.of(job.payload.decode())
        if self._only is not None:
            agent = await self._store.read(AGENTS.get, queue.agent_id)
            if agent.team_id != self._only:  # another process may want it
                raise RetryRequested(delay=timedelta(seconds=1), reason="of another team")
        if queue in self._running:
            self._again.add(queue)  # whoever runs it here looks once more when done
            return
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            self._again.add(queue)
            while queue in self._again:
                self._again.discard(queue)
                await self._run(queue, f"job {job.id}", stopping)
        finally:
            self._running.pop(queue, None)
            stopping.cancel()
            self._changed.set()

    async def _run(self, queue: Queue, owner: str, stopping: asyncio.Task[bool]) -> None:
        task = asyncio.create_task(self._work_off(queue, owner), name=f"drive {queue.key}")
        self._running[queue] = task
        try:
            await asyncio.wait({task, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                task.cancel()
                await asyncio.wait({task})
                raise RetryRequested(delay=timedelta(0), reason="this process stops")
            if task.cancelled():
                raise RetryRequested(delay=timedelta(0), reason="cancelled")
            if error := task.exception():
                log.error("driving %s failed", queue.key, exc_info=error)
                raise RetryRequested(delay=timedelta(seconds=1), reason=repr(error))
        finally:
            task.cancel()

    async def _work_off(self, queue: Queue, owner: str) -> None:
        """Drive the queue, unless its node was claimed by this very job: then it came again.

        Its former runner is dead or slow. The work gets a job with a new number, so that a slow
        one can neither claim it back nor, when it ends its job, delete the other's.
        """
        left = await self._store.read(nodes.running, queue)
        if left is not None and left.owner == owner:
            await self._store.write(work.disown, queue, owner=owner)
            return
        while await self._drive(queue, owner=owner, only=self._only):
            self._again.discard(queue)  # the look that follows sees what was told meanwhile

    async def _control(self, notice: Notice) -> None:
        """Another process asks for a cancel."""
        if task := self._running.get(Queue.of(notice.payload)):
            task.cancel()

    async def _catch_up_on_cancels(self) -> None:
        """Hear what was said while nobody listened."""
        for queue, task in list(self._running.items()):
            node = await self._store.read(nodes.running, queue)
            if node is not None and node.cancel_requested:
                task.cancel()

    async def _keep_time(self) -> None:
        """Ring what is due. Another process may set a nearer time, hence the short naps."""
        self._alarm.clear()
        due = await self._store.read(waits.next_due)
        if due is not None and due <= self._clock.now():
            await timers.ring(self._store)
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.5):
                await self._alarm.wait()

    async def _reconcile_soon(self) -> None:
        await asyncio.sleep(RECONCILE_SECONDS * random.uniform(0.75, 1.5))
        try:
            await self._reconcile()
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            raise StoreUnavailable(repr(error)) from error

    async def _reconcile(self) -> None:
        """Enter queues that hold work but have no entry: a crash may have taken it along."""
        async with self._pool.acquire() as connection, connection.transaction():
            if not await connection.fetchval("select pg_try_advisory_xact_lock($1)", LOCK):
                return
            await connection.execute(nodes.FORGET_DEAD_OWNERS)
            forgotten = await connection.fetch(nodes.WITHOUT_QUEUE_ENTRY)
            queries = Queries(AsyncpgDriver(connection))  # pyright: ignore[reportArgumentType]
            for row in forgotten:
                await queries.enqueue(WORK_OFF, row[0].encode(), 0)
