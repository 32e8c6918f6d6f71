"""Jobs: the conversation shows the work under way, and what a reply has read of it."""

import re

import pytest
from playwright.async_api import expect

from agiraph.testing import call, says
from agiraph.testing.model_server import Seen, Step
from tests.runtime.waiting import Gate
from tests.scenarios.thread_queries import reply_count
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

    # It takes two presses of the button to stop it.
    stop = cards.get_by_role("button", name=re.compile("^Stop "))
    await stop.press("Enter")
    await cards.get_by_role("button", name=re.compile("^Really stop ")).press("Enter")
    rest.set()
    await expect(cards).to_have_count(0)
    [work] = [
        node
        for node in await desk.up.ask("GET", f"/teams/{team['id']}/board")
        if node["lane"] == "work"
    ]
    assert work["status"] == "cancelled"
