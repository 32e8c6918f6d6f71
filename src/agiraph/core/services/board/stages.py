"""Stages: wait for several nodes together until their contract is met, broken or timed out."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from agiraph.core.domain.chat import Lease
from agiraph.core.domain.errors import Refused
from agiraph.core.domain.events.work import NodeChanged, StageEnded, StageStarted
from agiraph.core.domain.ids import NodeId, StageId, new_id
from agiraph.core.domain.stages import Stage, StageContract, StageStatus
from agiraph.core.domain.text.fence import one_line
from agiraph.core.domain.work import NodeStatus, WaitingOn, WorkNode
from agiraph.core.services.board import labels, planning, texts, unfinished, waiting
from agiraph.core.store import messages, nodes, stages, waits
from agiraph.core.store.nodes import NODES
from agiraph.core.store.stages import STAGES
from agiraph.core.store.teams import TEAMS
from agiraph.core.store.tx import Tx

SUMMARY = 60_000
"""Characters that all results of a stage together may put into its coordinator's thread."""


NEXT = (
    "Look at the results, then call reconvene: your assessment, a verdict on each of these tasks, "
    "and what comes next."
)


def start(
    tx: Tx, lease: Lease, *, name: str, node_ids: Sequence[str], contract: StageContract
) -> Stage:
    """Open a stage with these nodes, or add them to the open stage of this name."""
    # Without a lock: only the runner of this node opens stages for it.
    stage = running(tx, lease.node_id, name)
    is_new = stage is None
    found = {n.id: n for n in (nodes.find(tx, lease.team_id, each) for each in node_ids)}
    if stage is None:
        if not node_ids:
            raise Refused("A stage needs nodes: create some first, then name them here.")
        stage = Stage(
            id=StageId(new_id("stage")),
            team_id=lease.team_id,
            node_id=lease.node_id,
            name=name,
            created_at=tx.now,
            contract=contract,
        )
        STAGES.insert(tx, stage)
        waits.set_timer(
            tx, waiting.stage_timer(stage), tx.now + timedelta(seconds=contract.timeout_seconds)
        )
        started = StageStarted(stage_id=stage.id, name=name, nodes=[*found])
        tx.emit(lease.team_id, started)
    added = [add(tx, lease, stage, node, is_told=is_new) for node in found.values()]
    if stage.status != "running" and any(added):
        reopen(tx, stage)
    # A node may have asked a person before it joined the stage.
    waiting.pause_or_resume(tx, STAGES.get(tx, stage.id))
    check_contract(tx, stage.id)
    return checked(tx, lease, stage.id)


def checked(tx: Tx, lease: Lease, stage_id: StageId) -> Stage:
    """Return a stage that its coordinator is going to wait for, if it still runs.

    Raise `Refused` if a worker in it waits for an answer of the coordinator.
    """
    stage = STAGES.get(tx, stage_id)
    if stage.status == "running":
        TEAMS.get(tx, lease.team_id, lock=True)  # see `unfinished.refuse_cycle`
        open_nodes = [node.id for node in stages.nodes(tx, stage_id) if not node.status.is_final]
        unfinished.remind_or_release(tx, lease, open_nodes)
    return stage


def add(tx: Tx, lease: Lease, stage: Stage, node: WorkNode, *, is_told: bool = False) -> bool:
    """Add a node to a stage; False if it belongs to the stage already. `is_told`: the event of the
    stage's start names the node."""
    if node.stage_id == stage.id:
        return False
    if node.id == lease.node_id:
        raise Refused("A stage cannot hold the work that waits for it; leave your own node out.")
    if node.stage_id is not None and STAGES.get(tx, node.stage_id).status == "running":
        raise Refused(f"{node.id} belongs to another stage that is still running.")
    unfinished.refuse_cycle(tx, lease, node)
    budget = node.budget
    # Work that has started keeps its turns, and so does work whose creator chose them.
    if node.started_at is None and "turns" not in budget.given:
        budget = replace(budget, turns=min(budget.turns, stage.contract.turns_per_node))
    NODES.update(tx, node.id, stage_id=stage.id, budget=budget)
    if not is_told:
        tx.emit(node.team_id, NodeChanged(node_id=node.id, changed={"stage_id": stage.id}))
    node = NODES.get(tx, node.id)
    if node.status is NodeStatus.PENDING and planning.is_ready(tx, node):
        planning.assign_ready(tx, node)
    return True


