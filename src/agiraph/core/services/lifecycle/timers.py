"""Timers: fires due timers, and reports running nodes that write nothing any more, each once.

Timers are those of waits, stages, triggers, requests, snoozed items and unowned nodes.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from agiraph.core.domain.chat import Turn
from agiraph.core.domain.events.work import NodeStalled
from agiraph.core.domain.ids import SYSTEM, AgentId, MessageId, NodeId, StageId, TeamId, TriggerId
from agiraph.core.domain.messages import Draft
from agiraph.core.domain.persons import is_person
from agiraph.core.domain.work import NodeStatus, Timer, TimerKind, WorkNode
from agiraph.core.services.board import planning, requests, stages, texts, waiting
from agiraph.core.services.lifecycle import digest, endings, overspending
from agiraph.core.services.mail import bus, filing
from agiraph.core.services.triggers import due
from agiraph.core.store import nodes, teams, threads, waits
from agiraph.core.store.nodes import NODES
from agiraph.core.store.tx import Tx

STALLED_AFTER_SECONDS = 600.0
"""Longer than a single model call takes with all its retries."""


def report_stalled(tx: Tx) -> int:
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
    longest = timedelta(seconds=STALLED_AFTER_SECONDS + _declared_seconds(tx, last))
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
        Draft(
            team_id=node.team_id,
            sender=SYSTEM,
            recipient=recipient,
            kind="report" if is_person(recipient) else "notice",
            title=title,
            text=f"{worker} works on {title} ({node.id}), but has made no progress "
            f"for {STALLED_AFTER_SECONDS / 60:.0f} minutes. You can wait, ask, or cancel it.",
            node_id=node_id,
        ),
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


def _end_stage(tx: Tx, subject: str) -> None:
    endings.tell_stage_end(tx, stages.check_deadline(tx, StageId(subject)))


def _assign_unowned(tx: Tx, subject: str) -> None:
    planning.assign_unowned(tx, NODES.get(tx, NodeId(subject)).team_id)


_ON_DUE: Mapping[TimerKind, Callable[[Tx, str], object]] = {
    "wait": waiting.time_out,
    "stage": _end_stage,
    "trigger": lambda tx, subject: due.fire_due(tx, TriggerId(subject)),
    "day": overspending.end_day,
    "ask": lambda tx, subject: requests.expire(tx, MessageId(subject)),
    "snooze": lambda tx, subject: filing.bring_back(tx, MessageId(subject)),
    "digest": lambda tx, subject: digest.notify(tx, TeamId(subject)),
    "unowned": _assign_unowned,
}


def fire_due(tx: Tx, *timers: Timer) -> int:
    """Fire every timer that is due, or only these; return how many fired.

    A timer's row is deleted in the transaction that acts on it. Of two processes that see the same
    timer, one deletes the row and acts; the other finds no row and does nothing.
    """
    # `timers` may name some that another process has fired since they were read.
    fired = [timer for timer in timers or waits.due(tx) if waits.take_due_timer(tx, timer)]
    for timer in fired:
        _ON_DUE[timer.kind](tx, timer.subject)
    return len(fired)
