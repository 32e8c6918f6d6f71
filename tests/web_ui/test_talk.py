"""Talk: the conversation comes first, nothing written is lost, and words reach whom they name."""

import base64
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, Route, expect

from agiraph.testing import call, says
from agiraph.testing.model_server import Seen, Step
from tests.scenarios.thread_queries import agent_name, reply_count
from tests.web_ui import seeding
from tests.web_ui.browsing import PHONE, Desk, visiting_world
from tests.web_ui.test_accessibility import THEMES, axe_violations
from tests.web_ui.test_flow import is_reflection, is_reply, thread
from tests.web_ui.test_large_data_rendering import signed_in_page

pytestmark = pytest.mark.asyncio(loop_scope="session")

GOAL = "قارن المضخات الثلاث"
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
PASTE = """(text) => {
    const data = new DataTransfer();
    data.setData('text/plain', text);
    const options = {clipboardData: data, bubbles: true, cancelable: true};
    const event = new ClipboardEvent('paste', options);
    const field = document.getElementById('composer');
    if (field.dispatchEvent(event)) field.setRangeText(text, 0, 0, 'end');
}"""
BUTTON_IS_BESIDE_THE_CODE = """(block) => {
    const parts = [block, block.querySelector('pre'), block.querySelector('button')];
    const [frame, code, button] = parts.map((part) => part.getBoundingClientRect());
    return code.right <= button.left && button.bottom <= frame.bottom;
}"""


def play(seen: Seen) -> Step:
    if is_reply(seen):
        return says(f"{agent_name(seen)} here.", call("no_work_needed"))
    if is_reflection(seen):
        return says("There is nothing to add.")
    if reply_count(seen) == 0:
        return says(
            "I plan it.",
            call("spawn_worker", name="alice"),
            call("spawn_worker", name="bob"),
            call("write_file", path="plan.md", content="Read, then compare."),
        )
    return says(call("finish", summary="All three are compared."))


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def desk(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[Desk, dict[str, Any]]]:
    """A page at a team that has done its work; the tests of this file share it."""
    home = tmp_path_factory.mktemp("talk") / "home"
    async with visiting_world(browser, home) as visit:
        opened = await visit(play)
        team = await opened.found(GOAL, acceptance=["answer"], review="never")
        await opened.up.wait_for_event(team["id"], "team.completed")
        yield opened, team


Talk = tuple[Desk, dict[str, Any]]


async def start(talk: Talk) -> Page:
    """Open the coordinator's page as a link would."""
    desk, team = talk
    await desk.go(f"/t/{team['id']}/a/{team['coordinator_id']}")
    await desk.page.locator("#composer").wait_for()
    await desk.page.locator("#composer").fill("")
    return desk.page


async def last_said(talk: Talk) -> dict[str, Any]:
    desk, team = talk
    said = await desk.up.ask("GET", f"/agents/{team['coordinator_id']}/conversation")
    return [message for message in said if message["sender"] == "human"][-1]


async def test_the_goal_is_the_first_message_and_the_work_is_folded_below_it(desk: Talk) -> None:
    page = await start(desk)
    goal = thread(page).get_by_role("article").first
    await expect(goal).to_contain_text(GOAL)
    direction = "e => getComputedStyle(e).direction"
    assert await goal.get_by_text(GOAL).evaluate(direction) == "rtl"
    await expect(thread(page).get_by_text("I plan it.")).to_have_count(0)

    # One line holds the steps, and opens in place; its notice leads to what changed.
    line = thread(page).get_by_role("button", name=re.compile("steps"))
    await expect(line).to_have_count(1)
    await line.click()
    await thread(page).get_by_text("I plan it.").wait_for()
    joined = thread(page).get_by_role("link", name="Open")
    await expect(joined).to_have_count(2)
    await expect(joined.first).to_have_attribute("href", re.compile("/a/agent_"))
    await line.first.click()
    await expect(thread(page).get_by_text("I plan it.")).to_have_count(0)

    # The switch is remembered.
    await page.get_by_role("button", name="Work", exact=True).click()
    await thread(page).get_by_text("I plan it.").wait_for()
    await page.reload()
    await thread(page).get_by_text("I plan it.").wait_for()
    await page.get_by_role("button", name="Conversation", exact=True).click()
    await expect(thread(page).get_by_text("I plan it.")).to_have_count(0)


LEFT_TO_RIGHT = """(words) => {
  const all = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const found = [];
  for (let at = all.nextNode(); at; at = all.nextNode())
    if (at.data.trim() === words) found.push(at.parentElement);
  const wrong = found.filter((one) => getComputedStyle(one).direction !== "rtl");
  return found.length === 0 ? ["not shown"] : wrong.map((one) => one.outerHTML.slice(0, 200));
}"""


