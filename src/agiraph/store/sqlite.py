"""SQLite: verbs run on the event loop, a thread commits them in groups with one fsync each.

A statement gives up the interpreter's lock and has to win it back. In a thread beside a busy loop
that costs more than the statement itself; so the thread only does what really waits: the disk.
"""

import asyncio
import queue
import re
import sqlite3
import threading
import time
from collections import deque
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
from agiraph.domain.work import Lane, Queue
from agiraph.faultpoints import fault
from agiraph.store import events, migrate
from agiraph.store.database import P, R, Verb
from agiraph.store.tx import Aftermath, Dialect, Row

GROUP = 256
SHORT, LONG = 0.004, 0.02
"""How long verbs run, in seconds, before they are committed and others on the loop have a turn:
as long as a commit takes, within these bounds."""
BUSY_SECONDS = 5.0
PAGE_BYTES = 1024
"""A commit writes whole pages and a turn is small: 18 KiB a turn, against 34 with 4096."""
CHECKED_BYTES = 256 * 2**20
"""Databases up to this size are checked whole when opened."""

_NAMED = re.compile(r"(?<!:):([a-z_]+)")
_CHANGES = re.compile(r"(?:update|delete from|insert into) (\w+)")
_compiled: dict[str, tuple[str, tuple[str, ...], str]] = {}


def _dialect(sql: str) -> tuple[str, tuple[str, ...], str]:
    """A statement with plain marks, which bind faster; their names; and the table it changes."""
    found = _compiled.get(sql)
    if found is None:
        names, changes = tuple(_NAMED.findall(sql)), _CHANGES.match(sql)
        marked = _NAMED.sub("?", sql.replace("{for_update}", ""))
        found = _compiled[sql] = marked, names, changes[1] if changes else ""
    return found


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
    dialect: Dialect = "sqlite"

    def __init__(
        self, connection: sqlite3.Connection, now: datetime, ends: dict[TeamId, int] | None = None
    ) -> None:
        self.now = now
        self.held: dict[str, dict[str, Any]] | None = {}
        self._ends = {} if ends is None else ends
        self.aftermath = Aftermath()
        self._emitted: dict[TeamId, list[tuple[EventType, dict[str, Any]]]] = {}
        self._execute = connection.execute

    def run(self, sql: str, /, **values: Any) -> int:
        marked, names, table = _dialect(sql)
        if self.held:
            self.held.pop(table, None)
        return self._execute(marked, [values[name] for name in names]).rowcount

    def one(self, sql: str, /, **values: Any) -> Row | None:
        marked, names, _ = _dialect(sql)
        return self._execute(marked, [values[name] for name in names]).fetchone()

    def all(self, sql: str, /, **values: Any) -> list[Row]:
        marked, names, _ = _dialect(sql)
        return self._execute(marked, [values[name] for name in names]).fetchall()

    def emit(self, team_id: TeamId, type: EventType, /, **data: Any) -> None:
        self._emitted.setdefault(team_id, []).append((type, data))

    def emitted(self, team_id: TeamId) -> int:
        return len(self._emitted.get(team_id, ()))

    def wake(self, agent_id: AgentId, lane: Lane = "work") -> None:
        self.aftermath.wakes.append(Queue(agent_id, lane))

    def cancel(self, agent_id: AgentId, lane: Lane = "work") -> None:
        self.aftermath.cancels.append(Queue(agent_id, lane))

    def alarm(self) -> None:
        self.aftermath.alarm = True

    def number(self) -> None:
        """Give the emitted events their numbers; the last thing a transaction does."""
        for team_id, said in self._emitted.items():
            end = self._ends.get(team_id) or events.end(self, team_id)
            self.aftermath.events += events.append(self, team_id, said, end=end)
            self._ends[team_id] = end + len(said)


@dataclass(slots=True)
class _Job:
    verb: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    future: asyncio.Future[Any]
    result: Any = None
    error: BaseException | None = None
    aftermath: Aftermath | None = None
    alone: bool = False
    """It was undone with others and must not meet them again."""


