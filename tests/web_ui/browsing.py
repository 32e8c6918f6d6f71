"""Browsing: a browser at a real `agiraph up`, and a record of everything that goes wrong in it."""

import asyncio
import os
import re
import signal
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from playwright.async_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Playwright,
    Request,
    WebSocket,
)

from agiraph.testing import ModelServer
from tests.cli.shell import Process, Shell
from tests.up_process import TOKEN, Up, use_model_server

CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
PHONE: dict[str, Any] = {
    "viewport": {"width": 390, "height": 844},
    "has_touch": True,
    "is_mobile": True,
}
DESKTOP: dict[str, Any] = {"viewport": {"width": 1440, "height": 900}, "locale": "en-GB"}
DEADLINE_MS = 15_000
"""How long a test waits for a page to show something; normally it takes much less."""

_LINE_LOST = re.compile(r"net::ERR_|WebSocket connection to|Failed to load resource")


async def launch(playwright: Playwright) -> Browser:
    # Chromium's sandbox does not start for root, and shared memory is small in containers.
    flags = ["--disable-dev-shm-usage", "--disable-gpu", "--font-render-hinting=none"]
    if os.geteuid() == 0:
        flags.append("--no-sandbox")
    return await playwright.chromium.launch(executable_path=CHROMIUM, args=flags)


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


@dataclass(slots=True)
class Desk:
    """A browser page that is signed in to its own server."""

    shell: Shell
    model: ModelServer
    up: Up
    context: BrowserContext
    page: Page
    watch: Watch
    _starts: "_Starts"

    @property
    def origin(self) -> str:
        return self.up.origin

    async def found(self, goal: str, **more: Any) -> dict[str, Any]:
        """Create a team over the API."""
        return await self.up.ask("POST", "/teams", {"goal": goal, **more})

    async def open(self, path: str) -> None:
        await self.page.goto(f"{self.origin}{path}")

    async def opens(self, **options: Any) -> Page:
        """Open another page with the same session in a new context, such as a phone."""
        state = await self.context.storage_state()
        browser = self.context.browser
        assert browser is not None
        context = await browser.new_context(storage_state=state, **options)
        self._starts.stack.push_async_callback(context.close)
        page = await context.new_page()
        page.set_default_timeout(DEADLINE_MS)
        self.watch.over(page)
        return page

    async def kill(self) -> None:
        """Kill the server with SIGKILL."""
        self.watch.is_server_away = True
        self.up.process.signal(signal.SIGKILL)
        await self.up.process.ends()

    async def start_again(self) -> None:
        """Start the server again at the same address; the page reconnects by itself."""
        process = await self._starts.server(self.shell)
        self.up = Up(process, self.up.http)

    def is_back(self) -> None:
        """Record failed requests as faults again."""
        self.watch.is_server_away = False


@dataclass(slots=True)
class _Starts:
    stack: AsyncExitStack

    async def server(self, shell: Shell) -> Process:
        process = await self.stack.enter_async_context(shell.start("up"))
        async with asyncio.timeout(60):
            await process.says("Token for programs")
        return process


Visit = Callable[..., Awaitable[Desk]]


@asynccontextmanager
async def visiting(browser: Browser, shell: Shell, port: int) -> AsyncGenerator[Visit]:
    """`await visit(script)` starts server and model and signs in; faults are raised at the end."""
    watches: list[Watch] = []
    async with AsyncExitStack() as stack:
        starts = _Starts(stack)

        async def visit(
            script: Any, *, path: str = "/", settings: str = "", **options: Any
        ) -> Desk:
            shell.home.mkdir()
            (shell.home / "agiraph.toml").write_text(settings)
            model = await stack.enter_async_context(ModelServer(script))
            shell.environment |= {"AGIRAPH_PORT": str(port), "AGIRAPH_TOKEN": TOKEN}
            process = await starts.server(use_model_server(shell, model))
            headers = {"Authorization": f"Bearer {TOKEN}"}
            http = await stack.enter_async_context(aiohttp.ClientSession(headers=headers))
            up = Up(process, http)
            context = await browser.new_context(**DESKTOP | options)
            stack.push_async_callback(context.close)
            page = await context.new_page()
            page.set_default_timeout(DEADLINE_MS)
            watch = Watch(up.origin)
            watch.over(page)
            watches.append(watch)
            [link] = re.findall(r"Sign in once: (\S+)", process.seen)
            await page.goto(link)
            desk = Desk(shell, model, up, context, page, watch, starts)
            if path != "/":
                await desk.open(path)
            return desk

        yield visit
    assert [fault for watch in watches for fault in watch.faults] == []
