"""Team settings: one page on which a person sees and changes everything about a team."""

import zipfile
from pathlib import Path

import pytest
from playwright.async_api import Locator, Response, expect

from agiraph.testing import call, says
from agiraph.testing.model_server import Status
from tests.web_ui.browsing import EMPTY, Desk, Visit
from tests.web_ui.test_accessibility import axe_violations

pytestmark = pytest.mark.asyncio(loop_scope="session")
STEPS = [
    says(call("bash", command="echo beans")),
    says(call("write_file", path="beans.md", content="42")),
    says(call("ask_human", question="Which beans?")),
]
NO_ANSWER = Status(500, "The model crashed.", headers={"Retry-After": "90"})
"""An error that may have cost money. With a longer wait than agiraph takes, nothing is retried."""
WRONG_KEY = Status(401, "Incorrect API key provided: sk-canary.")


async def opened(desk: Desk, path: str, **more: object) -> dict[str, str]:
    """Create a team, wait until it asks something, and show a page of it."""
    team = await desk.found("Count the beans", name="Beans", **more)
    await desk.up.wait_for_event(team["id"], "node.waiting")
    await desk.open(f"/t/{team['id']}/{path}")
    return team


def is_write(response: Response) -> bool:
    return response.request.method != "GET"


def part(desk: Desk, name: str) -> Locator:
    return desk.page.get_by_role("region", name=name, exact=True)


async def test_everything_about_a_team_is_changed_on_one_page(visit: Visit, tmp_path: Path) -> None:
    desk = await visit(STEPS, path=EMPTY)
    page = desk.page
    budget = {"usd": 2.0, "turns": 20}
    team = await opened(desk, "settings#budget", budget=budget)
    await expect(page.get_by_role("heading", name="Budget")).to_be_in_viewport()

    # Money: what is used and left; it is raised and lowered while the team works.
    money = part(desk, "Budget")
    await expect(money).to_contain_text("$2.00 left")
    desk.watch.is_server_away = True  # the browser logs the refused request
    await money.get_by_label("Turns in total").fill("1")
    await money.get_by_role("button", name="Save the limits").click()
    await expect(money.get_by_role("alert")).to_have_text(
        "The goal of 'Beans' has used 3 turns already. Give it at least that much."
    )
    await money.get_by_label("Turns in total").fill("15")
    await money.get_by_label("Dollars in total").fill("5")
    await money.get_by_role("button", name="Save the limits").click()
    await expect(money).to_contain_text("$5.00 left")
    await expect(money).to_contain_text("12 left")

    # A second model that answers if the first cannot.
    model = part(desk, "Model")
    await model.get_by_role("button", name="Choose a model").click()
    await model.get_by_label("Search for a model").fill("openai/gpt-5-mini")
    await model.get_by_role("button", name="Add openai/gpt-5-mini as a fallback").click()
    await expect(model.get_by_role("listitem")).to_have_count(2)
    await model.get_by_role("button", name="Move openai/gpt-5-mini up").click()
    async with page.expect_response(is_write):
        await model.get_by_role("button", name="Save").click()

    # A rule, with the calls that it would have decided on.
    rules = part(desk, "Permission rules")
    await rules.get_by_role("button", name="Add a rule").click()
    await rules.get_by_label("Pattern of rule 1").fill("echo *")
    await expect(rules).to_contain_text("Decides on 1 of the team's newest 3 calls.")
    await expect(rules.get_by_role("listitem").first).to_contain_text("bash echo beans")
    await rules.get_by_label("What rule 1 does").select_option("Refuse")
    await rules.get_by_role("button", name="Save the rules").click()
    await page.get_by_text("The rules are saved.").wait_for()

    await part(desk, "Character").get_by_label("Character").fill("Be brief.")
    async with page.expect_response(is_write):
        await part(desk, "Character").get_by_role("button", name="Save").click()
    notifications = part(desk, "Notifications")
    await notifications.get_by_role("button", name="Until I unmute it").click()
    await expect(notifications).to_contain_text("Muted until you unmute it.")
    await page.get_by_role("list", name="Teams").get_by_label("Muted").wait_for()
    here = page.get_by_role("navigation", name="Sections").locator("[aria-current=location]")
    await page.get_by_role("link", name="Notifications", exact=True).click()
    await expect(here).to_have_text("Notifications")
    await notifications.hover()
    await page.mouse.wheel(0, -100_000)
    await expect(here).to_have_text("General")
    found = await desk.up.ask("GET", f"/teams/{team['id']}/settings")
    assert (found["model"], found["soul"], found["team"]["muted_until"]) == (
        "openai/gpt-5-mini, openai/test",
        "Be brief.",
        "9999-12-31T00:00:00Z",
    )
    assert found["permissions"] == [{"tool": "bash", "action": "deny", "pattern": "echo *"}]

    async with page.expect_download() as saved:
        await page.get_by_role("link", name="Download").click()
    await (await saved.value).save_as(tmp_path / "beans.zip")
    with zipfile.ZipFile(tmp_path / "beans.zip") as archive:
        assert "Which beans?" in archive.read("conversation.jsonl").decode()
    await part(desk, "Character").get_by_role("link", name="History of SOUL.md").click()
    versions = page.get_by_role("list", name="Versions").get_by_role("listitem")
    await expect(versions).to_contain_text(["You", "agiraph"])


