"""Timing: how long was worked on nodes and steps, without the time in which they waited.

A wait for a person, a teammate or a time parks the node, and events say when it was parked and when
it ran again. A run that a crash cut off has no such event: from its last entry to the next start
nobody worked.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from agiraph.core.domain.chat import Turn
from agiraph.core.domain.events import Event
from agiraph.core.domain.events.work import NODE_ENDS
from agiraph.core.domain.ids import TeamId
from agiraph.core.domain.value import value
from agiraph.core.domain.work import NodeStatus, StopReason, WorkNode
from agiraph.core.store import events
from agiraph.core.store.tx import Tx

STARTED = "node.started"
PAUSED = ("node.waiting", "node.assigned")
_NEVER_RAN = (StopReason.UNMET, StopReason.SKIPPED)


@value
class StepTime:
    started_at: datetime
    """The time of the entry before it."""
    waited_s: float
    """Seconds since then in which nobody worked on it."""


def worked_seconds(node: WorkNode) -> float:
    """Return how long a node was worked on, without its present run."""
    ran_to_its_end = node.status in (
        NodeStatus.COMPLETED,
        NodeStatus.PARTIAL,
        NodeStatus.FAILED,
    ) and (node.stop_reason not in _NEVER_RAN)
    if not ran_to_its_end or node.ended_at is None or node.claimed_at is None:
        return node.worked_seconds
    return node.worked_seconds + max((node.ended_at - node.claimed_at).total_seconds(), 0.0)


def used_seconds(node: WorkNode, now: datetime) -> float:
    """Return how long a node was worked on, with its present run."""
    worked = worked_seconds(node)
    if node.status is not NodeStatus.RUNNING or node.claimed_at is None:
        return worked
    return worked + max((now - node.claimed_at).total_seconds(), 0.0)


def of_turns(
    tx: Tx, team_id: TeamId, turns: Sequence[Turn], before: Turn | None = None
) -> list[StepTime]:
    """Return the times of consecutive turns of a thread; `before` is the turn in front of them."""
    if not turns:
        return []
    first = before or turns[0]
    node_ids = {turn.node_id for turn in turns}
    found = events.between(
        tx, team_id, since=first.at, until=turns[-1].at, types=(STARTED, *PAUSED, *NODE_ENDS)
    )
    changes = [event for event in found if event.data.get("node_id") in node_ids]
    return list(_step_times(turns, first.at, changes))


def _step_times(
    turns: Sequence[Turn], since: datetime, changes: Sequence[Event]
) -> Iterator[StepTime]:
    place, paused_at = 0, None
    last_sign = since
    for turn in turns:
        waited = timedelta()
        while place < len(changes) and changes[place].at <= turn.at:
            change = changes[place]
            place += 1
            if change.type == STARTED:
                waited += max(change.at - max(paused_at or last_sign, since), timedelta())
                paused_at = None
            elif paused_at is None:
                paused_at = change.at
            last_sign = change.at
        if paused_at is not None:  # the answer of a call that still waited
            waited += turn.at - max(paused_at, since)
        yield StepTime(started_at=since, waited_s=min(waited, turn.at - since).total_seconds())
        since = last_sign = turn.at
