"""Status route: the version, failing background tasks and the sandbox of the server."""

from fastapi import APIRouter

from agiraph.api.deps import ApiDep
from agiraph.api.problems import documented
from agiraph.api.routers import api_router
from agiraph.api.status_presenters import sandbox_view
from agiraph.api.status_views import StatusView
from agiraph.services.lifecycle import teams

router: APIRouter = api_router("operations")


@router.get("/status", responses=documented())
async def status(api: ApiDep) -> StatusView:
    """Say which version runs, what fails, whether work is stopped, and how commands of agents are
    confined."""
    stop = await api.store.read(teams.found_stop)
    return StatusView(
        build=api.build,
        failing=api.failing(),
        sandbox=sandbox_view(api.confinement),
        stopped_at=None if stop is None else stop.at,
    )
