"""The inbox in bulk: a person selects, snoozes, archives and confirms many things at once."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from playwright.async_api import Page, expect

from agiraph.core.services.lifecycle import timers
from agiraph.testing import says
from agiraph.testing.model_server import Seen, Step
from tests.web_ui import lively
from tests.web_ui.browsing import EMPTY, PHONE, Desk, Visit
from tests.web_ui.test_accessibility import THEMES, axe_violations
from tests.web_ui.test_failures import JumpingClock
from tests.web_ui.test_large_data_rendering import wait_for_frames

pytestmark = pytest.mark.asyncio(loop_scope="session")


def idle(seen: Seen) -> Step:
    del seen
    return says("There is nothing to add.")


async def inbox(desk: Desk, **query: str) -> list[str]:
    """Return the titles or first words of the items in a box, by the API."""
    asked = "&".join(f"{name}={value}" for name, value in query.items())
    page = await desk.up.ask("GET", f"/inbox?{asked}")
    return [item["message"]["title"] or item["message"]["text"] for item in page["items"]]


async def seed(desk: Desk) -> tuple[dict[str, Any], dict[str, Any]]:
    """Create two teams with reports and a question in the inbox."""
    beans = await desk.found("Count the beans", name="Beans", start=False)
    tea = await desk.found("Drink the tea", name="Tea", start=False)
    for n in range(4):
        await desk.tell(beans, "report", f"# **Report {n}**\n\nAll [beans](https://x.invalid).")
    await desk.tell(tea, "briefing", "Tea is *green*.")
    await desk.tell(tea, "question", "Which **tea**?")
    return beans, tea


def rows(page: Page) -> Any:
    return page.get_by_role("region", name="Items").get_by_role("listitem")


async def test_items_are_selected_snoozed_archived_and_filtered(visit: Visit) -> None:
    clock = JumpingClock()
    desk = await visit(idle, path=EMPTY, clock=clock)
    page = desk.page
    await seed(desk)
    await desk.go("/inbox")
    # Titles without the marks of Markdown; the question's own words stand in its card.
    titles = page.get_by_role("region", name="Items").locator("a span.truncate.text-base")
    await expect(titles).to_have_text(
        ["Which tea?", "Tea is green.", "Report 3", "Report 2", "Report 1", "Report 0"]
    )

    # With the keyboard alone: a range from one checkbox to another, and an undo.
    await page.get_by_role("checkbox", name="Select Report 2").focus()
    await page.keyboard.press("Space")
    await page.get_by_role("checkbox", name="Select Report 0").focus()
    await page.keyboard.press("Shift+X")
    bar = page.get_by_role("toolbar", name="Selected items")
    await bar.get_by_text("3 selected").wait_for()
    await page.keyboard.press("e")
    await expect(titles).to_have_text(["Which tea?", "Tea is green.", "Report 3"])
    assert len(await inbox(desk, box="archived")) == 3
    await page.get_by_role("button", name="Undo").click()
    await expect(titles).to_have_count(6)
    async with asyncio.timeout(30):  # they are restored first, then unread
        while (await desk.up.ask("GET", "/inbox"))["unread"] != 6:
            await wait_for_frames(page)

    # All that is shown: what waits for an answer is not archived, and the page says why.
    await page.get_by_role("checkbox", name="Select all shown").check()
    await bar.get_by_role("button", name="Archive").click()
    alert = page.get_by_role("alert")
    await expect(alert).to_contain_text(
        "1 item of 6 stayed as it was:“Which tea?”: It still waits for your answer."
    )
    await expect(titles).to_have_text(["Which tea?"])

    # It can be snoozed, and comes back by itself as unread.
    await bar.get_by_role("button", name="Snooze").click()
    tomorrow = page.get_by_role("menuitem", name="Tomorrow")
    await expect(tomorrow).to_be_visible()
    assert await axe_violations(page, contrast_in=THEMES) == []
    await tomorrow.press("Enter")
    await expect(titles).to_have_count(0)
    await page.get_by_role("button", name="Snoozed").click()
    await expect(titles).to_have_text(["Which tea?"])
    clock.ahead += timedelta(days=2)
    assert desk.world is not None
    await desk.world.store.write(timers.fire_due)
    await page.get_by_role("button", name="Inbox", exact=True).click()
    await expect(titles).to_have_text(["Which tea?"])
    await page.get_by_text("Back from a snooze").wait_for()

    # The archive, by team and by kind; from there things go back.
    await page.get_by_role("button", name="Archive", exact=True).first.click()
    await page.get_by_label("Team", exact=True).select_option("Tea")
    await expect(titles).to_have_text(["Tea is green."])
    await page.get_by_label("Team", exact=True).select_option("")
    await page.get_by_label("Kind").select_option("Reports")
    await expect(titles).to_have_count(4)
    await page.get_by_role("checkbox", name="Select Report 3").check()
    await bar.get_by_role("button", name="Back to the inbox").click()
    await expect(titles).to_have_count(3)
    assert await axe_violations(page, contrast_in=THEMES) == []

    # What is open is closed with its box.
    await page.keyboard.press("j")
    nothing = page.get_by_role("heading", name="Choose something to read")
    await expect(nothing).to_have_count(0)
    await page.get_by_role("button", name="Inbox", exact=True).click()
    await nothing.wait_for()


async def test_knowledge_and_triggers_are_confirmed_in_bulk_but_no_request(visit: Visit) -> None:
    desk = await visit(lively.Lively().play, path=EMPTY)
    page = desk.page
    team = await lively.forward_offers(desk)
    await desk.open("/inbox/digest")
    boxes = page.get_by_role("checkbox", name="Select this entry")
    await boxes.first.wait_for()
    count = await boxes.count()
    assert count >= 3
    # A request for approval has no checkbox: it is decided in its own card.
    asked = page.get_by_role("group", name="Asks for your approval").get_by_role("listitem")
    await expect(asked.get_by_role("checkbox")).to_have_count(0)
    await boxes.first.focus()
    await page.keyboard.press("Space")
    await page.get_by_role("button", name="Confirm 1", exact=True).wait_for()
    assert await axe_violations(page) == []
    await (
        page.get_by_role("checkbox", name=f"Select all {count}")
        .or_(page.get_by_role("checkbox", name="1 selected"))
        .check()
    )
    await page.get_by_role("button", name=f"Confirm {count}").press("Enter")
    await page.get_by_text(f"{count} entries confirmed.").wait_for()
    await expect(boxes).to_have_count(0)
    await expect(asked).to_have_count(1)
    # Over the API, a request among others is refused by itself.
    [request] = [i for i in (await desk.up.ask("GET", "/inbox"))["items"] if i["needs_answer"]]
    wrong = {"action": "confirm", "ids": [request["message"]["id"], "insight_none"]}
    outcomes = (await desk.up.ask("POST", "/inbox/bulk", wrong))["outcomes"]
    assert [one["is_done"] for one in outcomes] == [False, False]
    assert "never confirmed with others" in outcomes[0]["reason"]

    # It closes with the work that asked, which is no answer of the person.
    await desk.up.ask("POST", f"/teams/{team['id']}/stop")
    await desk.go(f"/t/{team['id']}/a/{team['coordinator_id']}")
    closed = page.get_by_role("group", name="Coordinator asked")
    await expect(closed).to_contain_text("Closed: the work that asked has ended.")
    await expect(closed).not_to_contain_text("You answered")


async def test_a_bar_leads_to_the_question_of_this_team(visit: Visit) -> None:
    desk = await visit(idle, path=EMPTY)
    page = desk.page
    beans, tea = await seed(desk)
    await desk.tell(tea, "question", "Which cup?")
    for screen in ("board", "files", "cost"):
        await desk.go(f"/t/{tea['id']}/{screen}")
        bar = page.locator("[data-waiting]")
        await expect(bar).to_contain_text("Which tea?and 1 moreAnswer")
    await bar.press("Enter")
    await expect(page.locator("#thread [data-question]").first).to_be_in_viewport()
    # Both questions are on screen now: nothing says them again. Another team has no bar.
    await expect(page.locator("#thread [data-question]").last).to_be_in_viewport()
    await expect(bar).to_have_count(0)
    assert await axe_violations(page, contrast_in=THEMES) == []
    await desk.go(f"/t/{beans['id']}/a/{beans['coordinator_id']}")
    await page.get_by_role("button", name="Team actions").wait_for()
    await expect(bar).to_have_count(0)

    phone = await desk.opens(**PHONE)
    await phone.goto(f"{desk.origin}/inbox")
    await phone.get_by_role("checkbox", name="Select Report 3").wait_for()
    assert await axe_violations(phone, contrast_in=()) == []  # the colours are the same


async def test_many_questions_of_a_team_are_one_row_and_each_is_answered_by_itself(
    visit: Visit,
) -> None:
    desk = await visit(idle, path=EMPTY)
    page = desk.page
    _, tea = await seed(desk)
    for n in range(24):
        await desk.tell(tea, "question", f"Which colour has cup {n}?")
    await desk.go("/inbox")
    needs = page.get_by_role("region", name="Needs you")
    collected = needs.get_by_role("button", name="25 questions")
    await expect(collected).to_have_attribute("aria-expanded", "false")
    await expect(needs.get_by_role("link")).to_have_count(0)
    assert await axe_violations(page) == []
    await collected.click()
    await expect(needs.get_by_role("link")).to_have_count(25)
    await needs.get_by_role("link", name="Which colour has cup 7?").click()
    await page.get_by_role("main").get_by_role("textbox").last.fill("Blue")
    await page.keyboard.press("Enter")
    await expect(needs.get_by_role("button", name="24 questions")).to_be_visible()
    await expect(needs.get_by_text("Which colour has cup 7?")).to_have_count(0)
    assert len([text for text in await inbox(desk, kind="question") if "cup" in text]) == 24
