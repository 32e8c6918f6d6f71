"""Sharing: a report is shared as a link that all can read; another device signs in by a code."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytest_asyncio
import zxingcpp
from playwright.async_api import Browser, BrowserContext, Page, Route, expect

from agiraph.core.domain.persons import OWNER
from agiraph.core.store.nodes import NODES
from agiraph.core.store.tx import Tx
from agiraph.features.sharing import routes
from agiraph.testing import call, says
from agiraph.testing.model_server import Seen, Step
from tests.certificates import TlsEnd, tls_end
from tests.web_ui.browsing import DEADLINE_MS, DESKTOP, EMPTY, PHONE, STILL, Desk, Visit, Watch
from tests.web_ui.payloads import PAYLOADS
from tests.web_ui.test_accessibility import axe_violations

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.needs("sharing")]

PICTURES = os.environ.get("AGIRAPH_PICTURES", "")
"""A folder for screenshots, for whoever works on these screens."""
HOST = "team.localhost"
"""Browsers take every name below localhost for this machine."""
ANDROID = "Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 Chrome/140.0 Mobile"
PLAIN: dict[str, object] = {"ignore_https_errors": True, **STILL}
REPORT = (
    "## Where they nest\n\nHerons nest in [tall trees](https://herons.example/), in **colonies**."
    "\n\n"
    "| tree | nests |\n|---|---:|\n| oak | 12 |\n| poplar | 31 |\n\n> They come back each year.\n\n"
    "![map of the nests](map.png)\n\n```\ncount(nests)\n```"
)
PIXELS = """async (svg) => {
  const image = new Image();
  const text = new XMLSerializer().serializeToString(svg);
  image.src = `data:image/svg+xml,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = new OffscreenCanvas(600, 600);
  const pen = canvas.getContext("2d");
  pen.drawImage(image, 0, 0, 600, 600);
  return [...pen.getImageData(0, 0, 600, 600).data].filter((_, at) => at % 4 === 0);
}"""


async def play(seen: Seen) -> Step:
    return says(call("finish", summary=REPORT))


async def picture(page: Page, name: str) -> None:
    """Take pictures in both themes and three sizes."""
    before = page.viewport_size
    for theme in ("light", "dark") if PICTURES else ():
        await page.evaluate("(theme) => (document.documentElement.dataset.theme = theme)", theme)
        for width in (1440, 1024, 390):
            await page.set_viewport_size({"width": width, "height": 850})
            await page.screenshot(path=Path(PICTURES) / f"{name}-{theme}-{width}.png")
    if PICTURES and before is not None:
        await page.set_viewport_size(before)


@pytest_asyncio.fixture(loop_scope="session")
async def proxy(tmp_path: Path) -> AsyncIterator[TlsEnd]:
    async with tls_end(tmp_path, HOST) as end:
        yield end


async def behind(visit: Visit, proxy: TlsEnd) -> Desk:
    """Open a world behind a reverse proxy; its own address is plain http."""
    desk = await visit(play, path=EMPTY, world={"proxy": proxy.origin}, ignore_https_errors=True)
    proxy.port = int(desk.origin.rpartition(":")[2])
    return desk


async def report_of(desk: Desk) -> dict[str, str]:
    """Return a delivered result."""
    team = await desk.found("Watch: the herons", name="Birds")
    assert desk.world is not None
    await desk.world.settle()
    found = await desk.up.ask("GET", f"/teams/{team['id']}/results")
    return {**found["results"][0], "team": team["id"]}


@asynccontextmanager
async def stranger(
    browser: Browser, origin: str, **options: object
) -> AsyncIterator[BrowserContext]:
    """Open a browser that has never seen the server; faults are raised at the end."""
    context = await browser.new_context(**{**DESKTOP, **PLAIN, **options})  # pyright: ignore
    context.set_default_timeout(DEADLINE_MS)
    watch = Watch(origin)
    context.on("page", watch.over)
    yield context
    await context.close()
    assert watch.faults == []


def locally(desk: Desk, proxy: TlsEnd, link: str) -> dict[str, Any]:
    """Return how a program that knows no names below localhost asks for a link of the proxy."""
    host = proxy.origin.removeprefix("https://")
    return {"url": link.replace(proxy.origin, desk.origin), "headers": {"Host": host}}


async def faults_of(desk: Desk, proxy: TlsEnd, context: BrowserContext, link: str) -> list[str]:
    """Return what axe finds in a shared report. Its page runs no script, which axe is, so here its
    policy lacks the sandbox."""

    async def without_sandbox(route: Route) -> None:
        answer = await route.fetch(**locally(desk, proxy, link))
        name = "content-security-policy"
        policy = answer.headers[name].partition("; sandbox")[0]
        await route.fulfill(response=answer, headers={**answer.headers, name: policy})

    await context.route("**/shared/*", without_sandbox)
    page = await context.new_page()
    await page.goto(link)
    found = await axe_violations(page)
    await page.close()
    await context.unroute_all()
    return found


async def test_a_report_is_shared_read_and_revoked(
    visit: Visit, proxy: TlsEnd, browser: Browser
) -> None:
    desk = await behind(visit, proxy)
    result = await report_of(desk)
    page = desk.page
    await desk.open(f"/t/{result['team']}/results")
    # All of it with the keyboard.
    await page.get_by_role("button", name="Share").press("Enter")
    dialog = page.get_by_role("dialog", name="Share this report")
    await expect(dialog.get_by_text("None. Links that you make")).to_be_visible()
    await dialog.get_by_role("button", name="30 days").press("Enter")
    await dialog.get_by_role("button", name="Make a link").press("Enter")
    link = await dialog.get_by_label("Link to the report").input_value()
    assert link.startswith(f"{proxy.origin}/shared/")
    await expect(dialog.get_by_text("not opened yet")).to_be_visible()
    assert await axe_violations(page) == []
    await picture(page, "share")

    async with stranger(browser, proxy.origin) as context:
        reader = await context.new_page()
        await reader.goto(link)
        await expect(reader.get_by_role("heading", name="Watch: the herons")).to_be_visible()
        await expect(reader.get_by_role("cell", name="31")).to_be_visible()
        await expect(reader.get_by_text("[image, not included: map of the nests]")).to_be_visible()
        assert await context.cookies() == []
        await expect(dialog.get_by_text("opened 1 time")).to_be_visible()

        revoke = dialog.get_by_role("button", name="Revoke the link")
        await revoke.press("Enter")
        await expect(dialog.get_by_text("None. Links that you make")).to_be_visible()
        answer = await reader.request.get(**locally(desk, proxy, link))
        assert (answer.status, routes.GONE in await answer.text()) == (404, True)
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("button", name="Share")).to_be_focused()


async def test_a_shared_report_fits_a_phone_and_the_dark(
    visit: Visit, proxy: TlsEnd, browser: Browser
) -> None:
    desk = await behind(visit, proxy)
    result = await report_of(desk)
    made = await desk.up.ask("POST", f"/nodes/{result['node_id']}/shares", {})
    link = made["url"]
    for name, options in {
        "phone": PHONE,
        "phone-dark": {**PHONE, "color_scheme": "dark"},
        "1024": {"viewport": {"width": 1024, "height": 768}},
        "dark": {"color_scheme": "dark"},
        "light": {},
    }.items():
        async with stranger(browser, proxy.origin, **options) as context:
            reader = await context.new_page()
            await reader.goto(link)
            assert await reader.evaluate("document.documentElement.scrollWidth <= innerWidth")
            assert await faults_of(desk, proxy, context, link) == []
            if PICTURES:
                await reader.screenshot(path=f"{PICTURES}/shared-{name}.png", full_page=True)


async def test_a_hostile_report_does_nothing_in_a_browser(
    visit: Visit, proxy: TlsEnd, browser: Browser
) -> None:
    desk = await behind(visit, proxy)
    result = await report_of(desk)
    assert desk.world is not None
    run = "document.title='run';fetch('https://away.invalid')"
    text = "\n\n".join(
        payload.replace("RUN", run).replace("AWAY", "https://away.invalid") for payload in PAYLOADS
    )

    def change(tx: Tx) -> None:
        NODES.update(tx, result["node_id"], result=text)

    await desk.world.store.write(change)
    made = await desk.up.ask("POST", f"/nodes/{result['node_id']}/shares", {})
    # Its watch finds each request to another origin, and each load that the policy refuses.
    async with stranger(browser, proxy.origin) as context:
        reader = await context.new_page()
        await reader.goto(made["url"])
        await expect(reader.get_by_role("heading", name="Watch: the herons")).to_be_visible()
        assert await reader.title() == "Watch: the herons"
        assert await reader.locator("img, script, iframe, form, input, svg, object").count() == 0
        links = await reader.evaluate("[...document.links].map((one) => one.protocol)")
        assert {*links} <= {"https:", "http:", "mailto:"}


async def test_without_https_the_dialog_says_what_to_set(visit: Visit) -> None:
    desk = await visit(play, path=EMPTY)
    await report_of(desk)
    page = await desk.opens(**PHONE)
    await desk.go("/inbox", page)
    await page.get_by_role("link", name="Watch: the herons").first.click()
    await page.get_by_role("button", name="Share").tap()
    dialog = page.get_by_role("dialog", name="Share this report")
    await expect(dialog.get_by_role("note")).to_contain_text("over https only")
    await expect(dialog.get_by_role("button", name="Make a link")).to_have_count(0)
    assert await axe_violations(page) == []
    await picture(page, "share-off-phone")


async def sessions(desk: Desk) -> list[dict[str, Any]]:
    return [one for one in await desk.up.ask("GET", "/tokens") if one["kind"] == "session"]


async def read_code(page: Page) -> str:
    """Return what a camera reads on the screen."""
    pixels = await page.get_by_role("img", name="QR code of the sign-in link").evaluate(PIXELS)
    seen = np.array(pixels, dtype=np.uint8).reshape(600, 600)
    [code] = zxingcpp.read_barcodes(seen)
    return code.text


async def test_a_phone_signs_in_by_the_code_and_is_signed_out(
    visit: Visit, proxy: TlsEnd, browser: Browser
) -> None:
    desk = await behind(visit, proxy)
    await desk.found("Watch: the herons", name="Birds", start=False)
    page = desk.page
    await desk.open("/settings")
    await page.get_by_role("button", name="Show the code").press("Enter")
    dialog = page.get_by_role("dialog", name="Sign in another device")
    link = await dialog.get_by_label("Sign-in link", exact=True).input_value()
    assert link.startswith(f"{proxy.origin}/signin?code=")
    assert await read_code(page) == link
    await expect(dialog.get_by_text("It works once, for")).to_be_visible()
    assert await axe_violations(page) == []
    await picture(page, "device")
    async with stranger(browser, proxy.origin, **PHONE, user_agent=ANDROID) as context:
        phone = await context.new_page()
        await phone.goto(await read_code(page))
        await expect(phone.get_by_text("What should a team do?")).to_be_visible()
        await expect(dialog.get_by_text("A phone signed in at")).to_be_visible()
    await picture(page, "device-used")
    [session] = await sessions(desk)
    assert (session["name"], session["person_id"]) == ("phone", OWNER)
    await dialog.get_by_role("button", name="Sign it out").press("Enter")
    await expect(dialog.get_by_text("and was signed out")).to_be_visible()
    assert await sessions(desk) == []


async def test_a_code_that_was_closed_signs_nobody_in(visit: Visit, proxy: TlsEnd) -> None:
    desk = await behind(visit, proxy)
    page = desk.page
    await desk.open("/settings")
    await page.get_by_role("button", name="Show the code").press("Enter")
    dialog = page.get_by_role("dialog", name="Sign in another device")
    link = await dialog.get_by_label("Sign-in link", exact=True).input_value()
    async with page.expect_response(lambda one: one.request.method == "DELETE"):
        await page.keyboard.press("Escape")
    await expect(page.get_by_role("button", name="Show the code")).to_be_focused()
    answer = await page.request.get(**locally(desk, proxy, link))
    assert answer.status == 422


async def test_an_address_of_this_machine_alone_shows_no_code(visit: Visit) -> None:
    desk = await visit(play, path=EMPTY)
    page = await desk.opens(**PHONE)
    await desk.go("/settings", page)
    await page.get_by_role("button", name="Show the code").tap()
    dialog = page.get_by_role("dialog", name="Sign in another device")
    await expect(dialog.get_by_role("note")).to_contain_text("Another device cannot reach")
    await expect(dialog.get_by_role("img")).to_have_count(0)
    assert await axe_violations(page) == []
    await picture(page, "device-off-phone")
