"""Routers: creates the router for each API tag; the application adds its routes without a copy.

FastAPI's `include_router` would build each route a second time for every application, which takes
longer than the start of the rest of the server.
"""

from fastapi import APIRouter
from fastapi.routing import APIRoute


def api_router(tag: str) -> APIRouter:
    """Return a router of paths below /api that are listed under this tag in the schema."""
    return APIRouter(prefix="/api", tags=[tag], generate_unique_id_function=_operation_id)


def _operation_id(route: APIRoute) -> str:
    return route.name
