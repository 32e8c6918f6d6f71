"""MCP servers that lead elsewhere: a sign-in opens the server's own host and public ones only."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from agiraph.api.server import bind
from agiraph.features.mcp import sign_in
from agiraph.features.mcp.connection import ServerFailed
from agiraph.features.mcp.settings import McpServer
from agiraph.web.access import Web
from agiraph.web.addresses import AddressPolicy, StandIn
from agiraph.web.fetch import Fetcher
from tests.mcp.kit import call, opened

pytestmark = pytest.mark.slow
Answer = Callable[[Request], Response]


@dataclass
class Site:
    """A server that answers by the path, and notes what it was asked for."""

    origin: str = ""
    answers: dict[str, Answer] = field(default_factory=dict[str, Answer])
    asked: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    async def answer(self, request: Request) -> Response:
        self.asked.append((request.headers["host"], request.url.path))
        found = self.answers.get(request.url.path)
        return Response("secret", 404) if found is None else found(request)


@asynccontextmanager
async def serving(address: str) -> AsyncGenerator[Site]:
    site = Site()
    sock = bind(address, 0)
    site.origin = f"http://{address}:{sock.getsockname()[1]}"
    app = Starlette(routes=[Route("/{rest:path}", site.answer, methods=["GET", "POST", "DELETE"])])
    running = uvicorn.Server(uvicorn.Config(app, log_level="error"))
    task = asyncio.create_task(running.serve(sockets=[sock]))
    try:
        yield site
    finally:
        running.should_exit = True
        await task


def refused(header: str = "") -> Answer:
    return lambda _: Response("", 401, {"WWW-Authenticate": header or "Bearer"})


def said(**fields: Any) -> Answer:
    return lambda _: JSONResponse(fields)


def leading(form: str, own: str, there: str) -> dict[str, Answer]:
    """Return the answers of a server at `own` that leads a sign-in to `there`."""
    metadata = "/.well-known/oauth-authorization-server"
    resource = "/.well-known/oauth-protected-resource/mcp"
    ends = {"authorization": "/a", "registration": "/r", "token": "/t"}
    named = {f"{end}_endpoint": own + path for end, path in ends.items()}
    named |= {f"{form}_endpoint": f"{there}/end"} if form in ends else {}
    known = said(issuer=own, response_types_supported=["code"], **named)
    client = said(client_id="c", redirect_uris=["http://127.0.0.1/callback"])
    answers = {"/mcp": refused(), "/r": client, metadata: known}
    issuers = [there if form == "issuer" else own]
    match form:
        case "header":
            answers["/mcp"] = refused(f'Bearer resource_metadata="{there}/meta"')
        case "redirect of the server":
            answers["/mcp"] = lambda _: RedirectResponse(f"{there}/mcp", 307)
        case "redirect of the metadata":
            answers[resource] = lambda _: RedirectResponse(f"{there}/meta", 302)
        case _:
            answers[resource] = said(resource=f"{own}/mcp", authorization_servers=issuers)
    return answers


async def log_in(path: Path, url: str, web: Web) -> ServerFailed:
    """Sign in to a server, as a person whose browser always agrees; return how it fails."""
    server = McpServer(name="odd", kind="http", url=url)
    visits: list[asyncio.Task[None]] = []

    async def agree(address: str) -> None:
        asked = parse_qs(urlsplit(address).query)
        async with httpx2.AsyncClient() as browser:
            given = {"code": "c", "state": asked["state"][0]}
            await browser.get(asked["redirect_uri"][0], params=given)

    async with opened(path, server, web=web) as servers:
        async with sign_in.signing_in(
            servers._home, server, lambda url: visits.append(asyncio.create_task(agree(url)))
        ) as auth:
            servers.signing_in = auth
            with pytest.raises(ServerFailed) as failed:
                await call(servers, "whoami", "odd")
        await asyncio.gather(*visits)
    return failed.value


FORMS = (
    *("header", "issuer", "registration", "token"),
    *("redirect of the server", "redirect of the metadata"),
)


@pytest.mark.parametrize("form", FORMS)
async def test_a_sign_in_opens_no_address_inside(tmp_path: Path, form: str) -> None:
    async with serving("127.0.0.1") as own, serving("127.0.0.2") as inside:
        own.answers = leading(form, own.origin, inside.origin)
        failed = await log_in(tmp_path, f"{own.origin}/mcp", Web())
    assert inside.asked == []
    assert ("neither on its own host nor in the public" in str(failed)) == (
        not form.startswith("redirect")  # which the SDK does not follow at all
    )
    assert inside.origin not in str(failed)


@pytest.mark.parametrize("form", ["header", "issuer", "registration", "token"])
async def test_a_sign_in_opens_public_addresses(tmp_path: Path, form: str) -> None:
    async with serving("127.0.0.1") as own, serving("127.0.0.2") as public:
        place = urlsplit(public.origin)
        stand_in = StandIn(place.hostname or "", place.port or 0)
        policy = AddressPolicy(stand_ins={"auth.example": stand_in})
        own.answers = leading(form, own.origin, "http://auth.example")
        await log_in(tmp_path, f"{own.origin}/mcp", Web(fetcher=Fetcher(policy=policy)))
    assert public.asked
    assert {host for host, _ in public.asked} == {"auth.example"}
