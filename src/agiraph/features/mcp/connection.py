"""MCP connection: one server, started when it is first used and ended when nobody uses it.

A server is somebody else's program. It may die, hang, send without end or not start at all. A call
then fails with a sentence that says so, and the next call starts the server again, after a pause
that grows with each failure.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from agiraph.core.domain.errors import Refused
from agiraph.core.domain.provenance.labels import of_mcp
from agiraph.core.domain.text.plurals import times
from agiraph.core.domain.value import dataclass
from agiraph.features.mcp.settings import McpServer

if TYPE_CHECKING:  # the SDK takes a second to import
    from agiraph.features.mcp.transport import Link
    from mcp import Client

T = TypeVar("T")
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0
"""Seconds before a server that has failed is started again; the pause doubles up to the second
value."""
STOP_S = 10.0
MAYBE = "The call may or may not have happened."
LED_INSIDE = (
    "led to an address that is neither on its own host nor in the public internet, as for its "
    "sign-in. It was not opened. Ask those who run the server."
)
"""The rest of the sentence "The MCP server NAME …"."""


class ServerFailed(Refused):
    """The server could not be started, ended, or did not answer in time. The message is ours; what
    the server itself said is in `said`, for people only."""

    def __init__(self, message: str, *, said: str = "") -> None:
        super().__init__(message)
        self.said = said


class SignInWanted(ServerFailed):
    """The server answers nobody who has not signed in."""

    def __init__(self, name: str, *, said: str = "") -> None:
        how = f"wants a sign-in: a person does it with `agiraph mcp login {name}`."
        super().__init__(f"The MCP server {name!r} {how}", said=said)


@dataclass(slots=True)
class Session:
    """A running server."""

    client: "Client"
    link: "Link"
    tidy: "Tidy | None" = None
    """Called after each call: it makes good what the program may have left for the person."""


Tidy = Callable[[], Awaitable[None]]
Open = Callable[[], AbstractAsyncContextManager[Session]]


class Connection:
    """Starts one server when it is used, shares it between calls, and ends it when it is idle."""

    def __init__(self, server: McpServer, open_session: Open) -> None:
        self.server = server
        self._open = open_session
        self._lock = asyncio.Lock()
        self._session: Session | None = None
        self._last: Session | None = None
        """The last session that was begun, until a call gives it up."""
        self._task: asyncio.Task[None] | None = None
        self._stop: asyncio.Event = asyncio.Event()
        self._in_use = 0
        self._idle: asyncio.TimerHandle | None = None
        self._failures = 0
        self._not_before = 0.0
        self.failure: ServerFailed | None = None
        """Why its last use failed; None: it did not."""
        self.starts: int = 0
        """How many times the server was started."""
        self.on_start: Callable[[Session], Awaitable[None]] | None = None
        """Called with each new session, before the first call is made."""
        self.refusal: Callable[[], str] = lambda: ""
        """Returns why the server may not be started; empty if it may."""

    @property
    def is_running(self) -> bool:
        return self._session is not None

    @property
    def problem(self) -> str:
        """Return why the server cannot be used now; empty if its last call did not fail."""
        if self._failures < 2:
            return "failed once" if self._failures else ""
        return f"failed {times(self._failures)} in a row"

    async def use(self, act: Callable[["Client"], Awaitable[T]]) -> T:
        """Start the server if needed, make the call and return its result; raise `ServerFailed` if
        there is none."""
        try:
            made = await self._used(act)
        except ServerFailed as error:
            self.failure = error
            raise
        self.failure = None
        return made

    async def _used(self, act: Callable[["Client"], Awaitable[T]]) -> T:
        async with self._held() as session:
            session.link.begin_call()
            try:
                return await self._in_time(session, act)
            finally:
                if session.tidy is not None:
                    await session.tidy()

    async def close(self) -> None:
        """End the server."""
        async with self._lock:
            await self._end()

    @asynccontextmanager
    async def _held(self) -> AsyncGenerator[Session]:
        async with self._lock:
            if self._idle is not None:
                self._idle.cancel()
            session = self._session or await self._begin()
            self._in_use += 1
        try:
            yield session
        finally:
            self._in_use -= 1
            if self._in_use == 0 and self._session is session:
                self._idle = asyncio.get_running_loop().call_later(
                    self.server.idle_s, self._retire, session
                )

    async def _in_time(self, session: Session, act: Callable[["Client"], Awaitable[T]]) -> T:
        from mcp.types import CONNECTION_CLOSED, REQUEST_TIMEOUT

        from mcp import MCPError

        limit = self.server.timeout_s
        try:
            async with asyncio.timeout(limit):
                made = await act(session.client)
        except TimeoutError as error:
            self._give_up(session)
            raise self._failed(
                f"did not answer within {limit:g} s. {MAYBE} It is started anew for the next call."
            ) from error
        except MCPError as error:
            if error.code not in (CONNECTION_CLOSED, REQUEST_TIMEOUT):
                raise
            self._give_up(session)
            raise self._ended(session) from error
        except Refused:
            raise
        except Exception as error:  # the SDK raises anything if a server is broken
            self._give_up(session)
            link = session.link
            if link.is_over or link.wants_sign_in or link.led_inside:
                raise self._ended(session) from error
            raise self._failed(
                f"sent an answer that is not valid MCP. {MAYBE}", said=words_of(error)
            ) from error
        self._failures = 0
        return made

    def _ended(self, session: Session) -> ServerFailed:
        if session.link.led_inside:
            return self._failed(LED_INSIDE)
        if session.link.wants_sign_in:
            return self._labelled(SignInWanted(self.server.name))
        if session.link.is_over:
            return self._failed(f"sent too much at once and was ended. {MAYBE} Ask it for less.")
        return self._failed(
            f"ended during the call. {MAYBE} It is started again for the next call.",
            said=session.link.said(),
        )

    def _failed(self, how: str, *, said: str = "") -> ServerFailed:
        """Return the error for a server that had answered before it failed."""
        return self._labelled(ServerFailed(f"The MCP server {self.server.name!r} {how}", said=said))

    def _labelled(self, failed: ServerFailed) -> ServerFailed:
        failed.label = of_mcp(self.server.name)
        return failed

    async def _begin(self) -> Session:
        """Start the server and return its session. The caller holds the lock."""
        if self.server.fault:
            raise ServerFailed(f"The MCP server {self.server.name!r} {self.server.description}.")
        if refusal := self.refusal():
            raise ServerFailed(f"The MCP server {self.server.name!r} {refusal}")
        await self._end()  # an earlier session may still be ending
        loop = asyncio.get_running_loop()
        if (left := self._not_before - loop.time()) > 0:
            raise ServerFailed(
                f"The MCP server {self.server.name!r} has failed {self._failures} times in a row. "
                f"It is tried again in {left:.0f} s: do something else, or without it."
            )
        self.starts += 1
        self._last = None
        ready: asyncio.Future[Session] = loop.create_future()
        # A failure that comes after the time limit is nobody's; asyncio would log it as lost.
        ready.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._stop = asyncio.Event()
        task = self._task = asyncio.create_task(
            self._live(ready, self._stop), name=f"MCP server {self.server.name}"
        )
        try:
            async with asyncio.timeout(self.server.start_s):
                session = await asyncio.shield(ready)
                if self.on_start is not None:
                    await self.on_start(session)
        except BaseException as error:
            self._give_up(None)
            if not ready.done():
                task.cancel()  # it is still opening the session, and hears of no stop
            await self._end()
            if isinstance(error, TimeoutError):
                raise ServerFailed(
                    f"The MCP server {self.server.name!r} did not start within "
                    f"{self.server.start_s:g} s."
                ) from error
            if isinstance(error, Exception):
                raise self._not_started(error) from error
            raise
        self._session = self._last = session
        return session

    def _not_started(self, error: Exception) -> ServerFailed:
        if isinstance(error, ServerFailed):
            return error
        return could_not_start(self.server, said=words_of(error))

    async def _live(self, ready: asyncio.Future[Session], stop: asyncio.Event) -> None:
        """Hold one session open until `stop` is set or the server's program ends. The SDK demands
        that its context managers are entered and left in the same task, so this task does both."""
        session: Session | None = None
        try:
            async with self._open() as session:
                if not ready.done():
                    ready.set_result(session)
                await _first(stop.wait(), session.link.dead())
                # At once: a call that comes while this session is closing starts another one.
                self._forget(session)
        except Exception as error:
            if not ready.done():
                ready.set_exception(error)
        finally:
            self._forget(session)
            if not ready.done():
                ready.cancel()

    def _forget(self, session: Session | None) -> None:
        """Give this session to no further call."""
        if self._session is session:
            self._session = None

    def _retire(self, session: Session) -> None:
        """End a session that nobody uses."""
        if self._session is session:
            self._session = None
            self._stop.set()

    def _give_up(self, session: Session | None) -> None:
        """End this session; None is one that could not be started. From the second failure in a row
        on, the next start waits."""
        if session is not self._last:
            return  # another call has given it up already, and a new one may run
        self._last = None
        self._failures += 1
        pause = min(FIRST_PAUSE_S * 2 ** (self._failures - 1), LONGEST_PAUSE_S)
        # The first failure costs no pause: a server that was killed is back for the next call.
        wait = pause if self._failures > 1 else 0.0
        self._not_before = asyncio.get_running_loop().time() + wait
        self._session = None
        self._stop.set()

    async def _end(self) -> None:
        """End the running session. The caller holds the lock."""
        self._session = None
        task, self._task = self._task, None
        if task is None:
            return
        self._stop.set()
        done, _ = await asyncio.wait({task}, timeout=STOP_S)
        if not done:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def could_not_start(server: McpServer, *, said: str) -> ServerFailed:
    """Return the error for a server that gave no session; `said` is why, in its own words."""
    done = "started" if server.kind == "stdio" else "reached"
    return ServerFailed(f"The MCP server {server.name!r} could not be {done}.", said=said)


async def _first(*waits: Coroutine[Any, Any, object] | Awaitable[object]) -> None:
    """Return when the first of these has ended."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()


def words_of(error: BaseException) -> str:
    """Return type and message of an error; of an exception group, those of its first innermost
    error."""
    inner: Any = error
    while inners := getattr(inner, "exceptions", ()):
        inner = inners[0]
    return f"{inner.__class__.__name__}: {inner}"
