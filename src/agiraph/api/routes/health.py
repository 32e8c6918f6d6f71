"""Health routes: liveness and readiness checks."""

import asyncio

from fastapi import APIRouter

from agiraph.api.deps import ApiDep
from agiraph.api.problems import documented
from agiraph.api.routers import api_router
from agiraph.api.views import HealthView
from agiraph.domain.errors import NotReady
from agiraph.home.health import why_not_writable
from agiraph.services import access

router: APIRouter = api_router("health")


@router.get("/healthz")
async def alive() -> HealthView:
    """Check that this process responds."""
    return HealthView(status="alive")


@router.get("/readyz", responses=documented(503, everywhere=False))
async def ready(api: ApiDep) -> HealthView:
    """Check that database and home accept writes, and that no background task is failing."""
    # A write and not a read: from a full or read-only disk rows can still be read.
    await api.store.write(access.epoch)
    # Rows need no new file: a disk without inodes still takes them, but no command can start.
    if why := await asyncio.to_thread(why_not_writable, api.home.path):
        raise NotReady(
            f"No file can be made in the home. {why}. Delete files that you do not need."
        )
    if failing := api.failing():
        raise NotReady("; ".join(failing))
    return HealthView(status="ready")
