"""Knowledge, as rows: memories, insights, notes with untrusted text, and every change of them."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from agiraph.api.feature_views.known import Change, Insight, Memory, Note, NoteStatus
from agiraph.core.domain.agents import Agent
from agiraph.core.domain.chat import Thread
from agiraph.core.domain.errors import NotFound
from agiraph.core.domain.events.knowledge import KnowledgeStatus
from agiraph.core.domain.ids import AgentId, NodeId, PersonId, TeamId
from agiraph.core.domain.provenance.labels import Label
from agiraph.core.domain.text.passages import Owner
from agiraph.core.store.rows import Table, to_label, to_micros, to_text
from agiraph.core.store.teams import KEPT
from agiraph.core.store.threads import THREADS
from agiraph.core.store.tx import Tx
from agiraph.features.knowledge.model import UNVERIFIED_FOR

Item = Memory | Insight

MEMORIES = Table("memories", Memory)
INSIGHTS = Table("insights", Insight)
NOTES = Table("notes", Note)
CHANGES = Table("knowledge_changes", Change)
TABLES: tuple[Table[Any], ...] = (MEMORIES, INSIGHTS, NOTES, CHANGES)
# Names of parameters consist of letters and underscores.
_MARKS = tuple(f"id_{a}{b}" for a in "abcdefghij" for b in "abcdefghij")


def table_of(item_id: str) -> Table[Any]:
    """Return the table of an item, from the prefix of its id."""
    kinds: dict[str, Table[Any]] = {"memory": MEMORIES, "insight": INSIGHTS}
    table = kinds.get(item_id.partition("_")[0])
    if table is None:
        raise NotFound("memory, insight or note", item_id)
    return table


def of_agent(
    tx: Tx,
    table: Table[Any],
    agent_id: AgentId,
    *,
    status: KnowledgeStatus = "active",
    type: str | None = None,
    limit: int = 500,
) -> list[Any]:
    """Return the valid items of an agent with this status, newest first."""
    only = "" if type is None else " and type = :type"
    where = (
        "agent_id = :agent_id and status = :status"
        f" and (valid_until is null or valid_until > :now){only}"
        " order by created_at desc, id desc limit :limit"
    )
    named = {} if type is None else {"type": type}
    return table.select(
        tx, where, agent_id=agent_id, status=status, now=to_micros(tx.now), limit=limit, **named
    )


def told_by(tx: Tx, person_id: PersonId, *, besides: AgentId, limit: int) -> list[Memory]:
    """Return what a person told the agents of their teams about themselves, but for one agent:
    valid, in their own words, newest first."""
    where = (
        "author = :person and agent_id <> :agent and status = 'active' and label is null"
        " and (valid_until is null or valid_until > :now)"
        f" and team_id in (select id from teams where owner_id = :person and {KEPT})"
        " order by created_at desc, id desc limit :limit"
    )
    now = to_micros(tx.now)
    return MEMORIES.select(tx, where, person=person_id, agent=besides, now=now, limit=limit)


def owned(
    tx: Tx,
    team_id: TeamId,
    owners: Collection[Owner],
    *,
    status: KnowledgeStatus = "active",
    type: str | None = None,
    limit: int = 500,
) -> list[Insight]:
    """Return the valid insights of these owners with this status, newest first."""
    only = "" if type is None else " and type = :type"
    where = (
        "team_id = :team_id and owner = :owner and status = :status"
        f" and (valid_until is null or valid_until > :now){only}"
        " order by created_at desc, id desc limit :limit"
    )
    values: dict[str, Any] = {"team_id": team_id, "status": status, "now": to_micros(tx.now)}
    values |= {} if type is None else {"type": type}
    found: list[Insight] = []
    # One statement an owner: each reads its newest rows from the index, and none is sorted.
    for owner in owners:
        found += INSIGHTS.select(tx, where, owner=owner, limit=limit, **values)
    return sorted(found, key=lambda i: (i.created_at, i.id), reverse=True)[:limit]


def has_insights(tx: Tx, team_id: TeamId) -> bool:
    sql = "select 1 from insights where team_id = :id limit 1"
    return tx.one(sql, id=team_id) is not None


def owners(tx: Tx, team_id: TeamId) -> list[Owner]:
    """Return the owners of a team's insights."""
    sql = "select distinct owner from insights where team_id = :id order by owner"
    return [row[0] for row in tx.all(sql, id=team_id)]


