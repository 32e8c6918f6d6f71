"""App: the routes behind the gate, as one ASGI application."""

from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.types import ASGIApp

from agiraph.api import problems, schema
from agiraph.api.deps import Api
from agiraph.api.etags import Etags
from agiraph.api.gate import Gate
from agiraph.api.pages import Pages
from agiraph.api.routes import (
    access,
    agents,
    board,
    costs,
    events,
    files,
    health,
    inbox,
    knowledge,
    metrics,
    operations,
    research,
    teams,
    triggers,
)
from agiraph.api.security_headers import Strict
from agiraph.api.tracing import Traced

ROUTERS = (
    teams.router,
    agents.router,
    board.router,
    inbox.router,
    knowledge.router,
    research.router,
    triggers.router,
    costs.router,
    files.router,
    events.router,
    access.router,
    health.router,
    metrics.router,
    operations.router,
)


def routes(api: Api | None = None) -> FastAPI:
    """The routes alone, without the gate: for their description."""
    app = FastAPI(
        title="agiraph",
        version="1",
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        generate_unique_id_function=_operation_id,
        separate_input_output_schemas=False,
    )
    for router in ROUTERS:
        app.include_router(router, prefix="/api")
    app.include_router(access.signin)
    problems.install(app, allowed=_methods)
    app.state.api = api
    app.openapi = lambda: _described(app)
    return app


def _described(app: FastAPI) -> dict[str, Any]:
    if app.openapi_schema is None:
        app.openapi_schema = schema.describe(app)
    return app.openapi_schema


def _methods(path: str) -> list[str]:
    """What may be done at a path, by any router; of several patterns the plainest counts."""
    own = [r for router in ROUTERS for r in router.routes if isinstance(r, APIRoute)]
    found = [r for r in own if r.path_regex.match(path.removeprefix("/api"))]
    plainest = min((len(r.param_convertors) for r in found), default=0)
    fitting = [r for r in found if len(r.param_convertors) == plainest]
    return sorted({method for route in fitting for method in route.methods or ()})


def _operation_id(route: APIRoute) -> str:
    return route.name


def build(api: Api, *, alone: bool = True) -> ASGIApp:
    """The whole application. Whatever is committed here is told to whoever watches; with other
    processes beside this one, somebody else tells what all of them commit."""
    if alone:
        api.store.subscribe(api.hub.notice)
    return Strict(Gate(Pages(Traced(Etags(routes(api)))), api.door))
