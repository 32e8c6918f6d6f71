"""Acts: what a reply did stands under it, is undone live, and a marked password shows nowhere."""

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from agiraph.testing import call, says
from agiraph.testing.model_server import Seen, Step
from tests.scenarios.thread_queries import reply_count
from tests.web_ui.browsing import PHONE, Desk, visiting_world
from tests.web_ui.test_accessibility import THEMES, axe_violations
from tests.web_ui.test_flow import is_reply, thread

pytestmark = pytest.mark.asyncio(loop_scope="session")

GOAL = "Refurbish the office"
QUESTION = "Which colour shall the walls have?"
TEA = "I drink tea with milk every morning"
CALLS = {
    "The walls are to be blue": call("answer"),
    "Find a dentist, please": call("start_work", task="Find a dentist nearby"),
    TEA: call("remember", content="Drinks tea with milk", their_words=TEA),
    "Remind me of the dentist tomorrow": call(
        "promise", what="Call the dentist and ask for **Monday** or Tuesday", when="1 day"
    ),
}
PASSWORD = "我家的猫叫小黑不叫小白"


def play(seen: Seen) -> Step:
    """Reply to each message with its call; ask in work, with a time limit the first time."""
    said = seen.messages[0].text
    if is_reply(seen):
        made = next((each for text, each in CALLS.items() if text in said), None)
        return says("Yes, I will.", *([] if made is None else [made]), call("no_work_needed"))
    if "ask_human" not in seen.tools:
        return says("There is nothing to add.")
    if "dentist" in said or reply_count(seen) > 0:
        return says(call("ask_human", question=f"What else ({reply_count(seen)})?"))
    return says(call("ask_human", question=QUESTION, default="White", timeout_minutes=90))


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def desk(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[Desk, dict[str, Any]]]:
    home = tmp_path_factory.mktemp("acts") / "home"
    async with visiting_world(browser, home) as visit:
        opened = await visit(play)
        team = await opened.found(GOAL)
        await opened.up.wait_for_event(team["id"], "question.asked")
        yield opened, team


async def say(page: Page, text: str) -> None:
    before = await page.get_by_label("What this reply did").count()
    await page.locator("#composer").fill(text)
    # A question that comes after the words are there does not take them.
    instead = page.get_by_role("button", name="Write a message instead")
    if await instead.count():
        await instead.click()
    await page.locator("#composer").press("Enter")
    await expect(page.get_by_label("What this reply did")).to_have_count(before + 1)


def line(page: Page, text: str) -> Any:
    return page.locator("[data-act]").filter(has_text=text)


async def test_acts_are_shown_undone_and_changed_in_all_windows(
    desk: tuple[Desk, dict[str, Any]],
) -> None:
    opened, team = desk
    address = f"/t/{team['id']}/a/{team['coordinator_id']}"
    await opened.go(address)
    page = opened.page
    await expect(thread(page).get_by_text("then goes on without your answer")).to_be_visible()
    for text in CALLS:
        await say(page, text)
    phone = await opened.opens(**PHONE)
    await opened.go(address, phone)
    dentist = "Started: Find a dentist nearby"
    await expect(line(phone, dentist).get_by_role("button", name="Undo")).to_be_visible()
    for each in (page, phone):
        assert await axe_violations(each, contrast_in=THEMES) == []
        if folder := os.environ.get("ACTS_PICTURES"):
            await each.screenshot(path=Path(folder) / f"acts-{each == phone}.png")
    wide = await phone.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert wide <= 0
    # By keyboard, in one window; the other shows it without a reload.
    await line(page, dentist).get_by_role("button", name="Undo").focus()
    await page.keyboard.press("Enter")
    for each in (page, phone):
        await expect(line(each, dentist)).to_contain_text("undone")
        await expect(line(each, dentist).get_by_role("button")).to_have_count(0)
    answered = line(page, f"Answered “{QUESTION}")
    # The list moves while the stopped work leaves it: a pointer may miss, a key does not.
    await answered.get_by_role("button", name="Undo").press("Enter")
    await expect(answered).to_contain_text("undone")
    card = thread(page).get_by_role("group", name="Coordinator asks").filter(has_text=QUESTION)
    await expect(card.get_by_role("button", name="Answer")).to_be_visible()
    tea = line(page, "Remembered: Drinks tea with milk")
    await tea.get_by_role("button", name="Change").click()
    await page.get_by_label("What to remember instead").fill("Drinks tea without milk")
    # Words that scroll out of view are kept.
    await thread(page).press("Home")
    await page.set_viewport_size({"width": 1440, "height": 420})
    await expect(page.get_by_label("What to remember instead")).to_have_count(0)
    await thread(page).press("End")
    await expect(page.get_by_label("What to remember instead")).to_have_value(
        "Drinks tea without milk"
    )
    await page.set_viewport_size({"width": 1440, "height": 900})
    await page.get_by_label("What to remember instead").press("Enter")
    await expect(tea).to_contain_text("undone")
    known = await opened.up.ask("GET", f"/agents/{team['coordinator_id']}/memories")
    assert [memory["content"] for memory in known] == ["Drinks tea without milk"]
    if folder := os.environ.get("ACTS_PICTURES"):
        await page.screenshot(path=Path(folder) / "acts-undone.png")


async def test_a_password_is_marked_in_the_composer_and_stands_nowhere_else(
    desk: tuple[Desk, dict[str, Any]],
) -> None:
    opened, team = desk
    page = opened.page
    await opened.go(f"/t/{team['id']}/a/{team['coordinator_id']}")
    field = page.locator("#composer")
    await field.fill(f"用密码 {PASSWORD} 登录")
    start = len("用密码 ")
    await field.evaluate(
        "(one, at) => one.setSelectionRange(...at)", [start, start + len(PASSWORD)]
    )
    await page.get_by_role("button", name="Secret").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_label("Secret", exact=True)).to_have_value(PASSWORD)
    await dialog.get_by_label("Name").fill("bank_login")
    assert await axe_violations(page) == []
    if folder := os.environ.get("ACTS_PICTURES"):
        await page.screenshot(path=Path(folder) / "secret.png")
    await page.keyboard.press("Enter")
    await expect(field).to_have_value("用密码 secret bank_login 登录")
    await field.press("Enter")
    await expect(thread(page).get_by_text("用密码 secret bank_login 登录")).to_be_visible()
    kept = await page.evaluate("JSON.stringify(localStorage)")
    assert PASSWORD not in kept
    events = await opened.up.ask("GET", f"/teams/{team['id']}/events?limit=500")
    assert PASSWORD not in str(events)