class OwnerVersion(NamedTuple):
    """What changes whenever an insight of an owner is added or goes away."""

    number: int
    newest: int
    """When the newest one was stored, in microseconds."""


def versions(
    tx: Tx, team_id: TeamId, owners: Collection[Owner], status: KnowledgeStatus
) -> dict[Owner, OwnerVersion]:
    """Return the version of each of these owners that has insights with this status."""
    named = dict(zip(("owner_a", "owner_b", "owner_c"), owners, strict=False))
    # Two subqueries an owner: a count alone only steps through the index, and the newest is its
    # last entry. `count(*), max(created_at) … group by owner` takes three times as long.
    of = "from insights where team_id = :team_id and owner = :{name} and status = :status"
    each = f"(select count(*) {of}), (select max(created_at) {of})"
    sql = " union all ".join(
        f"select {place}, {each.format(name=name)}" for place, name in enumerate(named)
    )
    known = list(owners)
    found = tx.all(sql, team_id=team_id, status=status, **named) if named else []
    return {known[row[0]]: OwnerVersion(row[1], row[2]) for row in found if row[1]}


def ids_of(tx: Tx, team_id: TeamId, owner: Owner, status: KnowledgeStatus) -> set[str]:
    sql = "select id from insights where team_id = :id and owner = :owner and status = :status"
    return {row[0] for row in tx.all(sql, id=team_id, owner=owner, status=status)}


def contents(
    tx: Tx, team_id: TeamId, owner: Owner, status: KnowledgeStatus, *, since: int | None = None
) -> dict[str, str]:
    """Return the texts of the owner's insights by id, oldest first; with `since` (microseconds)
    only of those that were stored then or later."""
    sql = (
        "select id, content from insights where team_id = :id and owner = :owner"
        " and status = :status and created_at >= :since order by created_at, id"
    )
    named: dict[str, Any] = {"id": team_id, "owner": owner, "status": status, "since": since or 0}
    return {row[0]: row[1] for row in tx.all(sql, **named)}


def disputes(
    tx: Tx, team_id: TeamId, owner: Owner, status: KnowledgeStatus
) -> dict[str, list[str]]:
    """Return, by the id of a contradicted insight, the ids of the owner's insights that contradict
    it."""
    sql = (
        "select contradicts, id from insights where team_id = :id and owner = :owner"
        " and status = :status and contradicts is not null order by id"
    )
    found: dict[str, list[str]] = {}
    for row in tx.all(sql, id=team_id, owner=owner, status=status):
        found.setdefault(row[0], []).append(row[1])
    return found


def by_ids(tx: Tx, ids: Sequence[str]) -> list[Insight]:
    """Return the insights with these ids, in this order; unknown ids are left out.

    Runs one query for every 100 ids.
    """
    wanted = list(dict.fromkeys(ids))
    found: dict[str, Insight] = {}
    for start in range(0, len(wanted), len(_MARKS)):
        named = dict(zip(_MARKS, wanted[start:], strict=False))
        marks = ", ".join(f":{name}" for name in named)
        found |= {i.id: i for i in INSIGHTS.select(tx, f"id in ({marks})", **named)}
    return [found[id] for id in wanted if id in found]


def count_use(tx: Tx, ids: Collection[str]) -> None:
    """Record that these insights were chosen for a prompt, so that those which are unverified last
    as long again. At most a hundred of them."""
    if not ids:
        return
    named = dict(zip(_MARKS, ids, strict=False))
    marks = ", ".join(f":{name}" for name in named)
    sql = (
        "update insights set uses = uses + 1, used_at = :now, valid_until ="
        " case when status = 'unverified' then :until else valid_until end"
        f" where id in ({marks})"
    )
    until = to_micros(tx.now + UNVERIFIED_FOR)
    tx.run(sql, now=to_micros(tx.now), until=until, **named)


