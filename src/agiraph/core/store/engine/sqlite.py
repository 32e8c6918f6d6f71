"""SQLite store: verbs run on the event loop; a thread commits them in groups with one fsync each.

A statement releases the interpreter's lock (GIL) and must acquire it again. In a thread beside a
busy event loop that costs more than the statement itself, so the thread only waits for the disk.
Where the disk is quick, the event loop commits, too.
"""

import asyncio
import queue
import re
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from datetime import datetime
from operator import itemgetter
from pathlib import Path
from typing import Any

from agiraph import faultpoints
from agiraph.core.domain.errors import StoreLocked
from agiraph.core.domain.events import TeamEvent
from agiraph.core.domain.ids import AgentId, TeamId
from agiraph.core.domain.times.time import Clock
from agiraph.core.domain.value import dataclass
from agiraph.core.domain.work import Lane, Queue
from agiraph.core.store import events
from agiraph.core.store.database import UNANSWERABLE, P, R, Verb, answer_for, name_of_verb, tell
from agiraph.core.store.engine import sqlite_files
from agiraph.core.store.engine.sqlite_errors import explain, is_environment_error, name_of
from agiraph.core.store.engine.sqlite_files import Loss, SqliteFiles
from agiraph.core.store.tx import Aftermath, Dialect, Row

READERS = 2
"""Threads that run queries, each with a connection of its own."""
GROUP = 256
"""The most verbs in one transaction."""
SHORT, LONG = 0.004, 0.02
"""Bounds, in seconds, of how long verbs run before they are committed and other tasks of the event
loop run: about as long as a commit takes."""
QUICK = 0.001
"""A commit that takes no longer, in seconds, is better made on the event loop. A thread that is to
make it has to be woken and to wake the loop, and beside a busy loop it waits for the GIL."""
SPARED = 100
"""After a slow commit on the event loop, the thread makes all commits for so many times as long as
that one took."""
FILE_CHECK_S = 5.0
"""How often the store looks at its files, however long their folder has not changed."""

_NAMED = re.compile(r"(?<!:):([a-z_]+)")
# The table whose cached rows a statement makes stale. It must begin the statement: a change inside
# of a `with` would not be noticed.
_CHANGES = re.compile(r"(?:update|delete from|insert into) (\w+)")
_Statement = tuple[str, Callable[[dict[str, Any]], Any], str]
_compiled: dict[str, _Statement] = {}


def _compile(sql: str) -> _Statement:
    """Return the statement, what takes its values from the named ones, and the table it changes."""
    names, changes = _NAMED.findall(sql), _CHANGES.match(sql)
    marked = sql.replace("{for_update}", "")
    bind: Callable[[dict[str, Any]], Any] = dict
    # `?` marks bind faster, but of a single name `itemgetter` would return no tuple.
    if len(names) > 1:
        marked, bind = _NAMED.sub("?", marked), itemgetter(*names)
    found: _Statement = (marked, bind, changes[1] if changes else "")
    _compiled[sql] = found
    return found


class SqliteTx:
    dialect: Dialect = "sqlite"

    def __init__(
        self, connection: sqlite3.Connection, now: datetime, ends: dict[TeamId, int] | None = None
    ) -> None:
        self.now = now
        self.cache: dict[str, dict[str, Any]] | None = {}
        self._ends = {} if ends is None else ends
        self.aftermath: Aftermath = Aftermath()
        self._emitted: dict[TeamId, list[TeamEvent]] = {}
        self._execute = connection.execute

    def run(self, sql: str, /, **values: Any) -> int:
        marked, bind, table = _compiled.get(sql) or _compile(sql)
        if self.cache:
            self.cache.pop(table, None)
        return self._execute(marked, bind(values)).rowcount

    def one(self, sql: str, /, **values: Any) -> Row | None:
        marked, bind, _ = _compiled.get(sql) or _compile(sql)
        return self._execute(marked, bind(values)).fetchone()

    def all(self, sql: str, /, **values: Any) -> list[Row]:
        marked, bind, _ = _compiled.get(sql) or _compile(sql)
        return self._execute(marked, bind(values)).fetchall()

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
        """Number the emitted events. Must be the last step, so that numbers follow commit order."""
        for team_id, emitted in self._emitted.items():
            end = self._ends.get(team_id) or events.end(self, team_id)
            self.aftermath.events += events.append(self, team_id, emitted, end=end)
            self._ends[team_id] = end + len(emitted)


@dataclass(slots=True)
class _Job:
    verb: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    future: asyncio.Future[Any]
    is_first: bool = False
    """A person waits for it."""
    result: Any = None
    error: BaseException | None = None
    aftermath: Aftermath | None = None

    def pass_fault(self, when: str) -> None:
        """Pass the fault point before, in or after the commit of this verb."""
        faultpoints.fault(f"db:{when}:{name_of_verb(self.verb)}")


