"""Triggers: why an agent wakes without being spoken to, and what became of each time it should."""

from dataclasses import field
from datetime import datetime, timedelta
from typing import Any, Literal

from agiraph.domain.ids import SYSTEM, AgentId, NodeId, TeamId, TriggerId
from agiraph.domain.value import value

TriggerType = Literal[
    "scheduled", "delayed", "at_time", "heartbeat", "on_event", "on_idle", "webhook"
]
TriggerStatus = Literal["active", "paused", "expired", "cancelled"]
ActionType = Literal["wake_agent", "run_node", "send_message", "run_callback"]
Misfire = Literal["once", "all", "skip"]
"""What becomes of slots nobody was there for: the latest is made up for, all are, or none."""
Overlap = Literal["skip", "queue"]
"""What becomes of a slot while the work of an earlier one is unfinished."""
Outcome = Literal["fired", "skipped", "calling", "failed"]
"""`calling`: a callback is to be called, or was when the process ended."""

NOTHING_TO_DO = "HEARTBEAT_OK"
"""What an agent hands in that was woken and found nothing to do."""

LATE_AFTER = timedelta(minutes=2)
"""A slot that is handled within this time after its due time counts as on time."""


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
    """The next slot. None: its agent is at work, it is over, or it is not time that sets it off."""
    fired_at: datetime | None = None
    fired: int = 0
    skipped: int = 0
    made_by: str = SYSTEM
    """An agent, the person, or the runtime itself."""
    payer_id: NodeId | None = None
    """Whose budget its work is paid from: the work in which it was made."""
    generation: int = 0
    """How many triggers in a row led to it, each made in work that the one before set off."""
    max_fires: int | None = None
    until: datetime | None = None
    gated: int = 0
    """How often there was nothing to wake anybody for."""
    gate: str | None = None
    """Why, the last time."""
    quiet: int = 0
    """Wakings in a row in which nothing was found to do."""
    rested_at: datetime | None = None
    """When its agent last came to rest; what happened since is news."""
    cursor: int = 0
    """The last event it looked at."""
    watched: dict[str, str] = field(default_factory=dict[str, str])
    """Hashes of the files it watches, as they were when it last woke somebody."""
    secret: str | None = None
    """The hash of what a webhook's caller must know."""
    promised_to: str | None = None
    """Whom its agent promised to do this by then."""
    tainted_by: str | None = None
    """Where the words of its task come from, if nobody on the team vouches for them."""
    ended_at: datetime | None = None
    ended: str | None = None
    """Why it is over."""


@value
class Firing:
    """What became of one slot; or, if nobody was there for them, of several in a row."""

    trigger_id: TriggerId
    slot: str
    """A moment, an event's number or a delivery's name: unique among those of its trigger."""
    at: datetime
    outcome: Outcome
    reason: str = ""
    node_id: NodeId | None = None
    count: int = 1
    """How many slots, up to the last one."""
    last_slot: str | None = None


@value
class CallbackRequest:
    """What a named callback is handed. It may be called again with the same key after a crash."""

    key: str
    trigger_id: TriggerId
    team_id: TeamId
    slot: str
    payload: dict[str, Any]
