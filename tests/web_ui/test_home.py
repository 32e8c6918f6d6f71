"""Home: a team starts with a sentence, and cards say what all teams do today."""

import re
from typing import Any

import pytest
from playwright.async_api import Locator, Page, expect

from agiraph.models.facts.prices import Prices, Terms
from agiraph.testing import call, says
from agiraph.testing.model_server import Seen, Step
from tests.runtime.waiting import Gate
from tests.web_ui.browsing import EMPTY, PHONE, Visit, go
from tests.web_ui.test_accessibility import THEMES, axe_violations

pytestmark = pytest.mark.asyncio(loop_scope="session")

FITS = "document.documentElement.scrollWidth <= innerWidth"
DROP = """([target, type]) => {
    const data = new DataTransfer();
    data.items.add(new File(["beans,62"], "beans.csv", { type: "text/csv" }));
    const given = type === "paste" ? { clipboardData: data } : { dataTransfer: data };
    const Kind = type === "paste" ? ClipboardEvent : DragEvent;
    target.dispatchEvent(new Kind(type, { bubbles: true, cancelable: true, ...given }));
}"""


def goal(page: Page) -> Locator:
    return page.get_by_label("What should a team do?")


def card(page: Page, name: str) -> Locator:
    return page.get_by_role("region", name=name, exact=True)


def finish(seen: Seen) -> Step:
    return says(call("finish", summary="Counted.") if "finish" in seen.tools else "Fine.")


async def drop(field: Locator, *types: str) -> None:
    """Let the page take a file that is dropped or pasted on a field."""
    element = await field.element_handle()
    for type_ in types:
        await field.page.evaluate(DROP, [element, type_])


async def test_a_team_is_started_by_typing_a_sentence_and_enter(visit: Visit) -> None:
    desk = await visit(finish)
    page = desk.page
    await expect(goal(page)).to_be_focused()

    await page.keyboard.type("Count the beans")
    await page.keyboard.press("Shift+Enter")
    await page.keyboard.type("and weigh them")
    await expect(goal(page)).to_have_value("Count the beans\nand weigh them")
    await page.keyboard.press("Enter")

    await page.get_by_role("log").get_by_text("The team completed its goal").wait_for()
    [team] = await desk.up.ask("GET", "/teams")
    assert (team["goal"], team["mode"]) == ("Count the beans\nand weigh them", "finite")
    # The next field is empty, and the page of home says what became of the team.
    await go(page, f"{desk.origin}/")
    await expect(goal(page)).to_have_value("")
    await expect(card(page, "Ended today")).to_contain_text(re.compile("Count the beans.*Done"))


@pytest.mark.parametrize("types", [("dragover", "drop"), ("paste",)])
async def test_a_file_that_is_dropped_or_pasted_goes_to_the_team(
    visit: Visit, types: tuple[str, ...]
) -> None:
    desk = await visit(finish)
    page = desk.page
    await goal(page).fill("Count what is in the file")
    await drop(goal(page), *types)
    attached = page.get_by_role("list", name="Attached files")
    await expect(attached).to_contain_text("beans.csv")
    await goal(page).press("Enter")

    await page.get_by_role("log").get_by_role("link", name="beans.csv", exact=True).wait_for()
    seen, *_ = [one for one in desk.model.requests if "finish" in one.tools]
    assert "beans.csv" in seen.messages[0].text
    await go(page, f"{desk.origin}/")
    await expect(goal(page)).to_be_focused()
    await expect(attached).to_have_count(0)


