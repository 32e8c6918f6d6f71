"""Slow line: what a person sees on a line of 40 KB/s, with nothing in the browser's cache."""

from typing import Any

from playwright.async_api import Browser
from tests.api.serving import Served
from tests.web_ui import seeding
from tests.web_ui.browsing import DESKTOP
from tests.web_ui.windows import sign_in

BYTES_A_SECOND = 40 * 1024
LATENCY_MS = 100
FIRST_PAINT_S, COMPOSER_S = 2.0, 6.0
"""Goals: the frame of the page is drawn, and a message can be written."""
# The page tells the time itself: a question over the driver would come late on a busy machine.
WATCH = """() => {
  new MutationObserver((_, observer) => {
    const field = document.getElementById("composer");
    if (!field || field.disabled) return;
    window.composerAt = performance.now();
    observer.disconnect();
  }).observe(document, { childList: true, subtree: true });
}"""
PAINTED = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
TRANSFERRED = """performance.getEntriesByType('resource')
  .filter((one) => one.responseEnd < window.composerAt)
  .reduce((sum, one) => sum + one.transferSize, 0)"""


async def measure(browser: Browser, served: Served, long: seeding.Long) -> None:
    """Print when the first paint and the composer come, and their part of the goals."""
    context = await browser.new_context(**DESKTOP)
    await sign_in(context, served.origin)
    page = await context.new_page()
    cdp: Any = await context.new_cdp_session(page)
    await cdp.send("Network.enable")
    await cdp.send(
        "Network.emulateNetworkConditions",
        {
            "offline": False,
            "latency": LATENCY_MS,
            "downloadThroughput": BYTES_A_SECOND,
            "uploadThroughput": BYTES_A_SECOND,
        },
    )
    await page.add_init_script(f"({WATCH})()")
    await page.goto(f"{served.origin}/t/{long.team}/a/{long.agent}", wait_until="commit")
    await page.wait_for_function("() => window.composerAt", timeout=60_000)
    painted, composer = await page.evaluate(f"[{PAINTED}, window.composerAt]")
    transferred = await page.evaluate(TRANSFERRED)
    for name, ms, goal in (
        ("first paint", painted, FIRST_PAINT_S),
        ("composer", composer, COMPOSER_S),
    ):
        seconds = ms / 1000
        print(
            f"slow line: {name:12} {seconds:5.2f} s, {seconds / goal:4.2f} of the goal {goal:.0f} s"
        )
    print(f"slow line: {transferred / 1024:.0f} KB transferred before the composer", flush=True)
    await context.close()
