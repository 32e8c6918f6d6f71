"""PostgreSQL store: verbs run concurrently in a small pool of threads, one connection each."""

import asyncio
import re
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime
from functools import cache
from typing import Any, TypeVar, cast

import psycopg

from agiraph.core.domain import ids
from agiraph.core.domain.errors import AgiraphError, Refused, StoreDamaged, StoreUnavailable
from agiraph.core.domain.events import TeamEvent
from agiraph.core.domain.ids import AgentId, TeamId
from agiraph.core.domain.times.time import Clock, SystemClock
from agiraph.core.domain.work import Lane, Queue
from agiraph.core.store import events
from agiraph.core.store.database import UNANSWERABLE, P, R, Verb, answer_for, name_of_verb, tell
from agiraph.core.store.engine import migrate
from agiraph.core.store.engine.pgqueuer_queue import enqueue
from agiraph.core.store.engine.postgres_errors import explain
from agiraph.core.store.engine.server_clock import ServerClock
from agiraph.core.store.tx import Aftermath, Dialect, Row
from agiraph.faultpoints import fault

POOL = 8
"""Verbs and queries that run at the same time; each thread has a connection of its own."""
TRIES = 5
"""How often a transaction is tried, with pauses of 20 to 160 ms: the other side of a deadlock has
committed long before the last try."""
CONTROL_CHANNEL = "agiraph_control"
"""The NOTIFY channel on which processes ask each other to cancel; the payload is a queue's key."""
EVENTS_CHANNEL = "agiraph_events"
"""The NOTIFY channel that announces events; the payload is a team's id and its last number."""
REPLY_TEXT_CHANNEL = "agiraph_words"
"""The NOTIFY channel for pieces of replies that a model is still writing; nothing is stored."""
IDLE_SECONDS = 10
"""The server aborts a transaction that is idle for this long, so that a hung process frees its
locks."""

CONNECT_SECONDS = 10
"""The time limit for opening one connection."""

T = TypeVar("T")
_Job = tuple[Future[Any], Callable[[], Any]]

# `:name`, but not `::`, PostgreSQL's cast.
_NAMED = re.compile(r"(?<!:):([a-z_]+)")


@cache
def _dialect(sql: str, locking: str) -> bytes:
    # psycopg takes a single percent sign, such as that of LIKE, for the beginning of a parameter.
    written = sql.replace("%", "%%").replace("{for_update}", locking)
    return _NAMED.sub(r"%(\1)s", written).encode()


class PostgresTx:
    dialect: Dialect = "postgres"
    cache: dict[str, dict[str, Any]] | None = None

    def __init__(self, connection: psycopg.Connection[Any], now: datetime) -> None:
        self.now = now
        self.aftermath: Aftermath = Aftermath()
        self._connection = connection
        # `for no key update` keeps other writers out. A plain `for update` would also block every
        # insert that refers to the row by a foreign key, such as each message of a locked team. A
        # read-only transaction may lock nothing.
        self._locking = "" if connection.read_only else "for no key update"
        self._emitted: dict[TeamId, list[TeamEvent]] = {}

    def run(self, sql: str, /, **values: Any) -> int:
        return self._execute(sql, values).rowcount

    def one(self, sql: str, /, **values: Any) -> Row | None:
        row = self._execute(sql, values).fetchone()
        if row is not None and "{for_update}" in sql and sql.count("select ") > 1:
            # In READ COMMITTED, a statement that waited for a row lock sees that row as it is now,
            # but its subqueries still see the state before the wait. Run again, lock held.
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
        # Each wake becomes a row of the job queue, and a verb may wake
        # the same queue several times.
        if (queue := Queue(agent_id, lane)) not in self.aftermath.wakes:
            self.aftermath.wakes.append(queue)

    def cancel(self, agent_id: AgentId, lane: Lane = "work") -> None:
        self.aftermath.cancels.append(Queue(agent_id, lane))

    def alarm(self) -> None:
        self.aftermath.alarm = True

    def finish(self) -> None:
        """Add the jobs, then number the events. Must be the last step of a transaction.

        Numbers are taken under the team's row lock, so they are dense and in commit order. Teams
        are locked in the order of their ids, so two transactions over the same teams cannot
        deadlock.
        """
        if wakes := self.aftermath.wakes:
            enqueue(self._connection, wakes)
        for queue in self.aftermath.cancels:
            self.run("select pg_notify(:channel, :queue)", channel=CONTROL_CHANNEL, queue=queue.key)
        # Last, because all transactions with events of a team wait for the lock of the team's row:
        # it should be held for no longer than from here to the commit.
        for team_id in sorted(self._emitted):
            self.one("select 1 from teams where id = :id {for_update}", id=team_id)
            end = events.end(self, team_id)
            written = events.append(self, team_id, self._emitted[team_id], end=end)
            self.aftermath.events += written
            # PostgreSQL sends a notification with the commit, so no reader looks
            # for rows that are not there.
            note = f"{team_id} {written[-1].seq}"
            self.run("select pg_notify(:channel, :note)", channel=EVENTS_CHANNEL, note=note)


