"""Reconvening: a coordinator judges each node of a stage and decides what comes next."""

from collections.abc import Sequence
from typing import Any

from agiraph.core.domain.agents import Agent
from agiraph.core.domain.chat import Lease
from agiraph.core.domain.errors import Refused
from agiraph.core.domain.events.work import NodeChanged, StageReconvened
from agiraph.core.domain.ids import NodeId
from agiraph.core.domain.stages import Stage, StageDecision, Verdict
from agiraph.core.domain.work import NodeStatus, WorkNode
from agiraph.core.services.board import budgets, leases, planning, stages, texts
from agiraph.core.services.lifecycle import endings
from agiraph.core.store import dependencies, teams
from agiraph.core.store import stages as stage_rows
from agiraph.core.store.nodes import NODES
from agiraph.core.store.stages import STAGES
from agiraph.core.store.tx import Tx

_ACCEPTABLE = (NodeStatus.COMPLETED, NodeStatus.PARTIAL)


def reconvene(
    tx: Tx,
    lease: Lease,
    *,
    assessment: str,
    verdicts: Sequence[Verdict],
    decision: StageDecision | None,
) -> Stage:
    """Judge the nodes of the open stage of a node, and close it or run it again.

    `redo` gives a node back to its worker with the reason, as a new node in the same thread;
    `drop` cancels an unfinished node. Without verdicts, results are accepted and failed nodes
    dropped. With the decision `redo` the stage runs on with its accepted and its redone nodes;
    otherwise it is closed. Without a decision, it is `redo` if a verdict is, else `continue`. An
    unfinished node needs no verdict and runs on.
    """
    stage = stages.running(tx, lease.node_id)
    if stage is None:
        raise Refused("No stage of yours is open; start_stage begins one.")
    members = stage_rows.nodes(tx, stage.id)
    verdicts = verdicts or _usual_verdicts(members)
    if decision is None:
        decision = "redo" if any(v.verdict == "redo" for v in verdicts) else "continue"
    judged = _checked(tx, members, verdicts, decision)
    stored = {n: v.verdict + (f": {v.reason}" if v.reason else "") for n, v in judged.items()}
    given: dict[str, Any] = {
        "assessment": assessment,
        "verdicts": stored,
        "decision": decision,
    }
    if decision == "redo":
        STAGES.update(tx, stage.id, **given)
    else:
        ended_at = stage.ended_at or tx.now
        STAGES.update(tx, stage.id, **given, status="reconvened", ended_at=ended_at)
    for node in members:
        if node.id in judged and judged[node.id].verdict == "drop":
            _drop(tx, node, keeps_running=decision == "redo")
    if decision == "redo":
        redone = [(n, judged[n.id].reason) for n in members if _is_redo(judged, n)]
        _redo(tx, lease, stage, redone)
    tx.emit(stage.team_id, StageReconvened(stage_id=stage.id, name=stage.name, **given))
    return stages.checked(tx, lease, stage.id)


def _usual_verdicts(members: Sequence[WorkNode]) -> list[Verdict]:
    """Return a verdict on each ended node: its result counts, if it has one."""
    ended = [node for node in members if node.status.is_final]
    return [
        Verdict(node_id=n.id, verdict="accept" if n.status in _ACCEPTABLE else "drop")
        for n in ended
    ]


def _is_redo(judged: dict[NodeId, Verdict], node: WorkNode) -> bool:
    return node.id in judged and judged[node.id].verdict == "redo"


def _checked(
    tx: Tx, members: list[WorkNode], verdicts: Sequence[Verdict], decision: StageDecision
) -> dict[NodeId, Verdict]:
    """Return the verdicts by node. Raise `Refused`, with the list of nodes, if they do not fit."""
    known = {node.id: node for node in members}
    judged: dict[NodeId, Verdict] = {}
    wrong: list[str] = []
    for verdict in verdicts:
        node = known.get(NodeId(verdict.node_id.strip()))
        if node is None:
            wrong.append(f"{verdict.node_id!r} is not a task of this stage")
        elif node.id in judged:
            wrong.append(f"{node.id} has two verdicts")
        else:
            judged[node.id] = verdict
            wrong += _objections(node, verdict)
    missing = [n.id for n in members if n.status.is_final and n.id not in judged]
    if missing:
        wrong.append(f"no verdict on {', '.join(missing)}")
    is_redone = any(verdict.verdict == "redo" for verdict in judged.values())
    if is_redone != (decision == "redo"):
        wrong.append("the decision is redo exactly if a task is to be redone")
    if wrong:
        raise Refused(
            f"Nothing was changed: {'; '.join(wrong)}. Call reconvene again with a verdict "
            f"(accept, redo with a reason, or drop) on each of these tasks:\n{_listed(tx, members)}"
        )
    return judged


