"""Merging: stores an item in place of one that says the same, below one that says more, or beside.

An unverified or pending item is compared only with items of its own status, so that what strangers
say neither changes nor strengthens what the agent knows.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from agiraph.domain.agents import Agent
from agiraph.domain.events.knowledge import InsightLearned, MemoryWritten
from agiraph.domain.ids import AgentId
from agiraph.domain.knowledge import ChangeVerb, Insight, KnowledgeStatus, Memory
from agiraph.domain.similarity import Verdict, compare
from agiraph.services.knowledge import changes
from agiraph.store import knowledge as rows
from agiraph.store import passages
from agiraph.store.knowledge import INSIGHTS, Item
from agiraph.store.teams import AGENTS
from agiraph.store.tx import Tx

MAX_PEERS = 100
"""Known items that a new item is compared with."""


def merge_in(tx: Tx, item: Item, *, author: str, before: Item | None = None) -> Item:
    """Store an item among those that are known, and return the item that stands now.

    `before` is the state of an item that a person confirms; None if the item is new. The caller
    holds the agent's row lock.
    """
    table = rows.table_of(item.id)
    verdicts = [(p, _verdict(item, p)) for p in _peers(tx, item) if p.id != item.id]
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
                status=item.status,
            ),
        )
    return stands


def matching(
    tx: Tx, agent: Agent, query: str, *, limit: int, status: KnowledgeStatus = "active"
) -> list[Insight]:
    """Return valid insights with this status that contain words of the query, best first."""
    hits = passages.find(
        tx, query, team_id=agent.team_id, owner=agent.id, kinds=("insight",), limit=limit
    )
    known = [INSIGHTS.get(tx, ref) for ref in dict.fromkeys(hit.ref for hit in hits)]
    return [
        i for i in known if i.status == status and (i.valid_until is None or i.valid_until > tx.now)
    ]


def removed_twin(tx: Tx, table: Any, agent_id: AgentId, content: str) -> Item | None:
    """Return an item that says the same or more, and that was removed; None without one."""
    gone = cast("list[Item]", rows.standing(tx, table, agent_id, status="removed", limit=MAX_PEERS))
    return next((item for item in gone if compare(content, item.content) in ("same", "less")), None)


def _verdict(item: Item, known: Item) -> Verdict:
    verdict = compare(item.content, known.content)
    # Strangers' words never take the place of the team's own.
    return "less" if verdict == "same" and item.label and not known.label else verdict


def _peers(tx: Tx, item: Item) -> Sequence[Item]:
    """Return the known items that may say the same as this one, or the opposite."""
    if isinstance(item, Insight) and item.status in changes.FOUND:
        agent = AGENTS.get(tx, item.agent_id)
        return matching(tx, agent, item.content, limit=MAX_PEERS, status=item.status)
    table = rows.table_of(item.id)
    return rows.standing(tx, table, item.agent_id, status=item.status, limit=MAX_PEERS)
