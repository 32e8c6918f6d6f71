"""Editing: a person edits their last message, and the work begun for it stops if they say so."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Locator, Page, expect

from agiraph.testing import call, says
from agiraph.testing.model_server import Seen, Step
from tests.web_ui.browsing import PHONE, Desk, Visit
from tests.web_ui.test_accessibility import THEMES, axe_violations
from tests.web_ui.test_flow import is_reflection, is_reply, say, thread

pytestmark = pytest.mark.asyncio(loop_scope="session")

FIRST = "Find a dentits in the old town"
SECOND = "Find a dentist in the old town"
THIRD = "Find a dentist near the harbour"
DRAFT = "And a barber"
WIDTHS: dict[str, dict[str, Any]] = {
    "1440": {"viewport": {"width": 1440, "height": 900}},
    "1024": {"viewport": {"width": 1024, "height": 768}},
    "390": PHONE,
}


async def works_until_it_is_stopped(seen: Seen) -> Step:
    if is_reply(seen):
        begins = seen.messages[-1].text == FIRST or "have stopped" in seen.messages[-1].text
        return says("I look for one.", call("start_work" if begins else "no_work_needed"))
    if is_reflection(seen):
        return says("There is nothing to add.")
    await asyncio.Event().wait()
    raise AssertionError("nothing sets the event")


def composer(page: Page) -> Locator:
    return page.locator("#composer")


def stops(page: Page) -> Locator:
    return page.get_by_role("checkbox", name="Also stop the work begun for it (1)")


async def pictures(desk: Desk, address: str, name: str, *, edits: bool) -> None:
    """Keep a picture of the conversation in each width and theme, if a folder is named."""
    if not (folder := os.environ.get("EDITING_PICTURES")):
        return
    for width, options in WIDTHS.items():
        for theme in THEMES:
            page = await desk.opens(**options, color_scheme=theme)
            await desk.go(address, page)
            await expect(thread(page).get_by_text("I look for one.").first).to_be_visible()
            if edits:
                await composer(page).press("ArrowUp")
                await expect(stops(page)).to_be_visible()
            await page.screenshot(path=Path(folder) / f"{name}-{width}-{theme}.png")
            await page.close()


async def statuses(desk: Desk, team: dict[str, Any]) -> list[tuple[str, str]]:
    board = await desk.up.ask("GET", f"/teams/{team['id']}/board")
    return [(node["task"], node["status"]) for node in board]


async def test_the_last_message_is_edited_by_keyboard_and_its_work_stops_if_wanted(
    visit: Visit,
) -> None:
    desk = await visit(works_until_it_is_stopped)
    team = await desk.found("Look after the family", start=False)
    address = f"/t/{team['id']}/a/{team['coordinator_id']}"
    await desk.go(address)
    page = desk.page
    await say(page, FIRST)
    await expect(thread(page).get_by_text("Started: ")).to_be_visible()

    # By the button of the message; what was begun comes back after it.
    await composer(page).fill(DRAFT)
    await thread(page).get_by_text(FIRST, exact=True).first.hover()
    await page.get_by_role("button", name="Edit and send again").click()
    await expect(composer(page)).to_have_value(FIRST)
    await expect(composer(page)).to_be_focused()
    await expect(page.get_by_role("status").get_by_text("Editing your message")).to_be_visible()
    await page.reload()
    await expect(page.get_by_role("button", name="Stop editing")).to_be_visible()
    await expect(composer(page)).to_have_value(FIRST)
    await composer(page).press("Escape")
    await expect(composer(page)).to_have_value(DRAFT)
    await expect(page.get_by_role("button", name="Stop editing")).to_have_count(0)

    # By keyboard alone. The work goes on: nobody has said that it stops.
    await composer(page).fill("")
    await composer(page).press("ArrowUp")
    await expect(composer(page)).to_have_value(FIRST)
    await expect(stops(page)).not_to_be_checked()
    assert await axe_violations(page, contrast_in=THEMES) == []
    await pictures(desk, address, "editing", edits=True)
    await composer(page).fill(SECOND)
    await composer(page).press("Enter")
    await expect(composer(page)).to_have_value("")
    await expect(thread(page).get_by_text("Edited", exact=True)).to_be_visible()
    fold = thread(page).get_by_role("button", name="Edited; show the first version")
    await expect(fold).to_have_count(1)
    message = thread(page).get_by_role("article").get_by_text(FIRST, exact=True)
    await expect(message).to_have_count(0)
    await fold.press("Enter")
    opened = thread(page).get_by_role("button", name="Edited; hide the first version")
    await expect(opened).to_have_attribute("aria-expanded", "true")
    await expect(message).to_be_visible()
    assert await axe_violations(page, contrast_in=THEMES) == []
    assert await statuses(desk, team) == [(FIRST, "running")]
    await expect(thread(page).get_by_text("I look for one.")).to_have_count(2)


async def test_an_edited_message_stops_the_work_that_was_begun_for_the_one_before(
    visit: Visit,
) -> None:
    desk = await visit(works_until_it_is_stopped)
    team = await desk.found("Look after the family", start=False)
    address = f"/t/{team['id']}/a/{team['coordinator_id']}"
    await desk.go(address)
    page = desk.page
    await say(page, FIRST)
    await expect(thread(page).get_by_text("Started: ")).to_be_visible()
    await composer(page).press("ArrowUp")
    await stops(page).press("Space")
    await expect(stops(page)).to_be_checked()
    await composer(page).fill(THIRD)
    await composer(page).press("Enter")
    await expect(thread(page).get_by_text("Started: ")).to_have_count(2)
    assert await statuses(desk, team) == [(FIRST, "cancelled"), (THIRD, "running")]
    await pictures(desk, address, "edited", edits=False)

    # What was not the last message any more stays in the conversation, and says why.
    said = await desk.up.ask("GET", f"/agents/{team['coordinator_id']}/conversation")
    sent = [one for one in said if one["sender"] == "human"]
    assert [(one["text"], one["edits"]) for one in sent] == [
        (FIRST, None),
        (THIRD, sent[0]["id"]),
    ]
    phone = await desk.opens(**PHONE)
    await desk.go(address, phone)
    await expect(thread(phone).get_by_text(THIRD).first).to_be_visible()
    await composer(phone).press("ArrowUp")
    await expect(composer(phone)).to_have_value(THIRD)
    await desk.up.ask("POST", f"/agents/{team['coordinator_id']}/send", {"message": "Wait"})
    await composer(phone).fill("Find nobody")
    await phone.get_by_role("button", name="Send", exact=True).click()
    refused = thread(phone).get_by_role("alert")
    await expect(refused).to_contain_text("only your last message can be edited")
    desk.watch.faults.clear()  # the browser logs the refused request
    wide = await phone.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert wide <= 0
