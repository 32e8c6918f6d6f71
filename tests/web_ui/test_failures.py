"""Failures: a person sees what happened to a task, goes on from there, and reads true times."""

import re
from datetime import datetime, timedelta

import pytest
from playwright.async_api import expect

from agiraph.core.domain.times.time import SystemClock
from agiraph.testing import call, says
from agiraph.testing.model_server import Seen, Status, Step
from tests.scenarios.thread_queries import reply_count
from tests.web_ui.browsing import EMPTY, Visit

pytestmark = pytest.mark.asyncio(loop_scope="session")


class JumpingClock(SystemClock):
    """The system's clock, which a test may set forward."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def now(self) -> datetime:
        return super().now() + self.ahead


async def test_a_task_whose_key_is_refused_goes_on_with_another_model(visit: Visit) -> None:
    def play(seen: Seen) -> Step:
        if seen.model == "test":
            return Status(401, "Incorrect API key provided.")
        return says(call("finish", summary="All beans: 62."))

    desk = await visit(play, path=EMPTY)
    page = desk.page
    team = await desk.found("Count the beans", review="never")
    await desk.up.wait_for_event(team["id"], "node.waiting")
    await desk.go(f"/t/{team['id']}/a/{team['coordinator_id']}")
    log = page.get_by_role("log")
    # What happened, with a space before the title of the task; nothing about a restart.
    await log.get_by_text(re.compile(r"^A model call for \S.* failed: .*401", re.S)).wait_for()
    await expect(log.get_by_text(re.compile("interrupted|restart"))).to_have_count(0)
    card = log.get_by_role("group", name="Coordinator asks")
    await card.get_by_role("button", name="Try again").wait_for()
    await card.get_by_role("button", name="Change model").press("Enter")
    dialog = page.get_by_role("dialog")
    await dialog.get_by_text("Now it uses openai/test.").wait_for()
    await dialog.get_by_label("Model").fill("openai/other")
    await dialog.get_by_role("button", name="Change and try again").press("Enter")
    await log.get_by_text("All beans: 62.").first.wait_for()
    member = await desk.up.ask("GET", f"/agents/{team['coordinator_id']}")
    assert member["model"] == "openai/other"


async def test_a_key_that_stops_several_teams_is_asked_about_once(visit: Visit) -> None:
    is_accepted = False

    def play(seen: Seen) -> Step:
        if not is_accepted:
            return Status(401, "Incorrect API key provided.")
        return says(call("finish", summary="All beans: 62."))

    desk = await visit(play, path=EMPTY)
    page = desk.page
    first = await desk.found("Count the beans", review="never")
    await desk.up.wait_for_event(first["id"], "node.waiting")
    await desk.go(f"/t/{first['id']}/a/{first['coordinator_id']}")
    card = page.get_by_role("log").get_by_role("group", name="Coordinator asks")
    await expect(card.get_by_role("button", name="Try again")).to_be_visible()
    second = await desk.found("Count the peas", review="never")
    await expect(card.get_by_text("2 teams wait for this.")).to_be_visible()
    await expect(card.get_by_role("button", name="Try again")).to_have_count(0)
    await desk.go("/inbox")
    await expect(page.get_by_role("region", name="Items").get_by_role("link")).to_have_count(1)

    # The team that did not ask leads to the question, too.
    await desk.go(f"/t/{second['id']}/a/{second['coordinator_id']}")
    await page.get_by_role("main").locator("[data-waiting]").click()
    await card.get_by_role("button", name="Enter a key").click()
    dialog = page.get_by_role("dialog", name="A key for openai")
    await dialog.get_by_label("Key", exact=True).fill("sk-another-1234567890")
    desk.watch.is_server_away = True  # the browser logs the refused request
    await dialog.get_by_role("button", name="Test and save").click()
    await dialog.get_by_text("OPENAI_API_KEY is set in the environment").wait_for()
    desk.watch.is_server_away = False
    await page.keyboard.press("Escape")
    is_accepted = True
    await card.get_by_role("button", name="Retry all").click()
    for team in (first, second):
        await desk.up.wait_for_event(team["id"], "team.completed")
    await expect(card).to_have_count(0)


async def test_a_result_comes_first_and_one_line_below_it_opens_to_its_doubts(visit: Visit) -> None:
    counts = {
        "agent": "new:openai/test",
        "task": "Count the bags.",
        "description": "Count the bags",
    }

    def play(seen: Seen) -> Step:
        if "finish" not in seen.tools:
            return says(call("publish", summary="All bags: 7.", reached="yes"))
        done = call("finish", summary="All beans: 62, as `beans.md` shows.", reached="yes")
        return says(done if reply_count(seen) else call("assign_task", **counts))

    desk = await visit(play, path=EMPTY)
    page = desk.page
    team = await desk.found("Count the beans", review="never")
    await desk.up.wait_for_event(team["id"], "team.completed")
    goal, bags = await desk.up.ask("GET", f"/teams/{team['id']}/board")
    await desk.go("/inbox")
    items = page.get_by_role("region", name="Items")
    await items.get_by_role("link").filter(has_text="Count the beans").click()
    read = page.get_by_role("article", name="Count the beans")
    await expect(read.locator("p, summary").filter(visible=True)).to_have_text(
        [re.compile("Coordinator"), re.compile("All beans: 62"), "2 points not confirmed"]
    )
    await expect(read.get_by_text("node_")).to_have_count(0)
    opens = read.locator("summary")
    await opens.press("Enter")
    await expect(read.locator("details li")).to_have_text(
        ["Count the bags is done, with doubts",
         "'beans.md' is named in the summary and does not exist"]
    )  # fmt: skip
    # What is doubted of the task is told with the task alone.
    await read.get_by_role("link", name="Count the bags").press("Enter")
    panel = page.get_by_role("region", name="About this task")
    await panel.get_by_text("All bags: 7.").wait_for()
    assert page.url.endswith(f"?node={bags['id']}")
    await panel.get_by_text("1 point not confirmed").press("Enter")
    await expect(panel.locator("details li")).to_have_text(
        ["Nothing was read, written, run or given to anyone"]
    )
    await desk.go(f"/t/{team['id']}/results")
    await page.get_by_text("2 points not confirmed").wait_for()
    await desk.go(f"/t/{team['id']}/a/{team['coordinator_id']}")
    log = page.get_by_role("log")
    await log.get_by_role("article").get_by_text("2 points not confirmed").wait_for()
    assert goal["doubts"][0]["node_id"] == bags["id"]


async def test_a_failed_task_offers_what_helps_where_it_is_shown(visit: Visit) -> None:
    def play(seen: Seen) -> Step:
        if seen.model == "other":
            return says(call("finish", summary="All beans: 62."))
        return says("I think about beans.")

    desk = await visit(play, path=EMPTY)
    page = desk.page
    team = await desk.found("Count the beans.", review="never")
    await desk.up.wait_for_event(team["id"], "node.failed")
    [goal] = await desk.up.ask("GET", f"/teams/{team['id']}/board")
    node = goal["id"]
    await desk.go(f"/t/{team['id']}/a/{team['coordinator_id']}")
    actions = page.get_by_role("log").get_by_role("group", name="What to do")
    buttons = actions.get_by_role("button")
    await expect(buttons).to_have_text(["Try again", "Change model"])
    # The title ends no sentence in the middle, and nobody stopped the team.
    await page.get_by_role("log").get_by_text(re.compile("^Count the beans failed: ")).wait_for()
    await page.get_by_role("log").get_by_text("The team stopped: its goal failed").wait_for()
    await desk.go(f"/t/{team['id']}/board?node={node}")
    panel = page.get_by_role("region", name="About this task")
    await panel.get_by_role("button", name="Change model").wait_for()
    await desk.go("/inbox")
    await page.get_by_role("region", name="Items").get_by_role("link").first.click()
    # What is typed after "Reply" is the reply, not keys of the page; later, letters are keys again.
    await page.get_by_role("link", name="Reply").press("Enter")
    field = page.get_by_role("textbox", name="Message Coordinator")
    await expect(field).to_be_focused()
    await page.keyboard.type("a reply")
    await expect(field).to_have_value("a reply")
    await page.go_back()
    await page.get_by_role("button", name="Change model").wait_for()
    await desk.go(f"/t/{team['id']}/a/{team['coordinator_id']}")
    await expect(field).to_have_value("a reply")
    await expect(field).not_to_be_focused()
    await page.go_back()
    await page.get_by_role("button", name="Change model").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Model").fill("no-such-vendor/x")
    await dialog.get_by_role("button", name="Change and try again").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("no-such-vendor")
    await dialog.get_by_label("Model").fill("openai/other")
    desk.watch.faults.clear()  # the browser logs the refused request
    await dialog.get_by_role("button", name="Change and try again").click()
    await page.get_by_text("All beans: 62.").first.wait_for()


async def test_waiting_for_a_person_is_not_time_at_work(visit: Visit) -> None:
    def play(seen: Seen) -> Step:
        if "ask_human" not in seen.tools or "no_work_needed" in seen.tools:
            return says("There is nothing to add.")
        if reply_count(seen) == 0:
            return says(call("write_file", path="a.md", content="x"))
        return says(call("finish", summary="Done."))

    clock = JumpingClock()
    desk = await visit(play, path=EMPTY, clock=clock)
    page = desk.page
    rules = [{"tool": "write_file", "action": "ask"}]
    team = await desk.found("Write it", permissions=rules, review="never")
    await desk.up.wait_for_event(team["id"], "node.waiting")
    [item] = (await desk.up.ask("GET", "/inbox"))["items"]
    clock.ahead += timedelta(seconds=3700)
    [node] = await desk.up.ask("GET", f"/teams/{team['id']}/board")
    await desk.go(f"/t/{team['id']}/threads/{node['thread_id']}")
    steps = page.get_by_role("region", name="Steps")
    await steps.get_by_text("waiting", exact=True).wait_for()
    await desk.up.ask("POST", f"/inbox/{item['message']['id']}/answer", {"decision": "approve"})
    await desk.up.wait_for_event(team["id"], "node.completed")
    await steps.get_by_text(re.compile(r"^(<0\.1|\d+\.\d)s, waited 1h 1m$")).wait_for()
    timeline = page.get_by_role("figure", name="Timeline")
    await expect(timeline).to_contain_text(re.compile(r"^.*\d+\.\ds at work, 1h 1m of waiting"))
    await desk.go(f"/t/{team['id']}/board?node={node['id']}")
    about = page.get_by_role("region", name="About this task")
    await about.get_by_text(re.compile(r"\d+\.\ds at work")).wait_for()
    await desk.go(f"/t/{team['id']}/a/{team['coordinator_id']}")
    await expect(page.get_by_role("log").get_by_text(re.compile("1h"))).to_have_count(0)
