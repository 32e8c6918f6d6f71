"""Stage: a page of the web UI, and the measurement of its frames."""

import time
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

from playwright.async_api import Page

from bench.web.profiles import Profile

GOAL_MS = 8.0
"""CPU of the page's main thread a frame."""
PARTS = ("TaskDuration", "ScriptDuration", "LayoutDuration", "RecalcStyleDuration")
COUNTED = """() => {
  const at = [];
  let on = true;
  const tick = (now) => { at.push(now); if (on) requestAnimationFrame(tick); };
  requestAnimationFrame(tick);
  window.counted = () => { on = false; return at; };
}"""

FRAMES_A_SECOND = 60
# Each frame moves the list by the same distance. With a gesture, a busy machine draws fewer frames,
# and each of them more rows.
SCROLL = """([x, step, frames]) => new Promise((done) => {
  let scroller = document.elementFromPoint(x, 400);
  const isScrollable = (it) => /auto|scroll/.test(getComputedStyle(it).overflowY)
    && it.scrollHeight > it.clientHeight;
  while (!isScrollable(scroller)) scroller = scroller.parentElement;
  const move = (left) => requestAnimationFrame(() => {
    if (left === 0) return done();
    scroller.scrollTop += step;
    move(left - 1);
  });
  move(frames);
})"""


class Stage:
    """A page, and the measurement of its frames."""

    def __init__(self, page: Page, cdp: Any, is_profiled: bool) -> None:
        self.page = page
        self._cdp = cdp
        self._is_profiled = is_profiled

    @classmethod
    async def on(cls, page: Page, *, is_profiled: bool = False) -> "Stage":
        """Return the stage of a page; if profiled, each figure is followed by its parts."""
        cdp: Any = await page.context.new_cdp_session(page)
        # CPU time of the page's thread, not wall time: other programs on the machine do not count.
        await cdp.send("Performance.enable", {"timeDomain": "threadTicks"})
        return cls(page, cdp, is_profiled)

    async def _clock(self) -> dict[str, float]:
        found = await self._cdp.send("Performance.getMetrics")
        return {one["name"]: one["value"] for one in found["metrics"]}

    async def measure(self, name: str, act: Callable[[], Awaitable[Any]]) -> float:
        """Print what a frame costs during an act; return the milliseconds of CPU."""
        profile = Profile(self.page, self._cdp) if self._is_profiled else None
        if profile:
            await profile.start()
        await self.page.evaluate(COUNTED)
        before, begun = await self._clock(), time.monotonic()
        await act()
        after, ended = await self._clock(), time.monotonic()
        at: list[float] = await self.page.evaluate("window.counted()")
        gaps = sorted(b - a for a, b in pairwise(at)) or [0.0]
        count = len(gaps)
        ms = {part: 1000 * (after[part] - before[part]) for part in PARTS}
        elements = await self.page.evaluate("document.querySelectorAll('*').length")
        cpu = ms["TaskDuration"] / count
        # A busy machine draws fewer frames and each does more work; this number stays the same.
        busy = ms["TaskDuration"] / (ended - begun) / 1000
        print(
            f"{name:22} CPU {cpu:5.2f} ms {'OVER' if cpu > GOAL_MS else 'of'} the goal"
            f" {GOAL_MS:.0f} (script {ms['ScriptDuration'] / count:.2f},"
            f" layout {ms['LayoutDuration'] / count:.2f},"
            f" style {ms['RecalcStyleDuration'] / count:.2f});"
            f" {count:4} frames, every {gaps[count // 2]:5.1f} ms"
            f" (p95 {gaps[int(count * 0.95)]:6.1f}, worst {gaps[-1]:7.1f}); {elements} elements;"
            f" busy {100 * busy:.0f} %, {busy * 1000 / 60:.2f} ms of each 60th of a second",
            flush=True,
        )
        if profile:
            print(await profile.stop(count), flush=True)
        return cpu

    async def scroll(self, pixels: int, *, speed: int = 2400, x: int = 800) -> None:
        """Scroll what is at this place, so many pixels a second at 60 frames; negative is down."""
        step = speed / FRAMES_A_SECOND if pixels < 0 else -speed / FRAMES_A_SECOND
        await self.page.evaluate(SCROLL, [x, step, round(abs(pixels / step))])

    async def wheel(self, steps: list[tuple[int, int]]) -> None:
        await self.page.mouse.move(700, 500)
        for dx, dy in steps:
            await self.page.mouse.wheel(dx, dy)
