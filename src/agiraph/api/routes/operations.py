"""Operations: what whoever runs the server does with all of it at once."""

from fastapi import APIRouter

from agiraph.api.deps import TheApi
from agiraph.api.problems import documented
from agiraph.api.views import Stopped
from agiraph.domain.errors import NotFound
from agiraph.services.lifecycle import emergency
from agiraph.store import teams

router = APIRouter(tags=["operations"])


@router.post("/stop", responses=documented())
async def stop_everything(api: TheApi) -> Stopped:
    """Cancel everything of all teams at once, and end every process they started."""
    stopped = Stopped(teams=0, nodes=0)
    after = ""
    while page := await api.store.read(teams.page, after=after, limit=500):
        # A transaction each: one team that cannot be stopped does not keep the others running.
        for team in page:
            try:
                ended = await api.store.write(emergency.halt, team.id)
            except NotFound:
                continue
            stopped.nodes += ended
            stopped.teams += team.status in ("active", "paused") or ended > 0
        after = page[-1].id
    return stopped
