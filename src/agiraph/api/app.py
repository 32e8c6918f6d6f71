"""App: the routes behind the gate, as one ASGI application."""

from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.types import ASGIApp

from agiraph.api import problems
from agiraph.api.deps import Api
from agiraph.api.etags import Etags
from agiraph.api.gate import Gate
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
    teams,
    triggers,
)

ROUTERS = (
    teams.router,
    agents.router,
    board.router,
    inbox.router,
    knowledge.router,
    triggers.router,
    costs.router,
    files.router,
    events.router,
    access.router,
    health.router,
    metrics.router,
)


def routes(api: Api | None = None) -> FastAPI:
    """The routes alone, without the gate: for their description."""
    app = FastAPI(
        title="agiraph",
        version="1",
        description="Teams of agents: give them goals, watch them, talk to them, stop them.",
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        generate_unique_id_function=_operation_id,
        separate_input_output_schemas=False,
    )
    for router in ROUTERS:
        app.include_router(router, prefix="/api")
    app.include_router(access.signin)
    problems.install(app)
    app.state.api = api
    return app


def _operation_id(route: APIRoute) -> str:
    return route.name


def build(api: Api) -> ASGIApp:
    """The whole application; whatever is committed here is told to whoever watches."""
    api.store.subscribe(api.hub.notice)
    return Gate(Etags(routes(api)), api.door)
