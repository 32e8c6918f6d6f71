"""PostgreSQL: verbs run side by side in a small pool of threads, a connection each."""

import asyncio
import re
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import cache
from typing import Any, cast

import psycopg
from pgqueuer.db import SyncPsycopgDriver
from pgqueuer.queries import SyncQueries
from psycopg import errors as pg

from agiraph.domain import ids
from agiraph.domain.errors import (
    AgiraphError,
    Refused,
    StoreDamaged,
    StoreFull,
    StoreLocked,
    StoreUnavailable,
)
from agiraph.domain.events import TeamEvent
from agiraph.domain.ids import AgentId, TeamId
from agiraph.domain.time import Clock, SystemClock
from agiraph.domain.work import Lane, Queue
from agiraph.faultpoints import fault
from agiraph.store import events, migrate
from agiraph.store.database import P, R, Verb
from agiraph.store.server_clock import ServerClock
from agiraph.store.tx import Aftermath, Dialect, Row

POOL = 8
TRIES = 5
WORK_OFF = "run_agent"
"""The entry that asks some process to look at an agent's queue."""
CONTROL = "agiraph_control"
"""The channel on which processes ask each other to cancel."""
EVENTS, WORDS = "agiraph_events", "agiraph_words"
"""The channels on which processes tell each other that there are events, and what is being said."""
IDLE_SECONDS = 10
"""A process that hangs inside a transaction gives up its locks after this."""

CONNECT_SECONDS = 10

_NAMED = re.compile(r"(?<!:):([a-z_]+)")


@cache
def _dialect(sql: str, locking: str) -> bytes:
    written = sql.replace("%", "%%").replace("{for_update}", locking)
    return _NAMED.sub(r"%(\1)s", written).encode()


class PostgresTx:
    dialect: Dialect = "postgres"
    held: dict[str, dict[str, Any]] | None = None

    def __init__(self, connection: psycopg.Connection[Any], now: datetime) -> None:
        self.now = now
        self.aftermath = Aftermath()
        self._connection = connection
        self._locking = "" if connection.read_only else "for no key update"
        self._emitted: dict[TeamId, list[TeamEvent]] = {}

    def run(self, sql: str, /, **values: Any) -> int:
        return self._execute(sql, values).rowcount

    def one(self, sql: str, /, **values: Any) -> Row | None:
        row = self._execute(sql, values).fetchone()
        if row is not None and "{for_update}" in sql and sql.count("select ") > 1:
            # Whoever waited for a lock gets the locked row as it is now, but what was looked up
            # beside it as it was before: lock first, look second.
            row = self._execute(sql, values).fetchone()
        return row

    def all(self, sql: str, /, **values: Any) -> list[Row]:
        return self._execute(sql, values).fetchall()

    def _execute(self, sql: str, values: dict[str, Any]) -> psycopg.Cursor[Any]:
        return self._connection.execute(_dialect(sql, self._locking), values)

    def emit(self, team_id: TeamId, event: TeamEvent, /) -> None:
        self._emitted.setdefault(team_id, []).append(event)

    def emitted(self, team_id: TeamId) -> int:
        return len(self._emitted.get(team_id, ()))

    def wake(self, agent_id: AgentId, lane: Lane = "work") -> None:
        if (queue := Queue(agent_id, lane)) not in self.aftermath.wakes:
            self.aftermath.wakes.append(queue)

    def cancel(self, agent_id: AgentId, lane: Lane = "work") -> None:
        self.aftermath.cancels.append(Queue(agent_id, lane))

    def alarm(self) -> None:
        self.aftermath.alarm = True

    def finish(self) -> None:
        """Queue the wakes, then number the events: the last things a transaction does.

        Numbers come from behind the team's row lock, so that they are dense and in commit order.
        """
        if wakes := self.aftermath.wakes:
            queries = SyncQueries(SyncPsycopgDriver(self._connection))
            keys: list[bytes | None] = [queue.key.encode() for queue in wakes]
            queries.enqueue([WORK_OFF] * len(keys), keys, [0] * len(keys))
        for queue in self.aftermath.cancels:
            self.run("select pg_notify(:channel, :queue)", channel=CONTROL, queue=queue.key)
        for team_id in sorted(self._emitted):
            self.one("select 1 from teams where id = :id {for_update}", id=team_id)
            end = events.end(self, team_id)
            written = events.append(self, team_id, self._emitted[team_id], end=end)
            self.aftermath.events += written
            note = f"{team_id} {written[-1].seq}"
            self.run("select pg_notify(:channel, :note)", channel=EVENTS, note=note)


