"""Events: what happened in a team, numbered without gaps in the order it was committed."""

from dataclasses import field
from datetime import datetime
from typing import Any, Literal

from agiraph.domain.ids import TeamId
from agiraph.domain.value import value

EventType = Literal[
    "team.created",
    "team.completed",
    "team.paused",
    "team.resumed",
    "team.stopped",
    "team.archived",
    "agent.hired",
    "agent.left",
    "agent.promoted",
    "node.created",
    "node.assigned",
    "node.started",
    "node.waiting",
    "node.completed",
    "node.failed",
    "node.cancelled",
    "node.checkpoint",
    "node.stalled",
    "node.output",
    "stage.started",
    "stage.ended",
    "stage.reconvened",
    "thread.opened",
    "thread.compacted",
    "turn.added",
    "tool.result",
    "message.sent",
    "message.seen",
    "question.asked",
    "question.answered",
    "model.failed",
    "call.lost",
    "trigger.created",
    "trigger.changed",
    "trigger.fired",
    "trigger.skipped",
    "trigger.ended",
    "memory.written",
    "insight.learned",
    "knowledge.held",
    "knowledge.changed",
    "thread.harvested",
    "briefing.decided",
    "briefing.rated",
    "delivery.sent",
    "delivery.failed",
]

PREVIEW = 400
"""How much of a text an event carries; the whole of it is in the thread."""


@value
class Event:
    team_id: TeamId
    seq: int
    type: EventType
    at: datetime
    data: dict[str, Any] = field(default_factory=dict[str, Any])
