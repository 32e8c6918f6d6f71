"""Team pages: the tabs of a team, its members, the tabs of a phone, the width that a reader gets,
and the news that a team has ended."""

import re
from typing import Any

import pytest
from playwright.async_api import Page, expect

from agiraph.testing import call, says
from agiraph.testing.model_server import Seen, Step
from tests.runtime.waiting import Gate
from tests.scenarios.thread_queries import agent_name, reply_count
from tests.web_ui.browsing import EMPTY, PHONE, Desk, Visit
from tests.web_ui.test_accessibility import THEMES, axe_violations, unreachable_by_tab
from tests.web_ui.test_flow import is_reflection, is_reply, members, sidebar, tabs, thread

pytestmark = pytest.mark.asyncio(loop_scope="session")

SCREENS = ("Board", "Files", "Results", "Timeline", "Memory", "Triggers", "Cost", "Threads")
LABELS = ("Conversation", *SCREENS, "Settings")
SMALL: dict[str, Any] = {"viewport": {"width": 1024, "height": 768}}
PLACES = "(links) => links.map((one) => JSON.stringify(one.getBoundingClientRect()))"
HORIZONTAL_OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
READER_PX = 700
"""What the text of a report or a conversation gets of a window of 1024 pixels, at least."""


async def team_of_three(visit: Visit) -> tuple[Desk, str]:
    """Open a team whose worker robin waits for an answer while wren has ended."""

    async def play(seen: Seen) -> Step:
        if is_reply(seen) or is_reflection(seen):
            return says("There is nothing to add.")
        if agent_name(seen) == "robin":
            return says(call("ask_human", question="Which pumps?"))
        if agent_name(seen) == "wren":
            return says(call("publish", summary="Two wells."))
        if reply_count(seen) == 0:
            given = [(name, call("spawn_worker", name=name)) for name in ("robin", "wren")]
            tasks = [call("create_work_node", task=f"Ask {n}", assigned_to=n) for n, _ in given]
            return says(*(hired for _, hired in given), *tasks)
        return says(call("ask_human", question="Which country?"))

    desk = await visit(play, path=EMPTY)
    team = await desk.found("Compare the pumps", name="Pumps")
    assert desk.world is not None
    await desk.world.settle()
    return desk, f"/t/{team['id']}/a/{team['coordinator_id']}"


async def test_the_screens_of_a_team_are_tabs_that_stay_in_their_place(visit: Visit) -> None:
    desk, conversation = await team_of_three(visit)
    page = desk.page
    await desk.go(conversation)
    links = tabs(page).get_by_role("link")
    await expect(links).to_have_text(LABELS)
    places = await links.evaluate_all(PLACES)
    for label in (*SCREENS, "Settings", "Conversation"):
        await tabs(page).get_by_role("link", name=label).press("Enter")
        open_tab = tabs(page).locator("[aria-current=page]")
        await expect(open_tab).to_have_text([label])
        heading = "Coordinator" if label == "Conversation" else label
        await expect(page.get_by_role("heading", level=1)).to_contain_text(heading)
        assert await links.evaluate_all(PLACES) == places
    # The sidebar has teams and no screens; its row says how the team stands.
    bar = sidebar(page)
    for label in SCREENS:
        await expect(bar.get_by_role("link", name=label)).to_have_count(0)
    await expect(bar.get_by_role("listitem")).to_have_count(1)
    link = bar.get_by_role("link", name="Pumps", exact=True)
    await expect(link).to_have_accessible_description("Needs you")
    await expect(bar.get_by_role("link", name="Start")).to_have_attribute("href", "/")
    assert await axe_violations(page, contrast_in=THEMES) == []
    assert await unreachable_by_tab(page, without="") == []


async def test_tabs_that_do_not_fit_are_in_a_menu_with_the_name_of_the_open_one(
    visit: Visit,
) -> None:
    desk, conversation = await team_of_three(visit)
    page = desk.page
    await page.set_viewport_size(SMALL["viewport"])
    await desk.go(conversation)
    more = tabs(page).get_by_role("button", name="More screens")
    await more.wait_for()
    shown = await tabs(page).get_by_role("link").all_inner_texts()
    await more.press("Enter")
    items = page.get_by_role("menuitem")
    await expect(items.first).to_be_focused()
    assert [*shown, *await items.all_inner_texts()] == list(LABELS)
    await page.get_by_role("menuitem", name="Threads").press("Enter")
    await expect(page.get_by_role("heading", name="Threads", exact=True)).to_be_visible()
    await expect(more).to_have_text("Threads")
    await expect(more).to_have_accessible_name("More screens; Threads is open")
    assert await axe_violations(page) == []
    assert await page.evaluate(HORIZONTAL_OVERFLOW) == 0
    # In a wide window all of them are tabs again.
    await page.set_viewport_size({"width": 1440, "height": 900})
    await expect(tabs(page).get_by_role("link")).to_have_text(LABELS)
    await expect(more).to_have_count(0)


