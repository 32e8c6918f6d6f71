"""Planning: create nodes within the team's limits and assign them to agents."""

from collections.abc import Sequence
from datetime import timedelta
from typing import TypedDict, Unpack

from agiraph.core.domain.agents import Agent
from agiraph.core.domain.errors import NotFound, Refused
from agiraph.core.domain.events.work import NodeAssigned, NodeChanged, NodeCreated
from agiraph.core.domain.ids import AgentId, NodeId, PersonId, StageId, TeamId, TriggerId, new_id
from agiraph.core.domain.persons import is_person
from agiraph.core.domain.provenance.labels import CLEAN, Label
from agiraph.core.domain.work import (
    Budget,
    Effort,
    IfUnmet,
    LineKind,
    NodeStatus,
    Source,
    Timer,
    WorkNode,
)
from agiraph.core.domain.work_kinds import TASK, WorkKind
from agiraph.core.services.board import labels, texts
from agiraph.core.services.members import roster
from agiraph.core.store import dependencies, messages, nodes, teams, waits
from agiraph.core.store.nodes import NODES
from agiraph.core.store.teams import AGENTS, TEAMS
from agiraph.core.store.tx import Tx

UNOWNED_FOR = timedelta(seconds=30)
"""How long the creator of a node may take to choose somebody for it."""


class NodeDetails(TypedDict, total=False):
    """Fields of `WorkNode` that a new node takes over as they are."""

    title: str
    creator_id: str
    assignee_id: AgentId | None
    parent_id: NodeId | None
    payer_id: NodeId | None
    stage_id: StageId | None
    acceptance: tuple[str, ...]
    line_kinds: dict[str, LineKind]
    given_lines: int
    needs_tools: tuple[str, ...]
    if_unmet: IfUnmet
    hops: int
    trigger_id: TriggerId | None
    asked_of: AgentId | None
    reviews_call: str | None
    address: str | None
    effort: Effort | None
    refs: dict[str, str]
    budget: Budget


TAKES_NOTHING = (
    "A public task takes nothing of the team's: leave out refs and depends_on, and write into the "
    "task what its reader must know."
)


def create(
    tx: Tx,
    *,
    team_id: TeamId,
    task: str,
    source: Source,
    kind: WorkKind = TASK,
    depends_on: Sequence[NodeId] = (),
    label: Label = CLEAN,
    starts_later: bool = False,
    **details: Unpack[NodeDetails],
) -> WorkNode:
    """Create a node; put it into its assignee's queue if its dependencies are met, else keep it
    pending. Without a `creator_id` the team's owner created it. `starts_later` also keeps it
    pending: a stage starts it, or `assign_unowned`."""
    if not task.strip():
        raise Refused("Say what is to be done: the task is empty.")
    parent_id, budget = details.get("parent_id"), details.get("budget")
    parent = None if parent_id is None else NODES.get(tx, parent_id)
    if parent is not None and not kind.is_bounded_above:
        _check_limits(tx, parent)
    if parent is not None and budget is not None:
        kind = budget.kind_of(kind)
    if not kind.sees_team and (details.get("refs") or depends_on):
        raise Refused(TAKES_NOTHING)
    if "creator_id" not in details:
        details["creator_id"] = teams.owner_of(tx, team_id)
    paid_by = filter(None, (parent_id, details.get("payer_id")))
    node = WorkNode(
        id=NodeId(new_id("node")),
        team_id=team_id,
        task=task,
        source=source,
        kind=kind,
        lane=kind.lane,
        is_step=kind.is_step,
        created_at=tx.now,
        label=label | labels.of_nodes(tx, paid_by),
        depth=0 if parent is None else parent.depth + 1,
        **details,
    )
    NODES.insert(tx, node)
    tx.emit(team_id, _created(node, depends_on))
    add_dependencies(tx, node, depends_on)
    if node.assignee_id is None or starts_later or not is_ready(tx, node):
        return node
    return assign(tx, node, node.assignee_id)


def _created(node: WorkNode, depends_on: Sequence[NodeId]) -> NodeCreated:
    return NodeCreated(
        node_id=node.id,
        title=texts.subject_of(node),
        parent_id=node.parent_id,
        creator_id=node.creator_id,
        lane=node.lane,
        needs=list(depends_on),
        assignee_id=node.assignee_id,
    )


def _check_limits(tx: Tx, parent: WorkNode) -> None:
    limits = TEAMS.get(tx, parent.team_id).limits
    if parent.depth >= limits.depth:
        raise Refused(
            f"Work may be {limits.depth} levels deep, and yours is at the last one. Do this part "
            "yourself, or submit and suggest it with suggest_next."
        )
    # Counted without a lock: a parent has one runner, and a team that is a few nodes
    # over its limit does no harm.
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


def add_dependencies(tx: Tx, node: WorkNode, needed: Sequence[NodeId]) -> None:
    """Make a new node depend on others; refuse a cycle, and a dependency that has failed.

    Locks the rows of the needed nodes, not the team's: see `dependencies.leads_to`.
    """
    for needed_id in dict.fromkeys(needed):
        # Locked: it must not end between this check and the commit of the dependency. Its end would
        # find no dependent, and the new node would wait for ever.
        found = NODES.find(tx, needed_id, lock=True)
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
    """Whether a dependency has ended without success."""
    return needed.status.is_final and needed.status is not NodeStatus.COMPLETED


