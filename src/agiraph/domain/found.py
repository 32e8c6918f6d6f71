"""Found: one thing that a search over all teams has found."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from agiraph.domain.ids import AgentId, NodeId, TeamId, ThreadId
from agiraph.domain.labels import CLEAN, Label

FoundKind = Literal[
    "team", "agent", "work", "message", "file", "note", "insight", "page", "report", "step"
]
"""step: what an agent said or did in a thread of its work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    kind: FoundKind
    team_id: TeamId
    ref: str
    """What it is: the id of a team, agent, node, message, insight or thread, a path, or a URL."""
    title: str
    text: str
    at: datetime
    agent_id: AgentId | None = None
    node_id: NodeId | None = None
    thread_id: ThreadId | None = None
    label: Label = CLEAN
