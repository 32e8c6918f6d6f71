"""App: routes and middleware as one ASGI application."""

from functools import cache
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.types import ASGIApp

from agiraph.api import problems, schema
from agiraph.api.access_control import AccessMiddleware
from agiraph.api.deps import Api
from agiraph.api.middleware import EtagMiddleware, SecurityHeadersMiddleware, TracingMiddleware
from agiraph.api.routes import (
    access,
    agents,
    board,
    documents,
    events,
    files,
    folders,
    inbox,
    models,
    operations,
    results,
    specialists,
    teams,
    triggers,
)
from agiraph.api.web_ui import BUILT, WebUiMiddleware
from agiraph.core.domain.features import found_at, installed

ROUTERS = (
    teams.router,
    agents.router,
    board.router,
    inbox.router,
    inbox.grant_router,
    results.search_router,
    triggers.router,
    board.cost_router,
    models.router,
    specialists.router,
    documents.router,
    files.router,
    folders.router,
    results.router,
    events.router,
    access.router,
    operations.health_router,
    operations.router,
    models.setup_router,
    operations.status_router,
    *(found_at(place) for feature in installed() for place in feature.routers),
)


def routes(api: Api | None = None) -> FastAPI:
    """Return the routes without middleware, as the schema needs them."""
    app = FastAPI(
        title="agiraph",
        version="1",
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        separate_input_output_schemas=False,
    )
    found = [route for router in (*ROUTERS, access.signin) for route in router.routes]
    # Those that take the rest of a path come last, so that no other route is hidden behind one.
    app.router.routes.extend(
        sorted(found, key=lambda route: ":path}" in getattr(route, "path", ""))
    )
    problems.install(app, allowed=_methods)
    app.state.api = api
    app.openapi = _schema
    return app


@cache
def _schema() -> dict[str, Any]:
    """Return the document. It takes a second, and every app of a process has the same routes."""
    return schema.describe(routes())


def _methods(path: str) -> list[str]:
    """Return the methods allowed at a path; of several matching patterns, the one with the
    fewest parameters counts."""
    own = [r for router in ROUTERS for r in router.routes if isinstance(r, APIRoute)]
    found = [r for r in own if r.path_regex.match(path)]
    fewest = min((len(r.param_convertors) for r in found), default=0)
    fitting = [r for r in found if len(r.param_convertors) == fewest]
    return sorted({method for route in fitting for method in route.methods or ()})


def _is_route(path: str) -> bool:
    return bool(_methods(path))


def build(api: Api, *, alone: bool = True, pages: Path = BUILT) -> ASGIApp:
    """Return the whole application.

    `alone`: no other process writes to the database, so this process's commits are all events that
    clients need. Otherwise the change feed publishes the events of all processes to the hub.
    `pages`: the folder with the built files of the web UI.
    """
    if alone:
        api.store.subscribe(api.hub.publish_commit)
    # From the inside out. Security headers come last, so that refusals have them too; tracing is
    # behind access control, so that strangers neither choose request ids nor fill the log.
    app: ASGIApp = TracingMiddleware(EtagMiddleware(routes(api)))
    app = AccessMiddleware(WebUiMiddleware(app, pages, is_route=_is_route), api.access)
    return SecurityHeadersMiddleware(app)
