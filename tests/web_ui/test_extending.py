"""Extending: a person gives a task that a limit ended more room, from the inbox."""

import re

import pytest
from playwright.async_api import expect

from agiraph.testing import call, says
from agiraph.testing.model_server import Seen, Stall, Step
from tests.web_ui.browsing import EMPTY, Visit
from tests.web_ui.test_accessibility import axe_violations
from tests.web_ui.test_flow import is_reply

pytestmark = pytest.mark.asyncio(loop_scope="session")


def play(seen: Seen) -> Step:
    if is_reply(seen):
        return says("All is counted.", call("no_work_needed"))
    if "Write the final answer now" in seen.messages[-1].text:
        return says("Half of the beans: 31.")
    if seen.index == 0:
        return says(call("write_file", path="beans.md", content="31"))
    return says(call("finish", summary="All beans: 62."))


async def test_a_goal_that_a_limit_ended_is_extended_from_the_inbox(visit: Visit) -> None:
    desk = await visit(play, path=EMPTY)
    page = desk.page
    settings = {"budget": {"turns": 2}, "acceptance": ["answer"], "review": "never"}
    team = await desk.found("Count the beans", **settings)
    await desk.go(f"/t/{team['id']}/a/{team['coordinator_id']}")
    said = page.get_by_role("article").filter(has_text="Half of the beans: 31.")
    await expect(said).to_contain_text("Partial result: stopped at a limit (turns)")
    await expect(said.get_by_text("Failure")).to_have_count(0)
    await desk.go("/inbox")
    items = page.get_by_role("region", name="Items").get_by_role("link")
    await items.filter(has_text="Half of the beans: 31.").click()
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
    await dialog.get_by_text("The task goes on where it stopped.").wait_for()
    await expect(dialog.get_by_label("More turns")).to_have_value("50")
    await dialog.get_by_label("More turns").fill("0")
    await expect(dialog.get_by_role("button", name="Extend")).to_be_disabled()
    await dialog.get_by_label("More turns").fill("20")
    await dialog.get_by_role("button", name="Extend").click()
    await expect(dialog).to_have_count(0)
    await page.get_by_text("All beans: 62.").first.wait_for()
    await page.locator("article").get_by_text("Stopped early, done since").wait_for()
    [goal] = await desk.up.ask("GET", f"/teams/{team['id']}/board")
    assert (goal["status"], goal["result"]) == ("completed", "All beans: 62.")

    # The budget of a finished team is raised on the cost page, and lowered.
    await desk.go(f"/t/{team['id']}/cost")
    await page.get_by_text("3 of 22").wait_for()
    await expect(page.get_by_text("Other work:")).to_have_count(0)
    for turns in ("90", "30"):
        await page.get_by_role("button", name="Raise").click()
        await dialog.get_by_label("Turns in total").fill(turns)
        await dialog.get_by_role("button", name="Save the limits").click()
        await expect(dialog).to_have_count(0)
        await page.get_by_text(f"3 of {turns}").wait_for()

    # A reply is no work on the goal: its cost is shown apart.
    asked = {"message": "How is it going?"}
    await desk.up.ask("POST", f"/agents/{team['coordinator_id']}/send", asked)
    await expect(page.get_by_text("Other work:")).to_have_text(re.compile(r": .*\dk? tokens\.$"))


async def test_the_bill_shows_calls_that_got_no_answer(visit: Visit) -> None:
    desk = await visit(lambda seen: Stall(0), path=EMPTY)
    team = await desk.found("Count the beans")
    await desk.model.until(lambda: len(desk.model.requests) == 1)
    await desk.up.ask("POST", f"/teams/{team['id']}/stop")
    assert desk.world is not None
    await desk.world.settle()
    await desk.go(f"/t/{team['id']}/cost")
    lost = desk.page.locator("dl > div").filter(has_text="Lost calls")
    await expect(lost).to_have_text("Lost calls1of them, charged as reserved")
    await expect(desk.page.get_by_role("cell", name="1 lost").first).to_be_visible()
    assert await axe_violations(desk.page) == []
