"""Session: a browser that signed in by a link, and a hostile server on another port of its host."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from playwright.async_api import Browser, BrowserContext, expect

from tests.web_ui.browsing import DEADLINE_MS, DESKTOP, EMPTY, STILL, Desk, Visit

pytestmark = pytest.mark.asyncio(loop_scope="session")

PAGE = """<!doctype html><title>development server</title><script>
const target = new URLSearchParams(location.search).get("target");
const reach = async (path) => {
  try { return (await fetch(target + path, { credentials: "include" })).status; }
  catch { return "refused"; }
};
const connect = () => new Promise((done) => {
  const line = new WebSocket(target.replace("http", "ws") + "/api/events");
  line.onopen = () => done("open");
  line.onerror = () => done("refused");
});
Promise.all([reach("/api/teams"), connect()]).then(([read, live]) => fetch("/tell", {
  method: "POST", body: JSON.stringify({ stored: { ...localStorage }, read, live }),
})).then(() => (document.title = "done"));
</script>"""


@dataclass(slots=True)
class Spy:
    """What a server on another port of the host is sent."""

    origin: str = ""
    headers: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    told: dict[str, Any] = field(default_factory=dict[str, Any])

    async def answer(self, request: web.Request) -> web.Response:
        self.headers.append(dict(request.headers))
        if request.path == "/tell":
            self.told = json.loads(await request.text())
        return web.Response(text=PAGE, content_type="text/html")


@asynccontextmanager
async def spying() -> AsyncGenerator[Spy]:
    spy = Spy()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", spy.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    spy.origin = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield spy
    finally:
        await runner.cleanup()


@asynccontextmanager
async def new_browser(browser: Browser) -> AsyncGenerator[BrowserContext]:
    """Open a context that has never seen the server."""
    context = await browser.new_context(**DESKTOP | STILL)
    context.set_default_timeout(DEADLINE_MS)
    yield context
    await context.close()


async def link_of(desk: Desk) -> str:
    made = await desk.up.ask("POST", "/tokens/link")
    return f"{desk.origin}{made['path']}"


async def test_a_server_on_another_port_gets_nothing_that_signs_it_in(
    visit: Visit, browser: Browser
) -> None:
    desk = await visit([], path=EMPTY)
    async with spying() as spy, new_browser(browser) as context:
        page = await context.new_page()
        await page.goto(await link_of(desk))
        await page.get_by_text("What should a team do?").wait_for()
        elsewhere = await context.new_page()
        await elsewhere.goto(f"{spy.origin}/?target={desk.origin}")
        await expect(elsewhere).to_have_title("done")

        sent = [headers["Cookie"] for headers in spy.headers if "Cookie" in headers]
        assert sent, "the browser sends the cookie to every port; otherwise this test shows nothing"
        key = await page.evaluate("localStorage.getItem('agiraph.key')")
        assert key not in str(spy.headers)
        assert spy.told == {"stored": {}, "read": "refused", "live": "refused"}
        value = sent[0].partition("=")[2]
        async with aiohttp.ClientSession() as thief:
            for stolen in (
                {"Cookie": sent[0]},
                {"Cookie": sent[0], "X-Agiraph-Key": value},
                {"Authorization": f"Bearer {value}"},
            ):
                async with thief.get(f"{desk.origin}/api/teams", headers=stolen) as response:
                    assert response.status == 401, stolen
            # The oracle: with the key, which only the page has, the same cookie is accepted.
            whole = {"Cookie": sent[0], "X-Agiraph-Key": key}
            async with thief.get(f"{desk.origin}/api/teams", headers=whole) as response:
                assert response.status == 200


async def test_a_link_in_a_page_of_another_site_signs_the_browser_in(
    visit: Visit, browser: Browser
) -> None:
    desk = await visit([], path=EMPTY)
    async with spying() as spy, new_browser(browser) as context:
        page = await context.new_page()
        await page.goto(spy.origin.replace("127.0.0.1", "localhost"))
        await page.evaluate("(to) => void location.assign(to)", await link_of(desk))
        await page.get_by_text("What should a team do?").wait_for()
        assert page.url == f"{desk.origin}/"
        await page.go_back()
        assert page.url.startswith("http://localhost:")


async def test_a_browser_keeps_its_session_and_its_address_shows_no_key(
    visit: Visit, browser: Browser
) -> None:
    desk = await visit([], path=EMPTY)
    team = await desk.found("Grow beans.", name="beans", start=False)
    async with new_browser(browser) as context:
        page = await context.new_page()
        lines: list[str] = []
        page.on("websocket", lambda line: lines.append(line.url))
        await page.goto(await link_of(desk))
        await page.get_by_role("link", name="beans").first.wait_for()
        await expect(page).to_have_url(f"{desk.origin}/")
        key = await page.evaluate("localStorage.getItem('agiraph.key')")
        await page.go_back()
        assert "key=" not in page.url

        # Links and WebSockets carry the key too.
        await page.goto(f"{desk.origin}/t/{team['id']}/settings")
        async with page.expect_download() as saving:
            await page.locator("a[href*='/export']").click()
        assert (await (await saving.value).path()).read_bytes()[:2] == b"PK"
        assert {line.partition("?")[0] for line in lines} == {
            f"{desk.origin.replace('http', 'ws')}/api/events"
        }
        assert key not in str(lines)

        # A page without its key, as one that was opened before there were keys, is not signed in.
        await page.evaluate("localStorage.clear()")
        await page.goto(desk.origin)
        await page.get_by_text("Sign in to agiraph").wait_for()
        # It goes on when another tab signs in.
        other = await context.new_page()
        await other.goto(await link_of(desk))
        await page.get_by_role("link", name="beans").first.wait_for()
