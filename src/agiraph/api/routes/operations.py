"""Operations routes: the state of the server, health checks and the emergency stop."""

from fastapi import APIRouter

from agiraph.api import operations_presenters as presenters
from agiraph.api.deps import ApiDep, CallerDep
from agiraph.api.operations_views import (
    EmergencyStopView,
    ExaminationView,
    OperationsView,
    ProviderStatusView,
    ResumedView,
    WorkStopView,
)
from agiraph.api.problems import documented
from agiraph.api.routers import api_router
from agiraph.domain.errors import NotFound
from agiraph.services.lifecycle import teams
from agiraph.store import teams as team_rows
from agiraph.store.tx import Tx

router: APIRouter = api_router("operations")


@router.post("/stop", responses=documented())
async def stop_everything(api: ApiDep) -> EmergencyStopView:
    """Cancel the open work of all teams and end every process they started."""
    stopped = EmergencyStopView(teams=0, nodes=0)
    after = ""
    while page := await api.store.read(team_rows.page, after=after, limit=500):
        # One transaction per team: an error in one team must not keep the others running.
        for team in page:
            try:
                ended = await api.store.write(teams.halt, team.id)
            except NotFound:
                continue
            stopped.nodes += ended
            stopped.teams += team.status in ("active", "paused") or ended > 0
        after = page[-1].id
    return stopped


@router.get("/operations", responses=documented())
async def read_operations(api: ApiDep) -> OperationsView:
    """Show the queues, the workers, the storage and the sandbox of the server."""
    return await presenters.operations(api)


@router.get("/operations/providers", responses=documented())
async def list_provider_status(api: ApiDep) -> list[ProviderStatusView]:
    """Show the last calls of each provider of models, and what it cost today."""
    return await presenters.providers(api)


@router.post("/operations/doctor", responses=documented())
async def run_health_checks(api: ApiDep) -> ExaminationView:
    """Make all health checks of `agiraph doctor`, within 30 seconds. Nothing is repaired."""
    return presenters.examination(api.clock.now(), await api.examine())


@router.post("/operations/stop", responses=documented())
async def stop_all_work(api: ApiDep, caller: CallerDep) -> WorkStopView:
    """Interrupt all work of all teams at once, until it is resumed, also after a restart.

    Nothing is cancelled: tasks go on where they stopped when work is resumed.
    """

    def stop(tx: Tx) -> WorkStopView:
        return presenters.work_stop(tx, teams.stop_all(tx, by=caller.name))

    return await api.store.write(stop)


@router.post("/operations/resume", responses=documented())
async def resume_all_work(api: ApiDep) -> ResumedView:
    """End the emergency stop: all tasks go on where they stopped."""
    return ResumedView(queues=await api.store.write(teams.resume_all))
