"""Endings: how a node ends, and what that sets in motion. One transaction each."""

from agiraph.domain.agents import Agent
from agiraph.domain.chat import Lease
from agiraph.domain.errors import Refused
from agiraph.domain.ids import HUMAN, SYSTEM, NodeId
from agiraph.domain.messages import ASKS_FOR_WORK
from agiraph.domain.outcomes import Failed, Finished
from agiraph.domain.work import NodeStatus, StopReason, WorkNode
from agiraph.services.board import leases, notices, planning, stage_clocks, stages, waiting
from agiraph.services.lifecycle import idle, research
from agiraph.services.mail import bus
from agiraph.services.members import roster
from agiraph.store import dependencies, messages, nodes, teams, threads, waits
from agiraph.store.nodes import NODES
from agiraph.store.teams import AGENTS
from agiraph.store.tx import Tx


def conclude(tx: Tx, lease: Lease, outcome: Finished | Failed) -> WorkNode:
    """End the node, tell whoever asked for it, and let nothing said meanwhile get lost."""
    threads.check_lease(tx, lease)
    agent = teams.lock(tx, lease.agent_id)
    node = NODES.get(tx, lease.node_id, lock=True)
    status, text, doubts = _told(outcome)
    node = nodes.move(
        tx,
        node,
        status,
        result=outcome.result,
        stop_reason=outcome.reason,
        manifest=outcome.manifest,
        doubts=doubts,
        ended_at=tx.now,
        owner=None,
    )
    _close(tx, node)
    tx.emit(
        node.team_id,
        "node.completed" if status is NodeStatus.COMPLETED else "node.failed",
        node_id=node.id,
        reason=outcome.reason,
        result=text,
        doubts=doubts,
    )
    if status is NodeStatus.FAILED:
        _cancel_children(tx, node)
    _spread(tx, node, text)
    _take_up_late_mail(tx, agent)
    idle.begin(tx, agent, node)
    roster.leave(tx, agent)
    planning.distribute(tx, node.team_id)
    tx.wake(agent.id, node.lane)
    return node


def _told(outcome: Finished | Failed) -> tuple[NodeStatus, str, str | None]:
    """The status that an outcome leads to, and its words and doubts as messages can carry them.

    What comes after must not depend on what a model or a program wrote: an end is never refused.
    """
    match outcome:
        case Finished(result, doubts=doubts):
            cut = None if doubts is None else notices.cut(doubts, notices.DOUBTS)
            return NodeStatus.COMPLETED, notices.fitted(result), cut
        case Failed(detail=detail):
            return NodeStatus.FAILED, notices.fitted(detail), None


def cancel(tx: Tx, node_id: NodeId) -> None:
    """End a node and all below it: at once what is at rest, at its next yield point what runs."""
    node = NODES.get(tx, node_id, lock=True)
    _cancel_children(tx, node)  # of a node that has ended, too: some may go on in the background
    if node.status.is_final:
        return
    if node.status is NodeStatus.RUNNING and node.owner is not None:
        assert node.assignee_id is not None
        NODES.update(tx, node_id, cancel_requested=True)
        tx.cancel(node.assignee_id, node.lane)
        # If its runner is gone there is nobody to cancel: then whoever is woken ends the node.
        return tx.wake(node.assignee_id, node.lane)
    end_cancelled(tx, node)


def _cancel_children(tx: Tx, node: WorkNode) -> None:
    for child in reversed(nodes.children(tx, node.id)):  # what needs others goes before them
        cancel(tx, child.id)


def cancelled(tx: Tx, lease: Lease) -> None:
    """The runner has stopped a node it was asked to cancel."""
    threads.check_lease(tx, lease)
    node = NODES.get(tx, lease.node_id, lock=True)
    end_cancelled(tx, node)
    tx.wake(lease.agent_id, node.lane)


def end_cancelled(tx: Tx, node: WorkNode) -> None:
    reason = StopReason.CANCELLED
    _end_unrun(tx, node, NodeStatus.CANCELLED, reason, "It was cancelled before it was done.")


def _end_unrun(tx: Tx, node: WorkNode, status: NodeStatus, reason: StopReason, why: str) -> None:
    """End a node without its worker's doing."""
    node = nodes.move(
        tx,
        node,
        status,
        stop_reason=reason,
        ended_at=tx.now,
        waiting_reason=None,
        owner=None,
    )
    _close(tx, node)
    event = "node.cancelled" if status is NodeStatus.CANCELLED else "node.failed"
    tx.emit(node.team_id, event, node_id=node.id, reason=reason, result=why)
    _cancel_children(tx, node)
    _spread(tx, node, why)
    if node.assignee_id is not None:
        agent = teams.lock(tx, node.assignee_id)
        _take_up_late_mail(tx, agent)
        idle.begin(tx, agent, node)
        roster.leave(tx, agent)
    planning.distribute(tx, node.team_id)


def _close(tx: Tx, node: WorkNode) -> None:
    """Nothing more is written to the thread of a node that has ended, by whoever it may be."""
    waits.drop(tx, node.id)
    stage_clocks.hold_above(tx, node.id)
    if (thread := threads.of_node(tx, node.id)) is None or thread.node_id != node.id:
        return
    lease = Lease(
        team_id=node.team_id,
        agent_id=thread.agent_id,
        node_id=node.id,
        thread_id=thread.id,
        epoch=thread.epoch,
    )
    leases.charge_lost(tx, lease)
    leases.end_run(tx, lease, closed_at=tx.now)


