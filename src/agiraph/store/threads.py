"""Threads: the append-only journal of turns, with one writer per thread, fenced by an epoch."""

from datetime import datetime
from typing import Any, NamedTuple, TypedDict, Unpack, cast

from pydantic import TypeAdapter

from agiraph.domain import taint as sources
from agiraph.domain.chat import (
    THINKING,
    Attachment,
    Lease,
    OutboxMark,
    ProviderData,
    Reserved,
    Role,
    TextMark,
    Thread,
    ToolCall,
    Turn,
    VendorParts,
)
from agiraph.domain.errors import Fenced, StoreDamaged
from agiraph.domain.ids import AgentId, NodeId, TeamId, ThreadId
from agiraph.domain.work import Usage
from agiraph.store.rows import Table, from_json, from_micros, to_json, to_micros, to_text
from agiraph.store.tx import Row, Tx

THREADS = Table("threads", Thread)
# Of 63 bits: 4 billion turns for each of 2 billion threads. 4294967296 in the SQL is 2^32.
_SEQ_BITS = 32
_SEQ_MASK = (1 << _SEQ_BITS) - 1
_APPEND = (
    "insert into turns"
    " (place, node_id, role, text, at, ref, calls, attachments, extra, model, usage) values"
    " (:place, :node_id, :role, :text, :at, :ref, :calls, :attachments, :extra, :model, :usage)"
)
# Row lock and end of the thread in one statement. `PostgresTx.one` runs it twice, because the
# subquery may see the state before the wait for the lock.
_APPEND_POINT = (
    "select number, epoch, (select max(place) from turns"
    " where place > t.number * 4294967296 and place < (t.number + 1) * 4294967296)"
    " from threads t where id = :id {for_update}"
)
TURN_COLUMNS = (
    "place", "node_id", "role", "text", "at", "ref", "calls", "attachments", "extra", "model",
    "usage",
)  # fmt: skip
_COLUMNS = ", ".join(TURN_COLUMNS)
_LAST = (
    f"select {_COLUMNS} from turns where place = (select max(u.place) from threads t"
    " join turns u on u.place > t.number * 4294967296 and u.place < (t.number + 1) * 4294967296"
    " where t.id = :id)"
)
_CALLS = TypeAdapter(tuple[ToolCall, ...])
_ATTACHMENTS = TypeAdapter(tuple[Attachment, ...])
_INTENT_KEYS = frozenset({"tainted_by", "seconds"})


class Details(TypedDict, total=False):
    """Fields that few turns have. One JSON column, `extra`, holds them all."""

    provider_data: ProviderData
    failed: bool
    tainted_by: str | None
    is_summary: bool
    is_cut: bool
    reserved: Reserved | None
    timeout_s: float | None
    foreseen: dict[str, Any]
    outbox: OutboxMark | None


class AppendPoint(NamedTuple):
    """The end of a thread, where the next turn is appended. Its row is locked."""

    thread_id: ThreadId
    epoch: int
    base: int
    head: int
    """The number of the last turn; 0 if there is none."""


def check_lease(tx: Tx, lease: Lease) -> AppendPoint:
    """Lock the thread's row and return its end; raise `Fenced` if the lease is stale.

    The row lock and the epoch fence off a former owner: a claim raises the epoch under this lock,
    so no append of an old lease can slip in after it.
    """
    found = _find_append_point(tx, lease.thread_id)
    if found is None or found.epoch != lease.epoch:
        raise Fenced(f"{lease.thread_id} was claimed by another runner.")
    return found


def append_point(tx: Tx, thread_id: ThreadId) -> AppendPoint:
    """Lock the thread's row and return the place of its next turn.

    No lease is checked: only for closed threads, which no runner writes to.
    """
    found = _find_append_point(tx, thread_id)
    assert found is not None
    return found


