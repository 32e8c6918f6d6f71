"""Costs: what a team's work has come to."""

from fastapi import APIRouter

from agiraph.api.deps import TheApi
from agiraph.api.problems import documented
from agiraph.domain.costs import Costs
from agiraph.services.board import costs
from agiraph.store import teams

router = APIRouter(tags=["costs"])


@router.get("/teams/{team}/cost", responses=documented(404))
async def get_cost(team: str, api: TheApi) -> Costs:
    """As a tree by run and node, and by agent, purpose and model."""
    return await api.store.read(lambda tx: costs.of_team(tx, teams.find(tx, team).id))
