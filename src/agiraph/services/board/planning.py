"""Board: making nodes within the team's limits, and handing them out."""

from collections.abc import Mapping, Sequence

from agiraph.domain.agents import Agent
from agiraph.domain.errors import NotFound, Refused
from agiraph.domain.events.work import NodeAssigned, NodeCreated
from agiraph.domain.ids import HUMAN, AgentId, NodeId, StageId, TeamId, TriggerId, new_id
from agiraph.domain.taint import graver
from agiraph.domain.work import Budget, IfUnmet, Lane, NodeStatus, Source, WorkNode
from agiraph.services.board import taint
from agiraph.services.members import roster
from agiraph.store import dependencies, nodes, teams
from agiraph.store.nodes import NODES
from agiraph.store.teams import AGENTS, TEAMS
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
    payer_id: NodeId | None = None,
    stage_id: StageId | None = None,
    depends_on: Sequence[NodeId] = (),
    refs: Mapping[str, str] | None = None,
    acceptance: tuple[str, ...] = (),
    needs_tools: tuple[str, ...] = (),
    if_unmet: IfUnmet = "fail",
    budget: Budget | None = None,
    hops: int = 0,
    lane: Lane = "work",
    trigger_id: TriggerId | None = None,
    asked_of: AgentId | None = None,
    tainted_by: str | None = None,
) -> WorkNode:
    """A new node: in its assignee's queue if it can start, else where it waits for that."""
    if not task.strip():
        raise Refused("Say what is to be done: the task is empty.")
    parent = None if parent_id is None else NODES.get(tx, parent_id)
    if parent is not None:
        _check_limits(tx, parent)
    node = WorkNode(
        id=NodeId(new_id("node")),
        team_id=team_id,
        task=task,
        title=title,
        source=source,
        lane=lane,
        created_at=tx.now,
        creator_id=creator_id,
        assignee_id=assignee_id,
        parent_id=parent_id,
        payer_id=payer_id,
        stage_id=stage_id,
        trigger_id=trigger_id,
        asked_of=asked_of,
        tainted_by=graver(tainted_by, taint.of_nodes(tx, filter(None, (parent_id, payer_id)))),
        depth=0 if parent is None else parent.depth + 1,
        hops=hops,
        refs=dict(refs or {}),
        acceptance=acceptance,
        needs_tools=needs_tools,
        if_unmet=if_unmet,
        budget=budget or Budget(),
    )
    NODES.insert(tx, node)
    tx.emit(
        team_id,
        NodeCreated(
            node_id=node.id,
            title=title,
            parent_id=parent_id,
            creator_id=creator_id,
            lane=lane,
            needs=list(depends_on),
        ),
    )
    depend(tx, node, depends_on)
    if assignee_id is None or not is_ready(tx, node):
        return node
    return assign(tx, node, assignee_id)


def _check_limits(tx: Tx, parent: WorkNode) -> None:
    limits = TEAMS.get(tx, parent.team_id).limits
    if parent.depth >= limits.depth:
        raise Refused(
            f"Work may be {limits.depth} levels deep, and yours is at the last one. Do this part "
            "yourself, or hand in and suggest it with suggest_next."
        )
    if nodes.count_open_children(tx, parent.id) >= limits.children:
        raise Refused(
            f"{limits.children} tasks of yours are unfinished, which is the limit. Wait for some "
            "of them first (task_output, start_stage)."
        )
    if nodes.count_open(tx, parent.team_id) >= limits.nodes:
        raise Refused(
            f"The team has {limits.nodes} unfinished pieces of work, which is the limit. Finish "
            "some first."
        )


