"""Overview route: all teams with their members in one response."""

from typing import Annotated

from fastapi import APIRouter, Query

from agiraph.api.deps import ApiDep, PersonDep
from agiraph.api.overview_views import MemberOverview, TeamOverview
from agiraph.api.problems import documented
from agiraph.api.routers import api_router
from agiraph.domain.overview import TeamSummary
from agiraph.store import overview

router: APIRouter = api_router("teams")


@router.get("/overview", responses=documented())
async def get_overview(
    api: ApiDep,
    person: PersonDep,
    archived: Annotated[bool, Query(description="List the archived teams instead.")] = False,
) -> list[TeamOverview]:
    """List all teams with their members, newest activity first: at most 1,000 teams."""
    found = await api.store.read(overview.read, person, archived=archived)
    return [_as_view(team) for team in found]


def _as_view(team: TeamSummary) -> TeamOverview:
    members = [
        MemberOverview(
            id=member.id,
            name=member.name,
            role=member.role,
            status=member.doing,
            unread=member.unread,
            questions=member.questions,
        )
        for member in team.members
    ]
    return TeamOverview(
        id=team.id,
        name=team.name,
        status=team.status,
        trust=team.trust,
        coordinator_id=members[0].id if members else None,
        created_at=team.created_at,
        active_at=team.active_at,
        members=members,
        former_members=team.former_members,
        open_questions=team.open_questions,
        unread=team.unread,
        usd=team.usd,
        quiet_hours=team.quiet_hours,
        quiet_zone=team.quiet_zone,
        muted_until=team.muted_until,
    )
