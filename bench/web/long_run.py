"""Long run: the cost of a frame of a timeline, an event log and a replay of 10,000 events."""

import asyncio
from pathlib import Path

from tests.api.serving import Served
from tests.web_ui import run_seeding

from bench.web.stage import Stage


async def seed(home: Path) -> run_seeding.Run:
    """Create a team of ten agents with a board of 201 tasks and a run of 10,600 events."""
    return await run_seeding.run_team(home, pages=200, rounds=24, workers=10)


async def measure(stage: Stage, served: Served, run: run_seeding.Run) -> None:
    page = stage.page
    at = f"{served.origin}/t/{run.team}/timeline"
    await page.goto(at)
    await page.wait_for_selector("#gantt canvas", timeout=60_000)
    await asyncio.sleep(2)

    async def point() -> None:
        for n in range(100):
            await page.mouse.move(450 + 8 * n, 200 + (n % 10) * 40)

    await stage.measure("pointing at bars", point)
    await page.keyboard.down("Control")
    await stage.measure("zooming the timeline", lambda: stage.wheel([(0, -20)] * 40))
    await page.keyboard.up("Control")
    back = [(40 if n < 60 else -40, 0) for n in range(120)]
    await stage.measure("moving the timeline", lambda: stage.wheel(back))
    await page.goto(f"{at}?view=log")
    await page.wait_for_selector("[data-event]", timeout=60_000)
    await asyncio.sleep(1)
    await stage.measure("scrolling the events", lambda: stage.scroll(-12_000))
    await page.goto(f"{at}?as=table")
    await page.get_by_role("region", name="Timeline as a table").wait_for(timeout=60_000)
    await asyncio.sleep(1)
    await stage.measure("scrolling the table", lambda: stage.scroll(-12_000))
    await page.goto(f"{at}?view=replay")
    await page.wait_for_selector("[data-card]", timeout=60_000)
    await asyncio.sleep(1)
    await stage.measure("dragging the slider", lambda: _drag(stage))


async def _drag(stage: Stage) -> None:
    page = stage.page
    box = await page.get_by_role("slider").bounding_box()
    assert box is not None
    y = box["y"] + box["height"] / 2
    await page.mouse.move(box["x"] + box["width"] - 10, y)
    await page.mouse.down()
    for n in range(100):
        await page.mouse.move(box["x"] + box["width"] * (1 - n / 100) - 5, y)
    await page.mouse.up()