async def test_an_example_fills_the_field_and_its_blanks_are_asked_for(visit: Visit) -> None:
    desk = await visit(finish)
    page = desk.page
    chips = ("Compare", "Research", "Build", "Watch")
    for name in chips:
        await page.get_by_role("button", name=name, exact=True).click()
        await expect(goal(page)).to_be_focused()
        await expect(goal(page)).to_have_value(re.compile(rf"^({name}|Find out) \["))
    selected = "getSelection().toString() || document.activeElement.value.slice("
    selected += "document.activeElement.selectionStart, document.activeElement.selectionEnd)"
    assert await page.evaluate(selected) == "[subject]"
    await page.get_by_text("It runs until you stop it").wait_for()
    await page.get_by_role("button", name="Research", exact=True).click()
    await expect(page.get_by_text("It runs until you stop it")).to_have_count(0)

    await page.keyboard.press("Enter")
    form = page.get_by_role("form", name="New team")
    await expect(form.get_by_role("alert")).to_contain_text("Fill in [question]")
    await page.keyboard.type("why the beans are gone")
    await page.keyboard.press("Enter")

    await page.get_by_role("log").get_by_text("The team completed its goal").wait_for()
    [team] = await desk.up.ask("GET", "/teams")
    assert team["goal"].startswith("Find out why the beans are gone. ")


async def test_the_cards_say_what_runs_what_asks_what_ended_and_what_was_spent(
    visit: Visit,
) -> None:
    may_ask, may_end = Gate(), Gate()

    async def play(seen: Seen) -> Step:
        if "finish" not in seen.tools:
            return says("Fine.")
        if not any(message.role == "tool" for message in seen.messages):
            await may_ask.wait()
            return says(call("ask_human", question="Red or white beans?"))
        await may_end.wait()
        return says(call("finish", summary="Counted."))

    prices = Prices({"openai/test": Terms(input_usd=2000, output_usd=8000)})
    desk = await visit(play, path="/settings", world={"prices": prices})
    page = desk.page
    team = await desk.found("Count the beans", name="Beans", review="never")
    await page.get_by_role("link", name="agiraph", exact=True).click()
    needs, running, ended, spent = (
        card(page, name) for name in ("Needs you", "Running", "Ended today", "Spent today")
    )
    await expect(running.get_by_role("listitem")).to_have_text("BeansCoordinator worksRunning")
    await expect(needs).to_contain_text("Nothing waits for you.")
    await expect(ended).to_contain_text("No team has ended its goal today.")
    await expect(spent).to_contain_text("$0")

    may_ask.set()
    await expect(needs.get_by_role("listitem")).to_contain_text("Red or white beans?")
    await expect(running.get_by_role("listitem")).to_contain_text("Needs you")
    await expect(spent).to_contain_text(re.compile(r"\$\d*\.\d"))
    await expect(running).to_contain_text(re.compile(r"\$\d*\.\d"))
    await needs.get_by_role("link").click()
    await expect(page).to_have_url(re.compile("/inbox/msg_"))
    await page.go_back()
    [asked] = (await desk.up.ask("GET", "/inbox"))["items"]
    await desk.up.ask("POST", f"/inbox/{asked['message']['id']}/answer", {"text": "White"})
    await expect(needs).to_contain_text("Nothing waits for you.")
    await expect(running.get_by_role("listitem")).to_contain_text("Coordinator works")

    may_end.set()
    await expect(running).to_contain_text("No team is at work.")
    await expect(ended.get_by_role("listitem")).to_have_text(
        re.compile(r"^Beans\d\d:\d\d\$[\d.]+Done$")
    )
    await ended.get_by_role("link", name="Beans has cost").click()
    await expect(page).to_have_url(f"{desk.origin}/t/{team['id']}/cost")
    await page.go_back()
    await ended.get_by_role("link", name="Beans").first.click()
    await expect(page).to_have_url(f"{desk.origin}/t/{team['id']}/a/{team['coordinator_id']}")


