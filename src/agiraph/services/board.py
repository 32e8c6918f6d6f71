"""Board: making nodes and handing them out."""

from agiraph.domain.ids import HUMAN, AgentId, NodeId, StageId, TeamId, new_id
from agiraph.domain.work import Budget, NodeStatus, Source, WorkNode
from agiraph.store import nodes, teams
from agiraph.store.nodes import NODES
from agiraph.store.tx import Tx


def create(
    tx: Tx,
    *,
    team_id: TeamId,
    task: str,
    source: Source,
    title: str = "",
    creator_id: str = HUMAN,
    assignee_id: AgentId | None = None,
    parent_id: NodeId | None = None,
    stage_id: StageId | None = None,
    acceptance: tuple[str, ...] = (),
    budget: Budget | None = None,
) -> WorkNode:
    node = WorkNode(
        id=NodeId(new_id("node")),
        team_id=team_id,
        task=task,
        title=title,
        source=source,
        created_at=tx.now,
        creator_id=creator_id,
        parent_id=parent_id,
        stage_id=stage_id,
        acceptance=acceptance,
        budget=budget or Budget(),
    )
    NODES.insert(tx, node)
    tx.emit(team_id, "node.created", node_id=node.id, title=title, parent_id=parent_id)
    return node if assignee_id is None else assign(tx, node, assignee_id)


def assign(tx: Tx, node: WorkNode, agent_id: AgentId) -> WorkNode:
    agent = teams.lock(tx, agent_id)
    node = nodes.move(tx, node, NodeStatus.ASSIGNED, assignee_id=agent_id)
    tx.emit(node.team_id, "node.assigned", node_id=node.id, agent_id=agent_id, agent=agent.name)
    tx.wake(agent_id)
    return node
