"""Overview views: all teams with their members, as the API shows them."""

from datetime import datetime

from pydantic import Field

from agiraph.api.view import View
from agiraph.api.views import QUIET_HOURS
from agiraph.domain.agents import Doing, TeamStatus, Trust


class MemberOverview(View):
    """A member of a team, and what it is doing now."""

    id: str
    name: str
    role: str
    status: Doing
    unread: int = Field(description="Messages from it that the person has not read.")
    questions: int = Field(description="Its open questions to people.")


class TeamOverview(View):
    """A team with its members."""

    id: str
    name: str
    status: TeamStatus
    trust: Trust
    coordinator_id: str | None
    created_at: datetime
    active_at: datetime = Field(
        description="When its agents last did something or a message came; of an archived team, "
        "the time of its newest event."
    )
    members: list[MemberOverview] = Field(description="The coordinator first.")
    former_members: int = Field(description="How many agents have left the team.")
    open_questions: int
    unread: int
    usd: float
    quiet_hours: str = Field(description=QUIET_HOURS)
    quiet_zone: str
    muted_until: datetime | None = Field(
        description="Until when it sends nothing unasked; null: it is not muted."
    )