def is_ready(tx: Tx, node: WorkNode) -> bool:
    """Whether all dependencies of a node let it start."""
    return all(
        n.status is NodeStatus.COMPLETED or (n.status.is_final and node.if_unmet == "go_on")
        for n in dependencies.needs(tx, node.id)
    )


def assign(tx: Tx, node: WorkNode, agent_id: AgentId) -> WorkNode:
    """Put a node into an agent's queue. Locks the agent's row."""
    agent = teams.lock(tx, agent_id)
    if not node.kind.sees_team and not agent.has_model:
        raise Refused(
            f"{agent.name} is a program, which sees files of this machine; a public task takes an "
            "agent with a model."
        )
    if node.is_work:
        agent = roster.reinstate(tx, agent)
    node = nodes.move(tx, node, NodeStatus.ASSIGNED, assignee_id=agent_id, waiting_reason=None)
    tx.emit(node.team_id, NodeAssigned(node_id=node.id, agent_id=agent_id, agent=agent.name))
    tx.wake(agent_id, node.lane)
    return node


def reassign(tx: Tx, node: WorkNode, agent: Agent) -> WorkNode:
    """Give a node that has not started to this agent; it stays pending while it needs others."""
    if node.status not in (NodeStatus.PENDING, NodeStatus.ASSIGNED):
        who = "" if node.assignee_id is None else f" with {name_of(tx, node.assignee_id)}"
        raise Refused(
            f"{node.id} is {node.status}{who}; only work that nobody has begun can be assigned."
        )
    if node.status is NodeStatus.ASSIGNED:
        node = nodes.move(tx, node, NodeStatus.PENDING, assignee_id=None)
    needed = dependencies.needs(tx, node.id)
    if any(not n.status.is_final for n in needed):
        NODES.update(tx, node.id, assignee_id=agent.id)
        place = {"status": NodeStatus.PENDING.value, "assignee_id": agent.id}
        tx.emit(node.team_id, NodeChanged(node_id=node.id, changed=dict(place)))
        return NODES.get(tx, node.id)
    return assign(tx, node, agent.id)


def assign_unowned(tx: Tx, team_id: TeamId) -> None:
    """Put every ready node into the queue of its agent, of an idle one, or of a new one."""
    # Tasks below a completed goal run on.
    if TEAMS.get(tx, team_id).status not in ("active", "completed"):
        return
    # A new node whose parent still runs is left alone: the parent may be about to assign it.
    for node in nodes.unowned(tx, team_id, chosen_by=tx.now - UNOWNED_FOR):
        if is_ready(tx, node):
            assign_ready(tx, node)


def hand_out_later(tx: Tx, node: WorkNode) -> None:
    """Set the timer at which a node that nothing has started is assigned (`assign_unowned`),
    although its creator still works."""
    waits.set_timer(tx, Timer("unowned", node.id), tx.now + UNOWNED_FOR)


def assign_ready(tx: Tx, node: WorkNode) -> WorkNode:
    """Assign a ready node to its chosen agent, else to an idle one, else to a new one.

    If the team may hire nobody, the node stays pending with the refusal as its reason.
    """
    idle = (a.id for a in teams.members(tx, node.team_id) if _can_take(tx, a, node))
    try:
        chosen = node.assignee_id or next(idle, None) or _hire_worker(tx, node).id
        return assign(tx, node, chosen)
    except Refused as refusal:
        reason = f"nobody is free: {refusal}"
        if node.waiting_reason != reason:
            NODES.update(tx, node.id, waiting_reason=reason)
            changed = NodeChanged(node_id=node.id, changed={"waiting_reason": reason})
            tx.emit(node.team_id, changed)
        return NODES.get(tx, node.id)


def _can_take(tx: Tx, agent: Agent, node: WorkNode) -> bool:
    if agent.role == "coordinator" or not agent.has_model or agent.id == node.creator_id:
        return False
    if agent.tools and not set(node.needs_tools) <= set(agent.tools):
        return False
    return not nodes.has_open(tx, agent.id)


def _hire_worker(tx: Tx, node: WorkNode) -> Agent:
    creator = AGENTS.find(tx, node.creator_id)
    model = (creator or teams.coordinator(tx, node.team_id)).model
    name = roster.free_name(tx, node.team_id, "worker")
    return roster.hire(tx, node.team_id, name=name, role="worker", model=model)


def person_for(tx: Tx, node: WorkNode) -> PersonId:
    """Return the person whom a node is for: the one it replies to, else the one who asked for its
    root node, else the team's owner."""
    if node.kind.answers_messages and (asked := messages.to_answer(tx, node.id)):
        creator = asked[-1].sender
    else:
        creator = nodes.root(tx, node).creator_id
    return creator if is_person(creator) else teams.owner_of(tx, node.team_id)


def name_of(tx: Tx, address: str) -> str:
    """Return the name of an agent or a person; any other address, such as `system`, as it is."""
    if is_person(address):
        person = teams.PERSONS.find(tx, address)
        return address if person is None else person.name
    agent = AGENTS.find(tx, address)
    return address if agent is None else agent.name