async def test_edits_that_are_not_saved_are_kept_while_a_person_is_elsewhere(visit: Visit) -> None:
    desk = await visit(STEPS, path=EMPTY)
    page = desk.page
    team = await opened(desk, "settings", budget={"usd": 2.0})
    model = part(desk, "Model")
    await model.get_by_role("button", name="Choose a model").click()
    await model.get_by_label("Search for a model").fill("openai/gpt-5-mini")
    await model.get_by_role("button", name="Add openai/gpt-5-mini as a fallback").click()
    dollars = part(desk, "Budget").get_by_label("Dollars in total")
    await dollars.fill("7")
    folders = part(desk, "Permissions").get_by_label("Folders of this machine")
    await folders.fill("/srv/beans")
    await part(desk, "Permission rules").get_by_role("button", name="Add a rule").click()
    pattern = part(desk, "Permission rules").get_by_label("Pattern of rule 1")
    await pattern.fill("rm *")
    patience = part(desk, "Notifications").get_by_label("Waits for your answer")
    await patience.select_option("1 week")

    await desk.go(f"/t/{team['id']}/board")
    await page.get_by_role("heading", name="Board").wait_for()
    await desk.go(f"/t/{team['id']}/settings")
    await expect(model.get_by_role("listitem")).to_have_count(2)
    await expect(dollars).to_have_value("7")
    await expect(folders).to_have_value("/srv/beans")
    await expect(pattern).to_have_value("rm *")
    await expect(patience.locator("option:checked")).to_have_text("1 week")

    await part(desk, "Budget").get_by_role("button", name="Drop my changes").click()
    await expect(dollars).to_have_value("2.00")

    # A dialog that is closed keeps its words, too.
    dialog = page.get_by_role("dialog")
    forms = {
        "triggers": ("New trigger", "What to do"),
        "memory?tab=memories": ("Add a memory", "Text"),
    }
    for screen, (button, label) in forms.items():
        await desk.go(f"/t/{team['id']}/{screen}")
        words = dialog.get_by_label(label, exact=True)
        await page.get_by_role("button", name=button).click()
        await words.fill("Beans on Friday")
        await page.keyboard.press("Escape")
        await expect(dialog).to_have_count(0)
        await page.get_by_role("button", name=button).click()
        await expect(words).to_have_value("Beans on Friday")
        await page.keyboard.press("Escape")
        await expect(dialog).to_have_count(0)


async def test_specialists_and_skills_are_written_and_tried_and_a_team_deleted(
    visit: Visit,
) -> None:
    desk = await visit(STEPS, path=EMPTY)
    page = desk.page
    team = await opened(desk, "settings")
    dialog = page.get_by_role("dialog")
    file = dialog.get_by_label("File of poet")
    text = "---\nname: poet\ndescription: Writes poems.\n---\nYou write short poems."

    async def write_poet() -> None:
        await part(desk, "Specialists").get_by_label("New specialist").fill("poet")
        await part(desk, "Specialists").get_by_role("button", name="Write it").click()

    await write_poet()
    await file.fill(text)
    await page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)
    await write_poet()
    await dialog.get_by_text("they were not saved yet").wait_for()
    await expect(file).to_have_value(text)
    await dialog.get_by_role("button", name="Discard").click()
    await write_poet()
    await expect(file).not_to_have_value(text)
    await file.fill(text)
    await dialog.get_by_label("Try it with a task").fill("About the sea")
    await dialog.get_by_role("button", name="Show what its model would see").click()
    await dialog.get_by_text("You write short poems.").last.wait_for()
    await dialog.get_by_text("About the sea").last.wait_for()
    await dialog.get_by_role("button", name="Save").click()
    await part(desk, "Specialists").get_by_text("Writes poems.").wait_for()

    await part(desk, "Skills").get_by_label("New skill").fill("letters")
    await part(desk, "Skills").get_by_role("button", name="Write it").click()
    await dialog.get_by_role("button", name="Save").click()
    await part(desk, "Skills").get_by_role("button", name="Turn letters on").click()
    await part(desk, "Skills").get_by_role("button", name="Turn letters off").wait_for()

    await page.get_by_role("button", name="Delete the team").click()
    gone = dialog.get_by_role("button", name="Delete for good")
    await dialog.get_by_role("textbox").fill("beans")
    await expect(gone).to_be_disabled()
    await dialog.get_by_role("textbox").fill("Beans")
    await gone.click()
    await page.get_by_text("Beans is deleted.").wait_for()
    await page.get_by_role("heading", name="What should a team do?").wait_for()
    await expect(page.get_by_role("navigation").get_by_text("Beans")).to_have_count(0)
    assert await desk.up.ask("GET", "/teams") == []
    assert not (desk.home / "teams" / team["id"] / "SOUL.md").exists()


