"""Stage: a page of the web UI, and the measurement of its frames."""

import time
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

from playwright.async_api import Page

COUNTED = """() => {
  const at = [];
  let on = true;
  const tick = (now) => { at.push(now); if (on) requestAnimationFrame(tick); };
  requestAnimationFrame(tick);
  window.counted = () => { on = false; return at; };
}"""


class Stage:
    """A page, and the measurement of its frames."""

    def __init__(self, page: Page, cdp: Any) -> None:
        self.page = page
        self._cdp = cdp

    @classmethod
    async def on(cls, page: Page) -> "Stage":
        cdp: Any = await page.context.new_cdp_session(page)
        # CPU time of the page's thread, not wall time: other programs on the machine do not count.
        await cdp.send("Performance.enable", {"timeDomain": "threadTicks"})
        return cls(page, cdp)

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

    async def scroll(self, pixels: int, *, speed: int = 2400, x: int = 800) -> None:
        await self._cdp.send(
            "Input.synthesizeScrollGesture",
            {"x": x, "y": 400, "yDistance": pixels, "speed": speed, "gestureSourceType": "mouse"},
        )

    async def wheel(self, steps: list[tuple[int, int]]) -> None:
        await self.page.mouse.move(700, 500)
        for dx, dy in steps:
            await self.page.mouse.wheel(dx, dy)
