"""SQLite: one writer thread that commits what is queued back to back, with one fsync a group."""

import asyncio
import queue
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from agiraph.domain.errors import (
    AgiraphError,
    StoreDamaged,
    StoreFull,
    StoreLocked,
    StoreUnavailable,
)
from agiraph.domain.events import EventType
from agiraph.domain.ids import AgentId, TeamId
from agiraph.domain.time import Clock
from agiraph.faultpoints import fault
from agiraph.store import events, migrate
from agiraph.store.database import P, R, Verb
from agiraph.store.tx import Aftermath, Row

GROUP = 256
BUSY_SECONDS = 5.0
PAGE_BYTES = 1024
"""A commit writes whole pages and a turn is small: 18 KiB a turn, against 34 with 4096."""
CHECKED_BYTES = 256 * 2**20
"""Databases up to this size are checked whole when opened."""

_compiled: dict[str, str] = {}


def _dialect(sql: str) -> str:
    if sql not in _compiled:
        _compiled[sql] = sql.replace("{for_update}", "")
    return _compiled[sql]


_DAMAGE = ("SQLITE_CORRUPT", "SQLITE_NOTADB")
_SURROUNDINGS = (
    *_DAMAGE, "SQLITE_FULL", "SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_IOERR", "SQLITE_CANTOPEN",
    "SQLITE_READONLY", "SQLITE_PROTOCOL", "SQLITE_NOMEM",
)  # fmt: skip


def _name(error: BaseException) -> str:
    # SQLite quotes what it finds; if that is no text, the complaint is about damage.
    if isinstance(error, UnicodeDecodeError) or "Could not decode to UTF-8" in str(error):
        return "SQLITE_CORRUPT"
    return getattr(error, "sqlite_errorname", "") or ""


def _is_surroundings(error: BaseException) -> bool:
    """Whether the disk, a lock or the file is at fault, and not the statement."""
    return _name(error).startswith(_SURROUNDINGS)


def _explained(error: BaseException, path: Path) -> AgiraphError:
    """SQLite's error as one that says who must do what."""
    name = _name(error)
    if name == "SQLITE_FULL":
        return StoreFull(f"No room left for {path}: free some disk space; work goes on by itself.")
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return StoreLocked(f"Another program holds {path}: close it; work goes on by itself.")
    if name.startswith(_DAMAGE):
        return _damaged(path, str(error))
    return StoreUnavailable(f"{path}: {error}")


def _damaged(path: Path, what: str) -> StoreDamaged:
    return StoreDamaged(
        f"{path} is damaged ({what}). Nothing was written to it. "
        "Put a backup in its place, or move it away to start anew."
    )


class SqliteTx:
    def __init__(self, connection: sqlite3.Connection, now: datetime) -> None:
        self.now = now
        self.aftermath = Aftermath()
        self._emitted: dict[TeamId, list[tuple[EventType, dict[str, Any]]]] = {}
        self._execute = connection.execute

    def run(self, sql: str, /, **values: Any) -> int:
        return self._execute(_dialect(sql), values).rowcount

    def one(self, sql: str, /, **values: Any) -> Row | None:
        return self._execute(_dialect(sql), values).fetchone()

    def all(self, sql: str, /, **values: Any) -> list[Row]:
        return self._execute(_dialect(sql), values).fetchall()

    def emit(self, team_id: TeamId, type: EventType, /, **data: Any) -> None:
        self._emitted.setdefault(team_id, []).append((type, data))

    def wake(self, agent_id: AgentId) -> None:
        self.aftermath.wakes.append(agent_id)

    def cancel(self, agent_id: AgentId) -> None:
        self.aftermath.cancels.append(agent_id)

    def alarm(self) -> None:
        self.aftermath.alarm = True

    def number(self) -> None:
        """Give the emitted events their numbers; the last thing a transaction does."""
        for team_id, said in self._emitted.items():
            self.aftermath.events += events.append(self, team_id, said)


@dataclass(slots=True)
class _Job:
    verb: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    future: asyncio.Future[Any]
    result: Any = None
    error: BaseException | None = None
    aftermath: Aftermath | None = None

    @property
    def name(self) -> str:
        return self.verb.__name__


