"""Items: store, merge, find, confirm, remove and expire the memories and insights of agents."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, TypedDict, Unpack, cast, get_args

from agiraph.api.feature_views.known import Change, ChangeVerb, Insight, InsightType, Memory, Note
from agiraph.core.domain.agents import Agent
from agiraph.core.domain.errors import Conflict, NotFound, Refused
from agiraph.core.domain.events.knowledge import KnowledgeChanged, KnowledgeStatus
from agiraph.core.domain.ids import SYSTEM, AgentId, PersonId, TeamId, ThreadId, new_id
from agiraph.core.domain.provenance.labels import CLEAN, Label
from agiraph.core.domain.text.passages import Owner, search_words
from agiraph.core.domain.text.similarity import is_repetition, normalised
from agiraph.core.home.file_versions import NO_SECRETS
from agiraph.core.store import teams
from agiraph.core.store.rows import Table, to_text
from agiraph.core.store.teams import AGENTS, TEAMS
from agiraph.core.store.texts import file_labels, passages
from agiraph.core.store.tx import Tx
from agiraph.features.knowledge import rows
from agiraph.features.knowledge.model import UNVERIFIED_FOR, Relation, of_learned, visible_to
from agiraph.features.knowledge.rows import CHANGES, INSIGHTS, MEMORIES, Item
from agiraph.features.knowledge.verbs import changes, files, merging, notes
from agiraph.redaction import looks_secret

MAINTAINED_EVERY = timedelta(days=1)
MOST_MAINTAINED = 20_000
"""Items of one owner that are looked through."""


class Maintained(NamedTuple):
    """How many items and passages a run of the maintenance has changed."""

    expired: int
    merged: int
    dropped: int
    """Passages of insights that are neither active nor unverified any more."""


def needs_maintenance(tx: Tx, team_id: TeamId) -> bool:
    """Tell whether a day has passed since the last maintenance of the team's knowledge."""
    last = rows.last_maintained(tx, team_id) or TEAMS.get(tx, team_id).created_at
    return tx.now - last >= MAINTAINED_EVERY


def maintain(tx: Tx, team_id: TeamId) -> Maintained:
    """Remove expired items and notes, merge items with the same meaning, drop orphaned passages."""
    agents = teams.everyone(tx, team_id)
    expired, merged, dropped = notes.expire(tx, team_id), 0, 0
    for agent in agents:
        # The lock that `items.remember` and `learn` take: an item must not be
        # merged and changed at once.
        teams.lock(tx, agent.id)
        for table in (cast(Table[Any], MEMORIES), cast(Table[Any], INSIGHTS)):
            for item in cast(list[Item], rows.expired(tx, table, agent.id)):
                changes.alter(tx, item, status="removed")
                changes.record(tx, item, "expired", SYSTEM, [(item, item)])
                expired += 1
        merged += _merge(tx, rows.of_agent(tx, MEMORIES, agent.id, limit=MOST_MAINTAINED))
    for owner in rows.owners(tx, team_id):
        merged += _merge(tx, rows.owned(tx, team_id, [owner], limit=MOST_MAINTAINED))
        kept = _searched(tx, team_id, owner)
        found = passages.known(tx, team_id=team_id, owner=owner, kind="insight")
        for ref in kept.keys() - found.keys():
            changes.index(tx, kept[ref])
        for ref in found.keys() - kept.keys():
            dropped += passages.drop(tx, team_id=team_id, owner=owner, kind="insight", ref=ref)
    changes.record(tx, agents[0], "maintained", SYSTEM, [])
    return Maintained(expired, merged, dropped)


def _searched(tx: Tx, team_id: TeamId, owner: Owner) -> dict[str, Item]:
    """Return the owner's insights that belong into the search index, by id."""
    return {
        insight.id: insight
        for status in changes.FOUND
        for insight in rows.owned(tx, team_id, [owner], status=status, limit=MOST_MAINTAINED)
    }


def _merge(tx: Tx, items: Sequence[Item]) -> int:
    """Merge items with the same words. `items` are newest first. Return how many were superseded.

    Two transactions at the same time may each have stored one of them without seeing the other.
    """
    kept: dict[str, Item] = {}
    gone = 0
    for item in reversed(items):
        words = normalised(item.content)
        if (older := kept.get(words)) is None:
            kept[words] = item
            continue
        kept[words] = changes.alter(tx, older, **changes.combined(older, item))
        changes.alter(tx, item, status="superseded", superseded_by=older.id)
        changes.record(tx, item, "merged", SYSTEM, [(older, older), (item, item)])
        gone += 1
    return gone


