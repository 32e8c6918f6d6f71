"""Costs and windows: what was spent by day, today's pace, and what fills the window of a thread."""

import re
from datetime import timedelta

import pytest
from playwright.async_api import expect

from agiraph.core.domain.ids import NodeId
from agiraph.core.store.spend import SPEND, Spend, day_of
from agiraph.core.store.tx import Tx
from agiraph.testing import call, says
from tests.web_ui.browsing import EMPTY, PHONE, Visit
from tests.web_ui.test_accessibility import THEMES, axe_violations

pytestmark = pytest.mark.asyncio(loop_scope="session")

MODELS = ("openai/gpt-5", "openai/gpt-5-mini", "anthropic/claude-sonnet-4-5")


async def test_costs_stand_by_day_as_bars_and_as_a_table_and_a_thread_says_what_fills_it(
    visit: Visit,
) -> None:
    desk = await visit([says(call("finish", summary="62 beans."))], path=EMPTY)
    page = desk.page
    team = await desk.found("Count the beans", name="Beans", model="openai/gpt-5")
    other = await desk.found("Drink the tea", name="Tea", start=False)
    assert desk.world is not None
    await desk.world.settle()

    def pay(tx: Tx) -> None:
        for n in range(12):
            for at, model in enumerate(MODELS):
                spent = Spend(
                    node_id=NodeId(f"node_{n}_{at}"), agent_id=team["coordinator_id"],
                    purpose="work", model=model, day=day_of(tx.now - timedelta(days=n)),
                    calls=3, lost=0,
                    team_id=team["id"] if at < 2 else other["id"], input_tokens=900,
                    output_tokens=100, cached_tokens=0, cache_write_tokens=0, thinking_tokens=0,
                    usd=(1.0 + at + n / 4) / 100, unpriced=0, estimated=0,
                    outermost_id=NodeId(f"node_{n}_{at}"),
                )  # fmt: skip
                SPEND.insert(tx, spent)

    await desk.world.store.write(pay)
    await desk.go(f"/t/{team['id']}/cost")
    days = page.get_by_role("list", name="Cost by day").get_by_role("listitem")
    await expect(days).to_have_count(12)
    # The parts of a day fill its bar, also where a day costs less than a dollar.
    bar = days.last.locator("> span").first
    unfilled = "bar => bar.clientHeight - [...bar.children].reduce((h, p) => h + p.clientHeight, 0)"
    assert await bar.evaluate(unfilled) <= 2
    parts = page.get_by_role("list", name="Parts").get_by_role("listitem")
    await expect(parts).to_have_count(2)
    await expect(parts.first).to_contain_text("openai/gpt-5-mini")
    # Split by purpose, and then of all teams, with the keyboard alone.
    await page.get_by_role("group", name="Each day by").get_by_text("Purpose").focus()
    await page.keyboard.press("Enter")
    await expect(parts).to_have_count(1)
    await expect(parts.first).to_contain_text("Work")
    await page.get_by_role("group", name="Whose cost").get_by_text("All teams").focus()
    await page.keyboard.press("Enter")
    await page.get_by_role("group", name="Each day by").get_by_text("Team").focus()
    await page.keyboard.press("Enter")
    await expect(parts).to_have_text([re.compile("^Beans"), re.compile("^Tea")])
    await page.get_by_text("As a table").focus()
    await page.keyboard.press("Enter")
    table = page.get_by_role("region", name="Cost by day, as a table")
    await expect(table.get_by_role("row")).to_have_count(13)
    await expect(table.get_by_role("columnheader")).to_have_text(
        ["Day (UTC)", "All", "Beans", "Tea"]
    )
    today = page.get_by_role("region", name="Today")
    await expect(today).to_contain_text("Today, all teams")
    assert await axe_violations(page, contrast_in=THEMES) == []
    phone = await desk.opens(**PHONE)
    await desk.go(f"/t/{team['id']}/cost", phone)
    await phone.get_by_role("list", name="Cost by day").wait_for()
    assert await phone.evaluate("document.documentElement.scrollWidth") <= 390

    # The window of its thread, in words and on the panel beside the conversation.
    [goal] = await desk.up.ask("GET", f"/teams/{team['id']}/board")
    await desk.go(f"/t/{team['id']}/threads/{goal['thread_id']}")
    line = page.get_by_text(re.compile("^Context window: about "))
    await line.focus()
    await page.keyboard.press("Enter")
    listed = page.locator("details", has=line).get_by_role("listitem")
    await expect(listed).to_contain_text(["Instructions", "Conversation"])
    assert await axe_violations(page, contrast_in=THEMES) == []
    use = await desk.up.ask("GET", f"/threads/{goal['thread_id']}/window")
    assert sum(part["tokens"] for part in use["parts"]) == use["tokens"]
    await desk.go(f"/t/{team['id']}/a/{team['coordinator_id']}")
    section = page.get_by_role("region", name="Context window")
    await expect(section.get_by_role("listitem").first).to_contain_text("Instructions")
