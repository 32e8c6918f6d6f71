"""Clustered: the engine of any number of processes over one PostgreSQL, on PgQueuer.

PgQueuer delivers jobs; `store.presence` notices dead processes and frees their jobs for others.
Ownership stays with the rows: a claim raises the epoch, and a stale owner's writes are refused.
"""

# asyncpg has no types of its own.
# pyright: basic

import asyncio
import contextlib
import logging
import random
import time
from datetime import timedelta

import asyncpg
import psycopg
from pgqueuer import PgQueuer, Queries
from pgqueuer.db import AsyncpgDriver, AsyncpgPoolDriver
from pgqueuer.errors import RetryRequested
from pgqueuer.models import Job
from pgqueuer.types import QueueManagerId

from agiraph.domain.errors import StoreUnavailable
from agiraph.domain.ids import TeamId
from agiraph.domain.time import Clock
from agiraph.domain.work import Queue
from agiraph.runtime import timers
from agiraph.runtime.engine import Drive
from agiraph.runtime.periodic import PeriodicTasks, Wait
from agiraph.services.lifecycle import claims
from agiraph.store import nodes, waits
from agiraph.store.database import Store
from agiraph.store.notify import Notice, listen
from agiraph.store.postgres import CONTROL, WORK_OFF, explained
from agiraph.store.presence import FREE_JOBS, Presence
from agiraph.store.reachability import LOST
from agiraph.store.teams import AGENTS
from agiraph.store.tx import Aftermath

log = logging.getLogger("agiraph.engine")

NEVER = timedelta(days=30)
"""PgQueuer's own heartbeats run on the event loop and starve when it is busy. They are all but
turned off: whether a process is alive is for `Presence` to say."""
LOOK = timedelta(seconds=1)
"""How often a process that hears of nothing looks for jobs."""
RECONCILE_SECONDS = 4.0
FIRST_RESTART_S, LONGEST_RESTART_S = 0.3, 2.0
"""Seconds before the queue is opened again; doubled with each failure in a row."""
STEADY_S = 5.0
"""A queue that has been open for so long works again."""
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
    def __init__(
        self, url: str, store: Store, clock: Clock, drive: Drive, periodic: PeriodicTasks
    ) -> None:
        self._url = url
        self._store = store
        self._clock = clock
        self._drive = drive
        self._periodic = periodic
        self._presence = Presence(url, clock, periodic.failing)
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
        await self._connect()
        self._store.subscribe(self._notice)
        control = listen(
            *(self._url, (CONTROL,)),
            look=self._catch_up_on_cancels,
            take=self._control,
            streak=self._periodic.streak("hearing of cancels"),
        )
        # Kept in a list: a task nobody refers to may be collected while it runs.
        self._tasks = [
            asyncio.create_task(self._consume(), name="queue"),
            asyncio.create_task(control, name="control"),
            asyncio.create_task(self._turn(), name="turn"),
            asyncio.create_task(self._periodic.repeat("timers", self._keep_time), name="timers"),
            asyncio.create_task(
                self._periodic.repeat("reconciling queues", self._reconcile_soon), name="reconcile"
            ),
        ]

    async def _connect(self) -> None:
        """Open what the engine needs of the database, or nothing; raise `StoreUnavailable`."""
        async with contextlib.AsyncExitStack() as opened:
            try:
                pool = await asyncpg.create_pool(self._url, min_size=0, max_size=6)
                self._pool = await opened.enter_async_context(pool)
                await self._reconcile()
                await asyncio.to_thread(self._presence.start)
            except psycopg.Error as error:
                raise explained(error) or error from error
            except LOST as error:
                raise StoreUnavailable(f"The database cannot be reached: {error}") from error
            opened.pop_all()

    async def _turn(self) -> None:
        """Show the thread of `Presence` that the event loop turns."""
        while True:
            self._presence.turned_at = time.monotonic()
            await asyncio.sleep(1)

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
        await asyncio.to_thread(self._presence.stop)  # last: until here it had jobs
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
        streak, pause = self._periodic.streak("the job queue"), FIRST_RESTART_S
        while not self._stopping.is_set():
            queuer = self._queuer = PgQueuer(AsyncpgPoolDriver(self._pool))
            queuer.qm.queue_manager_id = QueueManagerId(self._presence.id)
            queuer.entrypoint(WORK_OFF)(self._run_job)
            steady = asyncio.get_running_loop().call_later(STEADY_S, streak.succeeded)
            begun = time.monotonic()
            try:
                # None of our jobs runs now. Whatever the queue says we run, nobody would end.
                await self._pool.execute(FREE_JOBS.format(ids="$1"), [str(self._presence.id)])
                await queuer.run(dequeue_timeout=LOOK, heartbeat_timeout=NEVER)
            except Exception as error:
                steady.cancel()
                streak.failed(error, "it is opened again", trace=not isinstance(error, LOST))
                if time.monotonic() - begun > STEADY_S:
                    pause = FIRST_RESTART_S
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await self._stopping.wait()
                pause = min(2 * pause, LONGEST_RESTART_S)

    async def _run_job(self, job: Job) -> None:
        assert job.payload is not None
        queue = Queue.of(job.payload.decode())
        if self._only is not None:
            agent = await self._store.read(AGENTS.get, queue.agent_id)
            if agent.team_id != self._only:  # another process may want it
                raise RetryRequested(delay=timedelta(seconds=1), reason="of another team")
        if not self._presence.is_shown:  # others would take it from us, and do it again
            raise RetryRequested(delay=timedelta(seconds=1), reason="not connected")
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
        what = f"work on the queue of {queue.key}"
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
            if isinstance(error := task.exception(), Exception):
                self._periodic.item_failed(what, error, "it is retried")
                raise RetryRequested(delay=timedelta(seconds=5), reason=repr(error))
            self._periodic.item_succeeded(what)
        finally:
            task.cancel()

    async def _work_off(self, queue: Queue, owner: str) -> None:
        """Drive the queue, unless its node was claimed by this very job: then it came again.

        Its former runner is dead or slow. The work gets a job with a new number, so that a slow
        one can neither claim it back nor, when it ends its job, delete the other's.
        """
        left = await self._store.read(nodes.running, queue)
        if left is not None and left.owner == owner:
            await self._store.write(claims.disown, queue, owner=owner)
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

    async def _keep_time(self) -> Wait | None:
        """Ring what is due. Another process may set a nearer time, hence the short naps."""
        self._alarm.clear()
        due = await self._store.read(waits.next_due)
        if due is None or due > self._clock.now():
            return self._nap
        await timers.fire_due(self._store, self._periodic)
        return None

    async def _nap(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.5):
                await self._alarm.wait()

    async def _reconcile_soon(self) -> None:
        await asyncio.sleep(RECONCILE_SECONDS * random.uniform(0.75, 1.5))
        try:
            await self._reconcile()
        except LOST as error:
            raise StoreUnavailable(f"The database cannot be reached: {error!r}") from error

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
