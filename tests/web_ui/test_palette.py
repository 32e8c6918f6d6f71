"""Palette: one box finds work, files, messages and knowledge of all teams, by keyboard alone."""

import re
from base64 import b64encode
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.async_api import Request, expect

from agiraph.core.domain.chat import Attachment
from agiraph.core.domain.messages import Draft
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.provenance.labels import of_page
from agiraph.core.services.mail import bus
from agiraph.core.store.texts import passages
from agiraph.core.store.tx import Tx
from agiraph.testing import call, says
from agiraph.testing.model_server import Seen, Step
from tests.scenarios.thread_queries import reply_count
from tests.web_ui.browsing import EMPTY, PHONE, Desk, Visit
from tests.web_ui.test_accessibility import THEMES, axe_violations
from tests.web_ui.test_flow import is_reflection, is_reply, sidebar, tabs, thread

pytestmark = pytest.mark.asyncio(loop_scope="session")

KETTLE = "The kettle boils at dawn."
TYPE = """async (letters) => {
  for (const letter of letters) {
    document.execCommand("insertText", false, letter);
    await new Promise((done) => setTimeout(done, 30));
  }
}"""
"""Types letters into the focused field, one every 30 ms by the clock of the page."""


async def test_a_word_of_another_team_is_found_and_opened_by_keyboard(visit: Visit) -> None:
    async def play(seen: Seen) -> Step:
        if is_reflection(seen):
            return says("There is nothing to add.")
        if reply_count(seen) == 0:
            return says(call("write_file", path="kettles.md", content=KETTLE))
        return says(call("finish", summary="The kettle was described."))

    desk = await visit(play, path=EMPTY)
    page = desk.page
    team = await desk.found("Describe the kettle")
    asked: list[str] = []

    def note(request: Request) -> None:
        if (url := urlsplit(request.url)).path == "/api/search":
            asked.extend(parse_qs(url.query)["query"])

    page.on("request", note)
    await desk.go(f"/t/{team['id']}/a/{team['coordinator_id']}")
    await thread(page).get_by_text("The kettle was described.").first.wait_for()
    await desk.go("/inbox")
    asked.clear()
    # Keys that are typed while the palette is loaded are not lost.
    await page.keyboard.press("Control+k")
    await page.keyboard.type("ket")
    await expect(page.get_by_role("combobox", name="Jump to")).to_have_value("ket")
    # Typed by the page itself: on a busy machine more than 150 ms may pass between two keys of the
    # test, and after such a pause the search rightly asks for what is there. In the page the next
    # letter is due before the pause is over, however late both are.
    async with page.expect_response(re.compile("/api/search[?]query=kettle&")):
        await page.evaluate(TYPE, "tle")
    await expect(page.get_by_role("combobox", name="Jump to")).to_have_value("kettle")
    box = page.get_by_role("dialog")
    for group in ("Teams", "Work", "Files", "Messages", "Steps"):
        await box.get_by_role("group", name=group, exact=True).wait_for()
    # One request for what was typed, not one for each letter or team.
    assert [query for query in asked if len(query) > 3] == ["kettle"]

    marked = box.get_by_role("group", name="Messages").locator("mark").first
    await expect(marked).to_have_text("kettle", ignore_case=True)
    step = box.get_by_role("group", name="Steps").get_by_role("option").last
    await expect(step).to_contain_text("Called write_file kettles.md")
    await expect(box.get_by_text("arguments")).to_have_count(0)

    file = box.get_by_role("option", name=re.compile("^kettles.md"))
    while await file.get_attribute("aria-selected") != "true":
        await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Enter")
    await page.get_by_text(KETTLE).wait_for()

    # A step opens with its call unfolded, marked and focused.
    await page.keyboard.press("Control+k")
    await page.keyboard.type("boils at dawn")
    step = box.get_by_role("option", name=re.compile("^Called write_file kettles.md"))
    while await step.get_attribute("aria-selected") != "true":
        await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Enter")
    opened = page.locator("details[aria-current=true]")
    await expect(opened.locator("> summary")).to_be_focused()
    await opened.get_by_text(KETTLE).wait_for()
    await page.wait_for_function("CSS.highlights.get('found')?.size > 0")

    # The first row is highlighted, also when hits arrive; what the arrows chose stays.
    await page.keyboard.press("Control+k")
    await page.keyboard.type("was described")
    options = box.get_by_role("option")
    await expect(options.first).to_have_attribute("aria-selected", "true")
    await page.keyboard.press("ArrowDown")
    await expect(options.nth(1)).to_have_attribute("aria-selected", "true")
    # The same shortcut selects the text: what is typed next replaces it. Escape closes the box.
    await page.keyboard.press("Control+k")
    await page.keyboard.type("copper")
    await expect(page.get_by_role("combobox", name="Jump to")).to_have_value("copper")
    await box.get_by_text("Nothing matches.").wait_for()
    await page.keyboard.press("Escape")
    await expect(box).to_have_count(0)

    await _say_much(desk, team)
    await desk.go("/settings")
    await page.keyboard.press("Control+k")
    await page.keyboard.type("teapot")
    await expect(options).to_have_count(2)
    await expect(options.first).to_contain_text("A teapot is no kettle.")
    await page.keyboard.press("Enter")
    message = thread(page).get_by_role("article").filter(has_text="A teapot is no kettle.")
    await expect(message).to_be_in_viewport()
    await expect(message).to_have_attribute("aria-current", "true")
    # The same hit leads there again after the person has left it.
    await page.get_by_role("button", name=re.compile("To the end|new")).click()
    await expect(message).not_to_be_in_viewport()
    await page.keyboard.press("Control+k")
    await page.keyboard.type("teapot")
    await expect(options).to_have_count(2)
    await page.keyboard.press("Enter")
    await expect(message).to_be_in_viewport()

    await page.keyboard.press("Control+k")
    await page.keyboard.type("teapot")
    await expect(options).to_have_count(2)
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Enter")
    read = page.get_by_role("article", name="On teapots")
    await expect(read).to_contain_text("A teapot pours.")
    await expect(read).to_contain_text("Contains text from")


