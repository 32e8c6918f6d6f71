"""Stalled: find running nodes that write nothing any more, and report each of them once."""

from datetime import datetime, timedelta

from agiraph.domain.chat import Turn
from agiraph.domain.events.work import NodeStalled
from agiraph.domain.ids import SYSTEM, AgentId, NodeId
from agiraph.domain.persons import is_person
from agiraph.domain.work import NodeStatus, WorkNode
from agiraph.services.board import planning, texts
from agiraph.services.mail import bus
from agiraph.store import nodes, teams, threads
from agiraph.store.nodes import NODES
from agiraph.store.tx import Tx

AFTER_SECONDS = 600.0
"""Longer than a single model call takes with all its retries."""


def check_all(tx: Tx) -> int:
    """Report every stalled node and unmark those that write again; return how many it reported."""
    reported = 0
    for node in nodes.at_work(tx):
        if node.stalled_at is not None:
            if last_activity(tx, node) > node.stalled_at:
                NODES.update(tx, node.id, stalled_at=None)
        elif is_stalled(tx, node):
            reported += report(tx, node.id)
    return reported


def last_activity(tx: Tx, node: WorkNode) -> datetime:
    """Return when a running node was claimed, or when its last turn was written."""
    last = None if node.thread_id is None else threads.last(tx, node.thread_id)
    return max(filter(None, (node.claimed_at, last.at if last else None)), default=tx.now)


def is_stalled(tx: Tx, node: WorkNode) -> bool:
    """Whether a running node has written nothing for longer than its current step may take."""
    last = None if node.thread_id is None else threads.last(tx, node.thread_id)
    longest = timedelta(seconds=AFTER_SECONDS + _declared_seconds(tx, last))
    return tx.now - last_activity(tx, node) > longest


def _declared_seconds(tx: Tx, last: Turn | None) -> float:
    """Return the timeout of the command or program that runs now, 0 if there is none."""
    if last is None or last.role != "intent":
        return 0.0
    if last.timeout_s is not None:
        return last.timeout_s
    # The reply with the call stands before its intent. 40 turns reach over the intents and answers
    # of about twenty earlier calls of that reply.
    before = threads.turns(tx, last.thread_id, after=max(last.seq - 40, 0), limit=40)
    for turn in reversed(before):
        for call in turn.calls:
            if call.id == last.ref:
                return float(call.arguments.get("timeout") or 120)
    return 0.0


def report(tx: Tx, node_id: NodeId) -> bool:
    """Mark a node as stalled and report it; False if it was marked before or no longer runs."""
    node = NODES.get(tx, node_id, lock=True)
    # Under the row lock: each working process has a watchdog, and one of them reports.
    if node.stalled_at is not None or node.status is not NodeStatus.RUNNING:
        return False
    NODES.update(tx, node_id, stalled_at=tx.now)
    tx.emit(node.team_id, NodeStalled(node_id=node_id, agent_id=node.assignee_id))
    assert node.assignee_id is not None
    recipient = _report_recipient(tx, node)
    worker = planning.name_of(tx, node.assignee_id)
    title = texts.subject_of(node) if is_person(recipient) else texts.title_of(node)
    bus.send(
        tx,
        team_id=node.team_id,
        sender=SYSTEM,
        recipient=recipient,
        kind="report" if is_person(recipient) else "notice",
        title=title,
        text=f"{worker} works on {title} ({node.id}), but has made no progress "
        f"for {AFTER_SECONDS / 60:.0f} minutes. You can wait, ask, or cancel it.",
        node_id=node_id,
        refusable=False,
    )
    return True


def _report_recipient(tx: Tx, node: WorkNode) -> str:
    """Return the creator, else the coordinator, if that agent has open work; else the person
    whom the node is for.

    An agent without open work would not read the report before its next node.
    """
    person = planning.person_for(tx, node)
    if is_person(node.creator_id) or node.creator_id == SYSTEM:
        return person
    coordinator = teams.coordinator(tx, node.team_id).id
    asked = (AgentId(node.creator_id), coordinator)
    readers = (a for a in asked if a != node.assignee_id and nodes.has_open(tx, a))
    return next(readers, person)
