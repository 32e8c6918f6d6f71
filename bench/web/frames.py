"""Frames: the cost of a frame of the web UI with much data: `make bench-web`.

A conversation of 10,000 events that is scrolled and written to, the thread behind it, a board of
500 tasks that is moved, zoomed and grows, a tree of 311 tasks on four levels that goes on while it
is folded, whole and beside a conversation, a timeline and a replay of 10,600 events, 100 teams of
ten agents, and a slow line. CPU is the main thread's time by Chromium's clock; the intervals
between frames depend on the machine's load. The goal is 8 ms of CPU a frame. `make bench-web
PROFILE=1` also prints what each figure is made of; `ONLY="timeline teams"` measures a part.
"""

import argparse
import asyncio
import tempfile
from pathlib import Path

from playwright.async_api import Browser, async_playwright
from tests.api.serving import Served, serving
from tests.web_ui import seeding
from tests.web_ui.browsing import DESKTOP, launch
from tests.web_ui.windows import sign_in

from agiraph.api.web_ui import BUILT
from agiraph.core.domain.ids import NodeId
from agiraph.core.domain.times.time import SystemClock
from agiraph.models.registry import Account, Keys
from agiraph.testing import ModelServer, says
from agiraph.testing.model_server import Seen, Step, Trickle
from bench.web import long_run, many_teams, payloads, slow_line
from bench.web.stage import Stage


def write_long(_: Seen) -> Step:
    return Trickle(900, says(seeding.WORDS.format(n=7) * 64), seconds=0.016)


async def conversation(stage: Stage, served: Served, long: seeding.Long) -> None:
    page = stage.page
    await page.goto(f"{served.origin}/t/{long.team}/a/{long.agent}")
    await page.wait_for_selector("#thread article")
    earlier = page.get_by_role("button", name="earlier messages")
    thread = "document.getElementById('thread')"
    while await page.evaluate(f"{thread}.scrollTop") or await earlier.count():
        await page.evaluate(f"{thread}.scrollTop = 0")
        await asyncio.sleep(0.2)
    to_end = "(it => it.scrollTop = it.scrollHeight)(document.getElementById('thread'))"
    await page.evaluate(to_end)
    await asyncio.sleep(1)
    await stage.measure("scrolling up", lambda: stage.scroll(12_000))
    await stage.measure("scrolling down", lambda: stage.scroll(-12_000))
    await stage.measure("a screen per tick", lambda: stage.scroll(30_000, speed=20_000))
    await page.evaluate(to_end)
    await asyncio.sleep(0.5)

    async def stream() -> None:
        box = page.get_by_role("textbox").last
        await box.fill("Say something long")
        await box.press("Enter")
        await page.wait_for_selector("article[aria-busy]")
        await page.wait_for_selector("article[aria-busy]", state="detached", timeout=60_000)

    await stage.measure("words streaming in", stream)
    await page.goto(f"{served.origin}/t/{long.team}/threads/{long.thread}")
    await page.wait_for_selector("#steps li", timeout=60_000)
    await asyncio.sleep(1)
    await stage.measure("the thread behind", lambda: stage.scroll(-12_000))


async def board(stage: Stage, served: Served, wide: seeding.Wide) -> None:
    page = stage.page
    around = [(30 if n < 60 else -30, 20 if n % 40 < 20 else -20) for n in range(120)]
    await page.goto(f"{served.origin}/t/{wide.team}/board")
    await page.wait_for_selector("[data-card]", timeout=60_000)
    await asyncio.sleep(2)
    await stage.measure("moving the board", lambda: stage.wheel(around))
    await page.get_by_role("button", name="Show every task").click()
    await page.get_by_role("button", name="Fit").click()
    await asyncio.sleep(1)
    await stage.measure("all of it in sight", lambda: stage.wheel(around))
    await page.keyboard.down("Control")
    await stage.measure("zooming", lambda: stage.wheel([(0, -20)] * 40 + [(0, 20)] * 40))
    await page.keyboard.up("Control")

    async def grow() -> None:
        for n in range(20):
            await served.world.store.write(seeding.add_node, wide.team, 1000 + n)
            await asyncio.sleep(0.1)
        await page.get_by_text("520 tasks").first.wait_for()

    await stage.measure("work arriving", grow)


