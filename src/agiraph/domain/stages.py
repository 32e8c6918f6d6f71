"""Stages: nodes that are waited for together, and the contract that says when the wait ends."""

from datetime import datetime
from typing import Literal

from agiraph.domain.ids import NodeId, StageId, TeamId
from agiraph.domain.value import value

StageStatus = Literal["running", "met", "broken", "timed_out", "reconvened"]


@value
class StageContract:
    turns_per_node: int = 10
    timeout_seconds: float = 300
    """Paused while a node of the stage waits for a person."""
    wants: Literal["all", "majority", "any"] = "all"


@value
class Stage:
    id: StageId
    team_id: TeamId
    node_id: NodeId
    """The coordinator's node that opened the stage and waits for it."""
    name: str
    created_at: datetime
    contract: StageContract = StageContract()
    status: StageStatus = "running"
    paused_since: datetime | None = None
    """When its clock was paused, because a node waits for a person; None while it runs."""
    paused_seconds: float = 0.0
    assessment: str | None = None
    ended_at: datetime | None = None