async def test_arabic_words_run_from_right_to_left_on_every_screen(desk: Talk) -> None:
    opened, team = desk
    page = await start(desk)
    wrong: dict[str, list[str]] = {}
    for path, shown in (
        ("board", "[data-card]"),
        ("results", "main li"),
        ("threads", "main nav a"),
        ("settings", "main textarea"),
    ):
        await opened.go(f"/t/{team['id']}/{path}")
        await page.locator(shown).first.wait_for()
        wrong[path] = await page.evaluate(LEFT_TO_RIGHT, GOAL)
    await page.keyboard.press("Control+k")
    await page.keyboard.type(GOAL[:4])
    await page.get_by_role("option").filter(has_text=GOAL).first.wait_for()
    wrong["palette"] = await page.evaluate(LEFT_TO_RIGHT, GOAL)
    await page.keyboard.press("Escape")
    await page.keyboard.press("Escape")
    assert {path: texts for path, texts in wrong.items() if texts} == {}


async def test_a_long_paste_becomes_a_file_and_nothing_is_cut(desk: Talk) -> None:
    page = await start(desk)
    box, files = page.locator("#composer"), page.get_by_role("list", name="Attached files")
    await box.focus()
    await page.evaluate(PASTE, "long " * 6_000)
    await expect(files).to_contain_text("30,000 characters, sent as a file")
    await expect(box).to_have_value("")
    await files.get_by_role("button", name="Put into the message").click()
    await expect(box).to_have_value("long " * 6_000)

    await box.fill("x" * 100_001)
    problem = "The message has 100,001 characters; 100,000 fit. Shorten it by 1"
    await expect(page.get_by_role("alert")).to_contain_text(problem)
    await expect(page.get_by_role("button", name="Send", exact=True)).to_be_disabled()
    # A file that does not fit any more leaves the words where they are.
    as_file = page.get_by_role("button", name="Send it as a file")
    many: list[Any] = [
        {"name": f"{n}.txt", "mimeType": "text/plain", "buffer": b"x"} for n in range(10)
    ]
    await page.locator("input[type=file]").set_input_files(many)
    await expect(files.get_by_role("listitem")).to_have_count(10)
    await as_file.click()
    await page.get_by_text("was not attached: a message holds 10 files").wait_for()
    assert len(await box.input_value()) == 100_001
    for _ in many:
        await files.get_by_role("button", name="Remove").first.click()
    await as_file.click()
    await expect(files).to_contain_text("100,001 characters, sent as a file")
    await expect(box).to_have_value("")
    await files.get_by_role("button", name="Remove").click()

    # A picture goes without words, and is shown small before and after.
    chosen: Any = {"name": "dot.png", "mimeType": "image/png", "buffer": PIXEL}
    paperclip = page.get_by_role("button", name="Attach files")
    async with page.expect_file_chooser() as chooser:
        await paperclip.click()
    await (await chooser.value).set_files(chosen)
    await page.get_by_role("img", name="Preview of dot.png").wait_for()
    # What is typed now goes into the message, also on a button of the composer; it opens nothing.
    await expect(box).to_be_focused()
    await paperclip.focus()
    await page.keyboard.type("Nice")
    await expect(box).to_have_value("Nice")
    await page.locator("#main").focus()
    await page.keyboard.press("c")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await box.fill("")
    assert await axe_violations(page, contrast_in=()) == []
    await page.reload()
    await page.get_by_role("img", name="Preview of dot.png").wait_for()
    await page.get_by_role("button", name="Send", exact=True).click()
    picture = thread(page).get_by_role("img", name="Picture dot.png")
    await picture.wait_for()
    assert await picture.evaluate("e => e.decode().then(() => e.naturalWidth)") == 1
    await expect(thread(page).get_by_text("Sending…")).to_have_count(0)
    said = await last_said(desk)
    assert (said["text"], said["attachments"][0]["name"]) == ("(I send a file.)", "dot.png")
    await thread(page).get_by_role("link", name="dot.png", exact=True).click()
    tree = page.get_by_role("tree", name="Files")
    opened = tree.get_by_role("treeitem", name="dot.png")
    await expect(opened).to_have_attribute("aria-selected", "true")
    await page.get_by_role("img", name="dot.png").wait_for()
    assert await axe_violations(page, contrast_in=THEMES) == []


