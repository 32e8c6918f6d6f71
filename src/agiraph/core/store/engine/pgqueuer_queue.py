"""PgQueuer queue: the job queue of many processes on PostgreSQL. No other module uses PgQueuer.

PgQueuer delivers jobs; `store.presence` frees the jobs of dead workers. A job may be delivered
twice: the epoch of the claimed thread fences off the slower process, not this queue.
"""

# asyncpg has no types of its own.
# pyright: basic

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import asyncpg
import psycopg
from pgqueuer import PgQueuer, Queries
from pgqueuer.db import AsyncpgDriver, AsyncpgPoolDriver, SyncPsycopgDriver
from pgqueuer.errors import RetryRequested
from pgqueuer.models import Job, Schedule
from pgqueuer.queries import SyncQueries
from pgqueuer.types import QueueManagerId

from agiraph.core.domain.errors import StoreUnavailable
from agiraph.core.domain.times.time import Clock
from agiraph.core.domain.work import Queue
from agiraph.core.store.engine.job_queue import JobHandler
from agiraph.core.store.engine.postgres_errors import explain
from agiraph.core.store.engine.presence import FREE_JOBS, Presence
from agiraph.core.store.engine.reachability import CONNECTION_ERRORS
from agiraph.core.store.engine.work_stop import IS_STOPPED
from agiraph.core.store.tx import Tx
from agiraph.logs import Streak

_ENTRYPOINT = "run_agent"
"""PgQueuer's name for our only kind of job. Stored in its rows: a new name orphans them."""
_HEARTBEAT_TIMEOUT = timedelta(days=30)
"""PgQueuer's own heartbeats run on the event loop and starve when it is busy. They are all but
turned off: `Presence` decides whether a process is alive."""
_POLL = timedelta(seconds=1)
"""How often a process polls for jobs when no notification arrives."""
_POOL_SIZE = 6
"""PgQueuer's connections, beside those of `PostgresStore` and `Presence`."""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.3, 2.0
"""Seconds before a failed queue is reopened; doubled with each failure in a row."""
_STEADY_S = 5.0
"""A queue that has been open for this long counts as working again."""
_RECONCILE_LOCK = 4712
"""Key of the advisory lock that lets one process at a time look for missing jobs."""

# A running node whose job is gone will be delivered to nobody. If its runner is only slow, the
# epoch of the next claim fences it off.
_CLEAR_DEAD_OWNERS = """
update nodes set owner = null where status = 'running' and owner is not null
and not exists (select 1 from pgqueuer q where 'job ' || q.id::text = nodes.owner)
"""
_QUEUES_WITHOUT_JOB = f"""
select distinct n.assignee_id || case n.lane when 'work' then '' else '/' || n.lane end
from nodes n join teams t on t.id = n.team_id
where (n.status = 'assigned' or (n.status = 'running' and n.owner is null))
and n.assignee_id is not null
and t.status <> 'archived' and (t.status <> 'paused' or n.lane = 'reply')
and not {IS_STOPPED}
and not exists (
    select 1 from pgqueuer q where q.payload = convert_to(
        n.assignee_id || case n.lane when 'work' then '' else '/' || n.lane end, 'UTF8'
    )
)
"""


# The columns of PgQueuer's tables and indexes.
_STRUCTURE = """
select c.relname, a.attname from pg_class c join pg_attribute a on a.attrelid = c.oid
where c.relnamespace = (select oid from pg_namespace where nspname = current_schema())
and c.relname like 'pgqueuer%'
and a.attnum > 0 and not a.attisdropped
"""


class JobQueries(Queries):
    """PgQueuer's statements, without those that take most of a worker's start.

    PgQueuer asks the information schema for each of its tables, columns and indexes; here one
    statement reads them all.
    """

    _structure: dict[str, set[str]] | None = None

    async def _columns(self, relation: str) -> set[str]:
        """Return the columns of a table or an index; none if it does not exist."""
        if self._structure is None:
            rows = await self.driver.fetch(_STRUCTURE)
            self._structure = {str(row["relname"]): set() for row in rows}
            for row in rows:
                self._structure[str(row["relname"])].add(str(row["attname"]))
        return self._structure.get(relation, set())

    async def has_table(self, table: str) -> bool:
        return bool(await self._columns(table))

    async def table_has_column(self, table: str, column: str) -> bool:
        return column in await self._columns(table)

    async def table_has_index(self, table: str, index: str) -> bool:
        return bool(await self._columns(index))

    async def insert_schedule(self, schedules: dict[Any, timedelta]) -> None:
        """Do nothing: we have no schedules."""

    async def fetch_schedule(self, entrypoints: dict[Any, timedelta]) -> list[Schedule]:
        """Return nothing. PgQueuer asks each second, and ends its run if the server does not
        answer."""
        await self.driver.execute("select 1")
        return []


async def install(url: str) -> None:
    """Create or upgrade PgQueuer's own tables in this database."""
    connection = await asyncpg.connect(url)
    try:
        queries = Queries(AsyncpgDriver(connection))
        if not await queries.schema_is_installed():
            await queries.install()
        else:
            await queries.upgrade()
    finally:
        await connection.close()


def enqueue(connection: psycopg.Connection[Any], queues: Sequence[Queue]) -> None:
    """Add a job for each queue, in the transaction that is open on the connection."""
    # In the transaction of the rows: a crash after the commit cannot lose the
    # wake, and a rollback removes it.
    keys: list[bytes | None] = [queue.key.encode() for queue in queues]
    queries = SyncQueries(SyncPsycopgDriver(connection))
    queries.enqueue([_ENTRYPOINT] * len(keys), keys, [0] * len(keys))


