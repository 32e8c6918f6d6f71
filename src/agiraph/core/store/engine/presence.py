"""Presence: shows other workers that this one is alive, and frees the jobs of dead workers.

A worker has a row, which a separate thread renews about once a second, and a session-level advisory
lock on that thread's connection. PostgreSQL releases the lock when the process dies. The thread
runs however busy the event loop is, so an overloaded worker is not taken for dead.
"""

import json
import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import field
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import psycopg

from agiraph.core.domain.times.time import Clock
from agiraph.core.domain.value import dataclass
from agiraph.core.store.rows import to_micros
from agiraph.core.store.tx import Tx
from agiraph.logs import Streak

log: logging.Logger = logging.getLogger("agiraph.presence")

BEAT_S = 1.0
"""Seconds between two renewals of this worker's row; each is followed by a check of the others."""
GONE_CHECKS = 3
"""Checks in a row that find a worker silent and without its lock, before its jobs are freed."""
HUNG_CHECKS: int = 20
"""The same for a worker that is silent but still holds its lock: stopped, or stuck."""
STUCK_S = 60.0
"""A worker whose event loop has not run for this long stops renewing its row: it does no work."""
RECONNECT_S = 0.5
"""The pause before a lost connection is opened again. Peers count this worker's silence
meanwhile."""
LOCK_CLASS = 4713
"""The first key of every worker's advisory lock; the second is its `lock_key`."""

_SESSION = {
    "autocommit": True,
    "application_name": "agiraph worker",
    "connect_timeout": 10,
    # A machine that loses power closes no connection. Keepalives let both ends notice in seconds,
    # so that PostgreSQL releases the advisory lock of the dead worker.
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
    # A beat need not wait for the server's disk: if a crash loses it, the next one follows in a
    # second. The time limit lets the thread reconnect if a statement hangs.
    "options": "-c synchronous_commit=off -c statement_timeout=10s -c tcp_keepalives_idle=3"
    " -c tcp_keepalives_interval=1 -c tcp_keepalives_count=3 -c tcp_user_timeout=6s",
}
_NOW = "(extract(epoch from clock_timestamp()) * 1000000)::bigint"
_REGISTER = f"""
insert into workers (id, lock_key, host, pid, started_at, beat_at, failing)
values (%(id)s, %(key)s, %(host)s, %(pid)s, {_NOW}, {_NOW}, %(failing)s)
on conflict (id) do update set beat_at = excluded.beat_at, failing = excluded.failing
"""
_BEAT = f"update workers set beat_at = {_NOW}, failing = %(failing)s where id = %(id)s"
# A queue manager without a row in `workers` is an older agiraph; it renews its jobs' own rows.
_OTHERS = f"""
select coalesce(w.id, q.id), coalesce(w.beat_at, q.beat_at), w.id is not null and not exists (
    select 1 from pg_locks l join pg_database d on d.oid = l.database
    where d.datname = current_database() and l.locktype = 'advisory' and l.objsubid = 2
    and l.classid = {LOCK_CLASS} and l.objid = w.lock_key
)
from workers w full join (
    select queue_manager_id::text as id,
    (extract(epoch from max(heartbeat)) * 1000000)::bigint as beat_at
    from pgqueuer where status = 'picked' group by 1
) q on q.id = w.id
where coalesce(w.id, q.id) <> %(id)s
"""
FREE_JOBS = """
update pgqueuer
set status = 'queued', queue_manager_id = null, execute_after = now(), updated = now()
where status = 'picked' and queue_manager_id::text = any({ids})
"""


class PeerState(NamedTuple):
    """The state of another worker as one check found it."""

    id: str
    beat_at: int
    is_gone: bool
    """Whether it has a row but not its lock: its session has ended."""


@dataclass(slots=True)
class SilenceCounter:
    """Counts how many checks in a row found each worker silent.

    Checks are counted, not seconds: while the database stalls no worker can renew its row, and no
    worker checks either. A stall therefore declares nobody dead.
    """

    _last: dict[str, tuple[PeerState, int]] = field(
        default_factory=dict[str, tuple[PeerState, int]]
    )

    def after(self, peers: Iterable[PeerState]) -> list[PeerState]:
        """Add one check; return the workers that have been silent for too long."""
        last, self._last = self._last, {}
        over: list[PeerState] = []
        for seen in peers:
            before, count = last.get(seen.id, (seen, 0))
            if before.beat_at != seen.beat_at:
                count = 0
            elif seen.is_gone and not before.is_gone:
                count = min(count, GONE_CHECKS - 2)  # it may be reconnecting
            self._last[seen.id] = (seen, count + 1)
            if count + 1 >= (GONE_CHECKS if seen.is_gone else HUNG_CHECKS):
                over.append(seen)
        return over


