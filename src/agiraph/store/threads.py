"""Threads and turns, as rows: an append-only journal with one writer at a time."""

from datetime import datetime
from typing import Any

from agiraph.domain.chat import Lease, Role, Thread, ToolCall, Turn
from agiraph.domain.errors import Fenced
from agiraph.domain.ids import AgentId, NodeId, ThreadId
from agiraph.domain.work import Usage
from agiraph.store.rows import Table, from_micros, to_json, to_micros
from agiraph.store.tx import Tx

THREADS = Table("threads", Thread)
TURNS = Table("turns", Turn, key="thread_id")
_NO_USAGE = to_json(Usage())
_APPEND = (
    "insert into turns (thread_id, seq, node_id, role, text, at, ref, calls, extra, model, usage)"
    " values (:thread_id, :seq, :node_id, :role, :text, :at, :ref, :calls, :extra, :model, :usage)"
)


def hold(tx: Tx, lease: Lease) -> int:
    """Make sure this lease still rules its thread; the number of the thread's last turn."""
    row = tx.one("select epoch from threads where id = :id {for_update}", id=lease.thread_id)
    if row is None or row[0] != lease.epoch:
        raise Fenced(f"{lease.thread_id} was claimed by somebody else.")
    return head(tx, lease.thread_id)


def head(tx: Tx, thread_id: ThreadId) -> int:
    row = tx.one("select max(seq) from turns where thread_id = :id", id=thread_id)
    assert row is not None
    return row[0] or 0


def append(
    tx: Tx,
    *,
    thread_id: ThreadId,
    seq: int,
    node_id: NodeId | None,
    role: Role,
    text: str,
    at: datetime,
    ref: str | None = None,
    calls: tuple[ToolCall, ...] = (),
    extra: dict[str, Any] | None = None,
    model: str | None = None,
    usage: Usage | None = None,
) -> Turn:
    tx.run(
        _APPEND,
        thread_id=thread_id,
        seq=seq,
        node_id=node_id,
        role=role,
        text=text,
        at=to_micros(at),
        ref=ref,
        calls=to_json(calls) if calls else "[]",
        extra=to_json(extra) if extra else "{}",
        model=model,
        usage=_NO_USAGE if usage is None else to_json(usage),
    )
    return Turn(
        thread_id=thread_id,
        seq=seq,
        node_id=node_id,
        role=role,
        text=text,
        at=at,
        ref=ref,
        calls=calls,
        extra=extra or {},
        model=model,
        usage=usage or Usage(),
    )


def turns(tx: Tx, thread_id: ThreadId, *, after: int = 0, limit: int = 1_000_000) -> list[Turn]:
    where = "thread_id = :id and seq > :after order by seq limit :limit"
    return TURNS.select(tx, where, id=thread_id, after=after, limit=limit)


def last_written(tx: Tx, thread_id: ThreadId) -> datetime | None:
    row = tx.one(
        "select at from turns where thread_id = :id order by seq desc limit 1", id=thread_id
    )
    return None if row is None else from_micros(row[0])


def of_node(tx: Tx, node_id: NodeId) -> Thread | None:
    """The thread a node is worked on in; the newest, should there be more."""
    found = THREADS.select(
        tx, "node_id = :id order by created_at desc, id desc limit 1", id=node_id
    )
    return found[0] if found else None


def of_agent(tx: Tx, agent_id: AgentId) -> list[Thread]:
    return THREADS.select(tx, "agent_id = :id order by created_at, id", id=agent_id)
