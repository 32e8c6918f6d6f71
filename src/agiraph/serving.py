"""Serving: runs the API and the background work, in one process or in separate ones."""

import asyncio
import contextlib
import logging
import signal
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

from agiraph import redaction
from agiraph.api.access_control import AccessControl
from agiraph.api.app import build
from agiraph.api.deps import Api
from agiraph.api.live import Hub, PartialReply
from agiraph.api.server import Server, bind
from agiraph.app import Runtime
from agiraph.config import Settings
from agiraph.core.domain.chat import ReplyDelta
from agiraph.core.domain.errors import AgiraphError, StoreFull, StoreLocked, StoreUnavailable
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.times.time import SystemClock
from agiraph.core.domain.value import dataclass
from agiraph.core.run_context import RunContext
from agiraph.core.runtime import tracing as traces
from agiraph.core.services import access
from agiraph.core.store import events
from agiraph.doctor.examination import Examination
from agiraph.location import FILE
from agiraph.logs import Streak

log: logging.Logger = logging.getLogger("agiraph.serving")

T = TypeVar("T")
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 10.0
"""The pause between two attempts to open the database at the start; doubled with each failure."""


class AskedToStop(AgiraphError):
    """The process received a signal to stop before its database could be opened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningServer:
    """A server that accepts requests, and the runtime behind it."""

    runtime: Runtime
    api: Api
    port: int

    async def link(self, url: str) -> str:
        """Return an address that signs a browser in; it works once."""
        issued = await self.runtime.store.write(access.issue_link, OWNER)
        return f"{url}/signin?code={issued.secret}"


@contextlib.asynccontextmanager
async def work(settings: Settings, asked: asyncio.Event) -> AsyncGenerator[Runtime]:
    """Run background work without the API. Waits for a database that cannot be opened yet.

    `asked` is set when the process should stop.
    """
    async with _opened_with_retries(settings, asked, lambda: _working(settings)) as runtime:
        yield runtime


@contextlib.asynccontextmanager
async def _working(settings: Settings) -> AsyncGenerator[Runtime]:
    async with _runtime(settings, _DeltaForwarder()) as runtime:
        await runtime.start()
        yield runtime


@contextlib.asynccontextmanager
async def serve(
    settings: Settings, asked: asyncio.Event, *, works: bool
) -> AsyncGenerator[RunningServer]:
    """Run the API, and with `works` the background work; waits for the database as `work` does."""
    async with _opened_with_retries(
        settings, asked, lambda: _serving(settings, works=works)
    ) as server:
        yield server


@contextlib.asynccontextmanager
async def _opened_with_retries(
    settings: Settings, asked: asyncio.Event, opening: Callable[[], AbstractAsyncContextManager[T]]
) -> AsyncGenerator[T]:
    """Retry the opening until the database can be used; raise `AskedToStop` on a signal.

    Errors that waiting cannot cure are raised at once. A database file is retried only while its
    disk is full or another program has locked it.
    """
    temporary = StoreUnavailable if _is_shared(settings) else (StoreFull, StoreLocked)
    streak, pause_s = Streak("opening the database", log, SystemClock()), FIRST_PAUSE_S
    async with contextlib.AsyncExitStack() as stack:
        while True:
            try:
                await _check_database(settings, asked)
                opened = await stack.enter_async_context(opening())
                break
            except temporary as error:
                streak.failed(error, "retrying automatically", trace=False)
            await _unless_asked(asked, asyncio.sleep(pause_s))
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
        streak.succeeded()
        # Outside of the loop: an error of the running server must not be taken for
        # a failed opening and retried.
        yield opened


async def _check_database(settings: Settings, asked: asyncio.Event) -> None:
    """Raise `StoreUnavailable` if a database server cannot be reached; a file is not checked."""
    if not _is_shared(settings):
        return
    from agiraph.core.store.engine.reachability import (
        check,  # imports asyncpg, which SQLite homes do not need
    )

    await _unless_asked(asked, check(settings.database_url))


async def _unless_asked(asked: asyncio.Event, step: Coroutine[Any, Any, None]) -> None:
    """Await the step; cancel it and raise `AskedToStop` if the process is told to stop."""
    taken, stopping = asyncio.create_task(step), asyncio.create_task(asked.wait())
    try:
        await asyncio.wait({taken, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not taken.done():
            raise AskedToStop
        await taken
    finally:
        # Also when this task is cancelled: the step must not run on beside the shutdown.
        stopping.cancel()
        taken.cancel()
        await asyncio.gather(taken, return_exceptions=True)


@contextlib.asynccontextmanager
async def _serving(settings: Settings, *, works: bool) -> AsyncGenerator[RunningServer]:
    address = settings.address
    address.check()
    # The port first: if it is taken, no home was locked and no database migrated.
    sock = bind(address.host, address.port)
    port = sock.getsockname()[1]
    hub, forwarder = Hub(), _DeltaForwarder()
    with contextlib.closing(sock):
        async with _runtime(settings, forwarder) as runtime:
            api = _api(settings, runtime, hub, port)
            app = build(api, alone=not _is_shared(settings))
            server = Server(
                app,
                sock,
                certificate=address.certificate,
                key=address.key,
                limits=address.limits,
            )
            async with (
                _feeding_hub(settings, runtime, hub, forwarder),
                _started(server, runtime, hub, works=works),
            ):
                yield RunningServer(runtime=runtime, api=api, port=port)


@contextlib.asynccontextmanager
async def _started(
    server: Server, runtime: Runtime, hub: Hub, *, works: bool
) -> AsyncGenerator[None]:
    """Run the server, and with `works` the background work; stop both at the end."""
    if works:
        await runtime.start()
    await server.start()
    try:
        yield
    finally:
        # The hub first: the server waits for open event streams, which
        # end only when their queue ends.
        hub.close()
        # In parallel: connections get time to close, commands to end.
        await asyncio.gather(server.stop(), runtime.stop())


def _api(settings: Settings, runtime: Runtime, hub: Hub, port: int) -> Api:
    address = settings.address
    api = Api(
        store=runtime.store,
        home=runtime.home,
        clock=runtime.clock,
        access=AccessControl(
            store=runtime.store,
            token=_token(settings, runtime),
            hosts=address.hosts(port),
            is_secure=bool(address.certificate or address.proxy),
            proxy=address.proxy.rstrip("/"),
        ),
        hub=hub,
        model=settings.model,
        check_model=runtime.models.check,
        check_tools=runtime.check_tools,
        models=runtime.models,
        is_priced=runtime.models.is_priced,
        folders=settings.folders,
        usd_per_day=settings.usd_per_day,
        reply_model=settings.reply_model,
        url=address.url,
        preview=runtime.preview,
        is_model_set=settings.shown["AGIRAPH_MODEL"].origin in ("environment", FILE),
        parts=dict(runtime.parts),
        secrets=settings.secrets,
        examine=_examination(settings, runtime, lambda: api.model),
        build=version("agiraph"),
        failing=runtime.periodic.failing,
        confinement=runtime.confinement,
    )
    return api


def _examination(settings: Settings, runtime: Runtime, model: Callable[[], str]) -> Examination:
    return Examination(
        settings=settings,
        home=runtime.home,
        store=runtime.store,
        confinement=runtime.confinement,
        parts=runtime.parts,
        models=runtime.models,
        model=model,
        failing=runtime.periodic.failing,
    )


class _DeltaForwarder:
    """Forwards the pieces of a streamed reply to the hub or to other processes."""

    def __init__(self) -> None:
        self.send: Callable[[ReplyDelta], None] | None = None

    def __call__(self, ctx: RunContext, words: str) -> None:
        if self.send is None:
            return
        last = ctx.transcript.last_reply
        self.send(
            ReplyDelta(
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
    """Whether other processes may use the same database."""
    return not settings.database_url.startswith("sqlite:")


@contextlib.asynccontextmanager
async def _feeding_hub(
    settings: Settings, runtime: Runtime, hub: Hub, forwarder: _DeltaForwarder
) -> AsyncGenerator[None]:
    """Pass events and pieces of replies to the hub: from this process, or from all processes."""

    def partial_reply(words: ReplyDelta) -> PartialReply:
        return PartialReply(
            team_id=words.team_id,
            agent_id=words.agent_id,
            node_id=words.node_id,
            thread_id=words.thread_id,
            lane=words.lane,
        )

    if not _is_shared(settings):
        # The events need nothing here: `api.app.build` publishes each commit of this only process.
        forwarder.send = lambda words: hub.publish_delta(partial_reply(words), words.text)
        yield
        return
    # Imports asyncpg, which homes on SQLite do not need.
    from agiraph.core.store.engine.change_feed import ChangeFeed

    # Work of other processes goes on while this one starts: its next event may come late.
    hub.published = await runtime.store.read(events.heads, archived=True)
    feed = ChangeFeed(
        settings.database_url,
        runtime.store,
        publish=hub.publish,
        on_reply_text=lambda words: hub.publish_remote_delta(
            partial_reply(words), words.text, words.offset
        ),
        failures=runtime.periodic.streak("listening for events"),
    )
    await feed.start()
    try:
        yield
    finally:
        await feed.stop()


@contextlib.asynccontextmanager
async def _runtime(settings: Settings, forwarder: _DeltaForwarder) -> AsyncGenerator[Runtime]:
    tracing = traces.open_tracing(settings.traces, redaction.environment())
    runtime = await Runtime.of_settings(
        settings, retention=settings.retention, on_delta=forwarder, tracing=tracing
    )
    try:
        async with _sharing_deltas(settings, runtime, forwarder):
            yield runtime
    finally:
        # Tracing last: the runs that this ends still emit spans.
        await runtime.close()
        if tracing is not None:
            await tracing.close()


@contextlib.asynccontextmanager
async def _sharing_deltas(
    settings: Settings, runtime: Runtime, forwarder: _DeltaForwarder
) -> AsyncGenerator[None]:
    """Send the pieces of replies to other processes, if the database is shared."""
    if not _is_shared(settings):
        yield
        return
    # Imports asyncpg, which homes on SQLite do not need.
    from agiraph.core.store.engine.change_feed import ReplyTextSender

    sender = ReplyTextSender(runtime.store)
    forwarder.send = sender.add
    try:
        yield
    finally:
        await sender.stop()


def _token(settings: Settings, runtime: Runtime) -> Callable[[], str]:
    """Return a function for the current token: a changed token file counts at the next request."""
    if settings.token:
        return lambda: settings.token
    made = runtime.home.token()
    redaction.keep({"token": made})
    kept: tuple[tuple[int, int], str] = (_stamp(runtime.home.token_path), made)

    def current() -> str:
        nonlocal kept
        # One stat per request: a person who replaces the token file expects the old token to be
        # refused at once, without a restart.
        stamp = _stamp(runtime.home.token_path)
        if stamp != kept[0]:
            # The old token stays among the redacted secrets: what is
            # logged later may still quote it.
            kept = (stamp, runtime.home.token())
            redaction.keep({"token": kept[1]})
        return kept[1]

    return current


def _stamp(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except FileNotFoundError:
        return (0, 0)
    # The inode too: a file that is replaced within one tick of the file
    # system's clock has the same time.
    return (found.st_mtime_ns, found.st_ino)


def asked_to_stop() -> asyncio.Event:
    """Return an event that SIGTERM or SIGINT sets; a second signal ends the process at once."""
    loop, asked = asyncio.get_running_loop(), asyncio.Event()

    def stop() -> None:
        asked.set()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    return asked
