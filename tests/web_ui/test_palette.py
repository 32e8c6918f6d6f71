"""Palette: one box finds work, files, messages and knowledge of all teams, by keyboard alone."""

import re
from urllib.parse import urlsplit

import pytest
from playwright.async_api import expect

from agiraph.testing import call, says
from agiraph.testing.model_server import Seen, Step
from tests.scenarios.thread_queries import reply_count
from tests.web_ui.browsing import Visit
from tests.web_ui.test_flow import is_reflection, thread

pytestmark = pytest.mark.asyncio(loop_scope="session")

KETTLE = "The kettle boils at dawn."


async def test_a_word_of_another_team_is_found_and_opened_by_keyboard(visit: Visit) -> None:
    async def play(seen: Seen) -> Step:
        if is_reflection(seen):
            return says("There is nothing to add.")
        if reply_count(seen) == 0:
            return says(call("write_file", path="kettles.md", content=KETTLE))
        return says(call("finish", summary="The kettle was described."))

    desk = await visit(play)
    page = desk.page
    team = await desk.found("Describe the kettle")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(urlsplit(request.url).path))
    await desk.go(f"/t/{team['id']}/a/{team['coordinator_id']}")
    await expect(thread(page).get_by_text("The kettle was described.").first).to_be_visible()
    await desk.go("/inbox")
    asked.clear()
    # Keys that are typed while the palette is loaded are not lost.
    await page.keyboard.press("Control+k")
    await page.keyboard.type("kettle")
    await expect(page.get_by_role("combobox")).to_have_value("kettle")
    box = page.get_by_role("dialog")
    for group in ("Teams", "Work", "Files", "Messages", "Steps"):
        await expect(box.get_by_role("group", name=group, exact=True)).to_be_visible()
    # One request for what was typed, not one for each letter or team.
    assert asked.count("/api/search") == 1

    marked = box.get_by_role("group", name="Messages").locator("mark").first
    await expect(marked).to_have_text("kettle", ignore_case=True)

    file = box.get_by_role("option", name=re.compile("^kettles.md"))
    while await file.get_attribute("aria-selected") != "true":
        await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Enter")
    await expect(page.get_by_text(KETTLE)).to_be_visible()
