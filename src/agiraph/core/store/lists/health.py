"""Health: finds work that is stuck although nothing blocks it, and rows that are damaged."""

from datetime import datetime
from typing import NamedTuple

from agiraph.core.domain.ids import ThreadId
from agiraph.core.domain.triggers import Trigger
from agiraph.core.domain.work import Usage, WorkNode
from agiraph.core.store.nodes import NODES
from agiraph.core.store.rows import from_json, to_micros
from agiraph.core.store.triggers import TRIGGERS
from agiraph.core.store.tx import Tx
from agiraph.core.store.waits import WAITS, Wait

_MAX_ROWS = 1000
"""The most rows reported of each kind."""


def damage(tx: Tx) -> list[str]:
    """Return what SQLite finds wrong with its file; nothing on PostgreSQL."""
    if tx.dialect != "sqlite":
        return []
    # At most 20 lines: one damaged index can report every row of its table.
    found = [str(row[0]) for row in tx.all("pragma integrity_check(20)")]
    loose = tx.all("pragma foreign_key_check")
    dangling = [f"a row of {row[0]} refers to one of {row[2]} that is gone" for row in loose[:20]]
    return [line for line in found if line != "ok"] + dangling


def gaps(tx: Tx) -> list[str]:
    """Return the teams whose event numbers have a gap."""
    rows = tx.all(
        "select t.id, x.many, x.last from teams t join (select place / 1099511627776 as number,"
        " count(*) as many, max(place % 1099511627776) as last from events group by 1) x"
        " on x.number = t.number where x.many <> x.last"
    )
    return [f"{team}: {many} events, the last has number {last}" for team, many, last in rows]


def bytes_used(tx: Tx) -> int:
    if tx.dialect == "postgres":
        row = tx.one("select pg_database_size(current_database())")
        return 0 if row is None else int(row[0])
    pages, size = tx.one("pragma page_count"), tx.one("pragma page_size")
    return int(pages[0]) * int(size[0]) if pages and size else 0


def count_other_connections(tx: Tx) -> int:
    """Return how many connections to this PostgreSQL database are older than ours."""
    if tx.dialect == "sqlite":
        return 0
    row = tx.one(
        "select count(*) from pg_stat_activity a where a.datname = current_database()"
        " and a.backend_type = 'client backend' and a.pid <> pg_backend_pid()"
        " and a.backend_start < (select b.backend_start from pg_stat_activity b"
        " where b.pid = pg_backend_pid())"
    )
    return 0 if row is None else int(row[0])


def left_running(tx: Tx) -> list[WorkNode]:
    """Return the nodes whose row says they are running."""
    return NODES.select(tx, "status = 'running' order by id limit :most", most=_MAX_ROWS)


def is_orphaned(tx: Tx, node: WorkNode) -> bool:
    """Return whether no queued job owns this running node, so that nobody works on it.

    False on SQLite: there the runtime's only process owns its nodes, without a table of jobs.
    """
    if tx.dialect == "sqlite":
        return False
    from agiraph.core.store.engine import pgqueuer_queue  # loaded only where it is used

    return not pgqueuer_queue.has_job(tx, node.owner)


def waiting_for_nothing(tx: Tx) -> list[WorkNode]:
    where = (
        "status = 'waiting' and not exists (select 1 from waits w where w.node_id = nodes.id)"
        " order by id limit :most"
    )
    return NODES.select(tx, where, most=_MAX_ROWS)


def waiting_for_what_ended(tx: Tx) -> list[Wait]:
    """Return waits on a node or stage that has ended or does not exist: nothing settles them."""
    where = (
        "exists (select 1 from nodes p where p.id = waits.node_id and p.status = 'waiting') and ("
        " (waits.kind = 'node' and not exists (select 1 from nodes n where n.id = subject"
        "   and n.status in ('pending', 'assigned', 'running', 'waiting')))"
        " or (waits.kind = 'tasks' and not exists (select 1 from nodes n"
        "   join nodes p on p.id = n.parent_id"
        "   where (p.id = subject or (p.status = 'partial' and p.parent_id = subject))"
        "   and n.status in ('pending', 'assigned', 'running', 'waiting')))"
        " or (waits.kind = 'stage' and not exists (select 1 from stages s"
        "   where s.id = subject and s.status = 'running')))"
        " order by created_at limit :most"
    )
    return WAITS.select(tx, where, most=_MAX_ROWS)