def expired(tx: Tx, table: Table[Any], agent_id: AgentId) -> list[Any]:
    where = (
        "agent_id = :agent_id and status in ('active', 'unverified', 'pending')"
        " and valid_until <= :now"
    )
    return table.select(tx, where, agent_id=agent_id, now=to_micros(tx.now))


def disputing(tx: Tx, table: Table[Any], item_id: str) -> list[Any]:
    """Return the active items that contradict this one."""
    return table.select(tx, "contradicts = :id and status = 'active'", id=item_id)


def with_status(
    tx: Tx, table: Table[Any], status: KnowledgeStatus, team_id: TeamId | None
) -> list[Any]:
    """Return the rows with this status, of one team or of all."""
    if team_id is None:
        return table.select(tx, "status = :status order by id", status=status)
    where = "team_id = :team_id and status = :status order by id"
    return table.select(tx, where, team_id=team_id, status=status)


def changes(tx: Tx, agent_id: AgentId, *, after: str = "", limit: int = 100) -> list[Change]:
    """Return the changes of an agent's knowledge after an id, oldest first."""
    where = "agent_id = :agent_id and id > :after order by id limit :limit"
    return CHANGES.select(tx, where, agent_id=agent_id, after=after, limit=limit)


def changes_of_team(tx: Tx, team_id: TeamId, *, after: str) -> list[Change]:
    """Return all changes of a team's knowledge after an id, oldest first."""
    where = "team_id = :team_id and id > :after order by id"
    return CHANGES.select(tx, where, team_id=team_id, after=after)


def lately(tx: Tx, agent_id: AgentId, *, before: str = "", limit: int = 100) -> list[Change]:
    """Return the newest changes, or the newest before an id; oldest first."""
    only = " and id < :before" if before else ""
    where = f"agent_id = :agent_id{only} order by id desc limit :limit"
    named = {"before": before} if before else {}
    return CHANGES.select(tx, where, agent_id=agent_id, limit=limit, **named)[::-1]


def changes_between(tx: Tx, team_id: TeamId, since: datetime, until: datetime) -> list[Change]:
    """Return the changes of a team's knowledge within this time, oldest first."""
    where = "team_id = :team_id and created_at >= :since and created_at <= :until order by id"
    within = {"since": to_micros(since), "until": to_micros(until)}
    return CHANGES.select(tx, where, team_id=team_id, **within)


def last_maintained(tx: Tx, team_id: TeamId) -> datetime | None:
    where = "team_id = :team_id and verb = 'maintained' order by id desc limit 1"
    found = CHANGES.select(tx, where, team_id=team_id)
    return found[0].created_at if found else None


def awaiting_reflection(
    tx: Tx, agent: Agent, *, role: str | None = None, everyone: bool = False
) -> list[Thread]:
    """Return closed work threads with a reply that no reflection has read or is reading, oldest
    first: the agent's own, and those of agents with this role that have left the team; with
    `everyone`, of all that have left and of programs, too."""
    whose = "agent_id = :id"
    named: dict[str, str] = {}
    if everyone:
        whose = (
            "(agent_id = :id or agent_id in (select a.id from agents a where a.team_id = :team"
            " and (a.retired_at is not null or a.kind = 'cli')))"
        )
        named = {"team": agent.team_id}
    elif role is not None:
        whose = (
            "(agent_id = :id or agent_id in (select a.id from agents a where a.team_id = :team"
            " and a.retired_at is not null and a.role = :role and a.kind = 'llm'))"
        )
        named = {"team": agent.team_id, "role": role}
    where = (
        f"{whose} and kind = 'work' and closed_at is not null and harvested_at is null"
        " and not exists (select 1 from nodes n where n.id = threads.reflection_id"
        " and n.status in ('pending', 'assigned', 'running', 'waiting'))"
        " and (exists (select 1 from turns u where u.place > threads.number * 4294967296"
        " and u.place < (threads.number + 1) * 4294967296 and u.role = 'assistant')"
        # A program speaks in no turn; what it did is its result.
        " or exists (select 1 from nodes n join agents a on a.id = n.assignee_id"
        " where n.id = threads.node_id and a.kind = 'cli' and n.result is not null))"
        " order by closed_at, id"
    )
    return THREADS.select(tx, where, id=agent.id, **named)


