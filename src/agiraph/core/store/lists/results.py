"""Results, as rows: the nodes of a team that delivered something, and those that changed files."""

from datetime import datetime
from typing import NamedTuple

from agiraph.core.domain.ids import NodeId, TeamId
from agiraph.core.domain.work import WorkNode
from agiraph.core.store.nodes import NODES
from agiraph.core.store.rows import from_micros, to_micros
from agiraph.core.store.texts.folder_changes import FOLDER_CHANGES, FolderChange
from agiraph.core.store.tx import Tx


class Before(NamedTuple):
    """Where a page begins: entries that are older, or as old and with a lesser node id."""

    at: datetime
    node_id: str


class Changed(NamedTuple):
    """How many files of given folders the agent of a node has changed, and when it last did."""

    node_id: NodeId
    at: datetime
    files: int


def delivered(
    tx: Tx, team_id: TeamId, *, before: Before, limit: int, with_parts: bool
) -> list[WorkNode]:
    """Return ended work that has a result, newest first. Steps of other work, and wakes
    that found nothing to do are left out; without `with_parts` all work below other work is."""
    where = (
        "team_id = :team_id and lane = 'work' and status in ('completed', 'partial')"
        " and ended_at is not null and is_step = 0"
        " and (stop_reason is null or stop_reason <> 'nothing_to_do')"
        " and (ended_at < :at or (ended_at = :at and id < :id))"
    )
    where += "" if with_parts else " and parent_id is null"
    return NODES.select(
        tx,
        f"{where} order by ended_at desc, id desc limit :limit",
        team_id=team_id,
        at=to_micros(before.at),
        id=before.node_id,
        limit=limit,
    )


def published(tx: Tx, team_id: TeamId, *, limit: int) -> list[WorkNode]:
    """Return ended work that has published files, newest first."""
    where = (
        "team_id = :team_id and lane = 'work' and ended_at is not null and manifest <> '{}'"
        " order by ended_at desc, id desc limit :limit"
    )
    return NODES.select(tx, where, team_id=team_id, limit=limit)


def changed(tx: Tx, team_id: TeamId, *, before: Before, limit: int) -> list[Changed]:
    """Return the nodes whose agents changed files of given folders, newest change first."""
    rows = tx.all(
        "select node_id, max(created_at), count(*) from folder_changes"
        " where team_id = :team_id and node_id is not null group by node_id"
        " having max(created_at) < :at or (max(created_at) = :at and node_id < :id)"
        " order by 2 desc, 1 desc limit :limit",
        team_id=team_id,
        at=to_micros(before.at),
        id=before.node_id,
        limit=limit,
    )
    return [Changed(NodeId(node), from_micros(at), count) for node, at, count in rows]


def changes_of(tx: Tx, team_id: TeamId, node_id: NodeId, *, limit: int) -> list[FolderChange]:
    """Return the last changes of a node's agent in given folders, newest first."""
    where = "team_id = :team_id and node_id = :node_id order by id desc limit :limit"
    return FOLDER_CHANGES.select(tx, where, team_id=team_id, node_id=node_id, limit=limit)
