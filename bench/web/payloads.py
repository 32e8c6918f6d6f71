"""Payloads: how much JSON the page loads for a further page, and while many teams are at work."""

import asyncio

from playwright.async_api import Browser
from tests.api.serving import Served
from tests.web_ui import seeding
from tests.web_ui.browsing import DESKTOP, Traffic, go
from tests.web_ui.windows import sign_in

from agiraph.core.domain.ids import TeamId

FIRST_PAGE_KB, PAGE_KB, ACTIVITY_KB, ACTIVITY_S = 100, 40, 80, 30
"""Goals: kilobytes of JSON for the first page, which lists all teams, for a second one, and for
half a minute of activity."""
SETTLE_S = 2


async def measure(browser: Browser, served: Served, teams: list[TeamId]) -> None:
    """Print the JSON of the inbox, of a page that is opened after it, and of half a minute in which
    every second a task ends and its team says so in the inbox."""
    context = await browser.new_context(**DESKTOP)
    await sign_in(context, served.origin)
    page = await context.new_page()
    traffic = Traffic()
    traffic.over(page)
    await page.goto(f"{served.origin}/inbox")
    await page.locator("nav [role=list] a").first.wait_for()
    await asyncio.sleep(SETTLE_S)
    await show("the first page", traffic, FIRST_PAGE_KB)
    traffic.clear()
    await go(page, f"{served.origin}/t/{teams[5]}/board")
    await asyncio.sleep(SETTLE_S)
    await show("a second page", traffic, PAGE_KB)
    traffic.clear()
    await page.goto(f"{served.origin}/t/{teams[5]}/board")
    await page.locator("nav [role=list] a").first.wait_for()
    await asyncio.sleep(SETTLE_S)
    await show("it, loaded anew", traffic, FIRST_PAGE_KB)
    traffic.clear()
    for n in range(ACTIVITY_S):
        await served.world.store.write(seeding.add_item, teams[(7 * n) % len(teams)], 1000 + n)
        await asyncio.sleep(1)
    await asyncio.sleep(SETTLE_S)
    await show(f"{ACTIVITY_S} s of activity", traffic, ACTIVITY_KB)
    await context.close()


async def show(name: str, traffic: Traffic, goal_kb: int) -> None:
    await traffic.settled()
    size, wire = traffic.json_bytes / 1000, traffic.wire_bytes / 1000
    part = f"{size / goal_kb:4.2f} of the goal {goal_kb} KB"
    line = f"{wire:5.1f} KB compressed, {len(traffic.requests)} requests"
    print(f"{name:18} {size:6.1f} KB of JSON, {part}; {line}", flush=True)
    largest = sorted(traffic.loaded.items(), key=lambda one: -one[1])[:6]
    for path, loaded in largest:
        print(f"{'':18} {loaded / 1000:6.1f} KB {path}", flush=True)
