"""Cost routes: what a team's work has cost, and what all teams have spent today."""

from fastapi import APIRouter

from agiraph.api.deps import ApiDep
from agiraph.api.problems import documented
from agiraph.domain.costs import DayCosts, TeamCosts
from agiraph.services.board import costs
from agiraph.services.lifecycle import daily_limit
from agiraph.store import teams

router: APIRouter = APIRouter(tags=["costs"])


@router.get("/teams/{team}/cost", responses=documented(404))
async def get_cost(team: str, api: ApiDep) -> TeamCosts:
    """Return a team's costs as a tree of nodes, and by agent, purpose and model."""
    return await api.store.read(lambda tx: costs.of_team(tx, teams.find(tx, team).id))


@router.get("/cost", responses=documented())
async def get_day(api: ApiDep) -> DayCosts:
    """Return what all teams have spent today (UTC), and the daily limit."""
    return await api.store.read(daily_limit.costs, api.usd_per_day)