def has_job(tx: Tx, owner: str | None) -> bool:
    """Return whether the job that owns a node is still in the queue.

    A job owns the nodes that it claims under the name `job` and its id (`deliver`).
    """
    sql = "select 1 from pgqueuer q where 'job ' || q.id::text = :owner"
    return tx.one(sql, owner=owner) is not None


def queues_without_job(tx: Tx) -> list[str]:
    """Return the keys of queues that have work but no job."""
    return [str(row[0]) for row in tx.all(_QUEUES_WITHOUT_JOB)]


async def _keep_session(_: Any) -> None:
    """Give a connection back as it is.

    asyncpg would send a statement that resets the session, after each query of PgQueuer. Neither
    PgQueuer nor this module changes a session; PgQueuer resets the one that listens by itself.
    """


class PgQueuerQueue:
    """Delivers jobs to this process and shows other processes that it is alive."""

    def __init__(self, url: str, clock: Clock, failing: Callable[[], list[str]]) -> None:
        self._url = url
        self._presence = Presence(url, clock, failing)
        self._stopping = asyncio.Event()
        self._queuer: PgQueuer | None = None

    @property
    def is_visible(self) -> bool:
        return self._presence.is_visible

    async def open(self) -> None:
        async with contextlib.AsyncExitStack() as opened:
            try:
                pool = await asyncpg.create_pool(
                    self._url, min_size=0, max_size=_POOL_SIZE, reset=_keep_session
                )
                self._pool = await opened.enter_async_context(pool)
                await self.add_missing_jobs()
                await asyncio.to_thread(self._presence.start)
            except psycopg.Error as error:
                raise explain(error) or error from error
            except CONNECTION_ERRORS as error:
                raise StoreUnavailable(f"The database cannot be reached: {error}") from error
            # Everything is open: keep it. Before this line an error closes the pool again.
            opened.pop_all()

    async def deliver(self, handle: JobHandler, failures: Streak) -> None:
        async def run_job(job: Job) -> None:
            assert job.payload is not None
            retry = await handle(Queue.of(job.payload.decode()), f"job {job.id}")
            if retry is not None:
                # An exception is PgQueuer's way to keep a job's row; after a
                # normal return it deletes the row.
                raise RetryRequested(delay=timedelta(seconds=retry.delay_s), reason=retry.reason)

        pause_s = _FIRST_PAUSE_S
        # PgQueuer's run() ends when its connection is lost, so each round starts a new one.
        while not self._stopping.is_set():
            driver = AsyncpgPoolDriver(self._pool)
            queuer = self._queuer = PgQueuer(driver, queries=JobQueries(driver))
            # By default each run has a new id. `Presence` and `_deliver_once`
            # find this worker's jobs by ours.
            queuer.qm.queue_manager_id = QueueManagerId(self._presence.id)
            queuer.entrypoint(_ENTRYPOINT)(run_job)
            # Only a connection that holds ends the streak: one that is cut at once
            # would log an end each time.
            steady = asyncio.get_running_loop().call_later(_STEADY_S, failures.succeeded)
            started = time.monotonic()
            try:
                await self._deliver_once(queuer)
            except Exception as error:
                # Any error: a worker whose delivery has ended would do nothing, unnoticed.
                steady.cancel()
                is_lost = isinstance(error, CONNECTION_ERRORS)
                failures.failed(error, "it is reopened", trace=not is_lost)
                if time.monotonic() - started > _STEADY_S:
                    pause_s = _FIRST_PAUSE_S
                await self._pause(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    async def _deliver_once(self, queuer: PgQueuer) -> None:
        """Deliver jobs over one connection, until it is lost or delivery is stopped."""
        # No handler of this process runs now. Jobs that the table still shows as ours were
        # lost with the last connection, and no handler would ever end them.
        await self._pool.execute(FREE_JOBS.format(ids="$1"), [str(self._presence.id)])
        await queuer.run(dequeue_timeout=_POLL, heartbeat_timeout=_HEARTBEAT_TIMEOUT)

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()

    def stop_delivery(self) -> None:
        self._stopping.set()
        if self._queuer is not None:
            # `deliver` must not be cancelled: PgQueuer would delete the rows of running jobs.
            self._queuer.shutdown.set()

    async def add_missing_jobs(self) -> None:
        try:
            async with self._pool.acquire() as connection, connection.transaction():
                await self._add_missing_jobs(connection)
        except CONNECTION_ERRORS as error:
            raise StoreUnavailable(f"The database cannot be reached: {error!r}") from error

    async def _add_missing_jobs(self, connection: Any) -> None:
        """Clear dead owners of nodes and add a job for each queue that has work and no job.

        A crash may have deleted the job. One process at a time does this.
        """
        lock = "select pg_try_advisory_xact_lock($1)"
        # `try`, not a wait: if the lock is taken, another process does the same at this moment.
        if not await connection.fetchval(lock, _RECONCILE_LOCK):
            return
        await connection.execute(_CLEAR_DEAD_OWNERS)
        missing = await connection.fetch(_QUEUES_WITHOUT_JOB)
        queries = Queries(AsyncpgDriver(connection))
        for row in missing:
            await queries.enqueue(_ENTRYPOINT, row[0].encode(), 0)

    def mark_loop_alive(self) -> None:
        self._presence.loop_turned_at = time.monotonic()

    async def close(self) -> None:
        # Blocks for a moment: it joins a thread that may be in the middle of a statement.
        await asyncio.to_thread(self._presence.stop)
        await self._pool.close()
