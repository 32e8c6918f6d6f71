"""Extending: a person gives a task that a limit ended more room, from the inbox."""

import pytest
from playwright.async_api import expect

from agiraph.testing import call, says
from agiraph.testing.model_server import Seen, Step
from tests.web_ui.browsing import Visit

pytestmark = pytest.mark.asyncio(loop_scope="session")


def play(seen: Seen) -> Step:
    if "Write the final answer now" in seen.messages[-1].text:
        return says("Half of the beans: 31.")
    if seen.index == 0:
        return says(call("write_file", path="beans.md", content="31"))
    return says(call("finish", summary="All beans: 62."))


async def test_a_goal_that_a_limit_ended_is_extended_from_the_inbox(visit: Visit) -> None:
    desk = await visit(play)
    page = desk.page
    settings = {"budget": {"turns": 2}, "acceptance": ["answer"], "review": "never"}
    team = await desk.found("Count the beans", **settings)
    await desk.go(f"/t/{team['id']}/a/{team['coordinator_id']}")
    said = page.get_by_role("article").filter(has_text="Half of the beans: 31.")
    await expect(said).to_contain_text("Partial result: stopped at a limit (turns)")
    await expect(said.get_by_text("Failure")).to_have_count(0)
    await desk.go("/inbox")
    await page.get_by_text("Half of the beans: 31.").first.click()
    await expect(
        page.get_by_text("Partial result: stopped at a limit (turns)").locator("visible=true")
    ).to_have_count(2)
    await expect(page.get_by_role("note")).to_have_text(
        "It stopped at a limit before it was done: its turns are used up."
    )
    extend = page.get_by_role("button", name="Extend")
    boxes = [
        await page.get_by_role("button", name="Try again").bounding_box(),
        await extend.bounding_box(),
    ]
    assert len({box and box["height"] for box in boxes}) == 1
    await extend.click()

    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_text("The task goes on where it stopped.")).to_be_visible()
    await expect(dialog.get_by_label("More turns")).to_have_value("50")
    await dialog.get_by_label("More turns").fill("0")
    await expect(dialog.get_by_role("button", name="Extend")).to_be_disabled()
    await dialog.get_by_label("More turns").fill("20")
    await dialog.get_by_role("button", name="Extend").click()
    await expect(dialog).to_have_count(0)
    await expect(page.get_by_text("All beans: 62.").first).to_be_visible()
    await expect(page.locator("article").get_by_text("Stopped early, done since")).to_be_visible()
    [goal] = await desk.up.ask("GET", f"/teams/{team['id']}/board")
    assert (goal["status"], goal["result"]) == ("completed", "All beans: 62.")
