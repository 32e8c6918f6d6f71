"""Smooth: however much there is, a page loads and draws little of it, and again what changed.

How long a picture takes depends on the machine: `make bench-web` prints it. What is asserted here
is what it follows from: bytes, elements, and elements that are made anew.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, Response

from agiraph.domain.time import SystemClock
from agiraph.testing import says
from tests.api.serving import TOKEN, Served, serving
from tests.web_ui import seeding
from tests.web_ui.browsing import DESKTOP, Visit, Watch

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(120)]

FIRST_LOAD = 300_000
"""Bytes on the wire, with fonts, before anything that is loaded when it is needed."""
CHUNK = 160_000
LATER = ("Markdown", "Board", "Graph", "Threads", "Files", "Cost", "code-", "Palette", "Triggers")
COUNT = "document.querySelectorAll('*').length"
MADE = """() => {
  const made = { rows: 0, others: 0 };
  const seen = new MutationObserver((changes) => {
    for (const change of changes) for (const node of change.addedNodes) {
      if (node.nodeType === 1) made[node.querySelector?.("*") ? "rows" : "others"]++;
    }
  });
  seen.observe(document.querySelector("main"), { childList: true, subtree: true });
  window.made = made;
}"""


@asynccontextmanager
async def looking(browser: Browser, home: Path) -> AsyncGenerator[tuple[Served, Page]]:
    """A signed-in page before a home that was filled."""
    async with serving(home, clock=SystemClock()) as served:
        context = await browser.new_context(**DESKTOP)
        session = {"name": "agiraph_session", "value": TOKEN, "url": served.origin}
        await context.add_cookies([session])  # type: ignore[list-item]
        page = await context.new_page()
        watch = Watch(served.origin)
        watch.over(page)
        yield served, page
        await context.close()
    assert watch.faults == []


async def settle(page: Page, pictures: int = 2) -> None:
    await page.evaluate(
        "async (n) => { while (n--) await new Promise((next) => requestAnimationFrame(next)) }",
        pictures,
    )


async def at_most(limit: int, page: Page) -> int:
    """How many elements there are, once there are no more than these."""
    async with asyncio.timeout(15):
        while (count := await page.evaluate(COUNT)) > limit:
            await settle(page)
    return count


async def scroll_to_the_start(page: Page) -> None:
    """Scroll up until the button for earlier messages is drawn.

    Once is not enough: while the rows of a new page are measured, the page holds its reader
    at the end, and takes back one jump that it did not yet know of.
    """
    earlier = page.get_by_role("button", name="Show earlier messages")
    async with asyncio.timeout(30):
        while not await earlier.is_visible():
            await page.evaluate("document.getElementById('thread').scrollTop = 0")
            await settle(page)


async def test_a_first_load_is_small_squeezed_and_kept(visit: Visit) -> None:
    desk = await visit([says("Nobody asked.")])
    context = await desk.context.browser.new_context(  # type: ignore[union-attr]
        storage_state=await desk.context.storage_state(), **DESKTOP
    )
    page = await context.new_page()
    got: list[Response] = []
    page.on("response", lambda one: got.append(one))

    await page.goto(desk.origin)
    await page.get_by_text("Give a team something to do").wait_for()
    await page.evaluate("document.fonts.ready")
    sizes = {one.url.removeprefix(desk.origin): await weight(one) for one in got}
    for one in got:
        await kept_and_squeezed(one, desk.origin)
    paint = await page.evaluate("performance.getEntriesByType('paint').map((p) => p.startTime)")
    print(f"first load: {sum(sizes.values()):,} bytes, first paint {paint[-1]:.0f} ms")
    print(dict(sorted(sizes.items(), key=lambda one: -one[1])[:6]))

    assert sum(sizes.values()) <= FIRST_LOAD
    assert {name: size for name, size in sizes.items() if size > CHUNK} == {}
    assert [name for name in sizes if name.startswith(tuple(f"/assets/{it}" for it in LATER))] == []
    await context.close()


async def weight(answer: Response) -> int:
    """What went over the wire for it."""
    sizes = await answer.request.sizes()
    return sizes["responseBodySize"] + sizes["responseHeadersSize"]


async def kept_and_squeezed(answer: Response, origin: str) -> None:
    path, headers = answer.url.removeprefix(origin), await answer.all_headers()
    if path.endswith((".js", ".css")) or path == "/":
        assert headers.get("content-encoding") == "gzip", path
    if path.startswith("/assets/"):
        assert headers["cache-control"] == "public, max-age=31536000, immutable", path
    elif not path.startswith("/api/"):
        assert headers["cache-control"] == "no-cache", path


async def test_a_long_thread_draws_only_what_is_in_sight(browser: Browser, tmp_path: Path) -> None:
    long = await seeding.long_team(tmp_path / "home", happenings=2400)
    async with looking(browser, tmp_path / "home") as (served, page):
        await page.goto(f"{served.origin}/t/{long.team}/a/{long.agent}")
        await page.wait_for_selector("#thread article")
        for _ in range(2):
            await scroll_to_the_start(page)
            await page.get_by_role("button", name="Show earlier messages").click()
            await page.get_by_role("button", name="Loading earlier messages").wait_for(
                state="detached"
            )
        rows, most = "document.querySelectorAll('#thread [data-index]').length", 0
        for part in range(20):
            await page.evaluate(
                "(part) => { const it = document.getElementById('thread');"
                " it.scrollTop = it.scrollHeight * part / 20 }",
                part,
            )
            await settle(page)
            most = max(most, await page.evaluate(rows))
        elements = await page.evaluate(COUNT)

        await page.goto(f"{served.origin}/t/{long.team}/threads/{long.thread}")
        await page.wait_for_selector("#steps li")
        steps = await page.evaluate("document.querySelectorAll('#steps li').length")
        last = await page.evaluate("document.querySelector('#steps li').ariaSetSize")
        behind = await page.evaluate(COUNT)
    print(f"{most} rows of a conversation, {elements} elements; {steps} of {last} steps")

    assert 5 < most <= 80
    assert elements <= 2500
    assert 5 < steps <= 60
    assert int(last) >= 600
    assert behind <= 2500


async def test_small_steps_lead_away_from_the_end_too(browser: Browser, tmp_path: Path) -> None:
    """Whoever reads at the end is kept there, but not against their will."""
    long = await seeding.long_team(tmp_path / "home", happenings=400)
    there = "document.getElementById('thread')"
    left = f"(it => it.scrollHeight - it.scrollTop - it.clientHeight)({there})"
    async with looking(browser, tmp_path / "home") as (served, page):
        await page.goto(f"{served.origin}/t/{long.team}/a/{long.agent}")
        # Until Markdown is loaded rows stand there as plain text, and are of another height.
        await page.wait_for_selector("#thread pre")
        await settle(page)
        assert await page.evaluate(left) < 2
        await page.mouse.move(700, 500)
        for step in range(1, 41):
            await page.mouse.wheel(0, -30)
            async with asyncio.timeout(10):
                while await page.evaluate(left) < 20 * step - 60:
                    await settle(page)
        await page.locator("#to-end").click()
        await settle(page)
        assert await page.evaluate(left) < 2


async def test_a_wheel_over_a_code_block_still_scrolls(browser: Browser, tmp_path: Path) -> None:
    long = await seeding.long_team(tmp_path / "home", happenings=160)
    async with looking(browser, tmp_path / "home") as (served, page):
        await page.goto(f"{served.origin}/t/{long.team}/a/{long.agent}")
        block = page.locator("#thread pre").last
        await block.hover()
        before = await page.evaluate("document.getElementById('thread').scrollTop")
        await page.mouse.wheel(0, -400)
        async with asyncio.timeout(10):
            while await page.evaluate("document.getElementById('thread').scrollTop") > before - 100:
                await settle(page)


async def test_a_large_board_draws_little_and_again_only_what_changed(
    browser: Browser, tmp_path: Path
) -> None:
    wide = await seeding.wide_team(tmp_path / "home")
    async with looking(browser, tmp_path / "home") as (served, page):
        await page.goto(f"{served.origin}/t/{wide.team}/board")
        await page.wait_for_selector("[data-card]")
        opened = await at_most(4000, page)
        await page.get_by_role("button", name="Show everything").click()
        await settle(page, 30)
        whole = await at_most(6000, page)
        cards = await page.evaluate("document.querySelectorAll('[data-card]').length")
        await page.evaluate(MADE)
        for n in range(3):
            await served.world.store.write(seeding.make_piece, wide.team, 1000 + n)
        await page.get_by_text("503 tasks").first.wait_for()
        await settle(page, 10)
        made = await page.evaluate("window.made")
    print(f"{opened} elements at first, {whole} for all of {cards} cards; then made {made}")

    assert cards == 500
    assert made["rows"] + made["others"] <= 40
