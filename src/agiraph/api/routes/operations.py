"""Operations routes: the emergency stop."""

from fastapi import APIRouter

from agiraph.api.deps import ApiDep
from agiraph.api.problems import documented
from agiraph.api.views import EmergencyStopView
from agiraph.domain.errors import NotFound
from agiraph.services.lifecycle import emergency
from agiraph.store import teams

router: APIRouter = APIRouter(tags=["operations"])


@router.post("/stop", responses=documented())
async def stop_everything(api: ApiDep) -> EmergencyStopView:
    """Cancel the open work of all teams and end every process they started."""
    stopped = EmergencyStopView(teams=0, nodes=0)
    after = ""
    while page := await api.store.read(teams.page, after=after, limit=500):
        # One transaction per team: an error in one team must not keep the others running.
        for team in page:
            try:
                ended = await api.store.write(emergency.halt, team.id)
            except NotFound:
                continue
            stopped.nodes += ended
            stopped.teams += team.status in ("active", "paused") or ended > 0
        after = page[-1].id
    return stopped
