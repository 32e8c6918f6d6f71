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

from agiraph.domain.errors import StoreDamaged, StoreFull, StoreUnavailable
from agiraph.domain.events import EventType
from agiraph.domain.ids import AgentId, TeamId
from agiraph.domain.time import Clock
from agiraph.faultpoints import fault
from agiraph.store import events, migrate
from agiraph.store.database import P, R, Verb
from agiraph.store.tx import Aftermath, Row

POOL = 8
TRIES = 5
RUN_AGENT = "run_agent"
"""The queue entry that asks some process to look at an agent's queue."""
CONTROL = "agiraph_control"
"""The channel on which processes ask each other to cancel."""
IDLE_SECONDS = 10
"""A process that hangs inside a transaction gives up its locks after this."""

_NAMED = re.compile(r"(?<!:):([a-z_]+)")


@cache
def _dialect(sql: str) -> bytes:
    written = sql.replace("%", "%%").replace("{for_update}", "for update")
    return _NAMED.sub(r"%(\1)s", written).encode()


class PostgresTx:
    def __init__(self, connection: psycopg.Connection[Any], now: datetime) -> None:
        self.now = now
        self.aftermath = Aftermath()
        self._connection = connection
        self._emitted: dict[TeamId, list[tuple[EventType, dict[str, Any]]]] = {}

    def run(self, sql: str, /, **values: Any) -> int:
        return self._connection.execute(_dialect(sql), values).rowcount

    def one(self, sql: str, /, **values: Any) -> Row | None:
        return self._connection.execute(_dialect(sql), values).fetchone()

    def all(self, sql: str, /, **values: Any) -> list[Row]:
        return self._connection.execute(_dialect(sql), values).fetchall()

    def emit(self, team_id: TeamId, type: EventType, /, **data: Any) -> None:
        self._emitted.setdefault(team_id, []).append((type, data))

    def wake(self, agent_id: AgentId) -> None:
        if agent_id not in self.aftermath.wakes:
            self.aftermath.wakes.append(agent_id)

    def cancel(self, agent_id: AgentId) -> None:
        self.aftermath.cancels.append(agent_id)

    def alarm(self) -> None:
        self.aftermath.alarm = True

    def finish(self) -> None:
        """Queue the wakes, then number the events: the last things a transaction does.

        Numbers come from behind the team's row lock, so that they are dense and in commit order.
        """
        if wakes := self.aftermath.wakes:
            queue = SyncQueries(SyncPsycopgDriver(self._connection))
            queue.enqueue([RUN_AGENT] * len(wakes), [w.encode() for w in wakes], [0] * len(wakes))
        for agent_id in self.aftermath.cancels:
            self.run("select pg_notify(:channel, :agent)", channel=CONTROL, agent=agent_id)
        for team_id in sorted(self._emitted):
            self.one("select 1 from teams where id = :id {for_update}", id=team_id)
            self.aftermath.events += events.append(self, team_id, self._emitted[team_id])


class PostgresStore:
    def __init__(self, url: str, clock: Clock) -> None:
        self.url = url
        self.clock = clock
        self._loop = asyncio.get_running_loop()
        self._listeners: list[Callable[[Aftermath], None]] = []
        self._pool = ThreadPoolExecutor(POOL, "agiraph-pg")
        self._local = threading.local()
        self._open: set[psycopg.Connection[Any]] = set()

    @classmethod
    async def open(cls, url: str, clock: Clock) -> "PostgresStore":
        """A store on a database that has today's shape; `agiraph db upgrade` gives it that."""
        store = cls(url, clock)
        current = await store.read(version)
        if current != migrate.newest():
            await store.close()
            raise StoreDamaged(
                f"The database has schema {current}, this agiraph needs {migrate.newest()}: "
                "run `agiraph db upgrade`."
            )
        return store

    def _connection(self) -> psycopg.Connection[Any]:
        connection = getattr(self._local, "connection", None)
        if connection is None or connection.closed or connection.broken:
            options = f"-c idle_in_transaction_session_timeout={IDLE_SECONDS}s"
            connection = psycopg.connect(self.url, autocommit=True, options=options)
            self._local.connection = connection
            self._open.add(connection)
        return connection

    async def write(self, verb: Verb[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        def run() -> tuple[R, Aftermath]:
            return self._retrying(lambda: self._commit(verb, args, kwargs))

        result, aftermath = await self._loop.run_in_executor(self._pool, run)
        for listener in self._listeners:
            listener(aftermath)
        return result

    async def read(self, query: Verb[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        def run() -> R:
            connection = self._connection()
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
            tx = PostgresTx(connection, self.clock.now())
            result = verb(tx, *args, **kwargs)
            tx.finish()
            fault(f"db:in:{name}")
        fault(f"db:after:{name}")
        return result, tx.aftermath

    def _retrying(self, run: Callable[[], R]) -> R:
        """Run again what two transactions got in each other's way with; name what is broken."""
        for attempt in range(TRIES):
            try:
                return run()
            except (pg.DeadlockDetected, pg.SerializationFailure, pg.LockNotAvailable):
                if attempt == TRIES - 1:
                    raise
                time.sleep(0.01 * 2**attempt)
            except pg.DiskFull as error:
                raise StoreFull("The database server has no room left.") from error
            except psycopg.OperationalError as error:
                # The row, not the error, says whether it happened: callers look before they repeat.
                said = str(error).strip().splitlines()[:1]
                raise StoreUnavailable(f"The database cannot be reached: {said}") from error
        raise AssertionError("every try returns or raises")


def version(tx: Any) -> int:
    """The schema the database has; 0 for an empty one."""
    if tx.one("select to_regclass('schema_version')")[0] is None:
        return 0
    return cast(int, tx.one("select max(version) from schema_version")[0])


def upgrade(url: str) -> list[str]:
    """Bring the database to today's shape; the names of the migrations that were applied."""
    with psycopg.connect(url, autocommit=True) as connection, connection.transaction():
        connection.execute("select pg_advisory_xact_lock(4711)")
        connection.execute("create table if not exists schema_version (version integer not null)")
        row = connection.execute("select max(version) from schema_version").fetchone()
        return migrate.upgrade(
            lambda sql: connection.execute(sql.encode()),
            current=(row[0] if row else None) or 0,
            words={"serial": "bigserial", "bigint": "bigint"},
            record=lambda number: connection.execute(
                "insert into schema_version values (%s)", (number,)
            ),
        )