async def test_the_members_of_a_team_are_one_press_away(visit: Visit) -> None:
    desk, conversation = await team_of_three(visit)
    page = desk.page
    await desk.go(conversation)
    robin = members(page).get_by_role("link", name="Robin")
    await expect(robin.get_by_role("img", name="Waiting for you")).to_be_visible()
    await expect(robin.get_by_role("img", name="1 open question")).to_be_visible()
    await robin.press("Enter")
    await thread(page).get_by_text("Which pumps?").wait_for()
    await expect(tabs(page).locator("[aria-current=page]")).to_have_text("Conversation")
    await members(page).get_by_role("link", name="Wren").click()
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Wren")
    # From any screen, the palette leads to a member, too.
    await tabs(page).get_by_role("link", name="Cost").click()
    await page.keyboard.press("Control+k")
    await page.keyboard.type("robin")
    await page.get_by_role("option", name="Robin").first.wait_for()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Robin")


async def test_a_phone_has_its_tabs_at_the_lower_edge(visit: Visit) -> None:
    desk, conversation = await team_of_three(visit)
    phone = await desk.opens(**PHONE)
    await desk.go(conversation, phone)
    await expect(tabs(phone).get_by_role("link")).to_have_text(["Conversation", "Board", "Files"])
    await expect(tabs(phone)).to_be_in_viewport(ratio=1)
    await expect(phone.locator("[data-team-header]")).to_have_count(0)
    await tabs(phone).get_by_role("link", name="Board").tap()
    await expect(phone.get_by_role("heading", name="Board", exact=True)).to_be_visible()
    await expect(phone.locator("header p")).to_contain_text("Needs you · Pumps")
    await tabs(phone).get_by_role("button", name="More").tap()
    await phone.get_by_role("menuitem", name="Stop the team").wait_for()
    await phone.get_by_role("menuitem", name="Cost", exact=True).tap()
    await expect(tabs(phone).locator("button")).to_have_text("Cost")
    assert await axe_violations(phone) == []
    # The members are in a menu.
    await tabs(phone).get_by_role("link", name="Conversation").tap()
    await phone.get_by_role("button", name="All members: 3 members").tap()
    await phone.get_by_role("menuitem", name="Robin").tap()
    await thread(phone).get_by_text("Which pumps?").wait_for()
    assert await phone.evaluate(HORIZONTAL_OVERFLOW) == 0

    await desk.go("/inbox", phone)
    pages = phone.get_by_role("navigation", name="Pages")
    await expect(pages.get_by_role("link").first).to_have_text("Start")
    inbox = pages.get_by_role("link", name="Inbox")
    await expect(inbox).to_have_attribute("aria-current", "page")
    await expect(inbox.get_by_role("img", name="2 open questions")).to_be_visible()
    await phone.get_by_role("heading", name="Inbox", exact=True).wait_for()
    assert await axe_violations(phone) == []
    await pages.get_by_role("button", name="Teams").tap()
    await sidebar(phone).get_by_role("link", name="Pumps", exact=True).tap()
    await expect(phone.get_by_role("heading", level=1)).to_contain_text("Coordinator")


async def width_of(page: Page, selector: str) -> float:
    box = await page.locator(selector).bounding_box()
    assert box is not None
    return box["width"]