@dataclass(slots=True)
class _Query:
    query: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    future: asyncio.Future[Any]


def _hand_over(future: asyncio.Future[Any], result: object, failure: BaseException | None) -> None:
    """Give the caller of a query its answer, if it still waits."""
    if future.done():
        return
    if failure is not None:
        future.set_exception(failure)
    else:
        future.set_result(result)


class SqliteStore:
    def __init__(self, path: Path, clock: Clock, *, sole: bool = False) -> None:
        """Open the database. With `sole`, lock it against other runtimes or raise `HomeInUse`."""
        self.path = path
        self.clock = clock
        self._loop = asyncio.get_running_loop()
        self._listeners: list[Callable[[Aftermath], None]] = []
        self._files = SqliteFiles(path)
        try:
            # Locked before it is opened, because opening migrates it.
            if sole:
                self._files.own()
            self._connection = sqlite_files.ready(path)
        except BaseException:
            self._files.close()
            raise
        # After the opening: SQLite has created the WAL and the shared memory file by now.
        self._files.remember()
        self._queries: queue.SimpleQueue[_Query | None] = queue.SimpleQueue()
        self._readers: list[threading.Thread] = []
        self._looker: sqlite3.Connection | None = None
        """For short queries on the event loop."""
        self._first: deque[_Job] = deque()
        self._waiting: deque[_Job] = deque()
        self._alone: deque[_Job] = deque()
        """Verbs whose group was rolled back because one raised: each has a transaction of its own
        now."""
        self._was_alone = False
        """Whether the last transaction had one of these."""
        self._group: list[_Job] = []
        self._ends: dict[TeamId, int] = {}
        """The place of each team's last event; valid until another program writes."""
        self._version = 0
        self._busy = False
        self._is_closed = self._has_closed_readers = False
        self._commit_seconds = 0.0
        self._slow_until = 0.0
        """Until when the thread commits, because a commit on the event loop was slow."""
        self._rested = asyncio.Event()
        self._chores: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._waiter = threading.Thread(target=self._wait, name="agiraph-write", daemon=True)
        self._waiter.start()
        self._file_check = self._loop.call_later(FILE_CHECK_S, self._check_files)

    async def write(self, verb: Verb[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        future = self._loop.create_future()
        self._waiting.append(_Job(verb, args, kwargs, future))
        if not self._busy:
            self._start()
        # If the caller is cancelled, its verb still runs and commits, and the
        # listeners are told (`_acknowledge`).
        return await future

    async def write_first(self, verb: Verb[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        future = self._loop.create_future()
        self._first.append(_Job(verb, args, kwargs, future, is_first=True))
        if not self._busy:  # else the end of the transaction that is open begins the next one
            self._start()
        return await future

    def _start(self) -> None:
        self._busy = True
        # Not at once: verbs that other tasks queue in this turn of the
        # event loop share the transaction.
        self._loop.call_soon(self._begin)

    async def read(self, query: Verb[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        if self._has_closed_readers:
            raise RuntimeError(f"The store is closed: {name_of_verb(query)} cannot be read.")
        if len(self._readers) < READERS:
            reader = threading.Thread(target=self._read_queries, name="agiraph-read", daemon=True)
            self._readers.append(reader)
            reader.start()
        future = self._loop.create_future()
        # Not an executor: its futures cost more than most queries.
        self._queries.put(_Query(query, args, kwargs, future))
        return await future

    async def look(self, query: Verb[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        if self._has_closed_readers:
            raise RuntimeError(f"The store is closed: {name_of_verb(query)} cannot be read.")
        if self._looker is None:
            self._looker = self._open_reader()
            self._looker.execute("pragma busy_timeout = 0")  # the loop must not wait for a lock
        try:
            return self._run_query(self._looker, query, args, kwargs)
        except StoreLocked:
            return await self.read(query, *args, **kwargs)

    def _read_queries(self) -> None:
        """Run a reader thread, which has a connection of its own."""
        connection: sqlite3.Connection | None = None
        while (asked := self._queries.get()) is not None:
            if asked.future.cancelled():
                continue
            result, failure = None, None
            try:
                if connection is None:
                    connection = self._open_reader()
                result = self._run_query(connection, asked.query, asked.args, asked.kwargs)
            except BaseException as error:  # whatever a query raises belongs to its caller
                failure = error
            self._loop.call_soon_threadsafe(_hand_over, asked.future, result, failure)
        if connection is not None:
            connection.close()

    def _run_query(
        self,
        connection: sqlite3.Connection,
        query: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        tx = SqliteTx(connection, self.clock.now())
        # A snapshot: in WAL mode all statements of the query see the state of its first one.
        connection.execute("begin")
        try:
            return query(tx, *args, **kwargs)
        except UNANSWERABLE as error:
            raise answer_for(error, name_of_verb(query)) from error
        except (sqlite3.Error, UnicodeDecodeError) as error:
            if not is_environment_error(error):
                raise
            raise explain(error, self.path) from error
        finally:
            connection.execute("rollback")

    def _open_reader(self) -> sqlite3.Connection:
        if (loss := self._files.loss()) is not None:  # another file is at the path
            raise self._files.error(loss)
        try:
            connection = sqlite_files.connect(self.path, create=False)
        except sqlite3.Error as error:
            raise explain(error, self.path) from error
        # A query that writes by mistake must fail; `read` would roll its changes back in silence.
        connection.execute("pragma query_only = on")
        return connection

    def subscribe(self, listener: Callable[[Aftermath], None]) -> None:
        self._listeners.append(listener)

    async def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self._file_check.cancel()
        self._check_files(again=False)  # rescue rows of a file that is gone
        # Verbs that are queued still commit: their callers wait for an answer.
        while self._busy:
            self._rested.clear()
            await self._rested.wait()
        self._chores.put(None)
        self._has_closed_readers = True
        for _ in self._readers:
            self._queries.put(None)
        for thread in (self._waiter, *self._readers):
            await self._loop.run_in_executor(None, thread.join)
        if self._looker is not None:
            self._looker.close()
        # The writer last: the last connection to close checkpoints the WAL and removes it.
        self._connection.close()
        self._files.close()

    def _wait(self) -> None:
        """Run the writer thread: it commits, waits for locks and copies a lost database.

        These steps block on the disk or on another program, so the event loop must not run them.
        """
        while (chore := self._chores.get()) is not None:
            try:
                chore()
            except Exception as error:
                # Any error: without this thread no write would ever be answered again.
                self._loop.call_soon_threadsafe(self._give_up, error)

    def _check_files(self, *, again: bool = True) -> None:
        """Check the files of an idle store; if one is gone, rescue the rows from the open file."""
        if again:
            self._file_check = self._loop.call_later(FILE_CHECK_S, self._check_files)
        self._files.forget()
        if not self._busy and (loss := self._files.loss()) is not None:
            self._busy = True
            self._chores.put(lambda: self._refuse(loss))

    def _refuse(self, loss: Loss) -> None:
        """Roll back, copy the rows to another file and fail the group. On the writer thread."""
        if self._connection.in_transaction:
            self._connection.execute("rollback")
        if not loss.is_folder_moved:
            self._files.rescue(self._connection)
        self._loop.call_soon_threadsafe(self._give_up, self._files.error(loss))

    def _begin(self) -> None:
        """Begin a transaction for the waiting verbs.

        `immediate` takes the write lock now: a later upgrade from a read could fail with BUSY.
        """
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
        """Begin a transaction, on the writer thread, when another program gives up its lock.

        After `BUSY_SECONDS` the queued writes fail with `StoreLocked`.
        """
        try:
            self._connection.execute(
                f"pragma busy_timeout = {int(sqlite_files.BUSY_SECONDS * 1000)}"
            )
            self._connection.execute("begin immediate")
        except sqlite3.Error as error:
            self._loop.call_soon_threadsafe(self._give_up, error)
        else:
            self._loop.call_soon_threadsafe(self._fill)
        finally:
            self._connection.execute("pragma busy_timeout = 0")

    def _fill(self) -> None:
        """Run waiting verbs in the open transaction, for a bounded time, then commit.

        If a verb raises, the whole group is rolled back and each verb runs again alone. A verb may
        therefore run twice, so it must change nothing but rows.

        Those that a person waits for come first, and keep the group short. At least one of the
        others takes part, or has the next transaction: however many persons write, agents go on.
        """
        self._was_alone = bool(self._alone) and not (self._first and self._was_alone)
        longest = SHORT if self._first else LONG
        until = time.monotonic() + min(max(self._commit_seconds, SHORT), longest)
        try:
            self._drop_stale_ends()
            if not self._run_in_order(until):
                return self._undo()
        except Exception as error:
            # Any error: if one got away from here, the transaction would stay open, `_busy` stay
            # set, and every later write would wait for ever.
            return self._give_up(error)
        is_quick = not self._slow_until or time.monotonic() >= self._slow_until
        if is_quick and self._files.loss() is None:
            return self._commit_now()
        self._chores.put(self._commit)
        return None

    def _run_in_order(self, until: float) -> bool:
        if self._was_alone:
            return self._run(self._alone, until, most=1)
        is_whole = not self._first or self._run(self._first, until)
        return is_whole and (bool(self._alone) or self._run(self._waiting, until))

    def _run(self, jobs: deque[_Job], until: float, *, most: int = GROUP) -> bool:
        """Add verbs to the group, one at least, until the time is over; return whether none
        raised."""
        while jobs and len(self._group) < most:
            job = jobs.popleft()
            self._group.append(job)
            self._perform(job)
            if job.error is not None:
                return False
            if jobs and time.monotonic() > until:
                break
        return True

    def _drop_stale_ends(self) -> None:
        """Drop cached event numbers if another program has written since the last transaction."""
        [version] = self._connection.execute("pragma data_version").fetchone()
        if version != self._version:
            self._version = version
            self._ends.clear()

    def _undo(self) -> None:
        self._connection.execute("rollback")
        # The numbers of the group's events are free again.
        self._ends.clear()
        if len(self._group) == 1:
            return self._acknowledge()
        # Before all others, in their order.
        self._alone.extendleft(reversed(self._group))
        self._group = []
        return self._begin()

    def _commit(self) -> None:
        """Commit on the writer thread."""
        # Before the commit: rows in an unlinked file are gone as soon as it is closed.
        if (loss := self._files.loss()) is not None:
            self._refuse(loss)
            return
        try:
            loss = self._write_down()
        except sqlite3.Error as error:
            self._loop.call_soon_threadsafe(self._give_up, error)
            return
        if loss is not None:
            self._refuse(loss)
            return
        self._loop.call_soon_threadsafe(self._acknowledge)

    def _commit_now(self) -> None:
        """Commit on the event loop."""
        try:
            loss = self._write_down()
        except Exception as error:  # any error, as in `_wait`
            return self._give_up(error)
        if self._commit_seconds > QUICK:
            self._slow_until = time.monotonic() + SPARED * self._commit_seconds
        if loss is None:
            return self._acknowledge()
        return self._chores.put(lambda: self._refuse(loss))

    def _write_down(self) -> Loss | None:
        """Commit. If the file was removed or replaced meanwhile, return what happened to it."""
        began = time.monotonic()
        self._connection.execute("commit")
        self._commit_seconds = time.monotonic() - began
        loss = self._files.loss()
        if loss is not None and not loss.is_folder_moved:
            # The file was replaced during the commit: the rows went into an unlinked file. Callers
            # take an error for "not written", so from now on every write is refused.
            self._files.lost = loss
            return loss
        if faultpoints.armed is not None:
            for job in self._group:
                job.pass_fault("after")
        return None

    def _give_up(self, error: Exception) -> None:
        """Roll back and fail all writes of this transaction: the disk, a lock or the file is at
        fault."""
        if self._connection.in_transaction:
            self._connection.execute("rollback")
        self._ends.clear()
        # The transaction could not begin. The oldest write gets the error, so that each attempt
        # answers a caller; those behind it are tried next.
        if not self._group and (waiting := self._alone or self._first or self._waiting):
            self._group.append(waiting.popleft())
        for job in self._group:
            is_ours = isinstance(error, (sqlite3.Error, UnicodeDecodeError))
            job.error = explain(error, self.path) if is_ours else error
        self._acknowledge()

    def _perform(self, job: _Job) -> None:
        if faultpoints.armed is not None:
            job.pass_fault("before")
        tx = SqliteTx(self._connection, self.clock.now(), self._ends)
        job.error = None
        try:
            job.result = job.verb(tx, *job.args, **job.kwargs)
            tx.number()
            job.aftermath = tx.aftermath
        except BaseException as error:
            # Whatever a verb raises belongs to its caller. In a callback of the event loop a
            # KeyboardInterrupt or SystemExit would end the process.
            if is_environment_error(error):
                raise
            job.error = answer_for(error, name_of_verb(job.verb))
        if faultpoints.armed is not None:
            job.pass_fault("in")

    def _acknowledge(self) -> None:
        group, self._group = self._group, []
        # Persons' callers continue before the next transaction is filled, others beside its commit.
        first = [job for job in group if job.is_first]
        if first:
            self._answer(first)
        if self._alone or self._first or self._waiting:
            self._loop.call_soon(self._begin)
        else:
            self._busy = False
            self._rested.set()
        self._answer([job for job in group if not job.is_first] if first else group)

    def _answer(self, jobs: Iterable[_Job]) -> None:
        for job in jobs:
            if job.future.cancelled():
                pass
            elif job.error is not None:
                job.future.set_exception(job.error)
            else:
                job.future.set_result(job.result)
            # `set_result` only schedules a caller: the listeners run before any caller continues.
            if job.error is None and job.aftermath is not None:
                tell(self._listeners, job.aftermath)
