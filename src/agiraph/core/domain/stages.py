"""Stages: nodes that are waited for together, and the contract that says when the wait ends."""

from dataclasses import field
from datetime import datetime
from typing import Literal

from agiraph.core.domain.ids import NodeId, StageId, TeamId
from agiraph.core.domain.value import value

Judgement = Literal["accept", "redo", "drop"]
"""What a coordinator decides about a node of a stage that is over."""
StageDecision = Literal["continue", "redo", "finish"]
"""What comes after a stage: other work, the same stage with the nodes to redo, or the end."""
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
    verdicts: dict[str, str] = field(default_factory=dict[str, str])
    """The coordinator's last verdict on each node, by the node's id; a reason follows a colon."""
    decision: StageDecision | None = None
    ended_at: datetime | None = None


@value
class Verdict:
    """A coordinator's verdict on one node of a stage."""

    node_id: str
    verdict: Judgement
    reason: str = ""
    """For `redo`: what is wrong and what to do about it, for the worker."""
