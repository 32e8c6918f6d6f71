"""Routers: creates the router for each API tag; the application adds its routes without a copy.

FastAPI's `include_router` would build each route a second time for every application, which takes
longer than the start of the rest of the server.
"""

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute

from agiraph.domain.json_text import clean


class _CleanRequest(Request):
    async def json(self) -> Any:
        return clean(await super().json())


class _Route(APIRoute):
    """A route that reads half a character (a lone surrogate) in a JSON body as U+FFFD."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_clean(request: Request) -> Response:
            return await handle(_CleanRequest(request.scope, request.receive))

        return handle_clean


def api_router(tag: str) -> APIRouter:
    """Return a router of paths below /api that are listed under this tag in the schema."""
    return APIRouter(
        prefix="/api",
        tags=[tag],
        generate_unique_id_function=_operation_id,
        route_class=_Route,
    )


def _operation_id(route: APIRoute) -> str:
    return route.name