def _objections(node: WorkNode, verdict: Verdict) -> list[str]:
    """Return why a verdict does not fit the state of its node."""
    if not node.status.is_final and verdict.verdict != "drop":
        return [f"{node.id} is still {node.status}: leave it out to let it go on, or drop it"]
    if verdict.verdict == "accept" and node.status not in _ACCEPTABLE:
        return [f"{node.id} is {node.status}, so there is nothing to accept: redo or drop it"]
    if verdict.verdict == "redo" and not verdict.reason.strip():
        return [f"redo of {node.id} needs a reason: what is wrong, and what to do about it"]
    return []


def _listed(tx: Tx, members: list[WorkNode]) -> str:
    def line(node: WorkNode) -> str:
        who = "nobody" if node.assignee_id is None else planning.name_of(tx, node.assignee_id)
        note = "" if node.status.is_final else "; it goes on unless you drop it"
        return f"- {node.id}: {texts.title_of(node)} ({who}), {node.status}{note}"

    return "\n".join(line(node) for node in members)


def _drop(tx: Tx, node: WorkNode, *, keeps_running: bool) -> None:
    """Leave a node out of what counts; cancel it if it has not ended."""
    if keeps_running:
        _leave_stage(tx, node)  # the stage that runs on must not count it
    if not node.status.is_final:
        endings.cancel(tx, node.id)


def _leave_stage(tx: Tx, node: WorkNode) -> None:
    NODES.update(tx, node.id, stage_id=None)
    tx.emit(node.team_id, NodeChanged(node_id=node.id, changed={"stage_id": None}))


def _redo(tx: Tx, lease: Lease, stage: Stage, redone: Sequence[tuple[WorkNode, str]]) -> None:
    """Replace nodes of a stage by new ones that continue their threads, and run the stage again."""
    if stage.status != "running":
        stages.reopen(tx, stage)
    parent = NODES.get(tx, lease.node_id)
    replaced: dict[NodeId, NodeId] = {}
    for node, reason in redone:  # in order of creation: what a node needs comes before it
        again = _again(tx, parent, node, reason, replaced)
        _leave_stage(tx, node)
        replaced[node.id] = again.id
        stages.add(tx, lease, STAGES.get(tx, stage.id), again)
    stages.check_contract(tx, stage.id)


def _again(
    tx: Tx, parent: WorkNode, node: WorkNode, reason: str, replaced: dict[NodeId, NodeId]
) -> WorkNode:
    """Create the node that does a sent-back node again, by the same worker if it had one."""
    assert parent.assignee_id is not None
    worker = _worker(tx, node)
    again = planning.create(
        tx,
        team_id=node.team_id,
        task=f"{node.task}\n\nThis was done before ({node.id}) and is sent back:\n{reason}",
        title=node.title,
        source="delegation",
        creator_id=parent.assignee_id,
        assignee_id=None if worker is None else worker.id,
        parent_id=parent.id,
        depends_on=[replaced[n.id] for n in dependencies.needs(tx, node.id) if n.id in replaced],
        refs=node.refs,
        acceptance=node.acceptance,
        line_kinds=node.line_kinds,
        needs_tools=node.needs_tools,
        if_unmet=node.if_unmet,
        budget=budgets.share(tx, parent),
        effort=node.effort,
    )
    if worker is not None and node.thread_id is not None:
        giver = planning.name_of(tx, parent.assignee_id)
        leases.continue_thread(tx, node, again, giver=giver)
    return NODES.get(tx, again.id)


def _worker(tx: Tx, node: WorkNode) -> Agent | None:
    return None if node.assignee_id is None else teams.lock(tx, node.assignee_id)
