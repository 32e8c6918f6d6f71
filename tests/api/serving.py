"""Serving: a world behind a server on a real socket, with an HTTP client."""

import contextlib
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
from websockets.asyncio.client import ClientConnection, connect

from agiraph import config
from agiraph.api.access_control import AccessControl
from agiraph.api.app import build
from agiraph.api.connections import Connections, Limits
from agiraph.api.deps import Api, Timeouts
from agiraph.api.live import Hub, PartialReply
from agiraph.api.server import Server, bind
from agiraph.api.web_ui import BUILT
from agiraph.core.domain.records.findings import Finding
from agiraph.core.run_context import RunContext
from agiraph.doctor.examination import Examination
from agiraph.testing import World

TOKEN = "a-token-of-32-characters-for-test"


@dataclass(slots=True, kw_only=True)
class Served:
    """A world, its server and an HTTP client."""

    world: World
    api: Api
    port: int
    http: aiohttp.ClientSession
    connections: Connections

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def follow(
        self, path: str = "/events", *, token: str = TOKEN, **more: Any
    ) -> AbstractAsyncContextManager[ClientConnection]:
        """Open a WebSocket to the server."""
        return connect(
            f"ws://127.0.0.1:{self.port}/api{path}",
            additional_headers={"Authorization": f"Bearer {token}"},
            compression=None,
            **more,
        )

    async def ask(
        self, method: str, path: str, body: Any = None, **headers: str
    ) -> tuple[int, Any]:
        """Send a request as the admin, unless headers say otherwise; return status and body."""
        sent = {"Authorization": f"Bearer {TOKEN}"} | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        request = self.http.request(method, f"{self.origin}/api{path}", json=body, headers=sent)
        async with request as response:
            if "json" in response.content_type:
                return response.status, await response.json(content_type=None)
            return response.status, await response.text()


def delta_publisher(hub: Hub) -> Callable[[RunContext, str], None]:
    """Return a callback that publishes the text of a reply while it is streamed."""

    def publish(ctx: RunContext, words: str) -> None:
        draft = PartialReply(
            team_id=ctx.team.id,
            agent_id=ctx.agent.id,
            node_id=ctx.node.id,
            thread_id=ctx.lease.thread_id,
            lane=ctx.node.lane,
        )
        hub.publish_delta(draft, words)

    return publish


async def _examined(world: World) -> list[Finding]:
    """Make the health checks of a world, with the settings in its folder."""
    runtime, settings = world.runtime, config.load({"AGIRAPH_HOME": str(world.path)})
    return await Examination(
        settings=settings,
        home=runtime.home,
        store=runtime.store,
        confinement=runtime.confinement,
        parts=runtime.parts,
        models=runtime.models,
        model=lambda: settings.model,
        failing=runtime.periodic.failing,
    )()


@contextlib.asynccontextmanager
async def serving(
    path: Path,
    *,
    timeouts: Timeouts | None = None,
    limits: Limits | None = None,
    model: str = "scripted/ada",
    pages: Path = BUILT,
    sock: socket.socket | None = None,
    proxy: str = "",
    **more: Any,
) -> AsyncGenerator[Served]:
    """Serve a world in this folder on a free loopback port, or on this socket.

    `model` is that of new teams, `pages` the folder with the web UI, `proxy` the https address of a
    reverse proxy.
    """
    hub = Hub()
    async with World(path, on_delta=delta_publisher(hub), **more, easy_endings=True) as world:
        sock = sock or bind("127.0.0.1", 0)
        port = sock.getsockname()[1]
        hosts = frozenset({f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}"})
        access = AccessControl(
            store=world.store,
            token=lambda: TOKEN,
            hosts=hosts | ({proxy.removeprefix("https://")} if proxy else set()),
            is_secure=bool(proxy),
            proxy=proxy,
        )
        api = Api(
            store=world.store,
            home=world.runtime.home,
            clock=world.clock,
            access=access,
            hub=hub,
            timeouts=timeouts or Timeouts(),
            model=model,
            check_model=world.runtime.models.resolve,
            check_tools=world.runtime.check_tools,
            models=world.runtime.models,
            reply_model=more.get("reply_model", ""),
            url=f"http://127.0.0.1:{port}",
            preview=world.runtime.preview,
            parts=dict(world.runtime.parts),
            examine=partial(_examined, world),
            confinement=world.runtime.confinement,
        )
        server = Server(build(api, pages=pages), sock, limits=limits)
        await server.start()
        async with aiohttp.ClientSession() as http:
            try:
                yield Served(
                    world=world,
                    api=api,
                    port=port,
                    http=http,
                    connections=server.connections,
                )
            finally:
                await server.stop()