async def tree(stage: Stage, served: Served, deep: seeding.Wide) -> None:
    page, team = stage.page, deep.team
    waiting = list(deep.nodes[-93:])

    async def go_on(nodes: list[NodeId]) -> None:
        for node in nodes:
            await served.world.store.write(seeding.complete_node, team, node)
            await asyncio.sleep(0.1)
        await asyncio.sleep(1)

    await page.goto(f"{served.origin}/t/{team}/board")
    await page.wait_for_selector("[data-card]", timeout=60_000)
    await asyncio.sleep(2)
    await stage.measure("a tree, folded", lambda: go_on(waiting[:25]))
    await page.get_by_role("button", name="Show every task").click()
    await page.get_by_role("button", name="Fit").click()
    await asyncio.sleep(2)
    await stage.measure("all 311 in sight", lambda: go_on(waiting[25:50]))
    await page.goto(f"{served.origin}/t/{team}/a/{deep.agents[0]}")
    await page.wait_for_selector("canvas", timeout=60_000)
    await asyncio.sleep(2)
    await stage.measure("its map", lambda: go_on(waiting[50:75]))


PARTS = ("line", "conversation", "board", "tree", "timeline", "teams", "payloads")


async def main(only: list[str], readable: Path | None) -> None:
    home = Path(tempfile.mkdtemp(prefix="agiraph-bench-"))
    async with ModelServer(write_long) as model, async_playwright() as playwright:
        keys = Keys({"openai": Account(key="k", base_url=model.openai_url)})
        browser = await launch(playwright)
        if {*only} - {"teams", "payloads"}:
            await one_team(browser, home, keys, only, readable)
        if "teams" in only:
            crowded = Path(tempfile.mkdtemp(prefix="agiraph-bench-"))
            teams = await seeding.many_teams(crowded, count=100, members=10)
            async with serving(crowded, clock=SystemClock(), keys=keys) as served:
                await many_teams.measure(browser, served, teams)
        if "payloads" in only:
            full = Path(tempfile.mkdtemp(prefix="agiraph-bench-"))
            teams = await seeding.full_inbox(full)
            async with serving(full, clock=SystemClock(), keys=keys) as served:
                await payloads.measure(browser, served, teams)
        await browser.close()


async def one_team(
    browser: Browser, home: Path, keys: Keys, only: list[str], readable: Path | None
) -> None:
    """Measure what a person sees of one large team."""
    long = await seeding.long_team(home)
    wide = await seeding.wide_team(home)
    deep = await seeding.deep_team(home)
    run = await long_run.seed(home)
    pages = readable or BUILT
    async with serving(home, clock=SystemClock(), keys=keys, pages=pages) as served:
        if "line" in only:
            await slow_line.measure(browser, served, long)
        context = await browser.new_context(**DESKTOP)
        await sign_in(context, served.origin)
        stage = await Stage.on(await context.new_page(), is_profiled=readable is not None)
        if "conversation" in only:
            await conversation(stage, served, long)
        if "board" in only:
            await board(stage, served, wide)
        if "tree" in only:
            await tree(stage, served, deep)
        if "timeline" in only:
            await long_run.measure(stage, served, run)
        await context.close()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=PARTS, choices=PARTS, help="what to measure")
    parser.add_argument(
        "--profile", type=Path, metavar="BUILD",
        help="profile each figure, with the readable build of the web UI in this folder",
    )  # fmt: skip
    return parser.parse_args()


if __name__ == "__main__":
    given = arguments()
    asyncio.run(main(given.only, given.profile))