async def test_a_mention_goes_to_that_agent_and_is_shown_in_both_conversations(desk: Talk) -> None:
    page = await start(desk)
    box = page.locator("#composer")
    await box.press_sequentially("@")
    options = page.get_by_role("listbox", name="Members").get_by_role("option")
    await expect(options).to_have_count(3)
    assert await axe_violations(page, contrast_in=THEMES) == []
    await box.press_sequentially("bo")
    await expect(options).to_have_count(1)
    await box.press("Enter")
    await expect(box).to_have_value("@bob ")
    await box.press_sequentially("which pump?")
    await page.get_by_text("Goes to Bob, not to Coordinator").wait_for()
    await box.press("Enter")

    here = thread(page).get_by_role("article").filter(has_text="@bob which pump?")
    await expect(here).to_have_count(1)
    await here.get_by_role("link", name="Bob").click()
    there = thread(page).get_by_role("article").filter(has_text="@bob which pump?")
    await there.get_by_role("link", name="Coordinator").wait_for()
    await expect(thread(page).get_by_text("bob here.")).to_have_count(1)


async def test_a_task_is_completed_with_the_mouse_and_a_message_quoted(desk: Talk) -> None:
    page = await start(desk)
    box = page.locator("#composer")
    await box.press_sequentially(f"How is #{GOAL[:4]}")
    option = page.get_by_role("option", name=re.compile(GOAL))
    await option.click()
    await expect(box).to_have_value(f"How is #{GOAL} ")
    await box.press("Enter")
    link = thread(page).get_by_role("link", name=f"#{GOAL}")
    href = await link.last.get_attribute("href")
    await expect(thread(page).get_by_text("Sending…")).to_have_count(0)
    said = await last_said(desk)
    assert said["text"] == f"How is [#{GOAL}]({href})"
    assert re.search(r"node=node_\w+$", said["text"][:-1])

    message = thread(page).get_by_role("article").filter(has_text="How is").last
    await message.hover()
    await message.get_by_role("button", name="Quote message").wait_for()
    await page.mouse.move(0, 0)
    await message.get_by_role("button", name="Message actions").press("Enter")
    tools = message.get_by_role("group", name="Message actions")
    await box.fill("Typed since.")
    await tools.get_by_role("button", name="Quote message").press("Enter")
    quoted = (
        r"^> How is \[#.*\n>\n> — \[You, .*\]\(/t/team_\w+/a/agent_\w+\?at=msg_\w+\)"
        r"\n\nTyped since\.$"
    )
    await expect(box).to_have_value(re.compile(quoted))
    await box.fill("")
    await link.last.click()
    await expect(page).to_have_url(re.compile(r"/board\?node=node_"))


async def test_a_goal_with_blanks_is_refused_also_with_ctrl_enter(desk: Talk) -> None:
    page = await start(desk)
    await page.locator("#main").focus()
    await page.keyboard.press("n")
    form = page.get_by_role("form", name="New team")
    await form.get_by_role("button", name="Watch", exact=True).click()
    goal = form.get_by_label("What should a team do?")
    await goal.press("Control+Enter")
    await expect(form.get_by_role("alert")).to_have_text(
        "Fill in [subject] and [why you care], or take them out: "
        "the team would not know what is meant."
    )
    await goal.fill("")
    await goal.press("Control+Enter")
    await expect(form.get_by_role("alert")).to_contain_text("Write a goal")


async def lose_response(route: Route) -> None:
    await route.fetch()
    await route.abort()


async def test_a_goal_and_its_files_make_one_team_also_if_the_page_reloads_before_the_response(
    desk: Talk,
) -> None:
    opened, _ = desk
    page = await start(desk)
    form = page.get_by_role("form", name="New team")
    attached = form.get_by_role("list", name="Attached files")

    await page.locator("#main").focus()
    await page.keyboard.press("n")
    await form.get_by_label("What should a team do?").fill("Count the beans")
    beans: Any = {"name": "beans.csv", "mimeType": "text/csv", "buffer": b"x,62"}
    await form.get_by_label("Files to attach").set_input_files(beans)
    await expect(attached).to_contain_text("beans.csv")
    await form.get_by_role("button", name="Options").click()
    model = form.get_by_label("Model")
    await model.fill("openai/counter")
    chosen = {
        "Thinking effort": "high",
        "A reviewer checks results": "never",
        "Trust": "strict",
    }
    for label, value in chosen.items():
        await form.get_by_label(label).select_option(value)
    opened.watch.is_server_away = True
    await page.route("**/api/teams", lose_response)
    await form.get_by_role("button", name="Get to work").click()
    await expect(form.get_by_role("alert")).to_be_visible()
    await page.unroute("**/api/teams")
    await page.reload()
    opened.watch.is_server_away = False

    await expect(form.get_by_label("What should a team do?")).to_have_value("Count the beans")
    await expect(attached).to_contain_text("beans.csv")
    await expect(model).to_have_value("openai/counter")
    for label, value in chosen.items():
        await expect(form.get_by_label(label)).to_have_value(value)
    await form.get_by_role("button", name="Get to work").click()
    first = thread(page).get_by_role("article").first
    await expect(first).to_contain_text("Count the beans")
    file = thread(page).get_by_role("link", name="beans.csv", exact=True)
    await expect(file).to_have_count(1)
    teams = await opened.up.ask("GET", "/teams")
    [team] = [team for team in teams if team["goal"] == "Count the beans"]
    said = await opened.up.ask("GET", f"/agents/{team['coordinator_id']}/conversation")
    files = [one["name"] for message in said for one in message["attachments"]]
    assert files == ["beans.csv"]

    # The form is empty again.
    await page.locator("#main").focus()
    await page.keyboard.press("n")
    await expect(form.get_by_label("What should a team do?")).to_have_value("")
    await form.get_by_role("button", name="Options").click()
    await expect(model).to_have_value("")
    await expect(form.get_by_label("Thinking effort")).to_have_value("")
    await expect(attached).to_have_count(0)