async def test_every_way_to_a_new_team_leads_to_the_field(visit: Visit) -> None:
    desk = await visit(finish, path=EMPTY)
    page = desk.page
    await desk.found("Rest", name="rest", start=False)
    await desk.go("/settings")
    main, add = page.locator("#main"), page.get_by_role("button", name="New team")

    async def arrives() -> None:
        await expect(page).to_have_url(f"{desk.origin}/")
        await expect(goal(page)).to_be_focused()

    for key in ("n", "c"):
        await page.get_by_role("heading", name="Settings").wait_for()
        await main.focus()
        await page.keyboard.press(key)
        await arrives()
        await page.go_back()
    await add.click()
    await arrives()
    # Also from the sidebar of the page itself, and through the palette, which gives the focus back.
    await page.keyboard.press("Escape")
    await add.press("Enter")
    await arrives()
    await page.get_by_role("link", name="Inbox").first.press("Control+k")
    await page.get_by_role("combobox", name="Jump to").fill("new team")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await arrives()
    await desk.go("/models")
    await page.get_by_role("heading", name="Models", exact=True).wait_for()
    await page.keyboard.press("Control+k")
    await page.get_by_role("combobox", name="Jump to").fill("new team")
    await page.keyboard.press("Enter")
    await arrives()


async def test_the_keyboard_alone_reaches_the_options_and_the_cards(visit: Visit) -> None:
    desk = await visit(finish, path=EMPTY)
    page = desk.page
    await desk.found("Count the beans", name="Beans")
    await desk.go("/")
    await expect(card(page, "Ended today").get_by_role("listitem")).to_have_count(1)
    await expect(goal(page)).to_be_focused()
    await page.keyboard.type("Weigh the beans")
    options = page.get_by_role("button", name="Options")
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("button", name="Attach files")).to_be_focused()
    await page.keyboard.press("Tab")
    await expect(options).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(options).to_have_attribute("aria-expanded", "true")
    budget = page.get_by_label("Budget in US dollars")
    while not await budget.evaluate("(one) => one === document.activeElement"):
        await page.keyboard.press("Tab")
    await page.keyboard.type("1.25")
    await page.keyboard.press("Enter")

    await page.get_by_role("log").get_by_text("The team completed its goal").wait_for()
    teams = await desk.up.ask("GET", "/teams")
    assert [team["name"] for team in teams] == ["Beans", "Weigh the beans"]
    settings = await desk.up.ask("GET", f"/teams/{teams[1]['id']}/settings")
    assert [limit["limit"] for limit in settings["budget"]["limits"] if limit["name"] == "usd"] == [
        1.25
    ]


async def test_on_a_phone_enter_is_a_new_line_and_the_page_fits(visit: Visit) -> None:
    desk = await visit(finish, path=EMPTY)
    await desk.found("Count the beans in the cellar, and those on the shelf", name="Beans")
    phone = await desk.opens(**PHONE)
    await phone.goto(f"{desk.origin}/")
    await expect(card(phone, "Ended today").get_by_role("listitem")).to_have_count(1)
    # The keyboard would cover the cards: it comes when it is asked for.
    await expect(goal(phone)).not_to_be_focused()
    await phone.get_by_role("button", name="Teams").first.tap()
    await phone.get_by_role("dialog").get_by_role("button", name="New team").tap()
    await expect(phone.get_by_role("dialog")).to_have_count(0)
    await expect(goal(phone)).to_be_focused()
    await phone.keyboard.type("Weigh")
    await phone.keyboard.press("Enter")
    await phone.keyboard.type("the beans")
    await expect(goal(phone)).to_have_value("Weigh\nthe beans")
    assert await phone.evaluate(FITS)
    for name in ("Get to work", "Options", "Attach files", "Compare"):
        size: Any = await phone.get_by_role("button", name=name, exact=True).bounding_box()
        assert size["height"] >= 40, name
        assert size["x"] + size["width"] <= 390, name
    assert await axe_violations(phone, contrast_in=THEMES) == []
    await phone.get_by_role("button", name="Options").tap()
    await phone.get_by_label("Folders of this machine").wait_for()
    assert await phone.evaluate(FITS)
    assert await axe_violations(phone, contrast_in=()) == []
    await phone.get_by_role("button", name="Get to work").tap()
    await phone.get_by_role("log").get_by_text("The team completed its goal").wait_for()
