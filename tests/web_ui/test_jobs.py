"""Jobs: the conversation shows the work under way, and what a reply has read of it."""

import pytest
from playwright.async_api import expect

from agiraph.testing import call, says
from agiraph.testing.model_server import Seen, Step
from tests.runtime.waiting import Gate
from tests.scenarios.thread_queries import agent_name, reply_count
from tests.web_ui.browsing import EMPTY, Visit
from tests.web_ui.test_flow import is_reflection, is_reply, say, thread

pytestmark = pytest.mark.asyncio(loop_scope="session")

HALF = "Half of the pumps are read: \u202ethe second one is cheaper."


async def test_a_conversation_shows_its_work_and_what_a_reply_has_read(visit: Visit) -> None:
    first, rest = Gate(), Gate()

    async def play(seen: Seen) -> Step:
        if is_reply(seen) and reply_count(seen) == 0:
            return says(call("look_into", what="coordinator"), call("read_file", path="GOAL.md"))
        if is_reply(seen):
            return says("Half of the pumps.", call("no_work_needed"))
        if is_reflection(seen):
            return says("There is nothing to add.")
        if reply_count(seen) == 0:
            await first.wait()
            return says(call("checkpoint", summary=HALF))
        await rest.wait()
        return says(call("finish", summary="All are read."))

    desk = await visit(play, path=EMPTY)
    page = desk.page
    team = await desk.found("Compare the pumps")
    await desk.go(f"/t/{team['id']}/a/{team['coordinator_id']}")

    # The card follows the work without a reload, and shows the checkpoint as it was written.
    cards = page.get_by_role("region", name="Work in progress")
    await expect(cards.get_by_role("listitem")).to_contain_text("Coordinator, runs")
    await page.get_by_role("button", name="Don't reply", exact=True).wait_for()
    first.set()
    await expect(cards).to_contain_text(HALF.replace("\u202e", "⟨U+202E⟩"))
    await cards.get_by_role("button", expanded=False).press("Enter")
    await cards.get_by_role("link", name="On the board").wait_for()

    await say(page, "How far are you?")
    reply = thread(page).get_by_role("article").filter(has_text="Half of the pumps.")
    await reply.get_by_text("Read: the work of Coordinator, GOAL.md").click()
    await expect(reply.get_by_role("link", name="GOAL.md")).to_have_attribute(
        "href", f"/t/{team['id']}/files/GOAL.md"
    )
    # The calls that only read are named by the reply, and not a second time.
    await expect(thread(page).get_by_text("2 tool calls")).to_have_count(0)

    # One button stops it, after one question that names what stops.
    stop = page.get_by_role("button", name="Stop", exact=True)
    await expect(stop).to_have_count(1)
    await stop.press("Enter")
    question = page.get_by_role("dialog", name="Stop this work?")
    await expect(question).to_contain_text("Compare the pumps stops at the next step.")
    await expect(question).to_contain_text("you can start it again")
    await question.get_by_role("button", name="Stop", exact=True).press("Enter")
    rest.set()
    await expect(cards).to_have_count(0)
    await expect(stop).to_have_count(0)
    [work] = [
        node
        for node in await desk.up.ask("GET", f"/teams/{team['id']}/board")
        if node["lane"] == "work"
    ]
    assert work["status"] == "cancelled"


async def test_a_notice_says_what_the_work_waits_for_and_later_that_it_did(visit: Visit) -> None:
    written = Gate()

    async def play(seen: Seen) -> Step:
        if is_reflection(seen):
            return says("There is nothing to add.")
        if agent_name(seen) != "coordinator":
            await written.wait()
            return says(call("finish", summary="Two shirts."))
        list_of = {"agent": "robin", "description": "Write the list", "task": "List it."}
        steps = [
            says(call("spawn_worker", name="robin")),
            says(call("assign_task", **list_of)),
            says(call("ask_human", question="Which bag?")),
        ]
        return steps[reply_count(seen)]

    desk = await visit(play, path=EMPTY)
    page = desk.page
    team = await desk.found("Pack", review="never")
    await desk.go(f"/t/{team['id']}/a/{team['coordinator_id']}")

    cards = page.get_by_role("region", name="Work in progress")
    await expect(cards).to_contain_text("Coordinator waits for robin: Write the list")
    detail = thread(page).get_by_text("for robin: Write the list", exact=True)
    await expect(detail.locator("xpath=..")).to_contain_text("Pack waits for robin: Write")
    # The space before it is seen, too.
    space = detail.locator("xpath=preceding-sibling::span[1]")
    assert await space.evaluate("(it) => it.textContent === ' ' && it.offsetWidth > 1")
    written.set()
    # What needs the person stands once: the card of the question.
    await thread(page).get_by_role("group", name="Coordinator asks").wait_for()
    await expect(cards).to_have_count(0)
    await expect(page.locator("[data-waiting]")).to_have_count(0)
    await expect(detail.locator("xpath=..")).to_contain_text("Pack waited for robin: Write")