def _find_append_point(tx: Tx, thread_id: ThreadId) -> AppendPoint | None:
    row = tx.one(_APPEND_POINT, id=thread_id)
    if row is None:
        return None
    number, epoch, end = row
    return AppendPoint(thread_id, epoch, number << _SEQ_BITS, (end or 0) & _SEQ_MASK)


def append(
    tx: Tx,
    at: AppendPoint,
    *,
    node_id: NodeId | None,
    role: Role,
    text: str,
    ref: str | None = None,
    calls: tuple[ToolCall, ...] = (),
    attachments: tuple[Attachment, ...] = (),
    model: str | None = None,
    usage: Usage | None = None,
    **details: Unpack[Details],
) -> tuple[AppendPoint, Turn]:
    """Append a turn; return the new end of the thread, and the turn."""
    turn = Turn(
        thread_id=at.thread_id,
        seq=at.head + 1,
        node_id=node_id,
        role=role,
        text=to_text(text),
        at=tx.now,
        ref=ref,
        calls=calls,
        attachments=attachments,
        model=model,
        usage=usage or Usage(),
        **details,
    )
    # The mark of the thread commits with the turn: no later step may see one without the other.
    if turn.tainted_by is not None:
        taint(tx, at.thread_id, turn.tainted_by)
    stored = _stored_details(turn) if details else None
    tx.run(
        _APPEND,
        place=at.base + turn.seq,
        node_id=node_id,
        role=role,
        text=turn.text,
        at=to_micros(turn.at),
        ref=ref,
        calls=to_json(calls) if calls else None,
        attachments=to_json(attachments) if attachments else None,
        extra=to_json(stored) if stored else None,
        model=model,
        usage=to_json(_stored_usage(usage)) if usage is not None else None,
    )
    return AppendPoint(at.thread_id, at.epoch, at.base, turn.seq), turn


def _stored_usage(usage: Usage) -> dict[str, Any]:
    """Return the counts of a call without the zeros; a price of zero is a known price and stays."""
    counts = {name: getattr(usage, name) for name in Usage.__dataclass_fields__}
    return {name: count for name, count in counts.items() if count or name == "usd"}


def _stored_details(turn: Turn) -> dict[str, Any]:
    """Return a turn's details as the JSON column `extra` holds them, without the empty ones.

    `spend.total` reads `tokens` and `usd` from this column, too.
    """
    stored: dict[str, Any] = {}
    provider = turn.provider_data
    if provider.thinking:
        stored["thinking"] = provider.thinking
    if provider.vendor is not None:
        stored["vendor"] = {"name": provider.vendor.vendor, "parts": provider.vendor.parts}
    if (mark := provider.text) is not None:
        missed = {"missed": True} if mark.missed else {}
        stored["text"] = {"key": mark.key, "kind": mark.kind, **missed}
    if provider.served_model:
        stored["served_model"] = provider.served_model
    if provider.refusal:
        stored["refusal"] = provider.refusal
    if turn.reserved is not None:
        stored["tokens"], stored["usd"] = turn.reserved.tokens, turn.reserved.usd
    if turn.outbox is not None:
        stored |= {"end": turn.outbox.end, "sha256": turn.outbox.sha256}
    # One test a field: every turn is stored through here, and a table of them costs more.
    if turn.failed:
        stored["failed"] = True
    if turn.is_summary:
        stored["cut"] = True
    if turn.is_cut:
        stored["broken_off"] = True
    if turn.tainted_by:
        stored["tainted_by"] = turn.tainted_by
    if turn.timeout_s:
        stored["seconds"] = turn.timeout_s
    if turn.foreseen:
        stored["foreseen"] = turn.foreseen
    return stored


