"""Items: store, merge, find, confirm and remove the memories, insights and drafts of agents."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple, cast, get_args

from agiraph.domain.agents import Agent
from agiraph.domain.errors import Conflict, NotFound, Refused
from agiraph.domain.events.knowledge import (
    InsightLearned,
    KnowledgeChanged,
    KnowledgeHeld,
    MemoryWritten,
)
from agiraph.domain.ids import AgentId, TeamId, ThreadId, new_id
from agiraph.domain.knowledge import (
    Change,
    ChangedItem,
    ChangeVerb,
    Insight,
    InsightType,
    Memory,
    NoteDraft,
)
from agiraph.domain.labels import CLEAN, Label
from agiraph.domain.passages import search_words
from agiraph.domain.similarity import compare
from agiraph.redaction import looks_secret
from agiraph.services.knowledge import changes
from agiraph.store import knowledge as rows
from agiraph.store import passages, teams
from agiraph.store.knowledge import CHANGES, DRAFTS, INSIGHTS, MEMORIES, Item
from agiraph.store.rows import Table, to_text
from agiraph.store.teams import AGENTS
from agiraph.store.tx import Tx

MAX_CHARS = 2000
"""Characters of a memory or an insight: one statement, not a report."""
NO_SECRETS = (
    "That holds what looks like a key or a password, which is never kept: it would stand in later "
    "prompts. Say where it is kept or what it is for, without the secret itself."
)
MAX_PEERS = 100
"""Known items that a new item is compared with."""


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

    That may be an older item which says the same and more.
    """
    memory = Memory(
        id=new_id("memory"),
        team_id=agent.team_id,
        agent_id=agent.id,
        content=_checked_content(content),
        created_at=tx.now,
        author=author,
        status="held" if label else "active",
        valid_until=valid_until,
        sources=(source,) if source else (),
        label=label,
    )
    # Before the comparison with known items: two transactions that store the same statement would
    # otherwise each find no twin.
    teams.lock(tx, agent.id)
    return cast(Memory, _merge_in(tx, memory, author=author))


def learn(
    tx: Tx,
    agent: Agent,
    type: InsightType,
    content: str,
    *,
    author: str,
    confidence: float | None = None,
    source_thread_id: ThreadId | None = None,
    source: str | None = None,
    label: Label = CLEAN,
    valid_until: datetime | None = None,
) -> Insight:
    """Store an insight for work. The same words from the same thread are stored once.

    Return the item that stands now, which may be an older one that says the same and more.
    """
    if type not in get_args(InsightType):
        raise Refused(f"{type!r} is no kind of insight; use {', '.join(get_args(InsightType))}.")
    if confidence is not None and not 0 <= confidence <= 1:
        raise Refused(f"A confidence is between 0 and 1, not {confidence!r}.")
    content = _checked_content(content)
    identity = _identity(agent.id, source_thread_id, content)
    teams.lock(tx, agent.id)
    # The same words from the same thread: a crash made the reflection run again.
    if (known := INSIGHTS.find(tx, identity)) is not None:
        return known
    held = bool(label) or (source_thread_id is not None and _was_removed(tx, agent.id, content))
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
        status="held" if held else "active",
        valid_until=valid_until,
        sources=tuple(s for s in (source_thread_id, source) if s),
        label=label,
    )
    return cast(Insight, _merge_in(tx, insight, author=author))


def draft(
    tx: Tx, agent: Agent, *, path: str, content: str, thread_id: ThreadId, label: Label
) -> NoteDraft:
    """Store a note as a draft until a person has read it. The same note is stored once."""
    digest = hashlib.sha256("\0".join((agent.id, thread_id, path, to_text(content))).encode())
    identity = f"draft_{digest.hexdigest()[:24]}"
    # A missing row cannot be locked. If a fenced run of the thread stores the same draft at this
    # moment, the primary key refuses one of the two.
    if (known := DRAFTS.find(tx, identity, lock=True)) is not None:
        return known
    kept = NoteDraft(
        id=identity,
        team_id=agent.team_id,
        agent_id=agent.id,
        path=path,
        content=content,
        created_at=tx.now,
        author=agent.id,
        source_thread_id=thread_id,
        label=label,
    )
    DRAFTS.insert(tx, kept)
    tx.emit(agent.team_id, KnowledgeHeld(id=kept.id, agent_id=agent.id, path=path))
    return kept


