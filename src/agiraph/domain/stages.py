"""Stages: nodes that are waited for together, and the contract that says when that is over."""

from datetime import datetime
from typing import Literal

from agiraph.domain.ids import NodeId, StageId, TeamId
from agiraph.domain.value import value

StageStatus = Literal["running", "met", "broken", "timed_out", "reconvened"]


@value
class StageContract:
    turns_per_node: int = 10
    timeout_seconds: float = 300
    """Does not run while a human is asked."""
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
    """Since when one of its nodes waits for a person; the time-out does not run meanwhile."""
    paused_seconds: float = 0.0
    assessment: str | None = None
    ended_at: datetime | None = None
