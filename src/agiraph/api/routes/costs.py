"""Cost routes: what a team's work has cost, and what all teams have spent today."""

from dataclasses import replace

from fastapi import APIRouter

from agiraph.api.deps import ApiDep
from agiraph.api.problems import documented
from agiraph.api.routers import api_router
from agiraph.domain.costs import DayCosts, TeamCosts
from agiraph.services.board import costs
from agiraph.services.lifecycle import continuations, overspending
from agiraph.store import teams
from agiraph.store.tx import Tx

router: APIRouter = api_router("costs")


@router.get("/teams/{team}/cost", responses=documented(404))
async def get_cost(team: str, api: ApiDep) -> TeamCosts:
    """Return a team's costs as a tree of nodes, by agent, purpose and model, and its budget."""

    def look(tx: Tx) -> TeamCosts:
        found = teams.find(tx, team).id
        return replace(costs.of_team(tx, found), budget=continuations.goal_budget(tx, found))

    return await api.store.read(look)


@router.get("/cost", responses=documented())
async def get_day(api: ApiDep) -> DayCosts:
    """Return what all teams have spent today (UTC), and the daily limit."""
    return await api.store.read(overspending.costs_of_day, api.usd_per_day)