def forget(tx: Tx, agent_id: AgentId, memory_id: str, *, author: str) -> Memory:
    """Remove a memory of this agent."""
    return cast(Memory, _retire(tx, MEMORIES, agent_id, memory_id, author=author))


def remove(tx: Tx, agent_id: AgentId, insight_id: str, *, author: str) -> Insight:
    """Remove an insight of this agent."""
    return cast(Insight, _retire(tx, INSIGHTS, agent_id, insight_id, author=author))


def memories(tx: Tx, agent_id: AgentId, *, limit: int = 50) -> list[Memory]:
    """Return the agent's active memories, newest first."""
    return rows.standing(tx, MEMORIES, agent_id, limit=limit)


def insights(
    tx: Tx,
    agent_id: AgentId,
    *,
    query: str = "",
    type: InsightType | None = None,
    limit: int = 50,
) -> list[Insight]:
    """Return the agent's active insights: for a query the best first, else the newest first."""
    if not search_words(query):
        return rows.standing(tx, INSIGHTS, agent_id, type=type, limit=limit)
    found = _matching(tx, AGENTS.get(tx, agent_id), query, limit=2 * limit)
    return [i for i in found if type is None or i.type == type][:limit]


def _matching(tx: Tx, agent: Agent, query: str, *, limit: int) -> list[Insight]:
    """Return active, unexpired insights that contain words of the query, best first."""
    hits = passages.find(
        tx, query, team_id=agent.team_id, owner=agent.id, kinds=("insight",), limit=limit
    )
    known = [INSIGHTS.get(tx, ref) for ref in dict.fromkeys(hit.ref for hit in hits)]
    return [i for i in known if i.valid_until is None or i.valid_until > tx.now]


class Held(NamedTuple):
    """Something an agent would know if a person confirmed it."""

    id: str
    agent_id: AgentId
    kind: str
    text: str
    source: str
    """Where its words come from, as far as that is known."""
    created_at: datetime


def held(tx: Tx, team_id: TeamId | None = None) -> list[Held]:
    """Return what waits for a person to confirm or reject it, oldest first; for the inbox."""
    found = [
        Held(i.id, i.agent_id, kind, i.content, ", ".join(i.sources), i.created_at)
        for kind, table in (("memory", MEMORIES), ("insight", INSIGHTS))
        for i in cast(list[Item], rows.held(tx, cast(Table[Any], table), team_id))
    ]
    found += [
        Held(d.id, d.agent_id, f"note {d.path}", d.content, str(d.label), d.created_at)
        for d in cast(list[NoteDraft], rows.held(tx, DRAFTS, team_id))
    ]
    return sorted(found, key=lambda item: (item.created_at, item.id))


def confirm(tx: Tx, id: str, *, author: str) -> Item | NoteDraft:
    """Make a held item active, or accept a held draft: a person vouches for it."""
    item = _held(tx, id)
    if isinstance(item, NoteDraft):
        return _decide(tx, item, "accepted", author)
    teams.lock(tx, item.agent_id)
    return _merge_in(tx, replace(item, status="active"), author=author, before=item)


def reject(tx: Tx, id: str, *, author: str) -> Item | NoteDraft:
    """Remove a held item or draft: a person does not vouch for it."""
    item = _held(tx, id)
    if isinstance(item, NoteDraft):
        return _decide(tx, item, "removed", author)
    changed = changes.alter(tx, item, status="removed")
    changes.record(tx, item, "rejected", author, [(item, item)])
    return changed


def undo(tx: Tx, change_id: str) -> Change:
    """Restore the state before a change. Raise `Refused` if a later change built on it."""
    change = CHANGES.get(tx, change_id, lock=True)
    if change.undone_at is not None:
        raise Conflict(f"{change_id} was undone at {change.undone_at:%Y-%m-%d %H:%M} UTC.")
    teams.lock(tx, change.agent_id)
    mine = {touched.id for touched in change.touched}
    # Undone in the reverse order only: a later change has stored this one's
    # result as its state before.
    for later in rows.changes(tx, change.agent_id, after=change.id, limit=10_000):
        if later.undone_at is None and any(touched.id in mine for touched in later.touched):
            raise Refused(
                f"{later.id} ({later.verb}) came after and alters the same: undo it first."
            )
    for touched in change.touched:
        item = rows.table_of(touched.id).get(tx, touched.id)
        if isinstance(item, NoteDraft):
            if item.status == "written":
                raise Refused(f"The note is in {item.path} by now; change the file instead.")
            DRAFTS.update(tx, item.id, **(touched.before or {"status": "removed"}))
        else:
            changes.alter(tx, item, **(touched.before or {"status": "removed"}))
    CHANGES.update(tx, change.id, undone_at=tx.now)
    tx.emit(change.team_id, KnowledgeChanged(verb="undone", change_id=change.id, ids=[*mine]))
    return replace(change, undone_at=tx.now)


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