class SqliteStore:
    def __init__(self, path: Path, clock: Clock) -> None:
        self.path = path
        self.clock = clock
        self._loop = asyncio.get_running_loop()
        self._listeners: list[Callable[[Aftermath], None]] = []
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._connection = self._open()
        self._readers = ThreadPoolExecutor(2, "agiraph-read")
        self._reading = threading.local()
        self._open_readers: list[sqlite3.Connection] = []
        self._writer = threading.Thread(target=self._serve, name="agiraph-write", daemon=True)
        self._writer.start()

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(
            self.path,
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=512,
        )

    def _open(self) -> sqlite3.Connection:
        """A connection to a database that is whole, at rest and of today's shape."""
        try:
            connection = self._connect()
            connection.execute(f"pragma page_size = {PAGE_BYTES}")
            connection.execute("pragma journal_mode = wal")
            connection.execute("pragma synchronous = full")
            connection.execute("pragma foreign_keys = on")
            connection.execute("pragma cache_size = -16000")
            connection.execute("pragma wal_autocheckpoint = 4000")
            self._check(connection)
            connection.execute("begin immediate")
            current = connection.execute("pragma user_version").fetchone()[0]
            if current > migrate.newest():
                raise StoreDamaged(
                    f"{self.path} was written by a newer agiraph (schema {current}, this one "
                    f"knows {migrate.newest()}). Upgrade agiraph; nothing was changed."
                )
            migrate.upgrade(
                connection.execute,
                current=current,
                words={"serial": "integer", "bigint": "integer"},
                record=lambda version: connection.execute(f"pragma user_version = {version}"),
            )
            connection.execute("commit")
        except (sqlite3.Error, UnicodeDecodeError) as error:
            if not _is_surroundings(error):  # what is there is not what its version says
                raise _damaged(self.path, str(error)) from error
            raise _explained(error, self.path) from error
        return connection

    def _check(self, connection: sqlite3.Connection) -> None:
        if self.path.stat().st_size > CHECKED_BYTES:
            return
        [verdict] = connection.execute("pragma quick_check(1)").fetchone()
        if verdict != "ok":
            raise _damaged(self.path, verdict)

    async def write(self, verb: Verb[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        future = self._loop.create_future()
        self._jobs.put(_Job(verb, args, kwargs, future))
        return await future

    async def read(self, query: Verb[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        def run() -> R:
            connection = getattr(self._reading, "connection", None)
            if connection is None:
                connection = self._reading.connection = self._connect()
                self._open_readers.append(connection)
                connection.execute("pragma query_only = on")
            tx = SqliteTx(connection, self.clock.now())
            connection.execute("begin")
            try:
                return query(tx, *args, **kwargs)
            except (sqlite3.Error, UnicodeDecodeError) as error:
                if not _is_surroundings(error):
                    raise
                raise _explained(error, self.path) from error
            finally:
                connection.execute("rollback")

        return await self._loop.run_in_executor(self._readers, run)

    def subscribe(self, listener: Callable[[Aftermath], None]) -> None:
        self._listeners.append(listener)

    async def close(self) -> None:
        self._jobs.put(None)
        await self._loop.run_in_executor(None, self._writer.join)
        self._readers.shutdown()
        # The last one out folds the journal in, so that a database at rest is one file.
        for connection in (*self._open_readers, self._connection):
            connection.close()

    def _serve(self) -> None:
        while (first := self._jobs.get()) is not None:
            group = [first]
            while len(group) < GROUP and not self._jobs.empty():
                job = self._jobs.get()
                if job is None:
                    self._jobs.put(None)
                    break
                group.append(job)
            self._commit(group)
            self._loop.call_soon_threadsafe(self._acknowledge, group)

    def _commit(self, group: list[_Job]) -> None:
        """Commit the group with one fsync; if one of them raises, each by itself.

        A verb may therefore run twice, the first time in vain: it changes nothing but rows.
        """
        if not self._together(group):
            for job in group:
                self._together([job])

    def _together(self, jobs: list[_Job]) -> bool:
        """Run these verbs in one transaction; False if that undid several because one raised."""
        connection = self._connection
        try:
            connection.execute("begin immediate")
            for job in jobs:
                self._perform(job)
                if job.error is not None:
                    connection.execute("rollback")
                    return len(jobs) == 1
            connection.execute("commit")
        except (sqlite3.Error, UnicodeDecodeError) as error:
            if connection.in_transaction:
                connection.execute("rollback")
            for job in jobs:
                job.error = _explained(error, self.path)
        for job in jobs:
            fault(f"db:after:{job.name}")
        return True

    def _perform(self, job: _Job) -> None:
        fault(f"db:before:{job.name}")
        tx = SqliteTx(self._connection, self.clock.now())
        job.error = None
        try:
            job.result = job.verb(tx, *job.args, **job.kwargs)
            tx.number()
            job.aftermath = tx.aftermath
        except BaseException as error:
            if _is_surroundings(error):
                raise  # the disk or the lock: nobody in this group gets through
            job.error = error
        fault(f"db:in:{job.name}")

    def _acknowledge(self, group: list[_Job]) -> None:
        for job in group:
            if job.future.cancelled():
                pass
            elif job.error is not None:
                job.future.set_exception(job.error)
            else:
                job.future.set_result(job.result)
            if job.error is None and job.aftermath is not None:
                for listener in self._listeners:
                    listener(job.aftermath)
