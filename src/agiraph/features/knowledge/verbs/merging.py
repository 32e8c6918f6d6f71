"""Merging: adds an item to what is known, merges it into an older item, or replaces that.

Only a repetition of the same words is recognized here. Every other relation (it says the same in
other words, it replaces, it contradicts) was decided by the model that found the item. An
unverified or pending item is compared only with items of its own status, so that what strangers
say neither changes nor strengthens what the agent knows.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from agiraph.api.feature_views.known import ChangeVerb, Insight, Memory
from agiraph.core.domain.agents import Agent
from agiraph.core.domain.events.knowledge import InsightLearned, KnowledgeStatus, MemoryWritten
from agiraph.core.domain.ids import TeamId
from agiraph.core.domain.text.passages import Owner
from agiraph.core.domain.text.similarity import is_repetition
from agiraph.core.store.texts import passages
from agiraph.core.store.tx import Tx
from agiraph.features.knowledge import rows
from agiraph.features.knowledge.model import Relation, visible_to
from agiraph.features.knowledge.rows import INSIGHTS, MEMORIES, Item
from agiraph.features.knowledge.verbs import changes

MAX_PEERS = 100
"""Known items that a new item is compared with, to find a repetition."""
MAX_REMOVED = 1000
"""Removed items that a new item is compared with."""
ADD = Relation()

_Touched = list[tuple[Item, Item | None]]
"""Items that a change alters, each with its state before; None if it is new."""


def merge_in(
    tx: Tx, item: Item, *, author: str, before: Item | None = None, relation: Relation = ADD
) -> Item:
    """Store an item and return the one that stands now. One change records all that was altered.

    `before` is the state of an item that a person confirms; None if the item is new. The caller
    holds the agent's row lock and has checked the relation.
    """
    touched: _Touched = [(item, before)]
    verb: ChangeVerb = "learned"
    if (twin := _twin(tx, item)) is not None:
        stands = _add_source(tx, item, twin, touched)
        verb = "merged"
    elif relation.action in ("update", "supersede"):
        older = INSIGHTS.get(tx, relation.id)
        updates = relation.action == "update"
        item = stands = _replace(tx, cast("Insight", item), older, touched, updates=updates)
        verb = "merged" if updates else "superseded"
    else:
        if relation.id:
            item = replace(item, contradicts=relation.id)
        stands = item
        changes.store(tx, item, is_new=before is None)
    change = changes.record(tx, item, "confirmed" if before else verb, author, touched)
    if before is None:
        _announce(tx, item, stands, change.id)
    return stands


def _twin(tx: Tx, item: Item) -> Item | None:
    """Return a known item with the same words."""
    others = (peer for peer in peers(tx, item) if peer.id != item.id)
    return next((peer for peer in others if is_repetition(peer.content, item.content)), None)


def _add_source(tx: Tx, item: Item, twin: Item, touched: _Touched) -> Item:
    """Store the item below the one that has the same words already, which gets its sources."""
    below = replace(item, status="superseded", superseded_by=twin.id)
    changes.store(tx, below, is_new=touched[0][1] is None)
    touched.append((twin, twin))
    return changes.alter(tx, twin, **changes.combined(twin, item))


def _replace(tx: Tx, item: Insight, older: Insight, touched: _Touched, *, updates: bool) -> Insight:
    """Store the item in place of an older one. One that updates it inherits its sources, its
    confidence and its disputes; one that supersedes it does not, because the older one is wrong."""
    if updates:
        item = replace(item, contradicts=older.contradicts, **changes.combined(item, older))
    changes.store(tx, item, is_new=True)
    if updates:
        for other in rows.disputing(tx, INSIGHTS, older.id):
            touched.append((other, other))
            changes.alter(tx, other, contradicts=item.id)
    touched.append((older, older))
    changes.alter(tx, older, status="superseded", superseded_by=item.id)
    return item


def _announce(tx: Tx, item: Item, stands: Item, change_id: str) -> None:
    learned = MemoryWritten if isinstance(item, Memory) else InsightLearned
    tx.emit(
        item.team_id,
        learned(
            id=item.id,
            agent_id=item.agent_id,
            stands=stands.id,
            change_id=change_id,
            status=item.status,
        ),
    )


def matching(
    tx: Tx, agent: Agent, query: str, *, limit: int, status: KnowledgeStatus = "active"
) -> list[Insight]:
    """Return valid insights with this status that contain words of the query, best first.

    They are the agent's own, those of its specialist and those of the team.
    """
    return _matching(tx, agent.team_id, visible_to(agent), query, limit=limit, status=status)


def _matching(
    tx: Tx,
    team_id: TeamId,
    owners: Sequence[Owner],
    query: str,
    *,
    limit: int,
    status: KnowledgeStatus,
) -> list[Insight]:
    hits = passages.find(tx, query, team_id=team_id, owner=owners, kinds=("insight",), limit=limit)
    known = rows.by_ids(tx, [hit.ref for hit in hits])
    return [
        i for i in known if i.status == status and (i.valid_until is None or i.valid_until > tx.now)
    ]


def removed_twin(tx: Tx, item: Item) -> Item | None:
    """Return an item with the same words that was removed; None without one."""
    gone: Sequence[Item]
    if isinstance(item, Insight):
        gone = rows.owned(tx, item.team_id, [item.owner], status="removed", limit=MAX_REMOVED)
    else:
        gone = rows.of_agent(tx, MEMORIES, item.agent_id, status="removed", limit=MAX_REMOVED)
    return next((other for other in gone if is_repetition(other.content, item.content)), None)


def peers(tx: Tx, item: Item) -> Sequence[Item]:
    """Return the known items of the same owner and status that may have the same words."""
    if not isinstance(item, Insight):
        return rows.of_agent(tx, MEMORIES, item.agent_id, status=item.status, limit=MAX_PEERS)
    if item.status not in changes.FOUND:
        return rows.owned(tx, item.team_id, [item.owner], status=item.status, limit=MAX_PEERS)
    near = _matching(
        tx, item.team_id, [item.owner], item.content, limit=MAX_PEERS, status=item.status
    )
    return [other for other in near if other.owner == item.owner]
