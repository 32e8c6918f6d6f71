"""Browsing: a browser at a server, and a record of everything that goes wrong in it."""

import asyncio
import os
import re
import signal
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from playwright.async_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Error,
    Page,
    Playwright,
    Request,
    Response,
    WebSocket,
)

from agiraph.core.domain.messages import Draft, MessageKind
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.times.time import Clock, SystemClock
from agiraph.core.services.mail import bus
from agiraph.models.registry import Account, Keys
from agiraph.testing import ModelServer, World
from tests.cli.shell import Process, Shell
from tests.up_process import TOKEN, Client, Up, use_model_server
from tests.web_ui.windows import serving, signed_in

CHROMIUMS = ("/usr/lib/chromium/chromium-headless-shell", "/usr/bin/chromium")
"""Browsers that a test may drive, the one that takes less of the processor first."""
PHONE: dict[str, Any] = {
    "viewport": {"width": 390, "height": 844},
    "has_touch": True,
    "is_mobile": True,
}
DESKTOP: dict[str, Any] = {"viewport": {"width": 1440, "height": 900}, "locale": "en-GB"}
STILL: dict[str, Any] = {"reduced_motion": "reduce"}
"""Without a graphics processor, a page with one endless animation keeps the machine busy."""
EMPTY = "about:blank"
"""The address of a page that shows nothing: it need not follow what a test prepares."""
DEADLINE_MS = 30_000
"""How long a test waits for a page to show something; normally it takes much less."""

_LINE_LOST = re.compile(r"net::ERR_|WebSocket connection to|Failed to load resource")
_PAGE_LEFT = "WebSocket is closed before the connection is established"
"""What Chromium logs when a page is left while it connects, as on a busy machine."""


async def launch(playwright: Playwright) -> Browser:
    # Chromium's sandbox does not start for root, and shared memory is small in containers.
    flags = ["--disable-dev-shm-usage", "--disable-gpu", "--font-render-hinting=none"]
    # Tests open one page after the other: they need no process for each.
    flags.append("--renderer-process-limit=1")
    if os.geteuid() == 0:
        flags.append("--no-sandbox")
    installed = next((path for path in CHROMIUMS if Path(path).exists()), CHROMIUMS[-1])
    path = os.environ.get("CHROMIUM", installed)
    return await playwright.chromium.launch(executable_path=path, args=flags)


@dataclass  # no slots: Playwright sets attributes on listeners
class Watch:
    """Records what must never happen in a page: errors, and requests to other origins."""

    origin: str
    faults: list[str] = field(default_factory=list[str])
    is_server_away: bool = False
    """If true, failed requests are expected and not recorded."""

    def over(self, page: Page) -> None:
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.faults.append(f"page error: {error}"))
        page.on("request", self._request)
        page.on("websocket", self._line)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type not in ("error", "warning"):
            return
        if _PAGE_LEFT in message.text:
            return
        if self.is_server_away and _LINE_LOST.search(message.text):
            return
        place = message.location.get("url", "")
        self.faults.append(f"console {message.type}: {message.text} ({place})")

    def _request(self, request: Request) -> None:
        if not request.url.startswith((f"{self.origin}/", "data:", f"blob:{self.origin}/")):
            self.faults.append(f"request elsewhere: {request.url}")

    def _line(self, line: WebSocket) -> None:
        if not line.url.startswith(f"{self.origin.replace('http', 'ws', 1)}/"):
            self.faults.append(f"WebSocket elsewhere: {line.url}")


