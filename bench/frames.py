"""Frames: the cost of a frame of the web UI with much data: `make bench-web`.

A conversation of 10,000 events that is scrolled and written to, the thread behind it, and a board
of 500 tasks that is moved, zoomed and grows. CPU is the main thread's
time by Chromium's clock; the intervals between frames depend on the machine's load. The budget is
8 ms of CPU a frame.
"""

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

from playwright.async_api import Page, async_playwright
from tests.api.serving import TOKEN, Served, serving
from tests.web_ui import seeding
from tests.web_ui.browsing import DESKTOP, launch

from agiraph.domain.time import SystemClock
from agiraph.providers.registry import Account, Keys
from agiraph.testing import ModelServer, says
from agiraph.testing.model_server import Seen, Step, Trickle

COUNTED = """() => {
  const at = [];
  let on = true;
  const tick = (now) => { at.push(now); if (on) requestAnimationFrame(tick); };
  requestAnimationFrame(tick);
  window.counted = () => { on = false; return at; };
}"""


def write_long(_: Seen) -> Step:
    return Trickle(900, says(seeding.WORDS.format(n=7) * 8), seconds=0.016)


class Stage:
    """A page, and the measurement of its frames."""

    def __init__(self, page: Page, cdp: Any) -> None:
        self.page = page
        self._cdp = cdp

    async def _clock(self) -> dict[str, float]:
        found = await self._cdp.send("Performance.getMetrics")
        return {one["name"]: one["value"] for one in found["metrics"]}

    async def measure(self, name: str, act: Callable[[], Awaitable[Any]]) -> None:
        await self.page.evaluate(COUNTED)
        before, begun = await self._clock(), time.monotonic()
        await act()
        after, ended = await self._clock(), time.monotonic()
        at: list[float] = await self.page.evaluate("window.counted()")
        gaps = sorted(b - a for a, b in pairwise(at)) or [0.0]
        count = len(gaps)

        def each(part: str) -> float:
            return 1000 * (after[part] - before[part]) / count

        elements = await self.page.evaluate("document.querySelectorAll('*').length")
        cpu = each("TaskDuration")
        # A busy machine draws fewer frames and each does more work; this number stays the same.
        busy = (after["TaskDuration"] - before["TaskDuration"]) / (ended - begun)
        print(
            f"{name:22} {count:4} frames, every {gaps[count // 2]:5.1f} ms"
            f" (p95 {gaps[int(count * 0.95)]:6.1f}, worst {gaps[-1]:7.1f}); CPU {cpu:5.2f} ms"
            f" (script {each('ScriptDuration'):.2f}, layout {each('LayoutDuration'):.2f}, style"
            f" {each('RecalcStyleDuration'):.2f}); {elements} elements"
            f"; busy {100 * busy:.0f} %, {busy * 1000 / 60:.2f} ms of each 60th of a second",
            flush=True,
        )

    async def scroll(self, pixels: int, *, speed: int = 2400) -> None:
        await self._cdp.send(
            "Input.synthesizeScrollGesture",
            {"x": 800, "y": 400, "yDistance": pixels, "speed": speed, "gestureSourceType": "mouse"},
        )

    async def wheel(self, steps: list[tuple[int, int]]) -> None:
        await self.page.mouse.move(700, 500)
        for dx, dy in steps:
            await self.page.mouse.wheel(dx, dy)


async def conversation(stage: Stage, served: Served, long: seeding.Long) -> None:
    page = stage.page
    await page.goto(f"{served.origin}/t/{long.team}/a/{long.agent}")
    await page.wait_for_selector("#thread article")
    earlier = page.get_by_role("button", name="Show earlier messages")
    to_top = "document.getElementById('thread').scrollTop = 0"
    loading = page.get_by_role("button", name="Loading earlier messages")
    await page.evaluate(to_top)
    await earlier.wait_for()
    while await earlier.count():
        await earlier.click()
        await loading.wait_for(state="detached")
        await page.evaluate(to_top)
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


async def main() -> None:
    home = Path(tempfile.mkdtemp(prefix="agiraph-bench-"))
    long = await seeding.long_team(home)
    wide = await seeding.wide_team(home)
    async with ModelServer(write_long) as model, async_playwright() as playwright:
        keys = Keys({"openai": Account(key="k", base_url=model.openai_url)})
        async with serving(home, clock=SystemClock(), keys=keys) as served:
            browser = await launch(playwright)
            context = await browser.new_context(**DESKTOP)
            session: Any = {"name": "agiraph_session", "value": TOKEN, "url": served.origin}
            await context.add_cookies([session])
            page = await context.new_page()
            cdp: Any = await context.new_cdp_session(page)
            # CPU time of the page's thread, not wall time: other programs on the machine do not
            # count.
            await cdp.send("Performance.enable", {"timeDomain": "threadTicks"})
            stage = Stage(page, cdp)
            await conversation(stage, served, long)
            await board(stage, served, wide)
            await browser.close()


if __name__ == "__main__":
    asyncio.run(main())
