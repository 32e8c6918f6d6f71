"""Maintenance: expire and merge what agents know, once a day, without asking a model."""

from datetime import timedelta
from typing import Any, NamedTuple, cast

from agiraph.domain.ids import SYSTEM, AgentId, TeamId
from agiraph.domain.similarity import compare
from agiraph.services.knowledge import changes
from agiraph.store import knowledge as rows
from agiraph.store import passages, teams
from agiraph.store.knowledge import INSIGHTS, MEMORIES, Item
from agiraph.store.rows import Table
from agiraph.store.teams import TEAMS
from agiraph.store.tx import Tx

EVERY = timedelta(days=1)


class Maintained(NamedTuple):
    """How many items and passages a run of the maintenance has changed."""

    expired: int
    merged: int
    dropped: int
    """Passages of insights that are neither active nor unverified any more."""


def is_due(tx: Tx, team_id: TeamId) -> bool:
    """Tell whether a day has passed since the last maintenance of the team's knowledge."""
    last = rows.last_maintained(tx, team_id) or TEAMS.get(tx, team_id).created_at
    return tx.now - last >= EVERY


def maintain(tx: Tx, team_id: TeamId) -> Maintained:
    """Remove expired items, merge items with the same meaning, and drop orphaned passages."""
    agents = teams.everyone(tx, team_id)
    expired = merged = dropped = 0
    for agent in agents:
        # The lock that `items.remember` and `learn` take: an item must not be
        # merged and changed at once.
        teams.lock(tx, agent.id)
        for table in (cast(Table[Any], MEMORIES), cast(Table[Any], INSIGHTS)):
            for item in cast(list[Item], rows.expired(tx, table, agent.id)):
                changes.alter(tx, item, status="removed")
                changes.record(tx, item, "expired", SYSTEM, [(item, item)])
                expired += 1
            merged += _merge(tx, rows.standing(tx, table, agent.id, limit=100))
        kept = _searched(tx, agent.id)
        found = passages.known(tx, team_id=team_id, owner=agent.id, kind="insight")
        for ref in kept.keys() - found.keys():
            changes.index(tx, kept[ref])
        for ref in found.keys() - kept.keys():
            dropped += passages.drop(tx, team_id=team_id, owner=agent.id, kind="insight", ref=ref)
    changes.record(tx, agents[0], "maintained", SYSTEM, [])
    return Maintained(expired, merged, dropped)


def _searched(tx: Tx, agent_id: AgentId) -> dict[str, Item]:
    """Return the agent's insights that belong into the search index, by id."""
    return {
        insight.id: insight
        for status in changes.FOUND
        for insight in rows.standing(tx, INSIGHTS, agent_id, status=status, limit=10_000)
    }


def _merge(tx: Tx, items: list[Item]) -> int:
    """Merge items that say the same. `items` are newest first. Return how many were superseded.

    Two transactions at the same time may each have stored one of them without seeing the other.
    """
    gone: dict[str, Item] = {}
    for place, newer in enumerate(items):
        for older in items[place + 1 :]:
            if newer.id in gone:
                break
            if older.id in gone:
                continue
            verdict = compare(newer.content, older.content)
            if verdict in ("same", "less"):
                kept, lost = (newer, older) if verdict == "same" else (older, newer)
                changes.alter(tx, kept, **changes.combined(kept, lost))
                changes.alter(tx, lost, status="superseded", superseded_by=kept.id)
                changes.record(tx, lost, "merged", SYSTEM, [(kept, kept), (lost, lost)])
                gone[lost.id] = lost
    return len(gone)
