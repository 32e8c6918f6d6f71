"""Status route: the version, failing background tasks and the sandbox of the server."""

from fastapi import APIRouter

from agiraph.api.deps import ApiDep
from agiraph.api.problems import documented
from agiraph.api.status_views import SandboxView, StatusView
from agiraph.home.levels import Confinement

router: APIRouter = APIRouter(tags=["operations"])


@router.get("/status", responses=documented())
async def status(api: ApiDep) -> StatusView:
    """Say which version runs, what fails, and how commands of agents are confined."""
    return StatusView(
        build=api.build, failing=api.failing(), sandbox=_sandbox_view(api.confinement)
    )


def _sandbox_view(found: Confinement) -> SandboxView:
    return SandboxView(
        level=found.level,
        is_named=found.is_named,
        has_spare_user=found.has_spare_user,
        description=found.describe(),
        not_held=list(found.not_held),
        reasons=list(found.reasons),
        limited_by=found.limited_by,
    )