def of_reflection(tx: Tx, node_id: NodeId) -> list[Thread]:
    """Return the threads that this reflection node reads, oldest first."""
    return THREADS.select(tx, "reflection_id = :id order by closed_at, id", id=node_id)


def reflects_as(tx: Tx, team_id: TeamId, role: str, *, beside: AgentId) -> bool:
    """Return whether an agent with this role, other than `beside`, has left the team and has an
    open reflection."""
    sql = (
        "select 1 from nodes n join agents a on a.id = n.assignee_id"
        " where n.team_id = :team and n.lane = 'reflection'"
        " and n.status in ('assigned', 'running', 'waiting')"
        " and a.role = :role and a.id <> :beside and a.retired_at is not null limit 1"
    )
    return tx.one(sql, team=team_id, role=role, beside=beside) is not None


class NoteTitle(NamedTuple):
    """The path and the heading of a note."""

    name: str
    """The path that it would be confirmed as."""
    path: str
    """The path in memory/ at which it is read."""
    title: str
    label: Label


def notes_with_status(tx: Tx, status: NoteStatus, team_id: TeamId | None = None) -> list[Note]:
    """Return the notes with this status, of one team or of all, oldest first."""
    if team_id is None:
        return NOTES.select(tx, "status = :status order by created_at, id", status=status)
    where = "team_id = :team_id and status = :status order by created_at, id"
    return NOTES.select(tx, where, team_id=team_id, status=status)


def notes_to_file(tx: Tx, agent_id: AgentId) -> list[Note]:
    """Return the notes of an agent whose files do not match their rows yet, oldest first."""
    where = (
        "agent_id = :agent_id and (status = 'confirmed'"
        " or (status = 'unverified' and filed_at is null)"
        " or (status in ('rejected', 'expired') and filed_at is not null)) order by created_at, id"
    )
    return NOTES.select(tx, where, agent_id=agent_id)


def unverified_notes_at(tx: Tx, agent_id: AgentId, paths: Collection[str]) -> list[Note]:
    """Return the unverified notes of an agent at these paths."""
    where = "agent_id = :agent_id and status = 'unverified'"
    return [n for n in NOTES.select(tx, where, agent_id=agent_id) if n.path in paths]


def note_titles(tx: Tx, agent_id: AgentId, *, limit: int) -> list[NoteTitle]:
    """Return the unverified notes of an agent without their texts, the last used first."""
    rows = tx.all(
        "select path, substr(content, 1, 200), label from notes"
        " where agent_id = :agent_id and status = 'unverified'"
        " order by coalesce(used_at, created_at) desc, id limit :limit",
        agent_id=agent_id,
        limit=limit,
    )
    return [
        NoteTitle(path, f"unverified/{path}", _heading(text), to_label(label))
        for path, text, label in rows
    ]


def _heading(text: str) -> str:
    bare = (line.strip().lstrip("#").strip() for line in text.splitlines())
    return next((words[:100] for words in bare if words), "")


def was_rejected(tx: Tx, agent_id: AgentId, path: str, content: str) -> bool:
    """Whether a person has rejected a note of this agent with the same words."""
    sql = (
        "select 1 from notes where agent_id = :agent_id and path = :path and content = :content"
        " and status = 'rejected' limit 1"
    )
    return tx.one(sql, agent_id=agent_id, path=to_text(path), content=to_text(content)) is not None


def notes_unused_since(tx: Tx, team_id: TeamId, moment: datetime) -> list[Note]:
    """Return the unverified notes of a team that nobody has written or read since a moment."""
    where = (
        "team_id = :team_id and status = 'unverified'"
        " and coalesce(used_at, created_at) <= :moment order by id"
    )
    return NOTES.select(tx, where, team_id=team_id, moment=to_micros(moment))
