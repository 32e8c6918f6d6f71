"""Timeline: a run as a chart, as a table, as a log of events, and as a replay."""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from agiraph.core.domain.times.time import SystemClock
from tests.api.serving import Served
from tests.web_ui import run_seeding
from tests.web_ui.browsing import PHONE, go, watched
from tests.web_ui.test_accessibility import HORIZONTAL_OVERFLOW, axe_violations
from tests.web_ui.windows import serving

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(120)]


@dataclass(frozen=True, slots=True)
class Place:
    page: Page
    served: Served
    run: run_seeding.Run

    async def open(self, search: str, page: Page | None = None) -> None:
        address = f"{self.served.origin}/t/{self.run.team}/timeline{search}"
        await go(page or self.page, address)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def place(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Place]:
    """A page at a team of six translators whose run is over."""
    home = tmp_path_factory.mktemp("run") / "home"
    run = await run_seeding.run_team(home, pages=36)
    async with (
        serving(home, clock=SystemClock()) as served,
        watched(browser, served.origin) as (page, _),
    ):
        yield Place(page, served, run)


async def test_the_chart_tells_waits_apart_and_is_walked_with_the_keyboard(place: Place) -> None:
    page = place.page
    await place.open("")
    legend = page.get_by_role("list", name="What the time went into")
    for phase, length in (
        ("Waiting for you", "1m 30s"),
        ("Provider not reachable", "1m 0s"),
        ("Interrupted", "2m"),
        ("Waiting for other work", "5m"),
    ):
        await expect(legend.get_by_role("listitem").filter(has_text=phase)).to_contain_text(length)
    chart = page.get_by_role("group", name="Timeline. The arrow keys")
    await chart.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "ArrowRight", "ArrowRight", "ArrowRight"):
        await page.keyboard.press(key)
    details = page.locator("[aria-live=polite]").filter(has_text="Translate page 2")
    await expect(details).to_contain_text("Translator-1")
    for _ in range(6):
        if "Waiting for you" in (await details.inner_text()):
            break
        await page.keyboard.press("ArrowRight")
    await expect(details).to_contain_text("waiting for your answer")
    replay = details.get_by_role("link", name="Replay from here")
    assert re.search(r"view=replay&seq=\d+$", await replay.get_attribute("href") or "")
    fit = page.get_by_role("button", name="Fit")
    await expect(fit).to_be_disabled()
    await page.keyboard.press("+")
    await expect(fit).to_be_enabled()
    await page.keyboard.press("0")
    await expect(fit).to_be_disabled()
    assert await axe_violations(page, contrast_in=["light"]) == []

    await page.get_by_role("button", name="Table").click()
    table = page.get_by_role("table")
    await expect(table.get_by_role("row").nth(1)).to_contain_text("Translate page")
    assert int(await table.get_attribute("aria-rowcount") or 0) > 200
    assert await page.get_by_role("row").count() < 60
    assert await axe_violations(page, contrast_in=()) == []


async def test_the_event_log_is_filtered_and_leads_to_the_place_and_the_moment(
    place: Place,
) -> None:
    page = place.page
    await place.open("?view=log")
    rows = page.locator("[data-event]")
    await expect(rows.first).to_contain_text("The book is translated")
    assert await rows.count() < 60
    # One Tab stop, however long the log is. The row of the focus stays when it is scrolled away.
    await expect(page.locator("[data-event][tabindex='0']")).to_have_count(1)
    await rows.first.focus()
    await page.keyboard.press("End")
    last = page.locator("[data-event]:focus")
    await expect(last).not_to_contain_text("The book is translated")
    assert await last.evaluate("(one) => one.checkVisibility()")
    await page.locator("#events").evaluate("(one) => one.scrollTo(0, 0)")
    await expect(rows.first).to_contain_text("The book is translated")
    await expect(last).to_have_count(1)
    await page.keyboard.press("Home")
    await expect(last).to_contain_text("The book is translated")
    await page.get_by_label("Kind").select_option("talk")
    await page.get_by_label("Agent", exact=True).select_option(label="Translator-1")
    await expect(rows.first).to_contain_text("Page 32 is translated")
    await page.get_by_label("Find in events").fill("Geländer")
    await expect(rows).to_have_count(1)
    await expect(rows).to_contain_text("Translator-1 to you: Is *Geländer* a railing")
    await rows.focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_label("as JSON").last).to_contain_text('"message_id": "msg_page2"')
    assert await axe_violations(page, contrast_in=["light"]) == []
    where = await page.get_by_role("link", name="Open the message").get_attribute("href")
    assert where == f"/t/{place.run.team}/a/{place.run.agents[2]}?at=msg_page2"
    await page.get_by_role("link", name="Replay from here").click()
    await page.get_by_role("slider").wait_for()


