"""Cost routes: what a team's work has cost."""

from fastapi import APIRouter

from agiraph.api.deps import ApiDep
from agiraph.api.problems import documented
from agiraph.domain.costs import TeamCosts
from agiraph.services.board import costs
from agiraph.store import teams

router: APIRouter = APIRouter(tags=["costs"])


@router.get("/teams/{team}/cost", responses=documented(404))
async def get_cost(team: str, api: ApiDep) -> TeamCosts:
    """Return a team's costs as a tree of nodes, and by agent, purpose and model."""
    return await api.store.read(lambda tx: costs.of_team(tx, teams.find(tx, team).id))