class PostgresStore:
    def __init__(self, url: str, clock: Clock) -> None:
        self.url = url
        # Machines' clocks differ, so the server's is used; a test's manual clock is taken as is.
        self.clock: Clock = ServerClock(clock) if isinstance(clock, SystemClock) else clock
        self._loop = asyncio.get_running_loop()
        self._listeners: list[Callable[[Aftermath], None]] = []
        self._pool = ThreadPoolExecutor(POOL, "agiraph-pg")
        self._first: deque[_Job] = deque()
        self._waiting: deque[_Job] = deque()
        self._local = threading.local()
        # The connections of all threads, for `close`; each thread finds its own in `_local`.
        self._open: set[psycopg.Connection[Any]] = set()
        self._measuring = threading.Lock()

    @classmethod
    async def open(cls, url: str, clock: Clock) -> "PostgresStore":
        """Open a database with the current schema; `agiraph db upgrade` migrates an older one."""
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
            # `autocommit`: transactions begin and end with `connection.transaction()`. Otherwise
            # the first statement would begin one that stays open.
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
        """Measure the server's time in one thread; others use the last measurement meanwhile.

        The first measurement blocks all threads: before it there is no time to go by.
        """
        if not self._measuring.acquire(blocking=clock.measurements == 0):
            return
        try:
            if clock.is_stale:
                clock.measure(lambda: _time(connection))
                # Ids contain a time and are sorted by it, so they
                # follow the server's clock as well.
                ids.use_clock(clock.now)
        finally:
            self._measuring.release()

    async def write(self, verb: Verb[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await self._write(self._waiting, verb, args, kwargs)

    async def write_first(self, verb: Verb[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await self._write(self._first, verb, args, kwargs)

    async def _write(
        self,
        queue: deque[_Job],
        verb: Callable[..., R],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> R:
        def run() -> tuple[R, Aftermath]:
            return self._retrying(name, lambda: self._commit(verb, args, kwargs))

        name = name_of_verb(verb)
        # If the caller is cancelled here, the thread still commits, but the listeners of
        # this process are not called. Wakes are rows of the job queue, and timers,
        # channels and triggers are polled.
        result, aftermath = await self._in_thread(queue, run)
        tell(self._listeners, aftermath)
        return result

    async def read(self, query: Verb[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        def run() -> R:
            connection = self._connection(read_only=True)
            with connection.transaction(force_rollback=True):
                return query(PostgresTx(connection, self.clock.now()), *args, **kwargs)

        name = name_of_verb(query)
        return await self._in_thread(self._waiting, lambda: self._retrying(name, run))

    async def look(self, query: Verb[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await self.read(query, *args, **kwargs)

    async def _in_thread(self, queue: deque[_Job], run: Callable[[], T]) -> T:
        """Run this in a thread of the pool when its turn comes; what is in `_first` comes first."""
        future: Future[T] = Future()
        queue.append((future, run))
        self._pool.submit(self._work)
        return await asyncio.wrap_future(future)

    def _work(self) -> None:
        """Run what is next, in a thread of the pool."""
        try:
            future, run = self._first.popleft()
        except IndexError:
            future, run = self._waiting.popleft()
        if not future.set_running_or_notify_cancel():
            return
        try:
            future.set_result(run())
        except BaseException as error:
            # Whatever is raised belongs to the caller.
            future.set_exception(error)

    def subscribe(self, listener: Callable[[Aftermath], None]) -> None:
        self._listeners.append(listener)

    async def close(self) -> None:
        # Waits for the verbs that are running, so it must not run on the event loop.
        await self._loop.run_in_executor(None, self._pool.shutdown)
        for connection in self._open:
            connection.close()

    def _commit(
        self, verb: Callable[..., R], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[R, Aftermath]:
        name = name_of_verb(verb)
        fault(f"db:before:{name}")
        connection = self._connection()
        with connection.transaction():
            # The transaction has begun. From here on a lost connection may
            # hide a commit (`_retrying`).
            self._local.at_work = True
            tx = PostgresTx(connection, self.clock.now())
            result = verb(tx, *args, **kwargs)
            tx.finish()
            fault(f"db:in:{name}")
        fault(f"db:after:{name}")
        return result, tx.aftermath

    def _retrying(self, verb: str, run: Callable[[], R]) -> R:
        """Retry a transaction that had no effect; raise the project's error otherwise."""
        for attempt in range(1, TRIES + 1):
            self._local.at_work = False
            try:
                return run()
            except UNANSWERABLE as error:
                raise answer_for(error, verb) from error
            except psycopg.Error as error:
                reason = explain(error)
                if reason is None:
                    raise
                # If the connection is lost during a commit, only the rows tell whether it
                # happened. A retry could do it twice: the caller reads the rows instead.
                is_lost = type(reason) is StoreUnavailable and self._local.at_work
                if is_lost or isinstance(reason, Refused) or attempt == TRIES:
                    raise reason from error
            time.sleep(0.01 * 2**attempt)
        raise AssertionError("every try returns or raises")


def _time(connection: psycopg.Connection[Any]) -> datetime:
    row = connection.execute("select clock_timestamp()").fetchone()
    assert row is not None
    return row[0]


def version(tx: Any) -> int:
    """Return the schema version of the database; 0 if it is empty."""
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
    """Apply the missing migrations in one transaction; return their names."""
    with psycopg.connect(url, autocommit=True) as connection, connection.transaction():
        # One process at a time migrates; the others wait here and then find nothing to do.
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