@dataclass  # no slots: Playwright sets attributes on listeners
class Traffic:
    """Counts what a page has loaded from the API."""

    requests: list[str] = field(default_factory=list[str])
    """The path of each request, with its query."""
    loaded: dict[str, int] = field(default_factory=dict[str, int])
    """The bytes of JSON of each path without its query, as the page parses it."""
    wire_bytes: int = 0
    """The bytes that came over the line, compressed."""
    _reads: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    def over(self, page: Page) -> None:
        page.on("response", self._response)

    @property
    def json_bytes(self) -> int:
        return sum(self.loaded.values())

    def of(self, path: str) -> list[str]:
        """Return the requests to paths that begin like this."""
        return [one for one in self.requests if one.startswith(path)]

    async def settled(self) -> None:
        """Wait until everything that has been answered is counted."""
        while self._reads:
            await asyncio.wait(self._reads)

    def clear(self) -> None:
        self.requests.clear()
        self.loaded.clear()
        self.wire_bytes = 0

    def _response(self, response: Response) -> None:
        where = urlsplit(response.url)
        if not where.path.startswith("/api/"):
            return
        self.requests.append(f"{where.path}?{where.query}" if where.query else where.path)
        task = asyncio.ensure_future(self._read(response, where.path))
        self._reads.add(task)
        task.add_done_callback(self._reads.discard)

    async def _read(self, response: Response, path: str) -> None:
        try:
            body = await response.body()
            sizes = await response.request.sizes()
        except Error:
            return  # the page was left before it had read the response
        self.loaded[path] = self.loaded.get(path, 0) + len(body)
        self.wire_bytes += sizes["responseBodySize"]


async def go(page: Page, address: str) -> None:
    """Go to an address as a link in the page would; load the page if it is still empty."""
    if page.url == EMPTY:
        await page.goto(address)
    else:
        await page.evaluate("(to) => history.pushState(null, '', to)", address)


@dataclass(slots=True)
class Desk:
    """A browser page that is signed in to a server of its own."""

    home: Path
    model: ModelServer
    up: Client
    context: BrowserContext
    page: Page
    watch: Watch
    _stack: AsyncExitStack
    world: World | None
    """The world that serves the page, if it is in this process."""

    @property
    def origin(self) -> str:
        return self.up.origin

    async def found(self, goal: str, **more: Any) -> dict[str, Any]:
        """Create a team over the API."""
        return await self.up.ask("POST", "/teams", {"goal": goal, **more})

    async def tell(self, team: dict[str, Any], kind: MessageKind, text: str) -> None:
        """Send the person a message of the team's coordinator."""
        assert self.world is not None
        sender, recipient = team["coordinator_id"], OWNER
        about: dict[str, Any] = {"team_id": team["id"], "sender": sender, "recipient": recipient}
        await self.world.store.write(bus.send, Draft(**about, kind=kind, text=text))

    async def open(self, path: str) -> None:
        await self.page.goto(f"{self.origin}{path}")

    async def go(self, path: str, page: Page | None = None) -> None:
        """Go to a screen as a link in the page would; load the page if it is still empty."""
        await go(page or self.page, f"{self.origin}{path}")

    async def opens(self, **options: Any) -> Page:
        """Open another page that is signed in, in another context, such as a phone."""
        browser = self.context.browser
        assert browser is not None
        window = signed_in(browser, self.origin, **DESKTOP | STILL | options)
        context = await self._stack.enter_async_context(window)
        page = await context.new_page()
        page.set_default_timeout(DEADLINE_MS)
        self.watch.over(page)
        return page


@dataclass(slots=True)
class UpDesk(Desk):
    """A browser page that is signed in to an `agiraph up` of its own."""

    shell: Shell
    process: Process

    async def kill(self) -> None:
        """Kill the server with SIGKILL."""
        self.watch.is_server_away = True
        self.process.signal(signal.SIGKILL)
        await self.process.ends()

    async def start_again(self) -> None:
        """Start the server again at the same address; the page reconnects by itself."""
        self.process = await _start_up(self._stack, self.shell)
        self.up = Up(self.process, self.up.http)

    def is_back(self) -> None:
        """Record failed requests as faults again."""
        self.watch.is_server_away = False


async def _start_up(stack: AsyncExitStack, shell: Shell) -> Process:
    process = await stack.enter_async_context(shell.start("up"))
    async with asyncio.timeout(60):
        await process.says("Token for programs")
    return process