MAX_CHARS = 2000
"""Characters of a memory or an insight: one statement, not a report."""
MAX_UNVERIFIED_CHARS = 300
"""Characters of an unverified fact."""
MAX_SHARED = 20
"""Memories of other agents that an agent is shown of a person."""
_REMOVABLE: frozenset[KnowledgeStatus] = frozenset({"active", "unverified", "pending"})


def remember(
    tx: Tx,
    agent: Agent,
    content: str,
    *,
    author: str,
    source: str | None = None,
    label: Label = CLEAN,
    valid_until: datetime | None = None,
) -> Memory:
    """Store a memory about the person. Return the item that stands now.

    That may be an older item with the same words. A labelled memory is unverified unless
    the team's trust is open; if it was removed before, the removed one is returned and stays so.
    """
    is_unverified = _is_unverified(tx, agent, label)
    memory = Memory(
        id=new_id("memory"),
        team_id=agent.team_id,
        agent_id=agent.id,
        content=_checked_content(content),
        created_at=tx.now,
        author=author,
        status="unverified" if is_unverified else "active",
        valid_until=_last(tx, valid_until) if is_unverified else valid_until,
        sources=(source,) if source else (),
        label=label,
    )
    # Before the comparison with known items: two transactions that store the same statement would
    # otherwise each find no twin.
    teams.lock(tx, agent.id)
    if label and (gone := merging.removed_twin(tx, memory)):
        return cast("Memory", gone)
    return cast("Memory", merging.merge_in(tx, memory, author=author))


class InsightDetails(TypedDict, total=False):
    """What may be known of an insight besides its words."""

    confidence: float | None
    source_thread_id: ThreadId | None
    source: str | None
    valid_until: datetime | None
    owner: Owner | None


def learn(
    tx: Tx,
    agent: Agent,
    type: InsightType,
    content: str,
    *,
    author: str,
    label: Label = CLEAN,
    relation: Relation = merging.ADD,
    **details: Unpack[InsightDetails],
) -> Insight:
    """Store an insight for work. The same words from the same thread are stored once.

    `owners.of_learned` chooses the owner if none is given. Return the item that is valid now,
    which may be an older one with the same words. A labelled insight is an unverified fact unless
    the team's trust is open: techniques and lessons tell the agent what to do, which strangers must
    not. What was removed does not become known again by work alone: the removed one is returned, or
    the insight is pending if it is clean.
    """
    if type not in get_args(InsightType):
        raise Refused(f"{type!r} is not a kind of insight; use {', '.join(get_args(InsightType))}.")
    confidence, valid_until = details.get("confidence"), details.get("valid_until")
    source_thread_id = details.get("source_thread_id")
    if confidence is not None and not 0 <= confidence <= 1:
        raise Refused(f"A confidence is between 0 and 1, not {confidence!r}.")
    content = _checked_content(content)
    if is_unverified := _is_unverified(tx, agent, label):
        type, content = "fact", shorten(content)
    identity = _identity(agent.id, source_thread_id, content)
    teams.lock(tx, agent.id)
    # The same words from the same thread: a crash made the reflection run again.
    if (known := INSIGHTS.find(tx, identity)) is not None:
        return known
    insight = Insight(
        id=identity,
        team_id=agent.team_id,
        agent_id=agent.id,
        type=type,
        content=content,
        created_at=tx.now,
        author=author,
        confidence=confidence,
        source_thread_id=source_thread_id,
        status="unverified" if is_unverified else "active",
        valid_until=_last(tx, valid_until) if is_unverified else valid_until,
        sources=tuple(s for s in (source_thread_id, details.get("source")) if s),
        label=label,
        owner=details.get("owner") or of_learned(agent),
    )
    gone = None
    if label or source_thread_id is not None:
        gone = merging.removed_twin(tx, insight)
    if gone is not None and label:
        return cast("Insight", gone)
    if gone is not None:
        insight, relation = replace(insight, status="pending"), merging.ADD
    return cast("Insight", merging.merge_in(tx, insight, author=author, relation=relation))


def forget(tx: Tx, agent_id: AgentId, memory_id: str, *, author: str) -> Memory:
    """Remove a memory of this agent."""
    return cast(Memory, _retire(tx, MEMORIES, agent_id, memory_id, author=author))


def remove(tx: Tx, agent_id: AgentId, insight_id: str, *, author: str) -> Insight:
    """Remove an insight of this agent."""
    return cast(Insight, _retire(tx, INSIGHTS, agent_id, insight_id, author=author))


