"""Triggers: why an agent wakes without being spoken to."""

from dataclasses import field
from datetime import datetime
from typing import Any, Literal

from agiraph.domain.ids import AgentId, TeamId, TriggerId
from agiraph.domain.nouns import noun

TriggerType = Literal[
    "scheduled", "delayed", "at_time", "heartbeat", "on_event", "on_idle", "webhook"
]
TriggerStatus = Literal["active", "paused", "expired", "cancelled"]
ActionType = Literal["wake_agent", "run_node", "send_message", "run_callback"]


@noun
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
    misfire: Literal["once", "all", "skip"] = "once"
    overlap: Literal["skip", "queue"] = "skip"
    status: TriggerStatus = "active"
    due_at: datetime | None = None
    fired_at: datetime | None = None
    fired: int = 0
    skipped: int = 0