async def _watched_page(context: BrowserContext, origin: str) -> tuple[Page, Watch]:
    page = await context.new_page()
    page.set_default_timeout(DEADLINE_MS)
    watch = Watch(origin)
    watch.over(page)
    return page, watch


@asynccontextmanager
async def watched(
    browser: Browser, origin: str, **options: Any
) -> AsyncGenerator[tuple[Page, Watch]]:
    """Open a page that is signed in to this server; faults are raised at the end."""
    async with signed_in(browser, origin, **DESKTOP | STILL | options) as context:
        page, watch = await _watched_page(context, origin)
        yield page, watch
        watch.is_server_away = True
    assert watch.faults == [], watch.faults


def _client(stack: AsyncExitStack) -> Awaitable[aiohttp.ClientSession]:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    return stack.enter_async_context(aiohttp.ClientSession(headers=headers))


Visit = Callable[..., Awaitable[Desk]]
VisitUp = Callable[..., Awaitable[UpDesk]]


def _expect_lost_requests(watches: list[Watch]) -> None:
    """Record no lost requests from now on: the server stops before the pages are closed."""
    for watch in watches:
        watch.is_server_away = True


@asynccontextmanager
async def visiting(browser: Browser, shell: Shell, port: int) -> AsyncGenerator[VisitUp]:
    """`await visit(script)` starts server and model and signs in; faults are raised at the end."""
    watches: list[Watch] = []
    async with AsyncExitStack() as stack:

        async def visit(
            script: Any, *, path: str = "/", settings: str = "", **options: Any
        ) -> UpDesk:
            shell.prepared()
            (shell.home / "agiraph.toml").write_text(settings)
            model = await stack.enter_async_context(ModelServer(script))
            shell.environment |= {"AGIRAPH_PORT": str(port), "AGIRAPH_TOKEN": TOKEN}
            process = await _start_up(stack, use_model_server(shell, model))
            up = Up(process, await _client(stack))
            context = await browser.new_context(**DESKTOP | STILL | options)
            stack.push_async_callback(context.close)
            page, watch = await _watched_page(context, up.origin)
            watches.append(watch)
            [link] = re.findall(r"Sign in once: (\S+)", process.seen)
            await page.goto(link)
            desk = UpDesk(shell.home, model, up, context, page, watch, stack, None, shell, process)
            if path != "/":
                await desk.open(path)
            return desk

        yield visit
        _expect_lost_requests(watches)
    faults = [fault for watch in watches for fault in watch.faults]
    assert faults == [], faults


@asynccontextmanager
async def visiting_world(browser: Browser, home: Path) -> AsyncGenerator[Visit]:
    """As `visiting`, but the server is a world in this process, which starts much faster."""
    watches: list[Watch] = []
    async with AsyncExitStack() as stack:

        async def visit(
            script: Any,
            *,
            path: str = "/",
            clock: Clock | None = None,
            key: str = "sk-canary-canary",
            world: Mapping[str, Any] = MappingProxyType({}),
            **options: Any,
        ) -> Desk:
            model = await stack.enter_async_context(ModelServer(script))
            keys = Keys({"openai": Account(key=key, base_url=model.openai_url)})
            named: dict[str, Any] = {"model": "openai/test" if key else "demo", **world}
            served = await stack.enter_async_context(
                serving(home, clock=clock or SystemClock(), keys=keys, **named)
            )
            client = Client(served.origin, await _client(stack))
            window = signed_in(browser, served.origin, **DESKTOP | STILL | options)
            context = await stack.enter_async_context(window)
            page, watch = await _watched_page(context, served.origin)
            watches.append(watch)
            desk = Desk(home, model, client, context, page, watch, stack, served.world)
            if path != EMPTY:
                await desk.open(path)
            return desk

        yield visit
        _expect_lost_requests(watches)
    faults = [fault for watch in watches for fault in watch.faults]
    assert faults == [], faults