def memories(tx: Tx, agent_id: AgentId, *, limit: int = 50) -> list[Memory]:
    """Return the agent's active memories, newest first."""
    return rows.of_agent(tx, MEMORIES, agent_id, limit=limit)


def known_of(tx: Tx, agent_id: AgentId, person_id: PersonId) -> list[Memory]:
    """Return what an agent knows of a person: its own memories, and what the person told other
    agents in their own teams, which counts everywhere."""
    known = memories(tx, agent_id)
    for told in rows.told_by(tx, person_id, besides=agent_id, limit=MAX_SHARED):
        if not any(is_repetition(told.content, other.content) for other in known):
            known.append(told)
    return known


def insights(
    tx: Tx,
    agent_id: AgentId,
    *,
    query: str = "",
    type: InsightType | None = None,
    status: KnowledgeStatus = "active",
    limit: int = 50,
) -> list[Insight]:
    """Return the insights with this status that the agent may find, its own, its specialist's and
    the team's: for a query the best first, else the newest."""
    agent = AGENTS.get(tx, agent_id)
    if not search_words(query):
        owners = visible_to(agent)
        return rows.owned(tx, agent.team_id, owners, status=status, type=type, limit=limit)
    # More than are wanted: the index holds active and unverified insights.
    found = merging.matching(tx, agent, query, limit=4 * limit, status=status)
    return [i for i in found if type is None or i.type == type][:limit]


class Unconfirmed(NamedTuple):
    """Something an agent would know for certain if a person confirmed it."""

    id: str
    agent_id: AgentId
    kind: str
    """`memory`, `insight`, or `note` with the path of its file."""
    text: str
    status: KnowledgeStatus
    label: Label
    """Who wrote its words; clean if it waits for a person for another reason."""
    learned_from: tuple[str, ...]
    """The ids of the threads and messages it was learned from."""
    created_at: datetime


def pending(tx: Tx, team_id: TeamId | None = None) -> list[Unconfirmed]:
    """Return what nobody uses until a person confirms or rejects it, oldest first."""
    found = _unconfirmed(tx, "pending", team_id)
    found += [_of_note(note, "pending") for note in notes.pending(tx, team_id)]
    return sorted(found, key=lambda item: (item.created_at, item.id))


def unverified(tx: Tx, team_id: TeamId | None = None) -> list[Unconfirmed]:
    """Return the memories, insights and notes that come from untrusted text, oldest first.

    They are found and used with their label, so nobody has to decide on them.
    """
    found = _unconfirmed(tx, "unverified", team_id)
    found += [_of_note(note, "unverified") for note in notes.unverified(tx, team_id)]
    return sorted(found, key=lambda item: (item.created_at, item.id))


def _unconfirmed(tx: Tx, status: KnowledgeStatus, team_id: TeamId | None) -> list[Unconfirmed]:
    kinds = (("memory", cast("Table[Any]", MEMORIES)), ("insight", cast("Table[Any]", INSIGHTS)))
    return [
        Unconfirmed(i.id, i.agent_id, kind, i.content, i.status, i.label, i.sources, i.created_at)
        for kind, table in kinds
        for i in cast("list[Item]", rows.with_status(tx, table, status, team_id))
        if i.valid_until is None or i.valid_until > tx.now
    ]


def _of_note(note: Note, status: KnowledgeStatus) -> Unconfirmed:
    learned_from = (note.source_thread_id,) if note.source_thread_id else ()
    about = (note.content, status, note.label, learned_from, note.created_at)
    return Unconfirmed(note.id, note.agent_id, f"note {note.path}", *about)


def confirm(tx: Tx, id: str, *, author: str) -> Item | Note:
    """Make an item active and clean, or confirm a note: a person confirms its exact words.

    The item loses its label and its expiry date. The change can be undone.
    """
    if notes.is_note(id):
        return notes.confirm(tx, id, author=author)
    item = _to_decide(tx, id)
    teams.lock(tx, item.agent_id)
    until = None if item.status == "unverified" else item.valid_until
    known = replace(item, status="active", label=CLEAN, valid_until=until)
    return merging.merge_in(tx, known, author=author, before=item)


def reject(tx: Tx, id: str, *, author: str) -> Item | Note:
    """Remove an item or a note: a person says that it should not be known."""
    if notes.is_note(id):
        return notes.reject(tx, id, author=author)
    item = _to_decide(tx, id)
    return _remove(tx, item, "rejected", author)


