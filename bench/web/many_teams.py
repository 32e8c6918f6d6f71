"""Many teams: what the page costs a person who has 100 teams of ten agents."""

import asyncio
from urllib.parse import urlsplit

from playwright.async_api import Browser
from tests.api.serving import Served
from tests.web_ui.browsing import DESKTOP
from tests.web_ui.windows import sign_in

from agiraph.core.domain.ids import TeamId
from bench.web.stage import Stage

REQUESTS, ELEMENTS, INTERACTIVE_MS, KEY_MS = 10, 3000, 1500, 50
"""Goals: requests to the API, elements, milliseconds until a person can write and choose a team,
and milliseconds from a key to the frame that shows it."""
# The page tells the times itself: a question over the driver would come late on a busy machine.
WATCH = """() => {
  new MutationObserver((_, observer) => {
    const hasList = document.querySelector("nav [role=list] a") !== null;
    if (!hasList || !document.querySelector("#composer")) return;
    window.interactiveAt = performance.now();
    observer.disconnect();
  }).observe(document, { childList: true, subtree: true });
  window.keyTimes = [];
  addEventListener("keydown", (event) => {
    const drawn = new MessageChannel();
    drawn.port1.onmessage = () => window.keyTimes.push(performance.now() - event.timeStamp);
    requestAnimationFrame(() => drawn.port2.postMessage(null));
  }, { capture: true });
}"""
WRITTEN = "what do the hundred teams do today?"


async def measure(browser: Browser, served: Served, teams: list[TeamId]) -> None:
    """Print requests, elements, the time to interactive and the time of a key, each with its part
    of the goal; then the frames while the list of teams is scrolled."""
    context = await browser.new_context(**DESKTOP)
    await sign_in(context, served.origin)
    page = await context.new_page()
    await page.add_init_script(f"({WATCH})()")
    address = f"{served.origin}/t/{teams[50]}"
    await page.goto(address)  # fills the browser's cache
    await page.wait_for_function("() => window.interactiveAt")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(urlsplit(request.url).path))
    await page.goto(address)
    await page.wait_for_function("() => window.interactiveAt")
    await asyncio.sleep(2)
    requests = len([path for path in asked if path.startswith("/api/")])
    elements = await page.evaluate("document.querySelectorAll('*').length")
    interactive = await page.evaluate("window.interactiveAt")
    await page.locator("#composer").click()
    for letter in WRITTEN:
        await page.keyboard.press("Space" if letter == " " else letter)
        await asyncio.sleep(0.05)
    keys = sorted(await page.evaluate("window.keyTimes"))
    for name, value, goal, unit in (
        ("requests to the API", requests, REQUESTS, ""),
        ("elements", elements, ELEMENTS, ""),
        ("time to interactive", interactive, INTERACTIVE_MS, " ms"),
        ("a key (median)", keys[len(keys) // 2], KEY_MS, " ms"),
        ("a key (p95)", keys[int(len(keys) * 0.95)], KEY_MS, " ms"),
    ):
        part = f"{value / goal:4.2f} of the goal {goal}{unit}"
        print(f"100 teams: {name:20} {value:6.0f}{unit}, {part}", flush=True)
    stage = await Stage.on(page)
    await stage.measure("scrolling the teams", lambda: stage.scroll(-1500, x=120, speed=1200))
    await context.close()
