"""Timers: fires due timers: of waits, stages, triggers, requests, snoozed items, unowned nodes."""

from agiraph.domain.ids import MessageId, NodeId, StageId, TeamId, TriggerId
from agiraph.domain.waits import DAY
from agiraph.services.board import planning, stage_clocks, stages, waiting
from agiraph.services.lifecycle import asks, daily_limit, digest, endings
from agiraph.services.mail import filing
from agiraph.services.triggers import due, firing
from agiraph.store import waits
from agiraph.store.nodes import NODES
from agiraph.store.tx import Tx


def fire_due(tx: Tx, *timer_ids: str) -> int:
    """Fire every timer that is due, or only these; return how many fired.

    A timer's row is deleted in the transaction that acts on it. Of two processes that see the same
    timer, one deletes the row and acts; the other finds no row and does nothing.
    """
    # `timer_ids` may name timers that another process has fired since they were read.
    fired = [timer for timer in timer_ids or waits.due(tx) if waits.take_due_timer(tx, timer)]
    # Each prefix belongs to one kind of timer; ids of plain timers have none.
    for timer in fired:
        if timer.startswith(stage_clocks.TIMER):
            stage_id = StageId(timer.removeprefix(stage_clocks.TIMER))
            endings.tell_stage_end(tx, stages.check_deadline(tx, stage_id))
        elif timer.startswith(firing.TIMER):
            due.fire_due(tx, TriggerId(timer.removeprefix(firing.TIMER)))
        elif timer.startswith(DAY):
            daily_limit.end_day(tx, timer.removeprefix(DAY))
        elif timer.startswith(asks.TIMER):
            asks.expire(tx, MessageId(timer.removeprefix(asks.TIMER)))
        elif timer.startswith(filing.TIMER):
            filing.bring_back(tx, MessageId(timer.removeprefix(filing.TIMER)))
        elif timer.startswith(digest.TIMER):
            digest.notify(tx, TeamId(timer.removeprefix(digest.TIMER)))
        elif timer.startswith(planning.UNOWNED_TIMER):
            node = NODES.get(tx, NodeId(timer.removeprefix(planning.UNOWNED_TIMER)))
            planning.assign_unowned(tx, node.team_id)
        else:
            waiting.time_out(tx, timer)
    return len(fired)