def undo(tx: Tx, change_id: str) -> Change:
    """Restore the state before a change. Raise `Refused` if a later change built on it."""
    change = CHANGES.get(tx, change_id, lock=True)
    if change.undone_at is not None:
        raise Conflict(f"{change_id} was undone at {change.undone_at:%Y-%m-%d %H:%M} UTC.")
    teams.lock(tx, change.agent_id)
    mine = {touched.id for touched in change.touched}
    # Undone in the reverse order only: a later change has stored this one's
    # result as its state before.
    # Another agent may have changed the item: insights of a specialist belong to several.
    for later in rows.changes_of_team(tx, change.team_id, after=change.id):
        if later.undone_at is None and any(touched.id in mine for touched in later.touched):
            raise Refused(
                f"{later.id} ({later.verb}) came after and alters the same: undo it first."
            )
    for touched in change.touched:
        if touched.id.startswith(file_labels.PREFIX):
            files.undo(tx, touched)
        elif notes.is_note(touched.id):
            notes.undo(tx, touched.id, (touched.before or {})["status"])
        else:
            item = rows.table_of(touched.id).get(tx, touched.id)
            changes.restore(tx, item, touched.before or {"status": "removed"})
    CHANGES.update(tx, change.id, undone_at=tx.now)
    tx.emit(change.team_id, KnowledgeChanged(verb="undone", change_id=change.id, ids=[*mine]))
    return replace(change, undone_at=tx.now)


def shorten(content: str) -> str:
    """Return the statement in at most as many characters as an unverified fact may have."""
    if len(content) <= MAX_UNVERIFIED_CHARS:
        return content
    return content[: MAX_UNVERIFIED_CHARS - 1].rstrip() + "…"


def _is_unverified(tx: Tx, agent: Agent, label: Label) -> bool:
    return bool(label) and TEAMS.get(tx, agent.team_id).trust != "open"


def _last(tx: Tx, valid_until: datetime | None) -> datetime:
    """Return until when an unverified item lasts."""
    return min(valid_until or datetime.max.replace(tzinfo=UTC), tx.now + UNVERIFIED_FOR)


def _checked_content(content: str) -> str:
    content = to_text(content).strip()
    if not content:
        raise Refused("There is nothing to keep: say in one sentence what is worth knowing.")
    if looks_secret(content):
        raise Refused(NO_SECRETS)
    if len(content) > MAX_CHARS:
        raise Refused(
            f"That is {len(content):,} characters; keep one statement of at most {MAX_CHARS:,}, "
            "and put longer text into a note."
        )
    return content


def _identity(agent_id: AgentId, thread_id: ThreadId | None, content: str) -> str:
    """Return the id of an insight; from a thread a hash, so that a retry finds the same id."""
    if thread_id is None:
        return new_id("insight")
    digest = hashlib.sha256("\0".join((agent_id, thread_id, content)).encode())
    return f"insight_{digest.hexdigest()[:24]}"


def _retire(tx: Tx, table: Any, agent_id: AgentId, id: str, *, author: str) -> Item:
    """Remove an item that this agent may find. Raise `NotFound` for others and removed ones."""
    found = cast("Item | None", table.find(tx, id, lock=True))
    if found is None or not _is_visible_to(tx, agent_id, found) or found.status not in _REMOVABLE:
        kind = "memory" if table is MEMORIES else "insight"
        where = (
            "they stand above, each with its id" if kind == "memory" else "list_insights has them"
        )
        raise NotFound(kind, id, known=f"Use the id of one you have; {where}.")
    return _remove(tx, found, "removed", author)


def _is_visible_to(tx: Tx, agent_id: AgentId, item: Item) -> bool:
    agent = AGENTS.get(tx, agent_id)
    if isinstance(item, Memory):
        # What a person says of themselves, they may take back in any of their teams.
        is_theirs = not item.label and item.author == TEAMS.get(tx, agent.team_id).owner_id
        return item.agent_id == agent_id or is_theirs
    return item.team_id == agent.team_id and item.owner in visible_to(agent)


def _remove(tx: Tx, item: Item, verb: ChangeVerb, author: str) -> Item:
    # Without an end: an item that has expired may be learned again, a removed one may not.
    changed = changes.alter(tx, item, status="removed", valid_until=None)
    changes.record(tx, item, verb, author, [(item, item)])
    return changed


def _to_decide(tx: Tx, id: str) -> Item:
    """Return an item that a person may confirm or reject, with its row locked."""
    item = cast("Item", rows.table_of(id).get(tx, id, lock=True))
    is_open = item.status == "active" and item.label  # kept by a team whose trust is open
    if item.status not in ("unverified", "pending") and not is_open:
        raise Conflict(f"{id} is {item.status}: it does not wait for a decision.")
    return item