def _was_removed(tx: Tx, agent_id: AgentId, content: str) -> bool:
    """Tell whether the agent knew this and it was removed: work alone must not bring it back."""
    gone = cast(
        list[Insight], rows.standing(tx, INSIGHTS, agent_id, status="removed", limit=MAX_PEERS)
    )
    return any(compare(content, insight.content) in ("same", "less") for insight in gone)


def _merge_in(tx: Tx, item: Item, *, author: str, before: Item | None = None) -> Item:
    """Store an item in place of one that says the same, below one that says more, or beside.

    `before` is the state of an item that a person confirms; None if the item is new. Return the
    item that stands now.
    """
    table = rows.table_of(item.id)
    peers = _peers(tx, item)
    verdicts = [(p, compare(item.content, p.content)) for p in peers if p.id != item.id]
    twin = next(((p, v) for p, v in verdicts if v in ("same", "less")), None)
    rival = next((p for p, v in verdicts if v == "opposed"), None)
    touched: list[tuple[Item, Item | None]] = [(item, before)]
    if twin is None:
        item = stands = replace(item, contradicts=rival.id if rival else None)
        changes.store(tx, item, is_new=before is None)
    elif twin[1] == "less":
        stands = twin[0]
        item = replace(item, status="superseded", superseded_by=stands.id)
        changes.store(tx, item, is_new=before is None)
        touched.append((stands, stands))
        stands = changes.alter(tx, stands, **changes.combined(stands, item))
    else:
        older = twin[0]
        rival_id = rival.id if rival else older.contradicts
        item = stands = replace(item, contradicts=rival_id, **changes.combined(item, older))
        changes.store(tx, item, is_new=before is None)
        for other in rows.disputing(tx, table, older.id):
            touched.append((other, other))
            changes.alter(tx, other, contradicts=item.id)
        touched.append((older, older))
        changes.alter(tx, older, status="superseded", superseded_by=item.id)
    verb: ChangeVerb = "confirmed" if before else "merged" if twin else "learned"
    change = changes.record(tx, item, verb, author, touched)
    if before is None:
        learned = MemoryWritten if isinstance(item, Memory) else InsightLearned
        tx.emit(
            item.team_id,
            learned(
                id=item.id,
                agent_id=item.agent_id,
                stands=stands.id,
                change_id=change.id,
                held=item.status == "held",
            ),
        )
    return stands


def _peers(tx: Tx, item: Item) -> Sequence[Item]:
    """Return the known items that may say the same as this one, or the opposite."""
    if isinstance(item, Insight) and item.status == "active":
        return _matching(tx, AGENTS.get(tx, item.agent_id), item.content, limit=MAX_PEERS)
    table = rows.table_of(item.id)
    return rows.standing(tx, table, item.agent_id, status=item.status, limit=MAX_PEERS)


def _retire(tx: Tx, table: Any, agent_id: AgentId, id: str, *, author: str) -> Item:
    """Remove an item of this agent. Raise `NotFound` for items of others and removed ones."""
    found = cast("Item | None", table.find(tx, id, lock=True))
    if found is None or found.agent_id != agent_id or found.status not in ("active", "held"):
        kind = "memory" if table is MEMORIES else "insight"
        where = (
            "they stand above, each with its id" if kind == "memory" else "list_insights has them"
        )
        raise NotFound(kind, id, known=f"Use the id of one you have; {where}.")
    changed = changes.alter(tx, found, status="removed")
    changes.record(tx, found, "removed", author, [(found, found)])
    return changed


def _held(tx: Tx, id: str) -> Item | NoteDraft:
    item = cast("Item | NoteDraft", rows.table_of(id).get(tx, id, lock=True))
    if item.status != "held":
        raise Conflict(f"{id} is {item.status}: it does not wait for anybody.")
    return item


def _decide(tx: Tx, note: NoteDraft, status: Any, author: str) -> NoteDraft:
    DRAFTS.update(tx, note.id, status=status)
    verb: ChangeVerb = "confirmed" if status == "accepted" else "rejected"
    touched = (ChangedItem(id=note.id, before={"status": "held"}),)
    changes.write(tx, note, verb, author, touched)
    return replace(note, status=status)
