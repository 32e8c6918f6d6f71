"""Overview: what the list of all teams shows of each team and its members."""

from datetime import datetime

from agiraph.core.domain.agents import Doing, TeamStatus, Trust
from agiraph.core.domain.ids import AgentId, TeamId
from agiraph.core.domain.value import value


@value
class MemberSummary:
    """A member of a team, and what it is doing now."""

    id: AgentId
    name: str
    role: str
    doing: Doing
    unread: int
    """Messages from it that the person has not read."""
    questions: int
    """Its open questions to people."""


@value
class TeamSummary:
    """A team with its members, coordinator first."""

    id: TeamId
    name: str
    status: TeamStatus
    trust: Trust
    created_at: datetime
    active_at: datetime
    """When its agents last did something or a message came; of an archived team, the time of its
    newest event."""
    members: tuple[MemberSummary, ...]
    former_members: int
    """How many agents have left the team."""
    open_questions: int
    unread: int
    usd: float
    quiet_hours: str
    quiet_zone: str
    muted_until: datetime | None
