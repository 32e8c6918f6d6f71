"""Search route: one search over all that a person's teams have said, done, written and learned."""

from typing import Annotated

from fastapi import APIRouter, Query

from agiraph.api.deps import ApiDep, PersonDep
from agiraph.api.problems import documented
from agiraph.api.search_views import FoundView
from agiraph.domain.found import Found
from agiraph.services import search
from agiraph.store import teams
from agiraph.store.teams import TEAMS
from agiraph.store.tx import Tx

router: APIRouter = APIRouter(tags=["search"])


@router.get("/search", responses=documented(404))
async def find(
    api: ApiDep,
    person: PersonDep,
    query: Annotated[str, Query(min_length=1, max_length=500)],
    team: str = "",
    limit: Annotated[int, Query(ge=1, le=50)] = 8,
) -> list[FoundView]:
    """Search teams, agents, work, published files, messages, notes, insights, pages, reports and
    steps of threads for all words of a query: in one team or in all, at most `limit` of a kind."""

    def read(tx: Tx) -> list[FoundView]:
        team_id = teams.find(tx, team).id if team else None
        found = search.find(tx, query, person_id=person, team_id=team_id, limit=limit)
        names = {each: TEAMS.get(tx, each).name for each in {one.team_id for one in found}}
        return [_as_view(one, names[one.team_id], query) for one in found]

    return await api.store.read(read)


def _as_view(found: Found, team: str, query: str) -> FoundView:
    return FoundView(
        kind=found.kind,
        team_id=found.team_id,
        team_name=team,
        ref=found.ref,
        title=found.title,
        preview=search.preview(found.text, query),
        agent_id=found.agent_id,
        node_id=found.node_id,
        thread_id=found.thread_id,
        sources=list(found.label.sources),
        at=found.at,
    )
