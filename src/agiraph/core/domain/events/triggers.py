"""Trigger events: what happened to the triggers that wake agents."""

from typing import ClassVar

from agiraph.core.domain.events import EventType, TeamEvent, event
from agiraph.core.domain.triggers import ActionType, TriggerStatus, TriggerType


@event
class TriggerCreated(TeamEvent):
    """A trigger was created."""

    event_type: ClassVar[EventType] = "trigger.created"

    trigger_id: str
    agent_id: str
    type: TriggerType
    action: ActionType
    made_by: str
    due_at: str | None


@event
class TriggerChanged(TeamEvent):
    """A trigger's configuration or action was changed, or it was paused or resumed."""

    event_type: ClassVar[EventType] = "trigger.changed"

    trigger_id: str
    agent_id: str
    status: TriggerStatus
    due_at: str | None


@event
class TriggerFired(TeamEvent):
    """A trigger fired and its action ran."""

    event_type: ClassVar[EventType] = "trigger.fired"

    trigger_id: str
    agent_id: str
    slot: str
    """The scheduled time, event or delivery that this firing is for."""
    action: ActionType
    node_id: str | None


@event
class TriggerPostponed(TeamEvent):
    """A trigger for one time was due and waits; it fires later or is skipped."""

    event_type: ClassVar[EventType] = "trigger.postponed"

    trigger_id: str
    agent_id: str
    slot: str
    reason: str


@event
class TriggerSkipped(TeamEvent):
    """A trigger was due and did not fire."""

    event_type: ClassVar[EventType] = "trigger.skipped"

    trigger_id: str
    agent_id: str
    slot: str
    reason: str
    count: int
    """How many slots in a row were skipped."""


@event
class TriggerEnded(TeamEvent):
    """A trigger will not fire again."""

    event_type: ClassVar[EventType] = "trigger.ended"

    trigger_id: str
    agent_id: str
    status: TriggerStatus
    reason: str
