"""Timers: fires due timers: of waits, stages, triggers, requests, snoozed items, unowned nodes."""

from collections.abc import Callable, Mapping

from agiraph.domain.ids import MessageId, NodeId, StageId, TeamId, TriggerId
from agiraph.domain.waits import Timer, TimerKind
from agiraph.services.board import planning, requests, stages, waiting
from agiraph.services.lifecycle import daily_limit, digest, endings
from agiraph.services.mail import filing
from agiraph.services.triggers import due
from agiraph.store import waits
from agiraph.store.nodes import NODES
from agiraph.store.tx import Tx


def _end_stage(tx: Tx, subject: str) -> None:
    endings.tell_stage_end(tx, stages.check_deadline(tx, StageId(subject)))


def _assign_unowned(tx: Tx, subject: str) -> None:
    planning.assign_unowned(tx, NODES.get(tx, NodeId(subject)).team_id)


_ON_DUE: Mapping[TimerKind, Callable[[Tx, str], object]] = {
    "wait": waiting.time_out,
    "stage": _end_stage,
    "trigger": lambda tx, subject: due.fire_due(tx, TriggerId(subject)),
    "day": daily_limit.end_day,
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