def _read_details(role: Role, ref: str | None, text: str | None) -> Details:
    """Return the details that the JSON column `extra` holds."""
    if text is None:
        return {}
    stored: Any = from_json(text)
    if not isinstance(stored, dict):
        raise ValueError("extra is not a JSON object")
    known = cast(dict[str, Any], stored)
    foreseen = known.get("foreseen", {})
    if role == "intent" and ref != THINKING and "foreseen" not in known:
        # Databases written before this field existed hold a tool's own keys beside the others.
        foreseen = {key: value for key, value in known.items() if key not in _INTENT_KEYS}
        known = {key: value for key, value in known.items() if key in _INTENT_KEYS}
    details = Details(
        provider_data=_read_provider_data(known),
        failed=bool(known.get("failed")),
        tainted_by=known.get("tainted_by"),
        is_summary=bool(known.get("cut")),
        is_cut=bool(known.get("broken_off")),
        timeout_s=known.get("seconds"),
        foreseen=foreseen,
    )
    if "tokens" in known:
        details["reserved"] = Reserved(tokens=known["tokens"], usd=known["usd"])
    if "sha256" in known:
        details["outbox"] = OutboxMark(end=int(known["end"]), sha256=known["sha256"])
    return details


def _read_provider_data(stored: dict[str, Any]) -> ProviderData:
    vendor, mark = stored.get("vendor"), stored.get("text")
    return ProviderData(
        thinking=stored.get("thinking", ""),
        vendor=vendor and VendorParts(vendor=vendor["name"], parts=vendor["parts"]),
        text=mark and TextMark(**mark),
        served_model=stored.get("served_model", ""),
        refusal=stored.get("refusal", ""),
    )


def taint(tx: Tx, thread_id: ThreadId, tainted_by: str) -> None:
    """Mark a thread as tainted by this source, unless a graver source taints it already."""
    before = tainter(tx, thread_id)
    if (graver := sources.graver(before, tainted_by)) != before:
        THREADS.update(tx, thread_id, tainted_by=graver)


def tainter(tx: Tx, thread_id: ThreadId) -> str | None:
    """Return what taints a thread; None if nothing does."""
    row = tx.one("select tainted_by from threads where id = :id", id=thread_id)
    return None if row is None else row[0]


def tainter_of_node(tx: Tx, node_id: str) -> str | None:
    """Return what taints the thread of a node; None if nothing does."""
    sql = "select t.tainted_by from nodes n join threads t on t.id = n.thread_id where n.id = :id"
    row = tx.one(sql, id=node_id)
    return None if row is None else row[0]


def tainters(tx: Tx, team_id: TeamId) -> list[tuple[NodeId, str]]:
    """Return each node of a team whose thread is tainted, and what taints it."""
    rows = tx.all(
        "select n.id, t.tainted_by from nodes n join threads t on t.id = n.thread_id"
        " where t.team_id = :team and t.tainted_by is not null",
        team=team_id,
    )
    return [(row[0], row[1]) for row in rows]


def turns(tx: Tx, thread_id: ThreadId, *, after: int = 0, limit: int = 1_000_000) -> list[Turn]:
    """Return the turns after number `after`, oldest first."""
    row = tx.one("select number from threads where id = :id", id=thread_id)
    base = 0 if row is None else row[0] << _SEQ_BITS
    rows = tx.all(
        f"select {_COLUMNS} from turns"
        " where place > :place and place <= :end order by place limit :limit",
        place=base + after,
        end=base + _SEQ_MASK,
        limit=limit,
    )
    return [read_turn(thread_id, row) for row in rows]


def read_turn(thread_id: ThreadId, row: Row) -> Turn:
    """Return a turn from its row; raise `StoreDamaged` if a value cannot be read."""
    place, node_id, role, text, at, ref, calls, attachments, extra, model, usage = row
    try:
        return Turn(
            thread_id=thread_id,
            seq=place & _SEQ_MASK,
            node_id=node_id,
            role=role,
            text=text,
            at=from_micros(at),
            ref=ref,
            calls=() if calls is None else _CALLS.validate_python(from_json(calls)),
            attachments=()
            if attachments is None
            else _ATTACHMENTS.validate_python(from_json(attachments)),
            model=model,
            usage=Usage() if usage is None else Usage(**from_json(usage)),
            **_read_details(role, ref, extra),
        )
    except (ValueError, TypeError, KeyError, OverflowError) as error:
        raise StoreDamaged(f"A turn of {thread_id} cannot be read: {error}") from error


