"""Settings: a person chooses how a team lives when it is created, and changes it later."""

import re
from typing import Any

import pytest
from playwright.async_api import expect

from agiraph.testing import call, says
from agiraph.testing.model_server import Seen, Status, Step
from tests.web_ui.browsing import Visit, go

pytestmark = pytest.mark.asyncio(loop_scope="session")


def play(seen: Seen) -> Step:
    if "finish" not in seen.tools:
        return says("There is nothing to add.")
    return says(call("finish", summary=f"Done: {seen.messages[0].text[:20]}"))


async def test_a_team_is_created_with_settings_that_can_be_changed_later(visit: Visit) -> None:
    desk = await visit(play)
    page = desk.page
    await page.get_by_label("What should a team do?").fill("Count the beans")
    await page.get_by_role("button", name="Options").click()
    await page.get_by_label("Done when").fill("answer\n\nThe sum is right ")
    beans: Any = {"name": "beans.csv", "mimeType": "text/csv", "buffer": b"beans,2"}
    await page.get_by_label("Files to attach").set_input_files(beans)
    attached = page.get_by_role("list", name="Attached files")
    await expect(attached).to_contain_text("beans.csv")
    # What was typed stays when another page is opened, such as that of the models.
    await go(page, f"{desk.origin}/models")
    await page.get_by_role("button", name="New team").first.click()
    await expect(page.get_by_label("Done when")).to_have_value("answer\n\nThe sum is right ")
    await attached.get_by_role("button", name="Remove beans.csv").click()
    await expect(attached).to_have_count(0)
    await page.get_by_label("Model").fill("nobody/good")
    await page.get_by_text("No provider offers “nobody/good”.").wait_for()
    await page.get_by_label("Model").fill("anthropic/x")
    await page.get_by_text("Set ANTHROPIC_API_KEY to use it.").wait_for()
    await page.get_by_label("Model").fill("")
    await expect(page.get_by_label("Thinking effort")).to_have_value("")
    await page.get_by_label("Thinking effort").select_option("High")
    await page.get_by_label("Budget in US dollars").fill("1.25")
    await expect(page.get_by_label("Starts a cycle")).to_have_count(0)
    await page.get_by_label("A reviewer checks results").select_option("Never")
    await page.get_by_role("button", name="Get to work").click()
    await expect(page.get_by_role("log").get_by_text("The team completed its goal")).to_have_count(
        1
    )

    coordinator = page.url
    await page.get_by_role("button", name="Team actions").click()
    await page.get_by_role("menuitem", name="Set a new goal").click()
    general = page.get_by_role("region", name="General")
    goal = page.get_by_role("region", name="Goal")
    await expect(general.get_by_label("Starts a cycle")).to_have_count(0)
    await expect(general.get_by_label("A reviewer checks results")).to_have_value("never")
    await goal.get_by_label("New goal").fill("Weigh the beans")
    await goal.get_by_label("Done when").fill("answer")
    await goal.get_by_label("Files to attach").set_input_files(beans)
    given = goal.get_by_role("list", name="Attached files")
    await expect(given).to_contain_text("beans.csv")
    await go(page, coordinator)
    await page.get_by_role("log").wait_for()
    await page.go_back()
    await expect(goal.get_by_label("New goal")).to_have_value("Weigh the beans")
    await expect(goal.get_by_label("Done when")).to_have_value("answer")
    await expect(given).to_contain_text("beans.csv")
    await expect(goal.get_by_label("Limit for this goal")).to_have_value("1.25")
    await expect(goal).to_contain_text("1,000 turns, 24h of working time")
    await goal.get_by_role("button", name="Start with this goal").click()
    # The field is emptied once the server has the goal; until then its own text says the same.
    await expect(goal.get_by_label("New goal")).to_have_value("")
    await goal.get_by_text("Weigh the beans").wait_for()
    await expect(given).to_have_count(0)
    [team] = await desk.up.ask("GET", "/teams")
    said = await desk.up.ask("GET", f"/agents/{team['coordinator_id']}/conversation")
    sent = [[file["name"] for file in one["attachments"]] for one in said]
    assert [names for names in sent if names] == [["beans.csv"]]
    board = await desk.up.ask("GET", f"/teams/{team['id']}/board")
    goals = [await desk.up.ask("GET", f"/nodes/{n['id']}") for n in board if n["lane"] == "work"]
    assert [goal["acceptance"] for goal in goals] == [["answer", "The sum is right"], ["answer"]]
    assert [(g["budget"]["usd"], g["budget"]["turns"]) for g in goals] == [(1.25, 1000)] * 2

    await general.get_by_role("button", name="Runs until you stop it").click()
    await general.get_by_label("Starts a cycle").select_option("every hour")
    await general.get_by_label("Name", exact=True).fill("Beans")
    await general.get_by_role("button", name="Save").click()
    await page.get_by_text("It applies from the team's next step on.").wait_for()
    await goal.get_by_label("New goal").fill("Sort the beans")
    await expect(goal.get_by_label("Done when")).to_have_count(0)
    await goal.get_by_role("button", name="Start with this goal").click()
    await expect(goal.get_by_label("New goal")).to_have_value("")
    await goal.get_by_text("Sort the beans").wait_for()
    [team] = await desk.up.ask("GET", "/teams")
    assert (team["name"], team["mode"], team["goal"]) == ("Beans", "infinite", "Sort the beans")
    await go(page, coordinator)
    await page.get_by_role("log").wait_for()  # the settings have an effort, too
    await page.get_by_label("Thinking effort", exact=True).select_option("Low")
    await page.get_by_text("settings were changed: effort of coordinator").wait_for()
    [agent] = await desk.up.ask("GET", f"/teams/{team['id']}/agents")
    assert (team["effort"], agent["effort"]) == ("high", "low")


WRONG_KEY = Status(401, "Incorrect API key provided: sk-canary.")
RIGHT_KEY = [
    says("Hello."),
    says(call("get_weather", city="Paris")),
    says('{"city": "Paris", "people": 2000000}'),
    says("Hello."),
    says("Hello.", input_tokens=4000, cached_tokens=3000),
]


async def test_the_models_page_keeps_the_last_test_of_a_model_and_says_what_to_do(
    visit: Visit,
) -> None:
    desk = await visit([WRONG_KEY, *RIGHT_KEY])
    page = desk.page
    await page.get_by_role("link", name="All models").click()
    await expect(page.get_by_role("region", name="Default model")).to_contain_text("openai/test")
    without_key = page.get_by_role("listitem").filter(has_text="ANTHROPIC_API_KEY")
    await expect(without_key).to_contain_text("No key")

    await page.get_by_role("button", name="Test openai/test").click()
    tested = page.get_by_role("group", name="Test of openai/test")
    host = desk.model.openai_url.removeprefix("http://").partition("/")[0]
    advice = (
        f"Check OPENAI_API_KEY: {host} does not accept the key. Set the right one in the "
        "environment and start agiraph again."
    )
    await tested.get_by_text(advice).wait_for()
    await tested.get_by_text("Words: does not work").wait_for()
    await page.reload()
    await tested.get_by_text(advice).wait_for()
    await expect(tested.locator("time")).to_have_text(re.compile("now|ago"))

    await page.get_by_role("button", name="Test openai/test").click()
    await expect(tested).to_contain_text(
        "Words: works Tool call: works Schema answer: works Cache hit: works"
    )
    await expect(tested.get_by_text(advice)).to_have_count(0)
