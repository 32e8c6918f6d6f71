"""App: routes and middleware as one ASGI application."""

from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from agiraph.api import problems
from agiraph.api.access_control import AccessMiddleware
from agiraph.api.deps import Api
from agiraph.api.middleware import EtagMiddleware, SecurityHeadersMiddleware, TracingMiddleware
from agiraph.api.routing import RoutesAt
from agiraph.api.web_ui import BUILT, WebUiMiddleware
from agiraph.core.domain.features import installed

ROUTES: RoutesAt = RoutesAt(
    "agiraph.api.routes.teams:router",
    "agiraph.api.routes.agents:router",
    "agiraph.api.routes.board:router",
    "agiraph.api.routes.inbox:router",
    "agiraph.api.routes.inbox:grant_router",
    "agiraph.api.routes.results:search_router",
    "agiraph.api.routes.triggers:router",
    "agiraph.api.routes.board:cost_router",
    "agiraph.api.routes.models:router",
    "agiraph.api.routes.specialists:router",
    "agiraph.api.routes.documents:router",
    "agiraph.api.routes.files:router",
    "agiraph.api.routes.folders:router",
    "agiraph.api.routes.results:router",
    "agiraph.api.routes.events:router",
    "agiraph.api.routes.access:router",
    "agiraph.api.routes.operations:health_router",
    "agiraph.api.routes.operations:router",
    "agiraph.api.routes.models:setup_router",
    "agiraph.api.routes.operations:status_router",
    *(place for feature in installed() for place in feature.routers),
)
"""What the server offers, in the order of the schema."""
_SIGN_IN = RoutesAt("agiraph.api.routes.access:signin")


def routes(api: Api | None = None) -> Starlette:
    """Return the routes without middleware."""
    app = Starlette(routes=[Route("/api/openapi.json", _schema), ROUTES, _SIGN_IN])
    problems.install(app, allowed=_methods)
    app.state.api = api
    return app


async def _schema(request: Request) -> Response:
    from agiraph.api.schema import document  # FastAPI, which writes it, takes long to import

    return JSONResponse(document())


def _methods(path: str) -> list[str]:
    """Return the methods allowed at a path; of several matching patterns, the one with the
    fewest parameters counts."""
    found = [r for r in ROUTES.each() if r.methods and r.parts_of(path) is not None]
    fewest = min((len(r.parameters) for r in found), default=0)
    fitting = [r for r in found if len(r.parameters) == fewest]
    return sorted({method for route in fitting for method in route.methods})


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