async def test_a_hit_in_a_file_shows_the_found_word_on_a_phone_and_opens_the_file(
    visit: Visit,
) -> None:
    desk = await visit([], path=EMPTY)
    assert desk.world is not None
    team = await desk.found("Keep the pantry", start=False, name="Pantry of the whole household")
    line = f"{'Peas and beans, lentils and rice. ' * 4}Of marmalade there is a jar."
    file = Attachment(
        name="shelves.txt", media_type="text/plain", data=b64encode(line.encode()).decode()
    )
    about = {"team_id": team["id"], "sender": OWNER, "recipient": team["coordinator_id"]}
    await desk.world.store.write(
        bus.send, Draft(**about, text="See the list.", attachments=(file,))
    )
    phone = await desk.opens(**PHONE)
    await desk.go("/inbox", phone)
    await phone.get_by_role("heading", name="Inbox").wait_for()
    await phone.keyboard.press("Control+k")
    await phone.keyboard.type("marmalade")
    hit = phone.get_by_role("group", name="Files").get_by_role("option", name="shelves.txt")
    await expect(hit.locator("mark")).to_be_in_viewport(ratio=1)
    await hit.click()
    await expect(phone).to_have_url(re.compile("/files/user_uploads/attached/.*/shelves.txt$"))
    await phone.get_by_text("Of marmalade there is a jar.").wait_for()


def _waits(seen: Seen) -> Step:
    if is_reflection(seen) or is_reply(seen):
        return says("There is nothing to add.")
    return says(call("ask_human", question="Which country?"))


