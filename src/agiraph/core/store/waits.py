"""Waits: parked calls and nodes, what each waits for, and the timers that wake them."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from agiraph.core.domain.chat import Lease
from agiraph.core.domain.ids import NodeId, ThreadId
from agiraph.core.domain.value import dataclass
from agiraph.core.domain.work import Timer, WaitingOn, WaitKind
from agiraph.core.store.rows import Table, from_micros, to_micros
from agiraph.core.store.tx import Tx


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """A parked tool call (or, without a call, a whole node) and what it waits on."""

    kind: WaitKind
    subject: str
    """The id of what it waits on."""
    node_id: NodeId
    thread_id: ThreadId
    call_id: str
    reason: str
    created_at: datetime

    @property
    def waiting_on(self) -> WaitingOn:
        return WaitingOn(self.kind, self.subject)


# Several nodes may wait on the same thing, so no function gets or updates a wait by it.
WAITS = Table("waits", Wait, key="subject")


_ON = "kind = :kind and subject = :subject"


def open(tx: Tx, lease: Lease, *, call_id: str, waiting_on: WaitingOn, reason: str) -> None:
    wait = Wait(
        kind=waiting_on.kind,
        subject=waiting_on.id,
        node_id=lease.node_id,
        thread_id=lease.thread_id,
        call_id=call_id,
        reason=reason,
        created_at=tx.now,
    )
    WAITS.insert(tx, wait)


def of_node(tx: Tx, node_id: NodeId) -> list[Wait]:
    return WAITS.select(tx, "node_id = :id order by created_at, call_id", id=node_id)


def on(tx: Tx, waiting_on: WaitingOn) -> list[Wait]:
    """Return every wait on this, oldest first."""
    where = f"{_ON} order by created_at, node_id"
    return WAITS.select(tx, where, kind=waiting_on.kind, subject=waiting_on.id)


def take(tx: Tx, waiting_on: WaitingOn) -> Sequence[Wait]:
    """Delete every wait on this and return them."""
    found = on(tx, waiting_on)
    if found:
        sql = f"delete from waits where {_ON}"
        tx.run(sql, kind=waiting_on.kind, subject=waiting_on.id)
    return found


def drop_call(tx: Tx, wait: Wait) -> None:
    """Delete all waits of the same call: it has its answer."""
    tx.run(
        "delete from waits where node_id = :node and thread_id = :thread and call_id = :call",
        node=wait.node_id,
        thread=wait.thread_id,
        call=wait.call_id,
    )


def drop(tx: Tx, node_id: NodeId) -> None:
    tx.run("delete from waits where node_id = :id", id=node_id)


def set_timer(tx: Tx, timer: Timer, due_at: datetime) -> None:
    tx.run(
        "insert into timers (id, kind, subject, due_at, created_at)"
        " values (:id, :kind, :subject, :due, :now)"
        " on conflict (id) do update set due_at = excluded.due_at",
        id=timer.id,
        kind=timer.kind,
        subject=timer.subject,
        due=to_micros(due_at),
        now=to_micros(tx.now),
    )
    tx.alarm()


def drop_timer(tx: Tx, timer: Timer) -> None:
    tx.run("delete from timers where id = :id", id=timer.id)


def until(tx: Tx, waiting_on: WaitingOn) -> datetime | None:
    """Return when the first call that waits for this stops waiting; None: never, or none waits."""
    row = tx.one(
        "select min(t.due_at) from waits w join waits o on o.thread_id = w.thread_id"
        " and o.call_id = w.call_id join timers t on o.kind = 'time' and o.subject = t.id"
        " where w.kind = :kind and w.subject = :subject and w.call_id <> ''",
        kind=waiting_on.kind,
        subject=waiting_on.id,
    )
    return None if row is None or row[0] is None else from_micros(row[0])


def is_set(tx: Tx, timer: Timer) -> bool:
    """Whether a timer is set and has not fired."""
    return tx.one("select 1 from timers where id = :id", id=timer.id) is not None


def next_due(tx: Tx) -> datetime | None:
    row = tx.one("select min(due_at) from timers")
    return None if row is None or row[0] is None else from_micros(row[0])


def count_due(tx: Tx, *, limit: int) -> int:
    """Return how many timers are due now, counted up to a limit."""
    sql = "select count(*) from (select 1 from timers where due_at <= :now limit :limit) due"
    row = tx.one(sql, now=to_micros(tx.now), limit=limit)
    return 0 if row is None else int(row[0])


def take_due_timer(tx: Tx, timer: Timer) -> bool:
    """Delete a timer that is due; return False if it is gone or not due."""
    sql = "delete from timers where id = :id and due_at <= :now"
    return tx.run(sql, id=timer.id, now=to_micros(tx.now)) == 1


def postpone_timer(tx: Tx, timer: Timer, by: timedelta) -> None:
    """Postpone a timer that is due."""
    sql = "update timers set due_at = :later where id = :id and due_at <= :now"
    tx.run(sql, id=timer.id, later=to_micros(tx.now + by), now=to_micros(tx.now))


def due(tx: Tx, *, limit: int = 100) -> list[Timer]:
    sql = "select kind, subject from timers where due_at <= :now order by due_at limit :limit"
    return [Timer(*row) for row in tx.all(sql, now=to_micros(tx.now), limit=limit)]
