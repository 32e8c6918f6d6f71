"""Stalls: work that is running and of which nothing comes. Told once, until something does."""

from datetime import datetime, timedelta

from agiraph.domain.chat import Turn
from agiraph.domain.events.work import NodeStalled
from agiraph.domain.ids import HUMAN, SYSTEM, AgentId, NodeId
from agiraph.domain.work import NodeStatus, WorkNode
from agiraph.services.board import notices, planning
from agiraph.services.mail import bus
from agiraph.store import nodes, teams, threads
from agiraph.store.nodes import NODES
from agiraph.store.tx import Tx

AFTER_SECONDS = 600.0
"""Longer than any single call to a model takes with all its retries."""


def look(tx: Tx) -> int:
    """Tell of every node that has stalled, and forget those that go on; how many were told of."""
    told = 0
    for node in nodes.at_work(tx):
        if node.stalled_at is not None:
            if last_sign(tx, node) > node.stalled_at:
                NODES.update(tx, node.id, stalled_at=None)
        elif is_late(tx, node):
            told += note(tx, node.id)
    return told


def last_sign(tx: Tx, node: WorkNode) -> datetime:
    """When a running node was claimed, or last written to."""
    last = None if node.thread_id is None else threads.last(tx, node.thread_id)
    return max(filter(None, (node.claimed_at, last.at if last else None)), default=tx.now)


def is_late(tx: Tx, node: WorkNode) -> bool:
    """Whether nothing has come of a running node for longer than any step of it may take."""
    last = None if node.thread_id is None else threads.last(tx, node.thread_id)
    longest = timedelta(seconds=AFTER_SECONDS + _allowed(tx, last))
    return tx.now - last_sign(tx, node) > longest


def _allowed(tx: Tx, last: Turn | None) -> float:
    """How long what is under way may take by itself: a command says so beforehand."""
    if last is None or last.role != "intent":
        return 0.0
    if "seconds" in last.extra:
        return float(last.extra["seconds"])
    before = threads.turns(tx, last.thread_id, after=max(last.seq - 40, 0), limit=40)
    for turn in reversed(before):
        for call in turn.calls:
            if call.id == last.ref:
                return float(call.arguments.get("timeout") or 120)
    return 0.0


def note(tx: Tx, node_id: NodeId) -> bool:
    """Tell whoever asked for a node that nothing comes of it; once an episode."""
    node = NODES.get(tx, node_id, lock=True)
    if node.stalled_at is not None or node.status is not NodeStatus.RUNNING:
        return False
    NODES.update(tx, node_id, stalled_at=tx.now)
    tx.emit(node.team_id, NodeStalled(node_id=node_id, agent_id=node.assignee_id))
    assert node.assignee_id is not None
    recipient = _hearer(tx, node)
    worker = planning.name_of(tx, node.assignee_id)
    bus.send(
        tx,
        team_id=node.team_id,
        sender=SYSTEM,
        recipient=recipient,
        kind="report" if recipient == HUMAN else "notice",
        title=notices.title_of(node),
        text=f"{worker} is at {notices.title_of(node)} ({node.id}), but nothing has come of it "
        f"for {AFTER_SECONDS / 60:.0f} minutes. You can wait, ask, or cancel it.",
        node_id=node_id,
        refusable=False,
    )
    return True


def _hearer(tx: Tx, node: WorkNode) -> str:
    """Whoever gave the work, else the coordinator, if at work to hear it; else the person."""
    if node.creator_id in (HUMAN, SYSTEM):
        return HUMAN
    coordinator = teams.members(tx, node.team_id)[0].id
    asked = (AgentId(node.creator_id), coordinator)
    hear = (a for a in asked if a != node.assignee_id and nodes.has_open(tx, a))
    return next(hear, HUMAN)