async def test_what_can_be_done_with_a_team_is_a_command(visit: Visit) -> None:
    desk = await visit(_waits, path=EMPTY)
    page = desk.page
    assert desk.world is not None
    pumps = await desk.found("Compare the pumps", name="Pumps")
    wells = await desk.found("Compare the wells", name="Wells")
    await desk.world.settle()
    await desk.go(f"/t/{pumps['id']}/cost")
    options = page.get_by_role("dialog").get_by_role("option")

    async def run(typed: str, first: str) -> None:
        """Type into the palette until this is the highlighted entry, and press Enter."""
        await page.keyboard.press("Control+k")
        await page.get_by_role("combobox", name="Jump to").fill(typed)
        await expect(options.first).to_have_attribute("aria-selected", "true")
        await expect(options.first).to_have_text(first)
        await page.keyboard.press("Enter")

    async def has_state(team: dict[str, Any], state: str) -> None:
        link = sidebar(page).get_by_role("link", name=team["name"], exact=True)
        await expect(link).to_have_accessible_description(state)

    await has_state(pumps, "Needs you")
    await run("pause", "Pause the teamPumps")
    await has_state(pumps, "Paused")
    await run("resume", "Resume the teamPumps")
    await has_state(pumps, "Needs you")
    await run("budget", "Change the budgetPumps")
    await expect(page).to_have_url(re.compile("/settings#budget$"))
    await run("change the model", "Change the modelPumps")
    await expect(page).to_have_url(re.compile("/settings#model$"))
    # Any screen of any team, by their names; and a team that is not on screen is paused.
    await run("wells timeline", "TimelineWells")
    await page.wait_for_url(f"**/t/{wells['id']}/timeline")
    await run("pause pumps", "Pause the teamPumps")
    await has_state(pumps, "Paused")
    await has_state(wells, "Needs you")

    await run("stop the team", "Stop the teamWells")
    question = page.get_by_role("dialog", name="Stop Wells?")
    await expect(question).to_contain_text("1 piece of work stops at its next step")
    assert await axe_violations(page) == []
    await question.get_by_role("button", name="Keep working").press("Enter")
    await has_state(wells, "Needs you")
    await run("stop the team", "Stop the teamWells")
    await question.get_by_role("button", name="Stop", exact=True).press("Enter")
    await has_state(wells, "Stopped")
    await run("archive the team", "Archive the teamWells")
    await (
        page.get_by_role("dialog", name="Archive Wells?")
        .get_by_role("button", name="Archive")
        .press("Enter")
    )
    await expect(sidebar(page).get_by_role("link", name="Wells", exact=True)).to_have_count(0)
    await expect(page).not_to_have_url(re.compile(wells["id"]))


async def test_a_research_is_started_by_a_command(visit: Visit) -> None:
    desk = await visit(_waits, path=EMPTY)
    page = desk.page
    team = await desk.found("Compare the pumps", start=False, name="Pumps")
    await desk.go(f"/t/{team['id']}/board")
    await tabs(page).get_by_role("link", name="Board").wait_for()
    await page.keyboard.press("Control+k")
    await page.get_by_role("combobox", name="Jump to").fill("research")
    await page.get_by_role("option", name="Research a question").wait_for()
    await page.keyboard.press("Enter")
    form = page.get_by_role("dialog", name="Research a question")
    await expect(form.get_by_label("Question")).to_be_focused()
    await expect(form.get_by_role("button", name="Start the research")).to_be_disabled()
    assert await axe_violations(page, contrast_in=THEMES) == []
    await page.keyboard.type("Which pump lasts longest?")
    async with page.expect_request(re.compile("/api/agents/.*/research$")) as asked:
        await page.keyboard.press("Control+Enter")
    assert (await asked.value).post_data_json == {"goal": "Which pump lasts longest?"}


async def _say_much(desk: Desk, team: dict[str, Any]) -> None:
    """Let the coordinator say something about a teapot, then much else, and read a page."""
    assert desk.world is not None

    def say(tx: Tx) -> None:
        about: dict[str, Any] = {"team_id": team["id"], "sender": team["coordinator_id"]}
        for n in range(80):
            text = f"Line {n}: water is boiling.\n\nStill." if n else "A teapot is no kettle."
            bus.send(tx, Draft(recipient=OWNER, text=text, **about))
        url = "https://tea.example/pots?kind=all&lang=en"
        page = {"ref": url, "title": "On teapots", "text": "# Pots\n\nA teapot pours."}
        passages.put(tx, team_id=team["id"], kind="page", label=of_page(url), **page)

    await desk.world.store.write(say)