class SqliteStore:
    def __init__(self, path: Path, clock: Clock) -> None:
        self.path = path
        self.clock = clock
        self._loop = asyncio.get_running_loop()
        self._listeners: list[Callable[[Aftermath], None]] = []
        self._connection = self._open()
        self._readers = ThreadPoolExecutor(2, "agiraph-read")
        self._reading = threading.local()
        self._open_readers: list[sqlite3.Connection] = []
        self._waiting: deque[_Job] = deque()
        self._group: list[_Job] = []
        self._ends: dict[TeamId, int] = {}
        """Where each team's events end, as long as nobody else has written."""
        self._version = 0
        self._busy = False
        self._commit_seconds = 0.0
        self._rested = asyncio.Event()
        self._chores: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._waiter = threading.Thread(target=self._wait, name="agiraph-write", daemon=True)
        self._waiter.start()

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
                words={"dialect": "sqlite", "serial": "integer", "bigint": "integer"},
                record=lambda version: connection.execute(f"pragma user_version = {version}"),
            )
            connection.execute("commit")
            connection.execute("pragma busy_timeout = 0")  # the loop must not wait for a lock
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

    async def write(self, verb: Verb[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        future = self._loop.create_future()
        self._waiting.append(_Job(verb, args, kwargs, future))
        if not self._busy:
            self._busy = True
            self._loop.call_soon(self._begin)
        return await future

    async def read(self, query: Verb[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
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
        while self._busy:
            self._rested.clear()
            await self._rested.wait()
        self._chores.put(None)
        await self._loop.run_in_executor(None, self._waiter.join)
        self._readers.shutdown()
        # The last one out folds the journal in, so that a database at rest is one file.
        for connection in (*self._open_readers, self._connection):
            connection.close()

    def _wait(self) -> None:
        """The thread: whatever has to wait for the disk or for another program."""
        while (chore := self._chores.get()) is not None:
            chore()

    def _begin(self) -> None:
        """Start a transaction for what is waiting."""
        try:
            self._connection.execute("begin immediate")
        except sqlite3.Error as error:
            if _name(error).startswith("SQLITE_BUSY"):
                self._chores.put(self._begin_when_free)
            else:
                self._give_up(error)
        else:
            self._fill()

    def _begin_when_free(self) -> None:
        """Another program holds the database: wait for it, for a while."""
        try:
            self._connection.execute(f"pragma busy_timeout = {int(BUSY_SECONDS * 1000)}")
            self._connection.execute("begin immediate")
        except sqlite3.Error as error:
            self._loop.call_soon_threadsafe(self._give_up, error)
        else:
            self._loop.call_soon_threadsafe(self._fill)
        finally:
            self._connection.execute("pragma busy_timeout = 0")

    def _fill(self) -> None:
        """Run verbs in the transaction, not so long that others on the loop are kept from theirs.

        If one raises, all are undone and each is run again by itself. A verb may therefore run
        twice, the first time in vain: it changes nothing but rows.
        """
        until = time.monotonic() + min(max(self._commit_seconds, SHORT), LONG)
        try:
            self._heed_others()
            while self._waiting and len(self._group) < GROUP:
                if self._group and (self._group[0].alone or self._waiting[0].alone):
                    break
                job = self._waiting.popleft()
                self._group.append(job)
                self._perform(job)
                if job.error is not None:
                    return self._undo()
                if time.monotonic() > until:
                    break
        except (sqlite3.Error, UnicodeDecodeError) as error:
            return self._give_up(error)
        self._chores.put(self._commit)
        return None

    def _heed_others(self) -> None:
        """Forget what another program may have changed since."""
        [version] = self._connection.execute("pragma data_version").fetchone()
        if version != self._version:
            self._version = version
            self._ends.clear()

    def _undo(self) -> None:
        self._connection.execute("rollback")
        self._ends.clear()
        if len(self._group) == 1:
            return self._acknowledge()
        for job in reversed(self._group):
            job.alone = True
            self._waiting.appendleft(job)
        self._group = []
        return self._begin()

    def _commit(self) -> None:
        began = time.monotonic()
        try:
            self._connection.execute("commit")
        except sqlite3.Error as error:
            self._loop.call_soon_threadsafe(self._give_up, error)
        else:
            self._commit_seconds = time.monotonic() - began
            for job in self._group:
                fault(f"db:after:{job.verb.__name__}")
            self._loop.call_soon_threadsafe(self._acknowledge)

    def _give_up(self, error: sqlite3.Error | UnicodeDecodeError) -> None:
        """The disk or a lock: nobody in this group gets through."""
        if self._connection.in_transaction:
            self._connection.execute("rollback")
        self._ends.clear()
        if not self._group:
            self._group.append(self._waiting.popleft())
        for job in self._group:
            job.error = _explained(error, self.path)
        self._acknowledge()

    def _perform(self, job: _Job) -> None:
        fault(f"db:before:{job.verb.__name__}")
        tx = SqliteTx(self._connection, self.clock.now(), self._ends)
        job.error = None
        try:
            job.result = job.verb(tx, *job.args, **job.kwargs)
            tx.number()
            job.aftermath = tx.aftermath
        except BaseException as error:
            if _is_surroundings(error):
                raise
            job.error = error
        fault(f"db:in:{job.verb.__name__}")

    def _acknowledge(self) -> None:
        group, self._group = self._group, []
        if self._waiting:
            self._loop.call_soon(self._begin)
        else:
            self._busy = False
            self._rested.set()
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