def depend(tx: Tx, node: WorkNode, needed: Sequence[NodeId]) -> None:
    """Let a node start only when others have ended; a circle of such needs is refused."""
    for needed_id in dict.fromkeys(needed):
        found = NODES.find(tx, needed_id, lock=True)  # it must not end unnoticed meanwhile
        if found is None or found.team_id != node.team_id:
            raise NotFound("node", needed_id, known="check_board lists them with their ids.")
        if dependencies.leads_to(tx, needed_id, node.id):
            raise Refused(f"{node.id} and {needed_id} would wait for each other for ever.")
        if is_unmet(found) and node.if_unmet != "go_on":
            raise Refused(
                f"{needed_id} is {found.status}, so this could never start. Leave it out, have it "
                "done anew first, or say if_unmet='go_on'."
            )
    dependencies.add(tx, node.id, needed)


def is_unmet(needed: WorkNode) -> bool:
    """Whether a node that others need has ended without success."""
    return needed.status.is_final and needed.status is not NodeStatus.COMPLETED


def is_ready(tx: Tx, node: WorkNode) -> bool:
    """Whether nothing keeps a node from starting."""
    return all(
        n.status is NodeStatus.COMPLETED or (n.status.is_final and node.if_unmet == "go_on")
        for n in dependencies.needs(tx, node.id)
    )


def assign(tx: Tx, node: WorkNode, agent_id: AgentId) -> WorkNode:
    """Put a node into an agent's queue."""
    agent = teams.lock(tx, agent_id)
    if node.lane == "work":
        agent = roster.return_to_work(tx, agent)
    node = nodes.move(tx, node, NodeStatus.ASSIGNED, assignee_id=agent_id, waiting_reason=None)
    tx.emit(node.team_id, NodeAssigned(node_id=node.id, agent_id=agent_id, agent=agent.name))
    tx.wake(agent_id, node.lane)
    return node


def choose(tx: Tx, node: WorkNode, agent: Agent) -> WorkNode:
    """Somebody decides who is to do a node that nobody has begun."""
    if node.status not in (NodeStatus.PENDING, NodeStatus.ASSIGNED):
        who = "" if node.assignee_id is None else f" with {name_of(tx, node.assignee_id)}"
        raise Refused(f"{node.id} is {node.status}{who}; only work nobody has begun can be given.")
    if node.status is NodeStatus.ASSIGNED:
        node = nodes.move(tx, node, NodeStatus.PENDING, assignee_id=None)
    needed = dependencies.needs(tx, node.id)
    if any(not n.status.is_final for n in needed):
        NODES.update(tx, node.id, assignee_id=agent.id)
        return NODES.get(tx, node.id)
    return assign(tx, node, agent.id)


def distribute(tx: Tx, team_id: TeamId) -> None:
    """Give what nobody was chosen for to whoever has nothing to do, or to somebody new."""
    if TEAMS.get(tx, team_id).status != "active":
        return
    for node in nodes.unowned(tx, team_id):
        if is_ready(tx, node):
            hand_out(tx, node)


def hand_out(tx: Tx, node: WorkNode) -> WorkNode:
    """Give a ready node to whoever it is meant for, else to somebody idle, else to a newcomer."""
    idle = (a.id for a in teams.members(tx, node.team_id) if _may_take(tx, a, node))
    try:
        chosen = node.assignee_id or next(idle, None) or _newcomer(tx, node).id
        return assign(tx, node, chosen)
    except Refused as refusal:
        NODES.update(tx, node.id, waiting_reason=f"nobody is free: {refusal}")
        return NODES.get(tx, node.id)


def _may_take(tx: Tx, agent: Agent, node: WorkNode) -> bool:
    if agent.role == "coordinator" or agent.kind != "llm" or agent.id == node.creator_id:
        return False
    if agent.tools and not set(node.needs_tools) <= set(agent.tools):
        return False
    return not nodes.has_open(tx, agent.id)


def _newcomer(tx: Tx, node: WorkNode) -> Agent:
    creator = AGENTS.find(tx, node.creator_id)
    model = (creator or teams.members(tx, node.team_id)[0]).model
    name = roster.free_name(tx, node.team_id, "worker")
    return roster.hire(tx, node.team_id, name=name, role="worker", model=model)


def name_of(tx: Tx, address: str) -> str:
    """What an address is called."""
    agent = AGENTS.find(tx, address)
    return address if agent is None else agent.name
