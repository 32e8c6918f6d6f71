"""Rendering of large data: a page loads and draws only what is visible or has changed.

The time of a frame depends on the machine: `make bench-web` prints it. These tests assert its
causes: bytes, elements, and elements that are created again.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, Response, Route

from agiraph.core.domain.times.time import SystemClock
from agiraph.testing import says
from tests.api.serving import Served
from tests.web_ui import seeding
from tests.web_ui.browsing import DESKTOP, Visit, go, watched
from tests.web_ui.windows import SAVE_DATA, serving

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(120)]

FIRST_LOAD_BYTES = 265_000
"""Transferred with fonts, without lazily loaded files."""
CHUNK_BYTES = 160_000
LAZY_CHUNKS = (
    "Markdown",
    "Board",
    "Graph",
    "Threads",
    "Files",
    "Cost",
    "code-",
    "Palette",
    "Triggers",
)
COUNT = "document.querySelectorAll('*').length"
COUNT_ADDED = """() => {
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
async def signed_in_page(browser: Browser, home: Path) -> AsyncGenerator[tuple[Served, Page]]:
    """Open a signed-in page at a seeded home."""
    async with (
        serving(home, clock=SystemClock()) as served,
        watched(browser, served.origin) as (page, _),
    ):
        yield served, page


async def wait_for_frames(page: Page, pictures: int = 2) -> None:
    await page.evaluate(
        "async (n) => { while (n--) await new Promise((next) => requestAnimationFrame(next)) }",
        pictures,
    )


async def element_count_within(limit: int, page: Page) -> int:
    """Wait until the page has at most this many elements; return their number."""
    async with asyncio.timeout(15):
        while (count := await page.evaluate(COUNT)) > limit:
            await wait_for_frames(page)
    return count


async def scroll_to_the_start(page: Page) -> None:
    """Scroll up until all earlier messages are loaded, and the first one is drawn.

    Once is not enough: while the rows of a new page are measured, the page holds its reader
    at the end, and takes back one jump that it did not yet know of.
    """
    earlier = page.get_by_role("button", name="earlier messages")
    async with asyncio.timeout(60):
        while (
            await page.evaluate("document.getElementById('thread').scrollTop")
            or await earlier.count()
        ):
            await page.evaluate("document.getElementById('thread').scrollTop = 0")
            await wait_for_frames(page)


async def test_the_first_load_is_small_compressed_and_cached(visit: Visit) -> None:
    desk = await visit([says("Nobody asked.")])
    context = await desk.context.browser.new_context(  # type: ignore[union-attr]
        storage_state=await desk.context.storage_state(), **DESKTOP
    )
    # On a slow machine, the page would begin to load the files of all screens meanwhile.
    await context.add_init_script(SAVE_DATA)
    page = await context.new_page()
    got: list[Response] = []
    page.on("response", lambda one: got.append(one))
    may_load = asyncio.Event()

    async def hold(route: Route) -> None:
        await may_load.wait()
        await route.continue_()

    # The page has a frame before any script or style sheet has arrived.
    await page.route("**/assets/**", hold)
    await page.goto(desk.origin, wait_until="commit")
    await page.get_by_text("Loading agiraph").wait_for()
    may_load.set()
    await page.get_by_text("What should a team do?").wait_for()
    await page.evaluate("document.fonts.ready")
    sizes = {one.url.removeprefix(desk.origin): await transferred_bytes(one) for one in got}
    for one in got:
        await check_caching_and_compression(one, desk.origin)
    paint = await page.evaluate("performance.getEntriesByType('paint').map((p) => p.startTime)")
    print(f"first load: {sum(sizes.values()):,} bytes, first paint {paint[-1]:.0f} ms")
    print(dict(sorted(sizes.items(), key=lambda one: -one[1])[:6]))

    assert sum(sizes.values()) <= FIRST_LOAD_BYTES
    assert {name: size for name, size in sizes.items() if size > CHUNK_BYTES} == {}
    assert [
        name for name in sizes if name.startswith(tuple(f"/assets/{it}" for it in LAZY_CHUNKS))
    ] == []
    await context.close()


async def transferred_bytes(answer: Response) -> int:
    """Return the size of a response on the wire."""
    sizes = await answer.request.sizes()
    return sizes["responseBodySize"] + sizes["responseHeadersSize"]


async def check_caching_and_compression(answer: Response, origin: str) -> None:
    path, headers = answer.url.removeprefix(origin), await answer.all_headers()
    if path.endswith((".js", ".css")) or path == "/":
        assert headers.get("content-encoding") == "gzip", path
    if path.startswith("/assets/"):
        assert headers["cache-control"] == "public, max-age=31536000, immutable", path
    elif not path.startswith("/api/"):
        assert headers["cache-control"] == "no-cache", path


async def test_a_long_thread_draws_only_the_visible_rows(browser: Browser, tmp_path: Path) -> None:
    long = await seeding.long_team(tmp_path / "home", event_count=2400)
    async with signed_in_page(browser, tmp_path / "home") as (served, page):
        await page.goto(f"{served.origin}/t/{long.team}/a/{long.agent}")
        await page.wait_for_selector("#thread article")
        await scroll_to_the_start(page)
        rows, most = "document.querySelectorAll('#thread [data-index]').length", 0
        for part in range(20):
            await page.evaluate(
                "(part) => { const it = document.getElementById('thread');"
                " it.scrollTop = it.scrollHeight * part / 20 }",
                part,
            )
            await wait_for_frames(page)
            most = max(most, await page.evaluate(rows))
        elements = await page.evaluate(COUNT)

        await go(page, f"{served.origin}/t/{long.team}/threads/{long.thread}")
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


LEFT_BELOW = """(() => {
  const { scrollHeight, scrollTop, clientHeight } = document.getElementById("thread");
  return scrollHeight - scrollTop - clientHeight;
})()"""


async def scrolled_to_the_end(page: Page) -> None:
    """Wait until the conversation is at its end: its rows are measured one after the other."""
    async with asyncio.timeout(15):
        while await page.evaluate(LEFT_BELOW) >= 2:
            await wait_for_frames(page)


async def test_small_wheel_steps_scroll_away_from_the_end(browser: Browser, tmp_path: Path) -> None:
    """New rows keep a reader at the end, but scrolling up must still be possible."""
    long = await seeding.long_team(tmp_path / "home", event_count=400)
    async with signed_in_page(browser, tmp_path / "home") as (served, page):
        await page.goto(f"{served.origin}/t/{long.team}/a/{long.agent}")
        # Before Markdown is loaded, rows are plain text and have another height.
        await page.wait_for_selector("#thread pre")
        await scrolled_to_the_end(page)
        await page.mouse.move(700, 500)
        for step in range(1, 41):
            await page.mouse.wheel(0, -30)
            async with asyncio.timeout(10):
                while await page.evaluate(LEFT_BELOW) < 20 * step - 60:
                    await wait_for_frames(page)
        await page.locator("#to-end").click()
        await scrolled_to_the_end(page)


async def test_a_wheel_over_a_code_block_still_scrolls(browser: Browser, tmp_path: Path) -> None:
    long = await seeding.long_team(tmp_path / "home", event_count=160)
    async with signed_in_page(browser, tmp_path / "home") as (served, page):
        await page.goto(f"{served.origin}/t/{long.team}/a/{long.agent}")
        block = page.locator("#thread pre").last
        await block.wait_for()
        await scrolled_to_the_end(page)
        await block.hover()
        before = await page.evaluate("document.getElementById('thread').scrollTop")
        await page.mouse.wheel(0, -400)
        async with asyncio.timeout(10):
            while await page.evaluate("document.getElementById('thread').scrollTop") > before - 100:
                await wait_for_frames(page)


async def test_a_large_board_redraws_only_what_changed(browser: Browser, tmp_path: Path) -> None:
    wide = await seeding.wide_team(tmp_path / "home")
    async with signed_in_page(browser, tmp_path / "home") as (served, page):
        await page.goto(f"{served.origin}/t/{wide.team}/board")
        await page.wait_for_selector("[data-card]")
        opened = await element_count_within(4000, page)
        await page.get_by_role("button", name="Show every task").click()
        await page.get_by_role("button", name="Fit").click()
        await wait_for_frames(page, 30)
        whole = await element_count_within(6000, page)
        cards = await page.evaluate("document.querySelectorAll('[data-card]').length")
        await page.evaluate(COUNT_ADDED)
        for n in range(3):
            await served.world.store.write(seeding.add_node, wide.team, 1000 + n)
        await page.get_by_text("503 tasks").first.wait_for()
        await wait_for_frames(page, 10)
        made = await page.evaluate("window.made")
    print(f"{opened} elements at first, {whole} for all of {cards} cards; then made {made}")

    assert cards == 505  # each of five stacks heads its tasks
    assert made["rows"] + made["others"] <= 40