class PostgresStore:
    def __init__(self, url: str, clock: Clock) -> None:
        self.url = url
        # A clock that a test turns by hand is the time itself; this machine's may be wrong.
        self.clock = ServerClock(clock) if isinstance(clock, SystemClock) else clock
        self._loop = asyncio.get_running_loop()
        self._listeners: list[Callable[[Aftermath], None]] = []
        self._pool = ThreadPoolExecutor(POOL, "agiraph-pg")
        self._local = threading.local()
        self._open: set[psycopg.Connection[Any]] = set()
        self._measuring = threading.Lock()

    @classmethod
    async def open(cls, url: str, clock: Clock) -> "PostgresStore":
        """A store on a database that has today's shape; `agiraph db upgrade` gives it that."""
        store = cls(url, clock)
        try:
            current = await store.read(version)
            _refuse_newer(current)
            if current != migrate.newest():
                raise StoreDamaged(
                    f"The database has schema {current}, this agiraph needs {migrate.newest()}: "
                    "run `agiraph db upgrade`."
                )
        except AgiraphError:
            await store.close()
            raise
        return store

    def _connection(self, *, read_only: bool | None = None) -> psycopg.Connection[Any]:
        connection = getattr(self._local, "connection", None)
        if connection is None or connection.closed or connection.broken:
            options = f"-c idle_in_transaction_session_timeout={IDLE_SECONDS}s"
            connection = psycopg.connect(
                self.url, autocommit=True, options=options, connect_timeout=CONNECT_SECONDS
            )
            self._local.connection = connection
            self._open.add(connection)
        if connection.read_only != read_only:
            connection.read_only = read_only
        if isinstance(self.clock, ServerClock) and self.clock.is_stale:
            self._learn_the_time(self.clock, connection)
        return connection

    def _learn_the_time(self, clock: ServerClock, connection: psycopg.Connection[Any]) -> None:
        """Measure the server's time; one thread does it, the others go by the last measurement."""
        if not self._measuring.acquire(blocking=clock.measurements == 0):
            return
        try:
            if clock.is_stale:
                clock.measure(lambda: _time(connection))
                ids.follow(clock.now)
        finally:
            self._measuring.release()

    async def write(self, verb: Verb[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        def run() -> tuple[R, Aftermath]:
            return self._retrying(lambda: self._commit(verb, args, kwargs))

        result, aftermath = await self._loop.run_in_executor(self._pool, run)
        for listener in self._listeners:
            listener(aftermath)
        return result

    async def read(self, query: Verb[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        def run() -> R:
            connection = self._connection(read_only=True)
            with connection.transaction(force_rollback=True):
                return query(PostgresTx(connection, self.clock.now()), *args, **kwargs)

        return await self._loop.run_in_executor(self._pool, lambda: self._retrying(run))

    def subscribe(self, listener: Callable[[Aftermath], None]) -> None:
        self._listeners.append(listener)

    async def close(self) -> None:
        await self._loop.run_in_executor(None, self._pool.shutdown)
        for connection in self._open:
            connection.close()

    def _commit(
        self, verb: Callable[..., R], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[R, Aftermath]:
        name = verb.__name__
        fault(f"db:before:{name}")
        connection = self._connection()
        with connection.transaction():
            self._local.at_work = True
            tx = PostgresTx(connection, self.clock.now())
            result = verb(tx, *args, **kwargs)
            tx.finish()
            fault(f"db:in:{name}")
        fault(f"db:after:{name}")
        return result, tx.aftermath

    def _retrying(self, run: Callable[[], R]) -> R:
        """Run again what had no effect; say of the rest who must do what."""
        for attempt in range(1, TRIES + 1):
            self._local.at_work = False
            try:
                return run()
            except psycopg.Error as error:
                reason = explained(error)
                if reason is None:
                    raise
                # Once at work the row, not the error, says whether it happened: callers look.
                is_lost = type(reason) is StoreUnavailable and self._local.at_work
                if is_lost or isinstance(reason, Refused) or attempt == TRIES:
                    raise reason from error
            time.sleep(0.01 * 2**attempt)
        raise AssertionError("every try returns or raises")


def explained(error: psycopg.Error) -> AgiraphError | None:
    """PostgreSQL's error as one that says who must do what; None if it is a mistake of ours."""
    said = str(error).strip().partition("\n")[0]
    if isinstance(error, (pg.DeadlockDetected, pg.SerializationFailure, pg.LockNotAvailable)):
        return StoreLocked(f"Others hold what is needed: {said}")
    if isinstance(error, pg.DiskFull):
        return StoreFull("The database server has no room left; work goes on when it has.")
    if isinstance(error, (psycopg.OperationalError, pg.IdleInTransactionSessionTimeout)):
        return StoreUnavailable(f"The database cannot be reached: {said}")
    if isinstance(error, psycopg.DataError):
        return Refused(f"The database cannot take this: {said}")
    return None


def _time(connection: psycopg.Connection[Any]) -> datetime:
    row = connection.execute("select clock_timestamp()").fetchone()
    assert row is not None
    return row[0]


def version(tx: Any) -> int:
    """The schema the database has; 0 for an empty one."""
    if tx.one("select to_regclass('schema_version')")[0] is None:
        return 0
    return cast(int, tx.one("select max(version) from schema_version")[0])


def _refuse_newer(current: int) -> None:
    if current > migrate.newest():
        raise StoreDamaged(
            f"The database was written by a newer agiraph (schema {current}, this one knows "
            f"{migrate.newest()}). Upgrade agiraph; nothing was changed."
        )


def upgrade(url: str) -> list[str]:
    """Bring the database to today's shape; the names of the migrations that were applied."""
    with psycopg.connect(url, autocommit=True) as connection, connection.transaction():
        connection.execute("select pg_advisory_xact_lock(4711)")
        connection.execute("create table if not exists schema_version (version integer not null)")
        row = connection.execute("select max(version) from schema_version").fetchone()
        current = (row[0] if row else None) or 0
        _refuse_newer(current)
        return migrate.upgrade(
            lambda sql: connection.execute(sql.encode()),
            current=current,
            words={"dialect": "postgres", "serial": "bigserial", "bigint": "bigint"},
            record=lambda number: connection.execute(
                "insert into schema_version values (%s)", (number,)
            ),
        )