async def test_a_muted_team_shows_no_toast_and_asks_in_the_inbox(visit: Visit) -> None:
    ask = call("ask_human", question="Which beans?")
    desk = await visit([says(ask), says(call("ask_human", question="Which jar?"))], path=EMPTY)
    page = desk.page
    team = await desk.found("Count", name="Beans", start=False)
    muted = {"muted_until": "9999-12-31T00:00:00Z"}
    await desk.up.ask("PATCH", f"/teams/{team['id']}", muted)
    await desk.open("/models")
    await desk.up.ask("POST", f"/teams/{team['id']}/goal", {"goal": "Count the beans"})
    await expect(page).to_have_title("(1) Models · agiraph")
    toast = page.get_by_role("group", name="coordinator asks")
    await expect(toast).to_have_count(0)
    await desk.up.ask("PATCH", f"/teams/{team['id']}", {"muted_until": None})
    await desk.open("/models")  # with the list of teams as it is now
    await expect(page).to_have_title("(1) Models · agiraph")
    [item] = (await desk.up.ask("GET", "/inbox"))["items"]
    await desk.up.ask("POST", f"/inbox/{item['message']['id']}/answer", {"text": "The red ones"})
    await expect(toast).to_contain_text("Which jar?")


async def test_all_figures_of_cost_agree_when_a_call_got_no_answer(visit: Visit) -> None:
    """The list of teams had a sum, and the page of costs said that nothing was spent."""
    desk = await visit([NO_ANSWER], path=EMPTY)
    team = await desk.found("Count", name="Beans", model="openai/gpt-5-pro", budget={"usd": 2.0})
    await desk.open(f"/t/{team['id']}/cost")
    await desk.page.get_by_text("A lost call got no answer and may have been").wait_for()
    usd = (await desk.up.ask("GET", f"/teams/{team['id']}"))["usd"]
    assert usd > 0.01
    spent, left = f"${usd:.2f}", f"${2 - usd:.2f}"
    await expect(desk.page.get_by_role("definition").first).to_have_text(spent)
    await desk.page.get_by_text(f"{spent} of $2.00").wait_for()
    await desk.page.get_by_text(f"{left} left").wait_for()


async def test_a_call_that_the_provider_refused_is_not_booked(visit: Visit) -> None:
    desk = await visit([WRONG_KEY], path=EMPTY)
    team = await opened(desk, "cost", model="openai/gpt-5", budget={"usd": 2.0})
    await desk.page.get_by_text("Nothing spent yet").wait_for()
    await desk.page.get_by_text("$0 of $2.00").wait_for()
    assert (await desk.up.ask("GET", f"/teams/{team['id']}"))["usd"] == 0.0


async def test_a_team_is_duplicated_and_nothing_starts_before_the_button(visit: Visit) -> None:
    desk = await visit(STEPS, path=EMPTY)
    page = desk.page
    rules = [{"tool": "bash", "action": "deny", "pattern": "rm *"}]
    team = await opened(
        desk, "board", acceptance=["All are counted", "None is lost"], budget={"usd": 2.0},
        permissions=rules, workers=3, review="never", soul="We count with care.",
    )  # fmt: skip
    await page.get_by_role("button", name="Jump to").click()
    await page.get_by_role("combobox", name="Jump to").fill("duplicate")
    await page.keyboard.press("Enter")
    form = page.get_by_role("form", name="New team")
    goal_field = form.get_by_label("What should a team do?")
    await expect(goal_field).to_have_value("Count the beans")
    await expect(form.get_by_label("Name")).to_have_value("Beans copy")
    await expect(form.get_by_label("Budget in US dollars")).to_have_value("2")
    await expect(form.get_by_label("Members at a time")).to_have_value("3")
    assert await axe_violations(page) == []
    assert len(await desk.up.ask("GET", "/teams")) == 1

    # What was begun of another team is not replaced.
    await form.get_by_role("button", name="Write a goal of your own").click()
    await expect(goal_field).to_have_value("")
    await desk.go(f"/t/{team['id']}/a/{team['coordinator_id']}")
    await page.get_by_role("button", name="Team actions").click()
    await page.get_by_role("menuitem", name="Duplicate the team").click()
    await form.get_by_role("button", name="Get to work").click()
    await expect(form).to_have_count(0)
    [copy] = [one for one in await desk.up.ask("GET", "/teams") if one["id"] != team["id"]]
    made = await desk.up.ask("GET", f"/teams/{copy['id']}/settings")
    old = await desk.up.ask("GET", f"/teams/{team['id']}/settings")
    assert (made["team"]["name"], made["team"]["goal"]) == ("Beans copy", "Count the beans")
    assert made["team"]["review"] == "never"
    for same in ("soul", "model", "permissions", "limits"):
        assert made[same] == old[same]
    goal = await desk.up.ask("GET", f"/nodes/{made['budget']['node_id']}")
    assert goal["acceptance"] == ["All are counted", "None is lost"]
