"""Site: a runtime and the API before it, in one process or each in processes of their own."""

import asyncio
import contextlib
import logging
import signal
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

from agiraph import redaction
from agiraph.api.app import build
from agiraph.api.deps import Api
from agiraph.api.gate import Door
from agiraph.api.live import Draft, Hub
from agiraph.api.server import Server, bind
from agiraph.app import Runtime
from agiraph.config import Settings
from agiraph.domain.chat import Words
from agiraph.domain.errors import AgiraphError, StoreFull, StoreLocked, StoreUnavailable
from agiraph.domain.time import SystemClock
from agiraph.logs import Streak
from agiraph.runtime import tracing as traces
from agiraph.services import access
from agiraph.tools.context import RunContext

log = logging.getLogger("agiraph.serving")

T = TypeVar("T")
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 10.0
"""Between two attempts to open the database at the start; doubled with each failure."""


class AskedToStop(AgiraphError):
    """The process was told to stop before its database could be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    runtime: Runtime
    api: Api
    port: int

    async def link(self, url: str) -> str:
        """An address that signs a browser in, once."""
        issued = await self.runtime.store.write(access.issue_link)
        return f"{url}/signin?code={issued.secret}"


@contextlib.asynccontextmanager
async def work(settings: Settings, asked: asyncio.Event) -> AsyncGenerator[Runtime]:
    """Background work alone. Waits for a database that is not there yet, unless `asked` to stop."""
    async with _patiently(settings, asked, lambda: _working(settings)) as runtime:
        yield runtime


@contextlib.asynccontextmanager
async def _working(settings: Settings) -> AsyncGenerator[Runtime]:
    async with _runtime(settings, _Heard()) as runtime:
        await runtime.start()
        yield runtime


@contextlib.asynccontextmanager
async def serve(settings: Settings, asked: asyncio.Event, *, works: bool) -> AsyncGenerator[Site]:
    """The API, and background work in the same process if it should; waits as `work` does."""
    async with _patiently(settings, asked, lambda: _serving(settings, works=works)) as site:
        yield site


@contextlib.asynccontextmanager
async def _patiently(
    settings: Settings, asked: asyncio.Event, opening: Callable[[], AbstractAsyncContextManager[T]]
) -> AsyncGenerator[T]:
    """Open it as soon as its database can be used, or raise `AskedToStop`.

    What waiting cannot mend is raised at once. A database file is worth waiting for only while its
    disk is full or another program holds it.
    """
    mendable = StoreUnavailable if _is_shared(settings) else (StoreFull, StoreLocked)
    streak, pause_s = Streak("opening the database", log, SystemClock()), FIRST_PAUSE_S
    async with contextlib.AsyncExitStack() as stack:
        while True:
            try:
                if _is_shared(settings):
                    await _unless_asked(asked, _reached(settings.database_url))
                opened = await stack.enter_async_context(opening())
                break
            except mendable as error:
                streak.failed(error, "trying again by itself", trace=False)
            await _unless_asked(asked, asyncio.sleep(pause_s))
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
        streak.succeeded()
        yield opened


async def _reached(url: str) -> None:
    from agiraph.store.reachability import check  # loaded only where it is used

    await check(url)


async def _unless_asked(asked: asyncio.Event, step: Coroutine[Any, Any, None]) -> None:
    """Take a step to its end, or raise `AskedToStop` as soon as the process is told to stop."""
    taken, stopping = asyncio.create_task(step), asyncio.create_task(asked.wait())
    try:
        await asyncio.wait({taken, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not taken.done():
            raise AskedToStop
        await taken
    finally:
        stopping.cancel()
        taken.cancel()
        await asyncio.gather(taken, return_exceptions=True)


@contextlib.asynccontextmanager
async def _serving(settings: Settings, *, works: bool) -> AsyncGenerator[Site]:
    address = settings.address
    address.check()
    sock = bind(address.host, address.port)
    port = sock.getsockname()[1]
    hub, heard = Hub(), _Heard()
    try:
        async with _runtime(settings, heard) as runtime:
            api = Api(
                store=runtime.store,
                home=runtime.home,
                clock=runtime.clock,
                door=Door(
                    store=runtime.store,
                    token=_token(settings, runtime),
                    hosts=address.hosts(port),
                    is_secure=bool(address.certificate or address.proxy),
                ),
                hub=hub,
                model=settings.model,
                check_model=runtime.models.resolve,
                build=version("agiraph"),
                failing=runtime.rounds.failing,
            )
            app = build(api, alone=not _is_shared(settings))
            server = Server(
                app,
                sock,
                certificate=address.certificate,
                key=address.key,
                limits=address.limits,
            )
            async with _told(settings, runtime, hub, heard):
                if works:
                    await runtime.start()
                await server.start()
                try:
                    yield Site(runtime=runtime, api=api, port=port)
                finally:
                    hub.close()
                    # Side by side: lines are given time to close, commands to end.
                    await asyncio.gather(server.stop(), runtime.rest())
    finally:
        sock.close()


class _Heard:
    """The words of replies, on their way to whoever shows them."""

    def __init__(self) -> None:
        self.tell: Callable[[Words], None] | None = None

    def __call__(self, ctx: RunContext, words: str) -> None:
        if self.tell is None:
            return
        last = ctx.transcript.last_reply
        self.tell(
            Words(
                team_id=ctx.team.id,
                agent_id=ctx.agent.id,
                node_id=ctx.node.id,
                thread_id=ctx.lease.thread_id,
                lane=ctx.node.lane,
                after=0 if last is None else last.seq,
                offset=0,
                text=words,
            )
        )


def _is_shared(settings: Settings) -> bool:
    """Whether other processes may work over the same database."""
    return not settings.database_url.startswith("sqlite:")


@contextlib.asynccontextmanager
async def _told(
    settings: Settings, runtime: Runtime, hub: Hub, heard: _Heard
) -> AsyncGenerator[None]:
    """Let the hub hear of what happens: in this process, or in all of them."""

    def draft(words: Words) -> Draft:
        return Draft(
            team_id=words.team_id,
            agent_id=words.agent_id,
            node_id=words.node_id,
            thread_id=words.thread_id,
            lane=words.lane,
        )

    if not _is_shared(settings):
        heard.tell = lambda words: hub.said(draft(words), words.text)
        yield
        return
    from agiraph.store.change_feed import Follower  # loaded only where it is used

    follower = Follower(
        settings.database_url,
        runtime.store,
        publish=hub.publish,
        hear=lambda words: hub.overheard(draft(words), words.text, words.offset),
        streak=runtime.rounds.streak("hearing of events"),
    )
    await follower.start()
    try:
        yield
    finally:
        await follower.stop()


@contextlib.asynccontextmanager
async def _runtime(settings: Settings, heard: _Heard) -> AsyncGenerator[Runtime]:
    tracing = traces.opened(settings.traces, redaction.environment())
    runtime = await Runtime.open(
        settings.home,
        database_url=settings.database_url,
        keys=settings.keys,
        prices=settings.prices,
        commands=settings.commands,
        channels=settings.channels,
        reply_model=settings.reply_model,
        web=settings.web,
        limits=settings.limits,
        on_delta=heard,
        tracing=tracing,
    )
    try:
        async with _spoken(settings, runtime, heard):
            yield runtime
    finally:
        await runtime.close()
        if tracing is not None:
            await tracing.close()


@contextlib.asynccontextmanager
async def _spoken(settings: Settings, runtime: Runtime, heard: _Heard) -> AsyncGenerator[None]:
    """Let other processes hear the words of replies, if there may be any."""
    if not _is_shared(settings):
        yield
        return
    from agiraph.store.change_feed import Speaker  # loaded only where it is used

    speaker = Speaker(runtime.store)
    heard.tell = speaker.say
    try:
        yield
    finally:
        await speaker.stop()


def _token(settings: Settings, runtime: Runtime) -> Callable[[], str]:
    """The token as it is now: a changed file counts from the next request on."""
    if settings.token:
        return lambda: settings.token
    made = runtime.home.token()
    redaction.keep({"token": made})
    kept: tuple[tuple[int, int], str] = (_stamp(runtime.home.token_path), made)

    def current() -> str:
        nonlocal kept
        stamp = _stamp(runtime.home.token_path)
        if stamp != kept[0]:
            kept = (stamp, runtime.home.token())
            redaction.keep({"token": kept[1]})
        return kept[1]

    return current


def _stamp(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except FileNotFoundError:
        return (0, 0)
    return (found.st_mtime_ns, found.st_ino)


def asked_to_stop() -> asyncio.Event:
    """Set on SIGTERM or SIGINT, from now on; a second one ends the process at once."""
    loop, asked = asyncio.get_running_loop(), asyncio.Event()

    def stop() -> None:
        asked.set()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    return asked
