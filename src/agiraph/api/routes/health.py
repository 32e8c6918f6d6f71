"""Health: whether this process lives, and whether it can do its work."""

from fastapi import APIRouter

from agiraph.api.deps import TheApi
from agiraph.api.problems import documented
from agiraph.api.views import Health
from agiraph.domain.errors import NotReady
from agiraph.services import access

router = APIRouter(tags=["health"])


@router.get("/healthz")
async def alive() -> Health:
    """This process answers."""
    return Health(status="alive")


@router.get("/readyz", responses=documented(503, everywhere=False))
async def ready(api: TheApi) -> Health:
    """The database takes what it is given."""
    await api.store.write(access.epoch)
    if failing := api.failing():
        raise NotReady("; ".join(failing))
    return Health(status="ready")
