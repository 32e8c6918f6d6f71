"""Team rows: everything the database holds of one team, table by table."""

from typing import Any

from agiraph.domain.ids import TeamId
from agiraph.store.file_labels import FILE_LABELS
from agiraph.store.knowledge import CHANGES, INSIGHTS, MEMORIES
from agiraph.store.messages import MESSAGES
from agiraph.store.nodes import NODES
from agiraph.store.notes import NOTES
from agiraph.store.rows import Table
from agiraph.store.spend import SPEND
from agiraph.store.stages import STAGES
from agiraph.store.teams import AGENTS
from agiraph.store.threads import THREADS
from agiraph.store.triggers import FIRINGS
from agiraph.store.tx import Tx

PAGED: dict[str, Table[Any]] = {
    "agents": AGENTS,
    "nodes": NODES,
    "stages": STAGES,
    "threads": THREADS,
    "messages": MESSAGES,
    "memories": MEMORIES,
    "insights": INSIGHTS,
    "notes": NOTES,
    "file_labels": FILE_LABELS,
    "knowledge_changes": CHANGES,
}
"""Tables with one row for each id. Agents that have left are rows like any other."""


def page(tx: Tx, table: str, team_id: TeamId, *, after: str = "", limit: int) -> list[Any]:
    """Return the rows of one table in `PAGED`, by id, that come after this id."""
    where = "team_id = :team_id and id > :after order by id limit :limit"
    return PAGED[table].select(tx, where, team_id=team_id, after=after, limit=limit)


def spend(tx: Tx, team_id: TeamId) -> list[Any]:
    where = "team_id = :team_id order by node_id, agent_id, purpose, model, day"
    return SPEND.select(tx, where, team_id=team_id)


def firings(tx: Tx, team_id: TeamId) -> list[Any]:
    where = (
        "trigger_id in (select id from triggers where team_id = :team_id) order by at, trigger_id"
    )
    return FIRINGS.select(tx, where, team_id=team_id)
