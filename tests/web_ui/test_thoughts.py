"""Thoughts: what a model thought is folded and no part of its answer; repaired calls are marked."""

import re

import pytest
from playwright.async_api import expect

from agiraph.testing import call, says
from agiraph.testing.model_server import Seen, Step
from tests.web_ui.browsing import EMPTY, Visit
from tests.web_ui.test_flow import show_work

pytestmark = pytest.mark.asyncio(loop_scope="session")
THOUGHT = "Perhaps I should count twice."


def play(seen: Seen) -> Step:
    if "finish" not in seen.tools:
        return says("There is nothing to add.")
    if seen.index == 0:
        return says(
            "I write it down.",
            call("Write", file_path="beans.md", content="62"),
            thinking=THOUGHT,
            output_tokens=40,
        )
    return says(call("finish", summary="All beans: 62."))


async def test_a_thought_is_folded_and_a_repaired_call_says_what_was_repaired(visit: Visit) -> None:
    desk = await visit(play, path=EMPTY)
    page = desk.page
    team = await desk.found("Count the beans", acceptance=["answer"], review="never")
    await desk.go(f"/t/{team['id']}/a/{team['coordinator_id']}")
    log = page.get_by_role("log")
    await log.get_by_text("All beans: 62.").first.wait_for()
    await show_work(page)
    await log.get_by_text("I write it down.").wait_for()
    await expect(log.get_by_text(THOUGHT)).to_have_count(0)

    calls = log.get_by_role("button", name="tool calls")
    await expect(calls).to_contain_text("1 repaired")
    await calls.click()
    await log.get_by_role("button", name="write_file repaired beans.md").click()
    await expect(log.get_by_text("Repaired before the call")).to_have_text(
        "Repaired before the call: it was written as 'Write'"
    )

    [goal] = await desk.up.ask("GET", f"/teams/{team['id']}/board")
    assert goal["result"] == "All beans: 62."
    await desk.go(f"/t/{team['id']}/threads/{goal['thread_id']}")
    # The field's words: System prompt, Reflection, Output, and on the board Attempts.
    await page.get_by_text("System prompt", exact=True).wait_for()
    kinds = page.get_by_role("group", name="Which threads").get_by_role("button")
    await expect(kinds).to_have_text(["All", "Work", "Replies", "Reflection"])
    step = page.get_by_role("region", name="Steps").locator("details").filter(has_text="beans.md")
    await step.locator("summary").click()
    await expect(step.locator("p")).to_have_text([re.compile("^Repaired"), "Arguments", "Output"])
    folded = page.get_by_text("Reasoning: 5 words · 20 tokens, in the cost of this step")
    await folded.wait_for()
    await page.get_by_text("I write it down.").wait_for()
    await expect(page.get_by_text(THOUGHT)).to_have_count(0)
    await folded.click()
    await page.get_by_role("group").get_by_text(THOUGHT).wait_for()
    await folded.click()
    await expect(page.get_by_text(THOUGHT)).to_have_count(0)
    await desk.go(f"/t/{team['id']}/board?node={goal['id']}")
    about = page.get_by_role("region", name="About this task")
    await about.get_by_text("Attempts", exact=True).wait_for()