def last(tx: Tx, thread_id: ThreadId) -> Turn | None:
    """Return the newest committed turn, without locking the thread."""
    row = tx.one(_LAST, id=thread_id)
    return None if row is None else read_turn(thread_id, row)


class LastTurn(NamedTuple):
    seq: int
    at: datetime


def last_turn_of_agent(tx: Tx, thread_id: ThreadId) -> LastTurn | None:
    """Return number and time of the last turn that is not an intent. Locks the thread's row."""
    base = append_point(tx, thread_id).base
    row = tx.one(
        "select place, at from turns where place > :base and place <= :end and role <> 'intent'"
        " order by place desc limit 1",
        base=base,
        end=base + _SEQ_MASK,
    )
    return None if row is None else LastTurn(row[0] & _SEQ_MASK, from_micros(row[1]))


def open_calls(tx: Tx, thread_id: ThreadId) -> list[ToolCall]:
    """Return the tool calls of the last reply that have no result. Locks the thread's row."""
    base = append_point(tx, thread_id).base
    row = tx.one(
        "select max(place) from turns where place > :base and place <= :end and role = 'assistant'",
        base=base,
        end=base + _SEQ_MASK,
    )
    if row is None or row[0] is None:
        return []
    reply, *since = turns(tx, thread_id, after=(row[0] & _SEQ_MASK) - 1)
    answered = {turn.ref for turn in since if turn.role == "tool"}
    return [call for call in reply.calls if call.id not in answered]


def has_ref(tx: Tx, thread_id: ThreadId, ref: str) -> bool:
    """Return whether a turn refers to this message or call. Locks the thread's row."""
    base = append_point(tx, thread_id).base
    sql = "select 1 from turns where place > :base and place <= :end and ref = :ref limit 1"
    return tx.one(sql, base=base, end=base + _SEQ_MASK, ref=ref) is not None


def of_node(tx: Tx, node_id: NodeId) -> Thread | None:
    """Return the thread of a node."""
    where = "id = (select thread_id from nodes where id = :id)"
    found = THREADS.select(tx, where, id=node_id)
    return found[0] if found else None


def next_child(tx: Tx, parent_id: ThreadId) -> ThreadId:
    """Return an id for the next child thread. The parent's row lock keeps it unique."""
    # For its row lock only: two children that are opened at once would count the same siblings.
    append_point(tx, parent_id)
    row = tx.one("select count(*) from threads where parent_id = :id", id=parent_id)
    return ThreadId(f"{parent_id}.{(row[0] if row else 0) + 1}")


def of_agent(tx: Tx, agent_id: AgentId) -> list[Thread]:
    return THREADS.select(tx, "agent_id = :id order by created_at, id", id=agent_id)


def to_harvest(tx: Tx, agent_id: AgentId) -> list[Thread]:
    """Return closed work threads with a reply that no reflection has read or is reading."""
    where = (
        "agent_id = :id and kind = 'work' and closed_at is not null and harvested_at is null"
        " and not exists (select 1 from nodes n where n.id = threads.reflection_id"
        " and n.status in ('pending', 'assigned', 'running', 'waiting'))"
        " and exists (select 1 from turns u where u.place > threads.number * 4294967296"
        " and u.place < (threads.number + 1) * 4294967296 and u.role = 'assistant')"
        " order by closed_at, id"
    )
    return THREADS.select(tx, where, id=agent_id)


def of_reflection(tx: Tx, node_id: NodeId) -> list[Thread]:
    """Return the threads that this reflection node reads, oldest first."""
    return THREADS.select(tx, "reflection_id = :id order by closed_at, id", id=node_id)
