"""Site: a runtime and the API before it, in one process or each in processes of their own."""

import asyncio
import contextlib
import signal
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from agiraph.api.app import build
from agiraph.api.deps import Api
from agiraph.api.gate import Door
from agiraph.api.live import Draft, Hub
from agiraph.api.server import Server, bind
from agiraph.app import Runtime
from agiraph.config import Settings
from agiraph.services import access
from agiraph.tools.context import RunContext


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    runtime: Runtime
    api: Api
    port: int

    async def link(self, url: str) -> str:
        """An address that signs a browser in, once."""
        issued = await self.runtime.store.write(access.link)
        return f"{url}/signin?code={issued.secret}"


@contextlib.asynccontextmanager
async def work(settings: Settings) -> AsyncGenerator[Runtime]:
    """Background work alone."""
    async with _runtime(settings, Hub()) as runtime:
        await runtime.start()
        yield runtime


@contextlib.asynccontextmanager
async def serve(settings: Settings, *, works: bool) -> AsyncGenerator[Site]:
    """The API; and background work in the same process, if it should."""
    address = settings.address
    address.check()
    sock = bind(address.host, address.port)
    port = sock.getsockname()[1]
    hub = Hub()
    try:
        async with _runtime(settings, hub) as runtime:
            api = Api(
                store=runtime.store,
                home=runtime.home,
                clock=runtime.clock,
                door=Door(
                    store=runtime.store,
                    token=_token(settings, runtime),
                    hosts=address.hosts(port),
                ),
                hub=hub,
                model=settings.model,
                check_model=runtime.models.resolve,
                build=version("agiraph"),
            )
            server = Server(build(api), sock, certificate=address.certificate, key=address.key)
            if works:
                await runtime.start()
            await server.start()
            try:
                yield Site(runtime=runtime, api=api, port=port)
            finally:
                await server.stop()
    finally:
        sock.close()


@contextlib.asynccontextmanager
async def _runtime(settings: Settings, hub: Hub) -> AsyncGenerator[Runtime]:
    def said(ctx: RunContext, words: str) -> None:
        draft = Draft(
            team_id=ctx.team.id,
            agent_id=ctx.agent.id,
            node_id=ctx.node.id,
            thread_id=ctx.lease.thread_id,
            lane=ctx.node.lane,
        )
        hub.said(draft, words)

    runtime = await Runtime.open(
        settings.home,
        database_url=settings.database_url,
        keys=settings.keys,
        prices=settings.prices,
        commands=settings.commands,
        channels=settings.channels,
        reply_model=settings.reply_model,
        web=settings.web,
        on_delta=said,
    )
    try:
        yield runtime
    finally:
        await runtime.close()


def _token(settings: Settings, runtime: Runtime) -> Callable[[], str]:
    """The token as it is now: a changed file counts from the next request on."""
    if settings.token:
        return lambda: settings.token
    made = runtime.home.token()
    kept: tuple[tuple[int, int], str] = (_stamp(runtime.home.token_path), made)

    def current() -> str:
        nonlocal kept
        stamp = _stamp(runtime.home.token_path)
        if stamp != kept[0]:
            kept = (stamp, runtime.home.token())
        return kept[1]

    return current


def _stamp(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except FileNotFoundError:
        return (0, 0)
    return (found.st_mtime_ns, found.st_ino)


async def until_asked_to_stop() -> None:
    """Return on SIGTERM or SIGINT; a second one ends the process at once."""
    loop, asked = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, asked.set)
    await asked.wait()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.remove_signal_handler(number)
