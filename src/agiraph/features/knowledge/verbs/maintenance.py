"""Maintenance: expire and merge what agents know, once a day, without asking a model."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NamedTuple, cast

from agiraph.core.domain.ids import SYSTEM, TeamId
from agiraph.core.domain.text.passages import Owner
from agiraph.core.domain.text.similarity import normalised
from agiraph.core.store import teams
from agiraph.core.store.rows import Table
from agiraph.core.store.teams import TEAMS
from agiraph.core.store.texts import passages
from agiraph.core.store.tx import Tx
from agiraph.features.knowledge import rows
from agiraph.features.knowledge.rows import INSIGHTS, MEMORIES, Item
from agiraph.features.knowledge.verbs import changes, notes

EVERY = timedelta(days=1)
MOST = 20_000
"""Items of one owner that are looked through."""


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
        merged += _merge(tx, rows.of_agent(tx, MEMORIES, agent.id, limit=MOST))
    for owner in rows.owners(tx, team_id):
        merged += _merge(tx, rows.owned(tx, team_id, [owner], limit=MOST))
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
        for insight in rows.owned(tx, team_id, [owner], status=status, limit=MOST)
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