async def test_a_form_that_is_changed_after_a_lost_response_makes_no_second_team_unasked(
    desk: Talk,
) -> None:
    opened, _ = desk
    page = await start(desk)
    form = page.get_by_role("form", name="New team")
    at_work = form.get_by_role("button", name="Get to work")

    async def goals() -> list[str]:
        teams = await opened.up.ask("GET", "/teams")
        return sorted(team["goal"] for team in teams if "peas" in team["goal"])

    await page.locator("#main").focus()
    await page.keyboard.press("n")
    await form.get_by_label("What should a team do?").fill("Count the peas")
    opened.watch.is_server_away = True
    await page.route("**/api/teams", lose_response)
    await at_work.click()
    await expect(form.get_by_role("alert")).to_contain_text("The team may exist already")
    await page.unroute("**/api/teams")
    opened.watch.is_server_away = False
    assert await goals() == ["Count the peas"]

    await form.get_by_label("What should a team do?").fill("Count the peas twice")
    await at_work.click()
    await expect(form.get_by_role("alert")).to_contain_text("You have changed the form")
    assert await goals() == ["Count the peas"]
    await at_work.click()
    first = thread(page).get_by_role("article").first
    await expect(first).to_contain_text("Count the peas twice")
    assert await goals() == ["Count the peas", "Count the peas twice"]


async def test_on_a_phone_a_message_is_copied_by_tapping(desk: Talk) -> None:
    opened, team = desk
    phone = await opened.opens(**PHONE)
    await phone.goto(f"{opened.origin}/t/{team['id']}/a/{team['coordinator_id']}")
    message = thread(phone).get_by_role("article").first
    await expect(message).to_contain_text(GOAL)
    await phone.get_by_text("Tap the arrow to send").wait_for()
    await expect(phone.locator("kbd").locator("visible=true")).to_have_count(0)
    button = message.get_by_role("button", name="Message actions")
    size = await button.bounding_box()
    assert size is not None
    assert (size["width"], size["height"]) >= (44, 44)
    await button.tap()
    await phone.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text }")
    await message.get_by_role("button", name="Copy message").tap()
    await message.get_by_role("button", name="Copied").wait_for()
    assert await phone.evaluate("window.copied") == GOAL


async def test_on_a_narrow_phone_the_name_and_short_lines_of_code_are_whole(desk: Talk) -> None:
    opened, team = desk
    words = "```bash\npip install agiraph # the newest one\n```\nand look:\n```\nls -l\n```"
    await opened.tell(team, "message", words)
    page = await opened.opens(**PHONE | {"viewport": {"width": 360, "height": 740}})
    await page.goto(f"{opened.origin}/t/{team['id']}/a/{team['coordinator_id']}")

    for line in ("# the newest one", "ls -l"):
        block = thread(page).locator(".fence").get_by_text(line).locator("xpath=ancestor::div[1]")
        assert await block.evaluate(BUTTON_IS_BESIDE_THE_CODE)
    name = page.get_by_role("heading", level=1).get_by_text("Coordinator", exact=True)
    assert await name.evaluate("(span) => span.scrollWidth <= span.clientWidth")
    await page.get_by_role("button", name="More", exact=True).click()
    await page.get_by_role("menuitem", name="Details", exact=True).click()
    await page.get_by_role("dialog", name="Details").get_by_role("heading", name="Goal").wait_for()


async def test_a_link_to_a_message_far_back_scrolls_to_it(browser: Browser, tmp_path: Path) -> None:
    long = await seeding.long_team(tmp_path / "home", event_count=1_000)
    async with signed_in_page(browser, tmp_path / "home") as (served, page):
        _, said = await served.ask("GET", f"/agents/{long.agent}/conversation?limit=500")
        await page.goto(f"{served.origin}/t/{long.team}/a/{long.agent}?at={said[1]['id']}")
        first = page.get_by_role("article").filter(has_text=said[0]["text"])
        await expect(first.first).to_be_in_viewport()