def _spread(tx: Tx, node: WorkNode, text: str) -> None:
    """Let everyone know who waited for this end: once each."""
    told = _is_waiting(tx, node)
    worker = "nobody" if node.assignee_id is None else planning.name_of(tx, node.assignee_id)
    done = node.status is NodeStatus.COMPLETED
    notice = notices.completion(node, worker=worker, text=text)
    waiting.settle(tx, f"node:{node.id}", notice, failed=not done)
    if node.stage_id is not None:
        stages.judge(tx, node.stage_id)
    if node.asked_of is not None and node.status is not NodeStatus.CANCELLED:
        research.deliver(tx, node, text)
        told = told or node.creator_id == HUMAN
    if not told:
        _report(tx, node, text, notice)
    _release_dependents(tx, node)


def _is_waiting(tx: Tx, node: WorkNode) -> bool:
    """Whether whoever asked for this node waits for it, or for the stage it belongs to."""
    open_waits = waits.on(tx, f"node:{node.id}")
    if node.stage_id is not None:
        open_waits += waits.on(tx, f"stage:{node.stage_id}")
    return any(NODES.get(tx, wait.node_id).assignee_id == node.creator_id for wait in open_waits)


def _report(tx: Tx, node: WorkNode, text: str, notice: str) -> None:
    """Every request ends in a delivery; nobody is told what they did themselves."""
    if node.creator_id in (node.assignee_id, SYSTEM):
        return
    if node.creator_id == HUMAN and node.status is NodeStatus.CANCELLED:
        return  # only a person, or the end of everything, cancels what a person asked for
    recipient = _hearer(tx, node)
    if recipient == node.assignee_id:
        return
    bus.send(
        tx,
        team_id=node.team_id,
        sender=node.assignee_id or SYSTEM,
        recipient=recipient,
        kind="result" if node.status is NodeStatus.COMPLETED else "failure",
        title=notices.title_of(node),
        text=text if recipient == HUMAN else notice,
        node_id=node.id,
        refusable=False,
    )


def _hearer(tx: Tx, node: WorkNode) -> str:
    """Who is told how a node ended: its creator; once that has left, the first member there is."""
    if node.creator_id == HUMAN:
        return HUMAN
    creator = AGENTS.find(tx, node.creator_id)
    if creator is not None and creator.retired_at is None:
        return creator.id
    members = teams.members(tx, node.team_id)
    return members[0].id if members else HUMAN


def _release_dependents(tx: Tx, node: WorkNode) -> None:
    """Let go on what needed this node; if it did not succeed, as each of them declares."""
    for dependent in dependencies.dependents(tx, node.id):
        if NODES.get(tx, dependent.id).status is not NodeStatus.PENDING:
            continue  # it needed another one of these, and has ended with that
        needed = dependencies.needs(tx, dependent.id)
        unmet = [n for n in needed if planning.is_unmet(n)]
        what = notices.listed([f"{notices.title_of(n)} ({n.id}) is {n.status}" for n in unmet])
        if unmet and dependent.if_unmet == "fail":
            why = f"It needs what did not succeed: {what}."
            _end_unrun(tx, dependent, NodeStatus.FAILED, StopReason.UNMET, why)
        elif unmet and dependent.if_unmet == "skip":
            why = f"It was left out, because it needs what did not succeed: {what}."
            _end_unrun(tx, dependent, NodeStatus.CANCELLED, StopReason.SKIPPED, why)
        elif any(not n.status.is_final for n in needed):
            continue
        elif unmet and dependent.if_unmet == "ask":
            _ask_about(tx, dependent, what)
        elif dependent.assignee_id is not None:
            planning.hand_out(tx, dependent)


def _ask_about(tx: Tx, node: WorkNode, what: str) -> None:
    """Let the coordinator decide whether a node is done without what it needs."""
    reason = f"needs a decision: {what}"
    NODES.update(tx, node.id, waiting_reason=reason)
    tx.emit(node.team_id, "node.waiting", node_id=node.id, on=[], reason=reason)
    members = teams.members(tx, node.team_id)
    bus.send(
        tx,
        team_id=node.team_id,
        sender=SYSTEM,
        recipient=members[0].id if members else HUMAN,
        kind="nudge" if members else "report",  # work again, for a coordinator with none left
        title=notices.title_of(node),
        text=f"{notices.title_of(node)} ({node.id}) cannot start as planned: {what}. Give it to "
        "somebody with assign_worker all the same, or go on without it.",
        node_id=node.id,
        refusable=False,
    )


def _take_up_late_mail(tx: Tx, agent: Agent) -> None:
    """A message that came as the agent finished becomes its next piece of work."""
    late = [
        m
        for m in messages.unseen(tx, agent.id)
        if m.kind in ASKS_FOR_WORK and not nodes.is_open(tx, m.reply_id)
    ]  # what is being answered becomes work with the answer, or not at all
    if not late or nodes.has_open(tx, agent.id):
        return  # whoever works next hears it at the first yield point
    if teams.TEAMS.get(tx, agent.team_id).status == "stopped":
        return
    try:
        bus.create_work(tx, agent, late)
    except Refused:
        return  # a full team takes nobody back: the mail stays unread until the agent works again
    messages.mark_seen(tx, [m.id for m in late])