async def test_the_slider_shows_board_and_conversation_of_any_moment(place: Place) -> None:
    page = place.page
    await place.open("?view=log")  # a replay keeps its moment
    await page.locator("[data-event]").first.wait_for()
    await place.open("?view=replay")
    slider = page.get_by_role("slider", name="Moment of the run")
    stack = page.get_by_role("treeitem", name="Translate page …")
    now = "Translate page …: 36 tasks, 1 failed, 35 done"
    await expect(stack).to_have_accessible_name(now)
    _, head = await place.served.ask("GET", f"/teams/{place.run.team}/board/at")
    await expect(slider).to_have_attribute("max", str(head["head"]))
    # The moment at which the second page waited for an answer.
    _, asked = await place.served.ask(
        "GET", f"/teams/{place.run.team}/event-log?types=question.asked"
    )
    seq = asked["events"][0]["seq"]
    await slider.fill(str(seq + 1))
    await expect(stack).to_have_accessible_name(
        "Translate page …: 36 tasks, 5 running, 1 waiting, 30 pending"
    )
    talk = page.get_by_role("region", name="Conversation at this moment")
    await page.get_by_label("Whose conversation").select_option(label="Translator-1")
    await expect(talk).to_contain_text("railing or a banister")
    await expect(talk).not_to_contain_text("is translated")
    # Each button leads on from the moment before it, and the address follows.
    for button, to in (("back", seq), ("back", seq - 1), ("forward", seq)):
        await page.get_by_role("button", name=f"One event {button}").click()
        await page.wait_for_url(re.compile(rf"seq=(%22)?{to}\b"))
        await expect(slider).to_have_value(str(to))
    await slider.focus()
    await page.keyboard.press("Home")
    await expect(page.locator("[data-card]")).to_have_count(0)
    await page.keyboard.press("End")
    await expect(stack).to_have_accessible_name(now)
    await expect(talk).to_contain_text("Page 32 is translated.")
    assert await axe_violations(page, contrast_in=["dark"]) == []
    # At its end a button does nothing more, and keeps the focus.
    forward = page.get_by_role("button", name="One event forward")
    await forward.press("Enter")
    await expect(forward).to_have_attribute("aria-disabled", "true")
    await expect(forward).to_be_focused()
    # The cards come in the order of the tree: the goal, then its parts.
    cards = page.locator("[data-card]")
    await expect(cards.first).to_contain_text("Translate all")


async def test_a_phone_shows_all_three_without_a_page_that_is_too_wide(
    browser: Browser, place: Place
) -> None:
    looks = (("", "#gantt canvas"), ("?view=log", "[data-event]"), ("?view=replay", "[data-card]"))
    async with watched(browser, place.served.origin, **PHONE) as (page, _):
        for search, seen in looks:
            await place.open(search, page)
            await page.locator(seen).first.wait_for()
            assert await page.evaluate(HORIZONTAL_OVERFLOW) == 0, search
            assert await axe_violations(page, contrast_in=()) == [], search