def reopen(tx: Tx, stage: Stage) -> None:
    """Set a stage to running again, with its whole time: its last node ended before more joined."""
    passed = (tx.now - stage.created_at).total_seconds()
    goes_on = {"status": "running", "ended_at": None, "paused_since": None}
    STAGES.update(tx, stage.id, **goes_on, paused_seconds=passed)
    due = tx.now + timedelta(seconds=stage.contract.timeout_seconds)
    waits.set_timer(tx, waiting.stage_timer(stage), due)


def running(tx: Tx, node_id: NodeId, name: str | None = None) -> Stage | None:
    """Return the open stage of this node with that name, or the newest one."""
    found = [s for s in stages.of_node(tx, node_id) if s.status != "reconvened"]
    named = [s for s in found if name is None or s.name == name]
    return named[-1] if named else None


def check_contract(tx: Tx, stage_id: StageId) -> Stage | None:
    """End a stage if its contract is met or can no longer be met. Locks the stage's row.

    Return a stage that has ended now if nobody waited for it: its coordinator is to be told.
    """
    # Two nodes may end at the same time. Without the lock each would count the other as open.
    stage = STAGES.get(tx, stage_id, lock=True)
    if stage.status != "running":
        return None
    found = stages.tally(tx, stage_id)
    majority = found.nodes // 2 + 1
    needed = {"all": found.nodes, "majority": majority, "any": 1}[stage.contract.wants]
    if found.done >= needed:
        return _end(tx, stage, "met")
    if found.done + found.open < needed:
        return _end(tx, stage, "broken")
    return None


def check_deadline(tx: Tx, stage_id: StageId) -> Stage | None:
    """End a stage whose time is over; set its timer anew if it was paused for some of that time.

    Return it if it has ended now and nobody waited for it.
    """
    stage = STAGES.find(tx, stage_id, lock=True)
    if stage is None or stage.status != "running" or stage.paused_since is not None:
        return None  # resuming a paused clock sets the timer again
    left = waiting.stage_seconds_left(tx, stage)
    if left <= 0:
        return _end(tx, stage, "timed_out")
    waits.set_timer(tx, waiting.stage_timer(stage), tx.now + timedelta(seconds=left))
    return None


def _end(tx: Tx, stage: Stage, status: StageStatus) -> Stage | None:
    """End a stage and tell the node that waits for it. Return the stage if no node waits."""
    STAGES.update(tx, stage.id, status=status, ended_at=tx.now)
    tx.emit(stage.team_id, StageEnded(stage_id=stage.id, name=stage.name, status=status))
    ended = STAGES.get(tx, stage.id)
    on = WaitingOn("stage", stage.id)
    waited = waiting.settle(tx, on, lambda thread: summary(tx, ended, thread))
    return None if waited else ended


_STATUS_TEXT = {
    "running": "is running",
    "met": "is over: its contract is met",
    "broken": "is over: its contract cannot be met any more",
    "timed_out": "ran out of time",
    "reconvened": "is closed",
}


def summary(tx: Tx, stage: Stage, thread: str) -> str:
    """Return a text for the coordinator's thread: the stage's status, and each node's result.

    Unread messages about these ends count as read: the text says what they say.
    """
    parts = [f"Stage {stage.name!r} {_STATUS_TEXT[stage.status]} (wanted: {stage.contract.wants})."]
    # The summary goes into one thread: the results of a large stage share the room.
    members = stages.nodes(tx, stage.id)
    reader = NODES.get(tx, stage.node_id).assignee_id
    assert reader is not None
    longest = max(SUMMARY // max(len(members), 1), 200)
    for node in members:
        worker = "nobody" if node.assignee_id is None else planning.name_of(tx, node.assignee_id)
        who = f"[Task] {texts.title_of(node)} ({node.id}, {worker}): {node.status}"
        if not node.status.is_final:
            why = one_line(texts.truncate(node.waiting_reason or "", texts.REASON))
            parts.append(who + (f": {why}" if why else ""))
        elif messages.is_ending_read(tx, reader, node):
            parts.append(f"{who}; its result came to you before")
        else:
            text = node.result or "(no result)"
            label = labels.of_nodes(tx, [node.id])
            parts.append(
                texts.completion(
                    node, worker=worker, text=text, thread=thread, longest=longest, label=label
                )
            )
    if stage.status != "reconvened":
        parts.append(NEXT)
    unread = [m.id for m in messages.about(tx, "stage", stage.id) if m.seen_at is None]
    for node in members:
        unread += messages.unread_endings(tx, reader, node.id)
    waiting.mark_told(tx, stage.team_id, unread)
    return "\n\n".join(parts)
