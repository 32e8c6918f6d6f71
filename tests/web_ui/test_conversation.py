"""A long conversation: search finds all of it, and scrolling up reads on without a jump."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Locator, Page, Route, expect

from agiraph.core.domain.messages import Draft
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.times.time import SystemClock
from agiraph.core.services.mail import bus
from agiraph.core.store import messages
from agiraph.core.store.tx import Tx
from tests.api.serving import Served
from tests.web_ui.browsing import PHONE, watched
from tests.web_ui.test_large_data_rendering import wait_for_frames
from tests.web_ui.windows import serving

pytestmark = pytest.mark.asyncio(loop_scope="session")

COUNT = 760
"""More messages than the page loads at once, and than the server sends at once."""
SAYINGS = {
    3: "Der Schlüssel liegt UNTER der Matte.",
    40: "Ключ лежит под ковриком.",
    90: "钥匙在垫子下面。",
}
LINES = " ".join(["It was measured again, with warm caches."] * 12)


def _talk(tx: Tx, team: str, agent: str, numbers: range) -> None:
    """Say numbered messages, each tenth with a bell; the sayings are far back."""
    for n in numbers:
        text = SAYINGS.get(n, f"Report {n}. {LINES}{' Bell!' if n % 10 == 0 else ''}")
        sender, recipient = (agent, OWNER) if n % 3 else (OWNER, agent)
        about: dict[str, Any] = {"team_id": team, "sender": sender, "recipient": recipient}
        said = bus.send(tx, Draft(**about, text=text), sets_to_work=False)
        messages.mark_seen(tx, [said.id])  # an unseen message would become work


async def _told(served: Served) -> str:
    """Fill a long conversation; return its address."""
    served.world.script("ada")
    _, team = await served.ask("POST", "/teams", {"goal": "Measure", "start": False})
    agent = team["coordinator_id"]
    for start in range(0, COUNT, 20):
        numbers = range(start, start + 20)
        await served.world.store.write(_talk, team["id"], agent, numbers)
    return f"{served.origin}/t/{team['id']}/a/{agent}"


def _said(page: Page, text: str) -> Locator:
    return page.locator("#thread article").filter(has_text=text)


async def test_a_search_finds_what_is_not_loaded_in_any_script_and_goes_there(
    browser: Browser, tmp_path: Path
) -> None:
    async with (
        serving(tmp_path / "home", clock=SystemClock()) as served,
        watched(browser, served.origin) as (page, _),
        watched(browser, served.origin, **PHONE) as (phone, _),
    ):
        address = await _told(served)
        await page.goto(address)
        await _said(page, f"Report {COUNT - 1}.").wait_for()
        await page.get_by_role("button", name="Search in this conversation").click()
        field = page.get_by_role("textbox", name="Search in this conversation")
        status = page.get_by_role("search").get_by_role("status")
        for words, text in (
            ("钥匙", SAYINGS[90]),
            ("ключ ПОД", SAYINGS[40]),
            ("unter schlüssel", SAYINGS[3]),
        ):
            await field.fill(words)
            await expect(status).to_have_text("1 of 1")
            await expect(_said(page, text)).to_be_in_viewport()
            await expect(page.locator("[aria-current=true]", has_text=text)).to_have_count(1)

        # Newest first, and older pages of what was found come by themselves.
        await field.fill("bell")
        await expect(status).to_have_text("1 of 50+")
        await expect(_said(page, f"Report {COUNT - 10}.")).to_be_in_viewport()
        for _ in range(49):
            await field.press("Enter")
        await expect(status).to_have_text("50 of 74")
        for _ in range(24):
            await page.get_by_role("button", name="Older").click()
        await expect(status).to_have_text("74 of 74")
        await expect(_said(page, "Report 0.")).to_be_in_viewport()
        await field.press("Enter")
        await expect(status).to_have_text("1 of 74")
        await expect(_said(page, f"Report {COUNT - 10}.")).to_be_in_viewport()

        await field.fill("no such words")
        await expect(status).to_have_text("Nothing found")
        await page.get_by_role("button", name="Search everything").click()
        await expect(page.get_by_role("combobox", name="Jump to")).to_have_value("no such words")

        await phone.goto(address)
        await _said(phone, f"Report {COUNT - 1}.").wait_for()
        await phone.get_by_role("button", name="Search in this conversation").tap()
        await phone.get_by_role("textbox", name="Search in this conversation").fill("钥匙")
        await expect(_said(phone, SAYINGS[90])).to_be_in_viewport()
        wide = "document.documentElement.scrollWidth > innerWidth"
        assert not await phone.evaluate(wide)


IN_VIEW = """(wanted) => {
  const thread = document.getElementById("thread");
  const frame = thread.getBoundingClientRect();
  const rows = [...thread.querySelectorAll("article")].map((one) => [
    one.textContent.match(/Report \\d+\\./)?.[0], one.getBoundingClientRect()]);
  const isWhole = (place) => place.top > frame.top && place.bottom < frame.bottom;
  const seen = rows.filter(([text, place]) => text && isWhole(place));
  const [text, place] = rows.find(([text]) => text === wanted) ?? seen[1] ?? [];
  return { text, top: place?.top, length: thread.scrollHeight };
}"""
"""Return a message in view and where it is, and how long the conversation is. By itself it takes
the second one: the first may lose its sender to an older one of the same."""


async def test_scrolling_up_loads_older_messages_and_moves_nothing_that_is_read(
    browser: Browser, tmp_path: Path
) -> None:
    async with (
        serving(tmp_path / "home", clock=SystemClock()) as served,
        watched(browser, served.origin) as (page, _),
    ):
        address = await _told(served)
        held: list[Route] = []

        async def hold(route: Route) -> None:
            held.append(route)

        await page.goto(address)
        await _said(page, f"Report {COUNT - 1}.").wait_for()
        # Whichever of its two sources comes first shows older messages.
        await page.route(re.compile(r"/conversation\?before=m|/events\?after="), hold)
        await page.locator("#thread").hover()
        grown = 0
        while not await _said(page, "Report 0.").is_visible():
            async with asyncio.timeout(60):
                while not held:
                    await page.mouse.wheel(0, -8000)
                    await wait_for_frames(page, 3)
                    if await _said(page, "Report 0.").is_visible():
                        break
            if not held:
                break
            await wait_for_frames(page, 10)
            before = await page.evaluate(IN_VIEW)
            assert before["text"]
            route = held.pop(0)
            async with page.expect_response(route.request.url):
                await route.continue_()
            async with asyncio.timeout(30):
                while not held and await page.get_by_text("Loading earlier messages").count():
                    await wait_for_frames(page)
            await wait_for_frames(page, 20)
            after = await page.evaluate(IN_VIEW, before["text"])
            assert abs(after["top"] - before["top"]) <= 2
            grown += after["length"] > before["length"] + 2000
        assert grown >= 1


async def test_who_writes_while_reading_back_sees_their_message(
    browser: Browser, tmp_path: Path
) -> None:
    async with (
        serving(tmp_path / "home", clock=SystemClock()) as served,
        watched(browser, served.origin) as (page, _),
    ):
        await page.goto(await _told(served))
        await _said(page, f"Report {COUNT - 1}.").wait_for()
        await page.locator("#thread").hover()
        await page.mouse.wheel(0, -8000)
        await page.get_by_role("button", name="To the end").wait_for()
        await page.locator("#composer").fill("Is the bell rung?")
        await page.locator("#composer").press("Enter")
        await expect(_said(page, "Is the bell rung?")).to_be_in_viewport()
