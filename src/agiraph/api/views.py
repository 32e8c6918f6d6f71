"""Views: what clients see of teams, agents, nodes and messages."""

from datetime import datetime

from pydantic import BaseModel

from agiraph.domain.people import Mode, Team, TeamStatus
from agiraph.store import events, messages, spend, teams
from agiraph.store.tx import Tx


class TeamView(BaseModel):
    id: str
    name: str
    goal: str
    mode: Mode
    status: TeamStatus
    coordinator_id: str | None
    created_at: datetime
    learns: bool
    members: int
    open_questions: int
    usd: float
    head: int
    """The number of its newest event."""


def team_view(tx: Tx, team: Team) -> TeamView:
    members = teams.members(tx, team.id)
    return TeamView(
        id=team.id,
        name=team.name,
        goal=team.goal,
        mode=team.mode,
        status=team.status,
        coordinator_id=members[0].id if members else None,
        created_at=team.created_at,
        learns=team.learns,
        members=len(members),
        open_questions=len(messages.open_questions(tx, team.id)),
        usd=sum(row.usd for row in spend.of_team(tx, team.id)),
        head=events.head(tx, team.id),
    )
