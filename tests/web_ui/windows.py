"""Windows: browser contexts and addresses that the tests of a process use one after the other.

A new context, or a new address, loads every file of the page again. A test gets a context without
cookies, stored data and pages, but with the files that earlier tests have loaded.
"""

import contextlib
from collections import defaultdict
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from socket import socket
from typing import Any
from weakref import WeakKeyDictionary

from playwright.async_api import Browser, BrowserContext, CDPSession, Page

from agiraph.api.server import bind
from tests.api import serving as worlds
from tests.api.serving import TOKEN, Served

STORED = "local_storage,indexeddb,cache_storage,service_workers,file_systems"
SAVE_DATA = "Object.defineProperty(navigator.connection, 'saveData', { get: () => true })"
"""The page loads the files of all screens in advance, but not for a person who saves data. It is as
much work as a test's own screens. The tests with `agiraph up` do not save data."""


def cookie_of(secret: str, origin: str) -> Any:
    """Return the cookie with the first half of a session's secret."""
    return {"name": "agiraph_session", "value": secret[: len(secret) // 2], "url": origin}


def key_of(secret: str) -> str:
    return secret[len(secret) // 2 :]


def keep_key(secret: str) -> str:
    """Return the script that keeps the second half of a session's secret, as the page does. A
    sandboxed file can keep nothing."""
    return f"try {{ localStorage.setItem('agiraph.key', '{key_of(secret)}') }} catch {{}}"


async def sign_in(context: BrowserContext, origin: str) -> None:
    """Sign a new context in to the server at this origin."""
    await context.add_init_script(keep_key(TOKEN))
    await context.add_cookies([cookie_of(TOKEN, origin)])


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """A browser context between tests."""

    context: BrowserContext
    keeper: Page
    """An empty page: without any page, the process that has compiled the files would end."""
    line: CDPSession

    async def empty(self, origin: str) -> None:
        """Remove everything of the last test but what the browser has loaded."""
        for page in self.context.pages:
            if page is not self.keeper:
                await page.close()
        await self.context.unroute_all()
        await self.context.clear_cookies()
        await self.context.clear_permissions()
        about = {"origin": origin, "storageTypes": STORED}
        await self.line.send("Storage.clearDataForOrigin", about)


_free: WeakKeyDictionary[Browser, dict[str, list[Window]]] = WeakKeyDictionary()
"""Contexts that no test uses now, by their options."""
_doors: dict[socket, bool] = {}
"""Listening sockets, and whether a server of a test uses each."""


async def _open(browser: Browser, options: dict[str, Any]) -> Window:
    context = await browser.new_context(**options)
    await context.add_init_script(SAVE_DATA)
    await context.add_init_script(keep_key(TOKEN))
    keeper = await context.new_page()
    return Window(context, keeper, await context.new_cdp_session(keeper))


@asynccontextmanager
async def signed_in(
    browser: Browser, origin: str, **options: Any
) -> AsyncGenerator[BrowserContext]:
    """Lend a context that is signed in to the server at this origin."""
    free = _free.setdefault(browser, defaultdict(list))[repr(sorted(options.items()))]
    window = free.pop() if free else await _open(browser, options)
    try:
        await window.context.add_cookies([cookie_of(TOKEN, origin)])
        yield window.context
        await window.empty(origin)
    except BaseException:
        await window.context.close()
        raise
    free.append(window)


@contextlib.contextmanager
def _door() -> Iterator[socket]:
    """Lend a copy of a listening socket: its address is the same for one server after the other."""
    door = next((one for one, is_used in _doors.items() if not is_used), None)
    door = door or bind("127.0.0.1", 0)
    _doors[door] = True
    try:
        yield door.dup()
    except BaseException:
        del _doors[door]
        door.close()
        raise
    _doors[door] = False


@asynccontextmanager
async def serving(home: Path, **more: Any) -> AsyncGenerator[Served]:
    """As `tests.api.serving.serving`, at an address that earlier tests have used."""
    with _door() as sock:
        async with worlds.serving(home, sock=sock, **more) as served:
            yield served
