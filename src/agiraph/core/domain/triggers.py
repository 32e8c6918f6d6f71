"""Triggers: what wakes an agent without a message, and the outcome of each of their slots."""

from dataclasses import field
from datetime import datetime, timedelta
from typing import Any, Literal

from agiraph.core.domain.ids import SYSTEM, AgentId, NodeId, TeamId, TriggerId
from agiraph.core.domain.provenance.labels import CLEAN, Label
from agiraph.core.domain.value import value

TriggerType = Literal[
    "scheduled", "delayed", "at_time", "heartbeat", "on_event", "on_idle", "webhook"
]
TriggerStatus = Literal["active", "paused", "expired", "cancelled"]
ActionType = Literal["wake_agent", "run_node", "send_message", "research", "run_callback"]
Misfire = Literal["once", "all", "skip"]
"""What to do about missed slots: fire the latest one once, fire all of them, or skip them."""
Overlap = Literal["skip", "queue"]
"""What to do about a slot while the work of an earlier slot is unfinished."""
Outcome = Literal["fired", "skipped", "calling", "failed"]
"""`calling`: a callback is queued or running, or was running when its process ended."""
TeamEnd = Literal["completed", "stopped", "archived"]
EndedWith = Literal[TeamEnd, "goal"]
"""What a trigger ended with: its team, or the team's goal, which a person stopped."""

LATE_AFTER = timedelta(minutes=2)
"""A slot that is handled within this time after its due time counts as on time."""
LEAST_APART = timedelta(hours=1)
"""The least time between two firings of an agent's labelled triggers."""


@value
class Trigger:
    id: TriggerId
    team_id: TeamId
    agent_id: AgentId
    type: TriggerType
    action: ActionType
    created_at: datetime
    config: dict[str, Any] = field(default_factory=dict[str, Any])
    payload: dict[str, Any] = field(default_factory=dict[str, Any])
    zone: str = "UTC"
    misfire: Misfire = "once"
    overlap: Overlap = "skip"
    status: TriggerStatus = "active"
    due_at: datetime | None = None
    """When it fires next. In the past while a trigger for one time waits for a budget. None if its
    agent is at work on it, if it has ended, or if no time fires it."""
    fired_at: datetime | None = None
    fired: int = 0
    skipped: int = 0
    missed: int = 0
    """How many of the skipped slots passed without a runtime that could fire them."""
    made_by: str = SYSTEM
    """The id of an agent, the person, or the runtime itself."""
    payer_id: NodeId | None = None
    """The node whose budget pays for its work: the work in which it was created, or the team's
    goal if that is newer."""
    generation: int = 0
    """How many triggers led to it, each created in work that the previous one started."""
    max_fires: int | None = None
    until: datetime | None = None
    gated: int = 0
    """How often the wake gate stayed closed."""
    gate: str | None = None
    """Why the wake gate stayed closed when it was last checked, if it has not fired since."""
    quiet: int = 0
    """Wake-ups in a row in which the agent found nothing to do."""
    rested_at: datetime | None = None
    """When the agent's last work ended; anything later is news."""
    cursor: int = 0
    """The number of the last event it has read."""
    watched: dict[str, str] = field(default_factory=dict[str, str])
    """Hashes of its watched files at the last wake-up."""
    secret: str | None = None
    """The hash of a webhook's secret."""
    promised_to: str | None = None
    """The person or agent to whom the task was promised for this time."""
    label: Label = CLEAN
    """The sources outside the team that words of its task came from."""
    confirmed_at: datetime | None = None
    """When a person confirmed a labelled trigger. Its words stay labelled; its bounds are gone."""
    ended_at: datetime | None = None
    ended: str | None = None
    """Why it has ended."""
    ended_with: EndedWith | None = None
    """What it ended with, and is active again with. None: it ended by itself, or was ended."""


@value
class Firing:
    """The outcome of one slot, or of several missed slots in a row."""

    trigger_id: TriggerId
    slot: str
    """A time, an event number or a delivery id; unique within its trigger."""
    at: datetime
    outcome: Outcome
    reason: str = ""
    node_id: NodeId | None = None
    count: int = 1
    """The number of slots from `slot` to `last_slot`."""
    last_slot: str | None = None


@value
class CallbackRequest:
    """The argument of a callback. After a crash it may be called again with the same key."""

    key: str
    trigger_id: TriggerId
    team_id: TeamId
    slot: str
    payload: dict[str, Any]
