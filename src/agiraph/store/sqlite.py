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

from agiraph.domain.errors import AgiraphError
from agiraph.domain.events import TeamEvent
from agiraph.domain.ids import AgentId, TeamId
from agiraph.domain.time import Clock
from agiraph.domain.work import Lane, Queue
from agiraph.faultpoints import fault
from agiraph.store import events, sqlite_connection
from agiraph.store.database import P, R, Verb
from agiraph.store.sqlite_errors import explained, is_surroundings, name_of
from agiraph.store.sqlite_files import Loss, SqliteFiles
from agiraph.store.tx import Aftermath, Dialect, Row

GROUP = 256
SHORT, LONG = 0.004, 0.02
"""How long verbs run, in seconds, before they are committed and others on the loop have a turn:
as long as a commit takes, within these bounds."""
LOOK_SECONDS = 5.0
"""How often a store that writes nothing looks whether its files are still there."""

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


class SqliteTx:
    dialect: Dialect = "sqlite"

    def __init__(
        self, connection: sqlite3.Connection, now: datetime, ends: dict[TeamId, int] | None = None
    ) -> None:
        self.now = now
        self.held: dict[str, dict[str, Any]] | None = {}
        self._ends = {} if ends is None else ends
        self.aftermath = Aftermath()
        self._emitted: dict[TeamId, list[TeamEvent]] = {}
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

    def emit(self, team_id: TeamId, event: TeamEvent, /) -> None:
        self._emitted.setdefault(team_id, []).append(event)

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
    def __init__(self, path: Path, clock: Clock, *, sole: bool = False) -> None:
        """Open the database. The sole runtime on it keeps every other one off: `HomeInUse`."""
        self.path = path
        self.clock = clock
        self._loop = asyncio.get_running_loop()
        self._listeners: list[Callable[[Aftermath], None]] = []
        self._files = SqliteFiles(path)
        try:
            if sole:
                self._files.own()
            self._connection = sqlite_connection.ready(path)
        except BaseException:
            self._files.close()
            raise
        self._files.remember()
        self._readers = ThreadPoolExecutor(2, "agiraph-read")
        self._reading = threading.local()
        self._open_readers: list[sqlite3.Connection] = []
        self._waiting: deque[_Job] = deque()
        self._group: list[_Job] = []
        self._ends: dict[TeamId, int] = {}
        """Where each team's events end, as long as nobody else has written."""
        self._version = 0
        self._busy = False
        self._is_closed = False
        self._commit_seconds = 0.0
        self._rested = asyncio.Event()
        self._chores: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._waiter = threading.Thread(target=self._wait, name="agiraph-write", daemon=True)
        self._waiter.start()
        self._looking = self._loop.call_later(LOOK_SECONDS, self._look)

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
                connection = self._reading.connection = self._open_reader()
            tx = SqliteTx(connection, self.clock.now())
            connection.execute("begin")
            try:
                return query(tx, *args, **kwargs)
            except (sqlite3.Error, UnicodeDecodeError) as error:
                if not is_surroundings(error):
                    raise
                raise explained(error, self.path) from error
            finally:
                connection.execute("rollback")

        return await self._loop.run_in_executor(self._readers, run)

    def _open_reader(self) -> sqlite3.Connection:
        if (loss := self._files.loss()) is not None:  # what is at the path now is not our database
            raise self._files.error(loss)
        try:
            connection = sqlite_connection.connect(self.path, create=False)
        except sqlite3.Error as error:
            raise explained(error, self.path) from error
        self._open_readers.append(connection)
        connection.execute("pragma query_only = on")
        return connection

    def subscribe(self, listener: Callable[[Aftermath], None]) -> None:
        self._listeners.append(listener)

    async def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self._looking.cancel()
        self._look(again=False)  # what was lost unnoticed is saved before it is closed
        while self._busy:
            self._rested.clear()
            await self._rested.wait()
        self._chores.put(None)
        await self._loop.run_in_executor(None, self._waiter.join)
        self._readers.shutdown()
        # The last one out folds the journal in, so that a database at rest is one file.
        for connection in (*self._open_readers, self._connection):
            connection.close()
        self._files.close()

    def _wait(self) -> None:
        """The thread: whatever has to wait for the disk or for another program."""
        while (chore := self._chores.get()) is not None:
            chore()

    def _look(self, *, again: bool = True) -> None:
        """Notice that the files are gone although nobody writes: what they hold must be saved."""
        if again:
            self._looking = self._loop.call_later(LOOK_SECONDS, self._look)
        if not self._busy and (loss := self._files.loss()) is not None:
            self._busy = True
            self._chores.put(lambda: self._refuse(loss))

    def _refuse(self, loss: Loss) -> None:
        """On the thread: undo what is under way, save what is lost to others, and say so."""
        if self._connection.in_transaction:
            self._connection.execute("rollback")
        if not loss.is_folder_moved:
            self._files.rescue(self._connection)
        self._loop.call_soon_threadsafe(self._give_up, self._files.error(loss))

    def _begin(self) -> None:
        """Start a transaction for what is waiting."""
        try:
            self._connection.execute("begin immediate")
        except sqlite3.Error as error:
            if name_of(error).startswith("SQLITE_BUSY"):
                self._chores.put(self._begin_when_free)
            else:
                self._give_up(error)
        else:
            self._fill()

    def _begin_when_free(self) -> None:
        """Another program holds the database: wait for it, for a while."""
        try:
            self._connection.execute(
                f"pragma busy_timeout = {int(sqlite_connection.BUSY_SECONDS * 1000)}"
            )
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
        if (loss := self._files.loss()) is not None:
            self._refuse(loss)
            return
        began = time.monotonic()
        try:
            self._connection.execute("commit")
        except sqlite3.Error as error:
            self._loop.call_soon_threadsafe(self._give_up, error)
            return
        self._commit_seconds = time.monotonic() - began
        loss = None if self._files.is_in_place() else self._files.loss()
        if loss is not None and not loss.is_folder_moved:
            # Somebody was faster: it is committed to a file that nobody will find again. Callers
            # take what is refused for not written, so from now on everything is refused.
            self._files.lost = loss
            self._refuse(loss)
            return
        for job in self._group:
            fault(f"db:after:{job.verb.__name__}")
        self._loop.call_soon_threadsafe(self._acknowledge)

    def _give_up(self, error: sqlite3.Error | UnicodeDecodeError | AgiraphError) -> None:
        """The disk, a lock or a file that is gone: nobody in this group gets through."""
        if self._connection.in_transaction:
            self._connection.execute("rollback")
        self._ends.clear()
        if not self._group and self._waiting:
            self._group.append(self._waiting.popleft())
        for job in self._group:
            job.error = error if isinstance(error, AgiraphError) else explained(error, self.path)
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
            if is_surroundings(error):
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
