"""Dependencies: which node needs which, and the graph of needs and waits."""

from collections.abc import Iterable

from agiraph.core.domain.ids import NodeId, TeamId
from agiraph.core.domain.work import NodeStatus, WorkNode
from agiraph.core.store import nodes
from agiraph.core.store.nodes import NODES
from agiraph.core.store.tx import Tx

# Dependencies and waits are one graph. A wait for a stage is an edge to each node of the stage, a
# wait for all tasks one to each task, and a wait for a teammate's answer one to that teammate's
# work. What still runs below a partial node is waited for with the tasks above it.
_AHEAD = (
    "select needs_id from dependencies where node_id = :id"
    " union select subject from waits where node_id = :id and kind = 'node'"
    " union select n.id from waits w join nodes n on w.kind = 'stage' and w.subject = n.stage_id"
    " where w.node_id = :id"
    " union select n.id from waits w join nodes n on w.kind = 'tasks' and w.subject = n.parent_id"
    " where w.node_id = :id"
    " union select n.id from nodes n join nodes p on p.id = n.parent_id"
    " where p.id = :id and p.status = 'partial'"
    " union select n.id from waits w join messages m on w.kind = 'reply' and w.subject = m.id"
    " join nodes n on n.assignee_id = m.recipient and n.lane = 'work'"
    " and n.status in ('assigned', 'running', 'waiting') where w.node_id = :id"
)


def add(tx: Tx, node_id: NodeId, needs: Iterable[NodeId]) -> None:
    for needed in dict.fromkeys(needs):
        tx.run(
            "insert into dependencies (node_id, needs_id) values (:node, :needs)"
            " on conflict do nothing",
            node=node_id,
            needs=needed,
        )


def needs(tx: Tx, node_id: NodeId) -> list[WorkNode]:
    """Return the nodes that a node needs before it can start."""
    where = "id in (select needs_id from dependencies where node_id = :id) order by id"
    return NODES.select(tx, where, id=node_id)


def dependents(tx: Tx, node_id: NodeId) -> list[WorkNode]:
    """Return the pending nodes that need this one."""
    where = (
        "status = 'pending' and id in (select node_id from dependencies where needs_id = :id)"
        " order by id"
    )
    return NODES.select(tx, where, id=node_id)


def of_team(
    tx: Tx, team_id: str, between: tuple[NodeId, NodeId] | None = None
) -> dict[NodeId, list[NodeId]]:
    """Return which nodes each node of a team needs; with `between`, only of those whose ids lie
    between these two."""
    only, ids = nodes.only_between(between)
    rows = tx.all(
        "select d.node_id, d.needs_id from nodes n join dependencies d on d.node_id = n.id"
        f" where n.team_id = :team{only} order by d.node_id, d.needs_id",
        team=team_id,
        **ids,
    )
    found: dict[NodeId, list[NodeId]] = {}
    for node_id, needs_id in rows:
        found.setdefault(node_id, []).append(needs_id)
    return found


def unmet_of_pending(tx: Tx, team_id: TeamId) -> list[tuple[NodeId, NodeStatus]]:
    """Return the pending nodes of a team with the status of each node they need that has not
    succeeded."""
    rows = tx.all(
        "select d.node_id, needed.status from dependencies d join nodes n on n.id = d.node_id"
        " join nodes needed on needed.id = d.needs_id where n.team_id = :team"
        " and n.status = 'pending' and needed.status <> 'completed'",
        team=team_id,
    )
    return [(NodeId(node), NodeStatus(status)) for node, status in rows]


def is_above(tx: Tx, node: WorkNode, other: WorkNode) -> bool:
    """Return whether `node` is an ancestor of `other`."""
    while other.parent_id is not None:
        if other.parent_id == node.id:
            return True
        other = NODES.get(tx, other.parent_id)
    return False


def leads_to(tx: Tx, start: NodeId, goal: NodeId) -> bool:
    """Return whether `start` needs or waits for `goal`, directly or through other nodes.

    A caller that adds a wait between nodes that are committed holds the team's row lock: otherwise
    two transactions could each add half of a cycle. `planning.add_dependencies` needs no such lock,
    because its node is new in the same transaction and no other transaction can refer to it.
    """
    seen, ahead = {start}, [start]
    while ahead:
        at = ahead.pop()
        if at == goal:
            return True
        new = [row[0] for row in tx.all(_AHEAD, id=at) if row[0] not in seen]
        seen.update(new)
        ahead += new
    return False
