"""Threads: the append-only journal of turns, with one writer per thread, fenced by an epoch."""

from dataclasses import asdict, replace
from datetime import datetime
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple, TypedDict, Unpack, cast

from pydantic import ConfigDict, TypeAdapter

from agiraph.core.domain.chat import (
    NO_DATA,
    NO_USAGE,
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
from agiraph.core.domain.errors import Fenced, StoreDamaged
from agiraph.core.domain.ids import AgentId, MessageId, NodeId, PersonId, TeamId, ThreadId
from agiraph.core.domain.provenance.labels import CLEAN, Label
from agiraph.core.domain.records.acts import Act
from agiraph.core.domain.value import value
from agiraph.core.domain.work import Usage
from agiraph.core.store import nodes
from agiraph.core.store.messages import is_heard_in
from agiraph.core.store.rows import (
    Table,
    from_json,
    from_micros,
    to_json,
    to_label,
    to_micros,
    to_text,
)
from agiraph.core.store.tx import Row, Tx

_COUNTS = tuple(Usage.__dataclass_fields__)
_count, _has_count = attrgetter(*_COUNTS), itemgetter(1)
_details_of = attrgetter(
    "provider_data", "failed", "sends_back", "exit_code", "is_repeated", "is_held_back",
    "reminds_of", "label", "is_summary", "is_cut", "reserved", "timeout_s", "foreseen", "did",
    "outbox",
)  # fmt: skip
_NO_DETAILS = (
    NO_DATA, False, False, None, False, False, None, CLEAN, False, False, None, None, {}, None, None
)  # fmt: skip
_INTENT_KEYS = frozenset({"label", "seconds"})


class Details(TypedDict, total=False):
    """Fields that few turns have. One JSON column, `extra`, holds them all."""

    provider_data: ProviderData
    failed: bool
    sends_back: bool
    exit_code: int | None
    is_repeated: bool
    is_held_back: bool
    reminds_of: MessageId | None
    label: Label
    is_summary: bool
    is_cut: bool
    reserved: Reserved | None
    timeout_s: float | None
    foreseen: dict[str, Any]
    did: Act | None
    outbox: OutboxMark | None


def stored_usage(usage: Usage) -> dict[str, Any]:
    """Return the counts of a call without the zeros; a price of zero is a known price and stays."""
    stored = dict(filter(_has_count, zip(_COUNTS, _count(usage), strict=True)))
    stored["usd"] = usage.usd
    return stored


def _act(stored: dict[str, Any]) -> Act:
    undone = stored["undone_at"]
    return replace(Act(**stored), undone_at=undone and datetime.fromisoformat(undone))


def stored_details(turn: Turn) -> dict[str, Any]:
    """Return a turn's details as the JSON column `extra` holds them, without the empty ones.

    `spend.total` reads `tokens` and `usd` from this column, too.
    """
    if _details_of(turn) == _NO_DETAILS:  # as of nearly all turns
        return {}
    provider = turn.provider_data
    stored: dict[str, Any] = {} if provider is NO_DATA else _stored_provider_data(provider)
    if turn.reserved is not None:
        stored["tokens"], stored["usd"] = turn.reserved.tokens, turn.reserved.usd
    if turn.outbox is not None:
        stored |= {"end": turn.outbox.end, "sha256": turn.outbox.sha256}
    if turn.failed:
        stored["failed"] = True
    if turn.sends_back:
        stored["sends_back"] = True
    if turn.exit_code is not None:
        stored["exit_code"] = turn.exit_code
    if turn.is_repeated:
        stored["repeated"] = True
    if turn.is_held_back:
        stored["held_back"] = True
    if turn.reminds_of is not None:
        stored["reminds_of"] = turn.reminds_of
    if turn.is_summary:
        stored["cut"] = True
    if turn.is_cut:
        stored["broken_off"] = True
    if turn.label.sources:
        stored["label"] = turn.label.to_list()
    if turn.timeout_s:
        stored["seconds"] = turn.timeout_s
    if turn.foreseen:
        stored["foreseen"] = turn.foreseen
    if turn.did is not None:
        stored["did"] = asdict(turn.did)
    return stored


def _stored_provider_data(provider: ProviderData) -> dict[str, Any]:
    stored: dict[str, Any] = {}
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
    return stored


def read_details(role: Role, ref: str | None, text: str | None) -> Details:
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
        sends_back=bool(known.get("sends_back")),
        exit_code=known.get("exit_code"),
        is_repeated=bool(known.get("repeated")),
        is_held_back=bool(known.get("held_back")),
        reminds_of=known.get("reminds_of"),
        label=Label.from_list(known.get("label", ())),
        is_summary=bool(known.get("cut")),
        is_cut=bool(known.get("broken_off")),
        timeout_s=known.get("seconds"),
        foreseen=foreseen,
        did=_act(known["did"]) if "did" in known else None,
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


THREADS = Table("threads", Thread)
# Of 63 bits: 4 billion turns for each of 2 billion threads. 4294967296 in the SQL is 2^32.
_SEQ_BITS = 32
_SEQ_MASK = (1 << _SEQ_BITS) - 1
_APPEND = (
    "insert into turns"
    " (place, node_id, role, text, at, ref, calls, attachments, extra, model, usage) values"
    " (:place, :node_id, :role, :text, :at, :ref, :calls, :attachments, :extra, :model, :usage)"
)
# Row lock, end of the thread, and whether a person has written to its agent, in one statement.
# `PostgresTx.one` runs it twice, because the subqueries may see the state before the wait for the
# lock.
_APPEND_POINT = (
    "select number, epoch, (select max(place) from turns"
    " where place > t.number * 4294967296 and place < (t.number + 1) * 4294967296),"
    " exists (select 1 from messages m where m.recipient = t.agent_id and m.seen_at is null"
    " and (m.sender in (select id from persons) or m.topic = 'taken_back')"
    f" and {is_heard_in('t.node_id')})"
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
_LATER = ConfigDict(defer_build=True)
_CALLS = TypeAdapter(tuple[ToolCall, ...], config=_LATER)
_ATTACHMENTS = TypeAdapter(tuple[Attachment, ...], config=_LATER)


class AppendPoint(NamedTuple):
    """The end of a thread, where the next turn is appended. Its row is locked."""

    thread_id: ThreadId
    epoch: int
    base: int
    head: int
    """The number of the last turn; 0 if there is none."""
    has_word: bool = False
    """Whether a person's message to the agent waits for its next yield point."""


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
    number, epoch, end, has_word = row
    head = (end or 0) & _SEQ_MASK
    return AppendPoint(thread_id, epoch, number << _SEQ_BITS, head, bool(has_word))


class TurnFields(Details, total=False):
    """Fields of `Turn` that a new turn takes over as they are."""

    calls: tuple[ToolCall, ...]
    attachments: tuple[Attachment, ...]
    model: str | None


def append(
    tx: Tx,
    at: AppendPoint,
    *,
    node_id: NodeId | None,
    role: Role,
    text: str,
    ref: str | None = None,
    usage: Usage | None = None,
    **details: Unpack[TurnFields],
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
        usage=NO_USAGE if usage is None else usage,
        **details,
    )
    return put(tx, at, turn), turn


def put(tx: Tx, at: AppendPoint, turn: Turn) -> AppendPoint:
    """Append a turn that is made already; return the new end of the thread. Its number is that of
    its place, as the end of a wait may have been written meanwhile."""
    # The mark of the thread commits with the turn: no later step may see one without the other.
    if turn.label.sources:
        add_label(tx, at.thread_id, turn.label)
    stored, usage = stored_details(turn), turn.usage
    tx.run(
        _APPEND,
        place=at.base + at.head + 1,
        node_id=turn.node_id,
        role=turn.role,
        text=turn.text,
        at=to_micros(tx.now),
        ref=turn.ref,
        calls=to_json(turn.calls) if turn.calls else None,
        attachments=to_json(turn.attachments) if turn.attachments else None,
        extra=to_json(stored) if stored else None,
        model=turn.model,
        usage=None if usage is NO_USAGE else to_json(stored_usage(usage)),
    )
    return AppendPoint(at.thread_id, at.epoch, at.base, at.head + 1, at.has_word)


def add_label(tx: Tx, thread_id: ThreadId, label: Label) -> None:
    """Join a label with that of a thread."""
    before = label_of(tx, thread_id)
    if (joined := before | label) != before:
        THREADS.update(tx, thread_id, label=joined)


def label_of(tx: Tx, thread_id: ThreadId) -> Label:
    """Return the label of a thread: the sources of all that stands in it."""
    row = tx.one("select label from threads where id = :id", id=thread_id)
    return CLEAN if row is None else to_label(row[0])


def label_of_node(tx: Tx, node_id: str) -> Label:
    """Return the label of the thread of a node."""
    sql = "select t.label from nodes n join threads t on t.id = n.thread_id where n.id = :id"
    row = tx.one(sql, id=node_id)
    return CLEAN if row is None else to_label(row[0])


def labelled(
    tx: Tx, team_id: TeamId, between: tuple[NodeId, NodeId] | None = None
) -> list[tuple[NodeId, Label]]:
    """Return each node of a team whose thread is labelled, and its label; of all nodes, or of those
    whose ids lie between two ids."""
    only, ids = nodes.only_between(between)
    rows = tx.all(
        "select n.id, t.label from nodes n join threads t on t.id = n.thread_id"
        f" where n.team_id = :team{only} and t.label is not null",
        team=team_id,
        **ids,
    )
    return [(row[0], to_label(row[1])) for row in rows]


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
            usage=NO_USAGE if usage is None else Usage(**from_json(usage)),
            **read_details(role, ref, extra),
        )
    except (ValueError, TypeError, KeyError, OverflowError) as error:
        raise StoreDamaged(f"A turn of {thread_id} cannot be read: {error}") from error


def last(tx: Tx, thread_id: ThreadId) -> Turn | None:
    """Return the newest committed turn, without locking the thread."""
    row = tx.one(_LAST, id=thread_id)
    return None if row is None else read_turn(thread_id, row)


def words_beside(tx: Tx, node_id: NodeId, call_id: str, *, before: datetime) -> str:
    """Return what the agent of a node wrote beside a call that was made before a moment; empty if
    it wrote nothing, or if the turn is not there any more."""
    row = tx.one(
        "select u.text, u.calls from nodes n join threads t on t.id = n.thread_id"
        " join turns u on u.place > t.number * 4294967296 and u.place < (t.number + 1) * 4294967296"
        " where n.id = :id and u.role = 'assistant' and u.at <= :before"
        " order by u.place desc limit 1",
        id=node_id,
        before=to_micros(before),
    )
    if row is None or row[1] is None:
        return ""
    calls = _CALLS.validate_python(from_json(row[1]))
    return str(row[0]) if any(call.id == call_id for call in calls) else ""


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


def open_with(tx: Tx, agent_id: AgentId, ref: str) -> list[NodeId]:
    """Return the nodes of an agent's open threads in which a turn refers to this message."""
    sql = (
        "select distinct t.node_id from threads t join turns u on u.place > t.number * 4294967296"
        " and u.place < (t.number + 1) * 4294967296 where t.agent_id = :agent"
        " and t.closed_at is null and t.node_id is not null and u.ref = :ref"
    )
    return [NodeId(row[0]) for row in tx.all(sql, agent=agent_id, ref=ref)]


def read_in(tx: Tx, agent_id: AgentId, ref: str, since: datetime) -> list[NodeId]:
    """Return the agent's nodes that have read this message, which came at `since`; the last one
    last. The threads of replies do not count."""
    sql = (
        "select u.node_id from threads t join turns u on u.place > t.number * 4294967296"
        " and u.place < (t.number + 1) * 4294967296 where t.agent_id = :agent"
        " and t.kind = 'work' and (t.closed_at is null or t.closed_at >= :since)"
        " and u.role = 'user' and u.node_id is not null and u.ref = :ref order by u.place"
    )
    found = tx.all(sql, agent=agent_id, ref=ref, since=to_micros(since))
    return [NodeId(row[0]) for row in found]


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


_OPEN = "('pending', 'assigned', 'running', 'waiting')"


def closed_before(tx: Tx, moment: datetime, *, limit: int) -> list[Thread]:
    """Return threads with all their turns that were closed before that moment, oldest first. Left
    out are those of tasks whose giver still works, and those that a reflection is reading."""
    where = (
        "pruned_at is null and closed_at < :moment and not exists (select 1 from nodes n"
        " join nodes p on p.id = n.parent_id where n.id = threads.node_id"
        f" and p.status in {_OPEN}) and not exists (select 1 from nodes r"
        f" where r.id = threads.reflection_id and r.status in {_OPEN})"
        " order by closed_at, id limit :limit"
    )
    return THREADS.select(tx, where, moment=to_micros(moment), limit=limit)


def partly_pruned(tx: Tx) -> list[Thread]:
    """Return threads whose turns were to be removed, and are still there."""
    where = (
        "pruned_at is not null and exists (select 1 from turns u where"
        " u.place > threads.number * 4294967296 and u.place < (threads.number + 1) * 4294967296)"
        " order by id"
    )
    return THREADS.select(tx, where)


def number_of(tx: Tx, thread_id: ThreadId) -> int:
    """Return the number of a thread, by which the places of its turns begin."""
    row = tx.one("select number from threads where id = :id", id=thread_id)
    assert row is not None
    return int(row[0])


def drop_turns(tx: Tx, thread_id: ThreadId) -> None:
    """Delete the turns of a thread."""
    begin = number_of(tx, thread_id) << _SEQ_BITS
    end = begin + (1 << _SEQ_BITS)
    tx.run("delete from turns where place > :begin and place < :end", begin=begin, end=end)


@value
class ConversationSummary:
    id: str
    team_id: TeamId
    agent_id: AgentId
    person_id: PersonId
    updated_at: datetime
    text: str = ""
    """Empty until the first summary is written."""
    upto: str = ""
    """The id of the last message that the text is about."""
    label: Label = CLEAN
    """The sources outside the team of words in those messages."""
    node_id: NodeId | None = None
    """The node that writes, or wrote, the newest summary."""
    next_upto: str = ""
    """The id of the last message that this node's summary is about."""


SUMMARIES = Table("conversation_summaries", ConversationSummary)


def summary_key(agent_id: AgentId, person_id: PersonId) -> str:
    """Return the key of the summary of a conversation."""
    return f"{agent_id}:{person_id}"


def summary_of(tx: Tx, agent_id: AgentId, person_id: PersonId) -> ConversationSummary | None:
    """Return the summary of a conversation; None if nobody has asked for one yet."""
    return SUMMARIES.find(tx, summary_key(agent_id, person_id))


def summary_of_node(tx: Tx, node_id: NodeId) -> ConversationSummary | None:
    """Return the row whose next summary this node writes."""
    found = SUMMARIES.select(tx, "node_id = :id", id=node_id)
    return found[0] if found else None
