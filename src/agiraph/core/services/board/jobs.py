"""Jobs: a list of a team's background work with state, worker and progress."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from agiraph.core.domain.agents import TeamStatus
from agiraph.core.domain.ids import NodeId, TeamId
from agiraph.core.domain.provenance.labels import Label
from agiraph.core.domain.work import HeldBy, JobState, NodeStatus, WorkNode
from agiraph.core.services.board import budgets, labels, planning
from agiraph.core.store import dependencies, nodes, threads
from agiraph.core.store.engine import work_stop
from agiraph.core.store.nodes import NODES
from agiraph.core.store.teams import TEAMS
from agiraph.core.store.tx import Tx

OPEN, LATELY = 50, 10
"""How many open jobs and how many ended jobs are listed."""

_STATES: dict[NodeStatus, JobState] = {
    NodeStatus.PENDING: "queued",
    NodeStatus.ASSIGNED: "queued",
    NodeStatus.RUNNING: "running",
    NodeStatus.WAITING: "waiting",
    NodeStatus.COMPLETED: "done",
    NodeStatus.PARTIAL: "partial",
    NodeStatus.FAILED: "failed",
    NodeStatus.CANCELLED: "cancelled",
}


class Job(NamedTuple):
    """One node, as the list of jobs shows it."""

    node: WorkNode
    state: JobState
    worker: str
    position: int | None
    """Its place in its worker's queue, from 1; None unless it is queued."""
    held_by: HeldBy | None
    """What keeps it from starting; None: nothing, or it has started."""
    used: Counter[str]
    """Calls made of each tool that its budget limits."""
    progress: str
    """Why it waits, else its last checkpoint."""
    label: Label
    """The sources outside the team of words in its title and progress."""
    tasks: int = 0
    """Tasks that it has given away."""
    tasks_done: int = 0


def of_team(tx: Tx, team_id: TeamId) -> list[Job]:
    """Return running, waiting and queued jobs, then those that ended last, newest first."""
    still_open = sorted(nodes.still_open(tx, team_id), key=lambda n: (_order(n), n.id))[:OPEN]
    over = nodes.ended_lately(tx, team_id, limit=LATELY)
    by = held(tx, still_open)
    return [_job(tx, node, by.get(node.id)) for node in [*still_open, *over]]


def state_of(node: WorkNode) -> JobState:
    """Return the status of a node in the words of a list of jobs."""
    return _STATES[node.status]


def held(tx: Tx, page: Sequence[WorkNode]) -> dict[NodeId, HeldBy]:
    """Return what keeps nodes of one team from starting; nodes that have started, or start soon,
    are left out."""
    waiting = [n for n in page if n.status in (NodeStatus.PENDING, NodeStatus.ASSIGNED)]
    if not waiting:
        return {}
    team = TEAMS.get(tx, waiting[0].team_id)
    of_all: HeldBy | None = (
        "all_stopped" if work_stop.find(tx) else _HELD_WITH_TEAM.get(team.status)
    )
    if of_all is not None:
        return {node.id: of_all for node in waiting}
    needs: dict[NodeId, list[NodeStatus]] = defaultdict(list)
    for node_id, status in dependencies.unmet_of_pending(tx, team.id):
        needs[node_id].append(status)
    above = {node.parent_id or node.payer_id for node in waiting}
    spent = {a for a in above if a is not None and budgets.exhausted_above(tx, NODES.get(tx, a))}
    found: dict[NodeId, HeldBy] = {}
    for node in waiting:
        if by := _held(node, needs[node.id], (node.parent_id or node.payer_id) in spent):
            found[node.id] = by
    return found


_HELD_WITH_TEAM: dict[TeamStatus, HeldBy] = {
    "paused": "team_paused",
    "stopped": "team_stopped",
    "archived": "team_stopped",
}


def _held(node: WorkNode, needs: Sequence[NodeStatus], is_spent: bool) -> HeldBy | None:
    if is_spent:
        return "budget"
    if any(not status.is_final for status in needs):
        return "dependencies"
    if needs and node.if_unmet != "go_on":
        return "decision"
    is_refused = node.status is NodeStatus.PENDING and node.waiting_reason is not None
    return "nobody_free" if is_refused else None


def _order(node: WorkNode) -> int:
    return ["running", "waiting", "queued"].index(_STATES[node.status])


def _job(tx: Tx, node: WorkNode, held_by: HeldBy | None) -> Job:
    worker = "nobody yet" if node.assignee_id is None else planning.name_of(tx, node.assignee_id)
    below = [child for child in nodes.children(tx, node.id) if not child.is_step]
    return Job(
        node=node,
        state=state_of(node),
        worker=worker,
        position=_position(tx, node),
        used=used_calls(tx, node),
        held_by=held_by,
        progress=node.waiting_reason or node.checkpoint or "",
        label=node.label | labels.of_nodes(tx, [node.id]),
        tasks=len(below),
        tasks_done=sum(child.status.is_final for child in below),
    )


def _position(tx: Tx, node: WorkNode) -> int | None:
    if node.status is not NodeStatus.ASSIGNED or node.assignee_id is None:
        return None
    before = [n.id for n in nodes.open_of(tx, node.assignee_id) if n.id != node.id]
    queued = {n.id for n in nodes.open_of(tx, node.assignee_id) if n.status is node.status}
    return 1 + sum(1 for other in before if other not in queued or other < node.id)


def used_calls(tx: Tx, node: WorkNode) -> Counter[str]:
    """Return how many calls it made of each tool that its budget limits, those of its steps among
    them. Failed calls are free."""
    steps = [child for child in nodes.children(tx, node.id) if child.kind.is_bounded_above]
    if steps:
        return sum((used_calls(tx, step) for step in steps), Counter[str]())
    if not node.budget.calls or node.thread_id is None:
        return Counter()
    turns = [turn for turn in threads.turns(tx, node.thread_id) if turn.node_id == node.id]
    failed = {turn.ref for turn in turns if turn.role == "tool" and turn.failed}
    made = (call for turn in turns for call in turn.calls if call.id not in failed)
    calls = Counter(call.name for call in made)
    limits = node.budget.calls
    return Counter({name: min(calls[name], limit) for name, limit in limits.items()})