class Presence:
    """Keeps this worker's row and lock alive and checks the other workers, in a system thread."""

    def __init__(self, url: str, clock: Clock, failing: Callable[[], list[str]]) -> None:
        self.id: UUID = uuid4()
        self.loop_turned_at: float = time.monotonic()
        """When the event loop last ran; written by the loop, read by the thread."""
        self._url = url
        self._failing = failing
        # An advisory lock has two keys of 32 bits, with a sign.
        self._key = self.id.int & 0x7FFFFFFF
        self._connection: psycopg.Connection[Any] | None = None
        """The connection that `start` opened, until the thread takes it over."""
        self._present = threading.Event()
        self._stopping = threading.Event()
        self._streak = Streak("the connection that shows this worker alive", log, clock)
        # A daemon: a statement that hangs must not keep the process from ending.
        self._thread = threading.Thread(target=self._run, name="agiraph-presence", daemon=True)

    @property
    def is_visible(self) -> bool:
        """Whether other workers can see that this one is alive."""
        return self._present.is_set()

    def start(self) -> None:
        """Connect and register, or raise `psycopg.Error`; then start the thread."""
        self._connection = connection = self._connect()
        try:
            self._register(connection)
        except BaseException:
            connection.close()
            raise
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(timeout=5)

    def _connect(self) -> psycopg.Connection[Any]:
        return psycopg.connect(self._url, **_SESSION)  # pyright: ignore[reportArgumentType]

    def _register(self, connection: psycopg.Connection[Any]) -> None:
        values = {"id": str(self.id), "key": self._key, "failing": json.dumps(self._failing())}
        about = {"host": socket.gethostname(), "pid": os.getpid()}
        connection.execute(_REGISTER.encode(), values | about)
        taken = "select pg_try_advisory_lock(%s, %s)"
        if (row := connection.execute(taken, (LOCK_CLASS, self._key)).fetchone()) and row[0]:
            self._present.set()
        else:  # the server has not yet noticed that our last session is dead
            raise psycopg.OperationalError("the advisory lock of this worker is still held")

    def _run(self) -> None:
        """Renew the row until stopped; reconnect as often as needed. Runs on the thread."""
        while not self._stopping.is_set():
            try:
                first, self._connection = self._connection, None
                with first or self._connect() as connection:
                    self._live(connection)
            except Exception as error:
                # Any error: peers would take a worker without this thread for dead, for good.
                self._present.clear()
                trace = not isinstance(error, psycopg.OperationalError)
                self._streak.failed(error, "it is reopened", trace=trace)
                self._stopping.wait(RECONNECT_S)

    def _live(self, connection: psycopg.Connection[Any]) -> None:
        """Renew the row and check the other workers over one connection, until stopped."""
        if not self.is_visible:
            self._register(connection)
        self._streak.succeeded()
        silence, me = SilenceCounter(), {"id": str(self.id)}
        while not self._stopping.wait(BEAT_S):
            if time.monotonic() - self.loop_turned_at < STUCK_S:
                beat = me | {"failing": json.dumps(self._failing())}
                # A peer took this worker for dead and deleted its row.
                if connection.execute(_BEAT.encode(), beat).rowcount == 0:
                    self._register(connection)
            peers = [PeerState(*row) for row in connection.execute(_OTHERS.encode(), me)]
            if over := silence.after(peers):
                self._free(connection, over)
        # After an orderly end peers need not count this worker's silence.
        connection.execute("delete from workers where id = %(id)s", me)

    def _free(self, connection: psycopg.Connection[Any], over: list[PeerState]) -> None:
        """Put the jobs of these workers back into the queue."""
        # Jobs and rows together: a worker whose row is gone must not keep jobs.
        with connection.transaction():
            freed = connection.execute(
                FREE_JOBS.format(ids="%(ids)s").encode(), {"ids": [seen.id for seen in over]}
            ).rowcount
            connection.execute(
                # The row of a worker that holds its lock stays: it hangs, and its
                # next beat may show it alive.
                "delete from workers where id = any(%(ids)s)",
                {"ids": [seen.id for seen in over if seen.is_gone]},
            )
        if freed:
            log.warning("freed %d jobs of workers that died or hang: %s", freed, over)


class Worker(NamedTuple):
    """A worker process as its row describes it."""

    host: str
    pid: int
    silent_s: float
    failing: list[str]


def workers(tx: Tx) -> list[Worker]:
    """Return the rows of all worker processes on this database; PostgreSQL only."""
    rows = tx.all("select host, pid, beat_at, failing from workers order by host, pid")
    now = to_micros(tx.now)
    return [
        Worker(str(host), int(pid), (now - beat_at) / 1_000_000, json.loads(failing))
        for host, pid, beat_at, failing in rows
    ]
