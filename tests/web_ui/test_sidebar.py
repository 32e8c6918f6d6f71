"""Sidebar: many teams in one request, few elements and few Tab stops."""

import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.async_api import Page, expect

from agiraph.testing import says
from tests.web_ui import seeding
from tests.web_ui.browsing import Visit
from tests.web_ui.test_flow import members, sidebar

pytestmark = pytest.mark.asyncio(loop_scope="session")

TEAMS, MEMBERS = 52, 8
IN_VIEW = """(name) => {
  const list = document.querySelector("nav [role=list]").parentElement.getBoundingClientRect();
  const link = [...document.querySelectorAll("nav [role=list] a")]
    .find((one) => one.title === name);
  const box = link?.getBoundingClientRect();
  return Boolean(box && box.top >= list.top && box.bottom <= list.bottom);
}"""


async def _starts_with(page: Page, *teams: str) -> None:
    """Wait until these teams are the first of the list."""
    links = sidebar(page).locator("[role=list] a[title]")
    for place, name in enumerate(teams):
        await expect(links.nth(place)).to_have_attribute("title", name)


async def _tabs_to_content(page: Page) -> int:
    """Press Tab from the top of the page until the focus is in its content; return how often."""
    await page.evaluate("document.activeElement?.blur()")
    for count in range(1, 100):
        await page.keyboard.press("Tab")
        if await page.evaluate("Boolean(document.activeElement?.closest('main'))"):
            return count
    return 100


async def test_fifty_teams_are_listed_found_pinned_and_folded(visit: Visit, tmp_path: Path) -> None:
    made = await seeding.many_teams(tmp_path / "home", count=TEAMS, members=MEMBERS)
    desk = await visit([says("Nobody asked.")], path="/icon.svg")
    page = desk.page
    asked: list[str] = []
    page.on("request", lambda request: asked.append(urlsplit(request.url).path))
    await desk.open(f"/t/{made[30]}")
    bar = sidebar(page)
    await bar.get_by_role("link", name="team 30", exact=True).wait_for()
    # It lists teams alone; the members are in the header of a member's page.
    await expect(bar.get_by_role("link", name="Reader-0")).to_have_count(0)
    await members(page).get_by_role("link", name="Reader-0").wait_for()

    # One request for all teams, few elements, and the list is one or two Tab stops.
    assert asked.count("/api/overview") == 1
    assert [path for path in asked if path.endswith("/agents")] == [f"/api/teams/{made[30]}/agents"]
    # Its time zone is what a browser says once, to a server that knows none.
    assert [path for path in asked if path == "/api/persons/me"] in ([], ["/api/persons/me"] * 2)
    loaded = [path for path in asked if path.startswith("/api/") and path != "/api/persons/me"]
    assert len(loaded) <= 10, asked
    assert await page.evaluate("document.querySelectorAll('*').length") < 3000
    assert await _tabs_to_content(page) <= 14

    # The newest activity is at the top; teams that are completed are folded away.
    await bar.locator("[role=list]").evaluate("(one) => one.parentElement.scrollTo(0, 0)")
    await bar.get_by_role("link", name="team 51", exact=True).wait_for()
    await _starts_with(page, "team 51", "team 50", "team 49", "team 47")
    field = bar.get_by_role("textbox", name="Filter teams and members")
    await field.fill("no such name")
    await bar.get_by_text("No team or member has this name.").wait_for()
    await field.fill("team 48")
    await bar.get_by_role("link", name="team 48", exact=True).wait_for()
    await expect(bar.locator("[role=list] a[title]")).to_have_count(1)
    await field.press("Escape")
    await expect(field).to_have_value("")

    # A pinned team is first, also after a reload.
    await field.fill("team 3")
    await bar.get_by_role("link", name="team 3", exact=True).hover()
    await bar.get_by_role("button", name="Pin team 3", exact=True).click()
    await field.fill("")
    await _starts_with(page, "team 3", "team 51")
    await page.reload()
    await bar.get_by_role("link", name="team 3", exact=True).wait_for()

    # The arrow keys walk through the list, and unfold the finished teams.
    await field.press("ArrowDown")
    await page.keyboard.press("Home")
    await expect(bar.get_by_role("link", name="team 3", exact=True)).to_be_focused()
    await page.keyboard.press("ArrowDown")
    await expect(bar.get_by_role("link", name="team 51", exact=True)).to_be_focused()
    await page.keyboard.press("End")
    finished = bar.get_by_role("button", name=re.compile("finished teams"))
    await expect(finished).to_be_focused()
    await page.keyboard.press("ArrowRight")
    await expect(finished).to_have_attribute("aria-expanded", "true")
    # Only the rows in sight are in the page.
    rows = bar.get_by_role("listitem")
    all_rows = int(await rows.first.get_attribute("aria-setsize") or 0)
    assert await rows.count() < all_rows - 10

    # A new team is in view, wherever the list was.
    await page.keyboard.press("End")
    await page.get_by_role("button", name="New team").first.click()
    await page.get_by_label("What should a team do?").fill("Count the new books")
    await page.get_by_role("button", name="Get to work").click()
    link = bar.get_by_role("link", name="Count the new books", exact=True)
    await link.wait_for()
    await page.wait_for_function(IN_VIEW, arg="Count the new books")


async def test_the_open_team_stays_in_sight_and_a_person_who_scrolls_is_not_pulled_back(
    visit: Visit, tmp_path: Path
) -> None:
    made = await seeding.many_teams(tmp_path / "home", count=TEAMS, members=1)
    desk = await visit([says("Nobody asked.")], path="/icon.svg")
    page = desk.page
    await desk.open(f"/t/{made[6]}")
    bar = sidebar(page)
    link = page.get_by_role("link", name="team 6", exact=True)
    row = bar.get_by_role("listitem").filter(has=link)
    await row.wait_for()
    await page.wait_for_function(IN_VIEW, arg="team 6")
    place = int(await row.get_attribute("aria-posinset") or 0)

    # Each of these teams was below it, and moves to the top with its news.
    for count, number in enumerate((1, 2, 3), 1):
        older = await desk.up.ask("GET", f"/teams/{made[number]}")
        await desk.tell(older, "message", "News.")
        await expect(row).to_have_attribute("aria-posinset", str(place + count))
        await page.wait_for_function(IN_VIEW, arg="team 6")

    scroller = bar.locator("[role=list]").locator("xpath=..")
    await scroller.evaluate("(one) => one.scrollTo(0, 0)")
    await bar.get_by_role("link", name="team 3", exact=True).wait_for()
    older = await desk.up.ask("GET", f"/teams/{made[5]}")
    await desk.tell(older, "message", "News.")
    await _starts_with(page, "team 5", "team 3")
    assert await scroller.evaluate("(one) => one.scrollTop") == 0
    # Another page of a team brings it back into sight.
    await desk.go(f"/t/{made[7]}/board")
    await page.wait_for_function(IN_VIEW, arg="team 7")