def waiting_for_a_lost_answer(tx: Tx) -> list[Wait]:
    """Return waits on a question that does not exist or was answered without settling them."""
    where = (
        "kind in ('answer', 'approval') and exists (select 1"
        " from nodes p where p.id = waits.node_id and p.status = 'waiting')"
        " and not exists (select 1 from messages m where m.answered_at is null"
        "   and m.id = subject) order by created_at limit :most"
    )
    return WAITS.select(tx, where, most=_MAX_ROWS)


def sleeping_without_a_timer(tx: Tx) -> list[Wait]:
    where = (
        "kind in ('time', 'day') and not exists (select 1 from timers t where t.subject ="
        " waits.subject and t.kind = case waits.kind when 'day' then 'day' else 'wait' end)"
        " order by created_at limit :most"
    )
    return WAITS.select(tx, where, most=_MAX_ROWS)


def triggers_without_timer(tx: Tx) -> list[Trigger]:
    """Return active triggers with a due time but no timer: they would never fire."""
    where = (
        "status = 'active' and due_at is not null and not exists (select 1 from timers t"
        " where t.kind = 'trigger' and t.subject = triggers.id) order by due_at limit :most"
    )
    return TRIGGERS.select(tx, where, most=_MAX_ROWS)


def queued_for_nobody(tx: Tx) -> list[WorkNode]:
    """Return nodes in the queue of an agent that has left."""
    where = (
        "status = 'assigned' and exists (select 1 from agents a where a.id = nodes.assignee_id"
        " and a.retired_at is not null) order by id limit :most"
    )
    return NODES.select(tx, where, most=_MAX_ROWS)


def startable(tx: Tx) -> list[WorkNode]:
    """Return pending nodes that could start: assigned, and all their dependencies completed."""
    where = (
        "status = 'pending' and assignee_id is not null and not exists (select 1"
        " from dependencies d join nodes n on n.id = d.needs_id where d.node_id = nodes.id"
        " and n.status <> 'completed') and exists (select 1 from teams t"
        " where t.id = nodes.team_id and t.status = 'active') order by id limit :most"
    )
    return NODES.select(tx, where, most=_MAX_ROWS)


def queues_without_job(tx: Tx) -> list[str]:
    """Return queues with work but no job; none on SQLite, whose engine needs no jobs."""
    if tx.dialect == "sqlite":
        return []
    from agiraph.core.store.engine import pgqueuer_queue  # loaded only where it is used

    return pgqueuer_queue.queues_without_job(tx)


def count_unseen_messages(tx: Tx, *, since: datetime) -> int:
    """Return how many messages to idle agents have been unseen since that moment."""
    row = tx.one(
        "select count(*) from messages m where m.seen_at is null and m.created_at < :since"
        " and m.edited_by is null"
        " and exists (select 1 from agents a join teams t on t.id = a.team_id"
        "   where a.id = m.recipient and a.retired_at is null and t.status = 'active')"
        " and not exists (select 1 from nodes n where n.assignee_id = m.recipient"
        "   and n.status in ('pending', 'assigned', 'running', 'waiting'))",
        since=to_micros(since),
    )
    return 0 if row is None else int(row[0])


def count_overdue_deliveries(tx: Tx, *, since: datetime) -> int:
    """Return how many deliveries were due before that moment and are not sent."""
    row = tx.one(
        "select count(*) from deliveries where status in ('queued', 'sending') and due_at < :since",
        since=to_micros(since),
    )
    return 0 if row is None else int(row[0])


class PromptSize(NamedTuple):
    """The size of a thread's prompt at its last model call."""

    thread_id: ThreadId
    model: str
    tokens: int


def open_threads(tx: Tx, *, limit: int = 200) -> list[PromptSize]:
    rows = tx.all(
        "select t.id, t.number from threads t where t.closed_at is null"
        " order by t.number desc limit :limit",
        limit=limit,
    )
    found: list[PromptSize] = []
    for thread_id, number in rows:
        row = tx.one(
            "select model, usage from turns where place > :first and place < :last"
            " and role = 'assistant' order by place desc limit 1",
            # The range of the thread's turns, see `threads._SEQ_BITS`.
            first=number << 32,
            last=(number + 1) << 32,
        )
        if row is not None and row[0] and row[1]:
            usage = Usage(**from_json(row[1]))
            found.append(PromptSize(ThreadId(thread_id), row[0], usage.input_tokens))
    return found


def models(tx: Tx) -> dict[str, str]:
    """Return the models of active and paused teams, each with a team that uses it."""
    rows = tx.all(
        "select a.model, min(t.name) from agents a join teams t on t.id = a.team_id"
        " where a.retired_at is null and a.kind = 'llm' and t.status in ('active', 'paused')"
        " group by a.model order by a.model"
    )
    return {str(row[0]): str(row[1]) for row in rows}