async def test_at_1024_pixels_the_reader_gets_the_room(visit: Visit) -> None:
    desk, conversation = await team_of_three(visit)
    page = desk.page
    await page.set_viewport_size(SMALL["viewport"])
    [team] = await desk.up.ask("GET", "/teams")
    await desk.tell(team, "report", "The beans have arrived.")
    [item] = (await desk.up.ask("GET", "/inbox?kind=report"))["items"]
    # A report: the list beside it folds away, and is one press away.
    await desk.go(f"/inbox/{item['message']['id']}")
    article = "main article"
    await page.locator(article).get_by_text("The beans have arrived.").first.wait_for()
    await expect(page.get_by_role("region", name="Items")).to_be_hidden()
    reader = page.get_by_role("link", name="Back to the inbox").locator("xpath=../..")
    box = await reader.bounding_box()
    assert box is not None
    assert box["width"] >= READER_PX
    await page.get_by_role("link", name="Back to the inbox").click()
    await expect(page.get_by_role("region", name="Items")).to_be_visible()
    # A conversation: its map and its details open above it.
    await desk.go(conversation)
    await page.locator("#composer").wait_for()
    await expect(page.get_by_role("complementary", name="Details")).to_have_count(0)
    assert await width_of(page, "#thread") >= READER_PX
    await page.locator("#main").focus()
    await page.keyboard.press("]")
    await page.get_by_role("dialog", name="Details").get_by_role("heading", name="Goal").wait_for()
    await page.keyboard.press("Escape")
    # A file.
    await desk.go(f"/t/{team['id']}/files/GOAL.md")
    await page.get_by_role("link", name="Back to the files").wait_for()
    await expect(page.get_by_role("navigation", name="Files of the team")).to_have_count(0)


LOADED = """() => performance.getEntriesByType("resource").some(
  ({name, responseEnd}) => name.includes("/Notifications-") && responseEnd > 0)"""


async def test_a_team_that_ends_elsewhere_says_so_once_and_stands_in_the_digest(
    visit: Visit,
) -> None:
    gate = Gate()

    async def play(seen: Seen) -> Step:
        if is_reply(seen) or is_reflection(seen):
            return says("There is nothing to add.")
        await gate.wait()
        return says(call("finish", summary="There are nine."))

    desk = await visit(play, path="/settings")
    page = desk.page
    await page.wait_for_function(LOADED)
    _, peas, corn = [
        await desk.found(f"Count the {name}", name=name) for name in ("Beans", "Peas", "Corn")
    ]
    await desk.up.ask("PATCH", f"/teams/{peas['id']}", {"muted_until": "9999-12-31T00:00:00Z"})
    await desk.go(f"/t/{corn['id']}/a/{corn['coordinator_id']}")
    bar = sidebar(page)
    for name in ("Beans", "Peas", "Corn"):
        link = bar.get_by_role("link", name=re.compile(f"^{name}"))
        await expect(link).to_have_accessible_description("Running")
    await bar.get_by_role("img", name="Muted").wait_for()
    gate.set()

    told = page.get_by_role("status").filter(has_text=re.compile("is done[.]"))
    await expect(told).to_have_text(re.compile("^Beans is done[.]"))
    for name in ("Peas", "Corn"):
        link = bar.get_by_role("link", name=re.compile(f"^{name}"))
        await expect(link).to_have_accessible_description("Done")
    await expect(told).to_have_count(1)
    assert await axe_violations(page) == []
    async with page.expect_response(re.compile("/inbox/msg_.*/read$")):
        await told.get_by_role("link", name="See the result").click()
    await page.get_by_role("main").get_by_text("There are nine.").first.wait_for()
    await expect(page).to_have_url(re.compile("/inbox/msg_"))
    await expect(told).to_have_count(0)

    # What was read has left the digest; the others are there.
    await desk.go("/inbox/digest")
    ended = page.get_by_role("region", name="Needs review in Peas").get_by_role("group")
    await expect(ended).to_contain_text("Count the Peas")
    await expect(page.get_by_role("region", name=re.compile("Beans"))).to_have_count(0)
    assert await axe_violations(page, contrast_in=THEMES) == []
    async with page.expect_response(re.compile("/inbox/msg_.*/read$")):
        await ended.get_by_role("link", name="See the result").click()
    await page.get_by_role("main").get_by_text("There are nine.").first.wait_for()
    await desk.go("/inbox/digest")
    await expect(page.get_by_role("region", name=re.compile("Peas"))).to_have_count(0)


async def test_an_item_that_takes_the_place_of_the_list_takes_the_focus(visit: Visit) -> None:
    desk, _ = await team_of_three(visit)
    page = desk.page
    await page.set_viewport_size(SMALL["viewport"])
    [team] = await desk.up.ask("GET", "/teams")
    await desk.tell(team, "report", "The beans have arrived.")
    await desk.go("/inbox")
    await page.get_by_role("link", name="The beans have arrived.").press("Enter")
    heading = page.get_by_role("heading", level=1)
    await expect(heading.filter(has_text="The beans have arrived.")).to_be_focused()
    await page.get_by_role("link", name="Back to the inbox").press("Enter")
    await expect(heading.filter(has_text="Inbox")).to_be_focused()
