"""Shell: questions of several teams, notifications of the browser, and the archive."""

import asyncio
import re

import pytest
from playwright.async_api import Route, expect

from agiraph.core.services.lifecycle import teams
from agiraph.testing import call, says
from agiraph.testing.model_server import Seen, Step
from tests.web_ui.browsing import EMPTY, Visit
from tests.web_ui.test_accessibility import axe_violations
from tests.web_ui.test_flow import is_reflection, is_reply, sidebar

pytestmark = pytest.mark.asyncio(loop_scope="session")

# A headless browser has no notifications. This records what a real one would show.
NOTIFICATIONS = """
window.notified = [];
window.Notification = class {
  static permission = "default";
  static async requestPermission() { return (this.permission = "granted"); }
  constructor(title, options) { window.notified.push({ title, ...options, shown: this }); }
  close() {}
};
Object.defineProperty(document, "hidden", { get: () => window.isAway === true });
"""


def _ask(seen: Seen) -> Step:
    """Ask a question in every team; the name of the team is in its goal."""
    if is_reply(seen) or is_reflection(seen):
        return says("There is nothing to add.")
    what = "peas" if "peas" in seen.messages[0].text else "beans"
    return says(call("ask_human", question=f"Which {what}?"))


async def test_questions_name_their_team_and_a_team_comes_back_from_the_archive(
    visit: Visit,
) -> None:
    desk = await visit(_ask, path="/icon.svg")
    page = desk.page
    await page.add_init_script(NOTIFICATIONS)
    may_answer = asyncio.Event()

    async def hold(route: Route) -> None:
        await may_answer.wait()
        await route.continue_()

    # Teams that are being loaded are not drawn as no teams.
    await page.route("**/api/overview", hold)
    await desk.open("/")
    await expect(page.get_by_text("Loading your teams").first).to_be_attached()
    await expect(sidebar(page).get_by_text("Loading your teams")).to_be_attached()
    await expect(page.get_by_text(re.compile("No teams yet|What should a team"))).to_have_count(0)
    may_answer.set()
    await page.get_by_text("No teams yet.").wait_for()
    await page.unroute("**/api/overview")
    await desk.go("/settings")
    beans = await desk.found("Count the beans", name="Beans")
    bean_toast = page.get_by_role("group", name="coordinator asks, Beans")
    await bean_toast.get_by_text("Which beans?").wait_for()
    await expect(bean_toast.get_by_role("link")).to_have_text("Coordinator asks · Beans")
    peas = await desk.found("Count the peas", name="Peas")
    await bean_toast.get_by_role("link", name="1 more in the inbox").wait_for()

    # At the first question the sidebar offers notifications; the next question is one.
    offer = page.get_by_role("region", name="Notifications").filter(has_text="needs you, finishes")
    await offer.get_by_role("button", name="Turn on").click()
    await expect(offer).to_have_count(0)
    await page.evaluate("window.isAway = true")
    corn = await desk.found("Count the beans in the corn", name="Corn")
    await page.wait_for_function("() => window.notified.length > 0")
    title, body = await page.evaluate("[window.notified[0].title, window.notified[0].body]")
    assert (title, body) == ("Coordinator needs you · Corn", "Which beans?")
    await page.evaluate("window.isAway = false; window.notified[0].shown.onclick()")
    [asked] = (await desk.up.ask("GET", f"/inbox?kind=question&team={corn['id']}"))["items"]
    await expect(page).to_have_url(f"{desk.origin}/inbox/{asked['message']['id']}")
    # Further questions of the team take the place of this notification.
    tag = await page.evaluate("window.notified[0].tag")
    assert tag == f"questions of {corn['id']}"

    # `a` leads to the question of the team on screen first, then to those of other teams.
    for team in (peas, corn, beans):
        await desk.go(f"/t/{team['id']}/triggers")
        await page.get_by_role("heading", name="Triggers", exact=True).wait_for()
        # The members of a team that is not in the list yet are not known: `a` opens the inbox.
        await sidebar(page).get_by_role("link", name=team["name"], exact=True).wait_for()
        await page.keyboard.press("a")
        await page.wait_for_url(f"**/t/{team['id']}/a/{team['coordinator_id']}?at=*")
        question = re.compile(f"^/t/{team['id']}/a/{team['coordinator_id']}[?]at=")
        chip = page.get_by_title("Go to the question")
        await expect(chip).to_have_attribute("href", question)

    # A team that was archived is one click away, and later on its own page.
    bar = sidebar(page)
    for way in ("toast", "page"):
        await desk.go(f"/t/{peas['id']}/a/{peas['coordinator_id']}")
        await page.get_by_role("button", name="Team actions").click()
        await page.get_by_role("menuitem", name="Archive the team").click()
        await page.get_by_role("button", name="Archive", exact=True).click()
        await expect(bar.get_by_role("link", name="Peas", exact=True)).to_have_count(0)
        await expect(page).not_to_have_url(re.compile(peas["id"]))
        if way == "toast":
            await page.get_by_text("Peas is archived.").wait_for()
            await page.get_by_role("button", name="Undo").click()
        else:
            await bar.get_by_role("link", name="Archived teams").click()
            await page.get_by_role("button", name="Restore Peas").wait_for()
            assert await axe_violations(page) == []
            await page.get_by_role("main").get_by_role("link", name="Peas").click()
            await page.get_by_text("This team is archived.").wait_for()
            await page.go_back()
            await page.get_by_role("button", name="Restore Peas").click()
            await page.get_by_text("No archived teams").wait_for()
        await bar.get_by_role("link", name="Peas", exact=True).wait_for()
    assert desk.world is not None
    for team in await desk.up.ask("GET", "/teams"):
        await desk.world.store.write(teams.archive, team["id"])
    await bar.get_by_text("No teams. ").wait_for()
    await bar.get_by_role("link", name=re.compile("archived$")).click()
    await page.get_by_role("button", name="Restore Peas").wait_for()


async def test_each_page_has_its_title_and_a_jump_puts_the_focus_on_its_heading(
    visit: Visit,
) -> None:
    desk = await visit([], path=EMPTY)
    page = desk.page
    team = await desk.found("Watch beans", start=False, name="beans")
    await desk.tell(team, "report", "The beans have arrived.")
    home = f"/t/{team['id']}"
    titles = {
        f"{home}/a/{team['coordinator_id']}": "Coordinator · beans",
        f"{home}/board": "Board · beans",
        f"{home}/files": "Files · beans",
        f"{home}/settings": "Settings · beans",
        "/models": "Models",
        "/operations": "Operations",
        "/archive": "Archived teams",
        "/settings": "Settings",
        "/inbox": "Inbox",
    }
    for path, title in titles.items():
        await desk.go(path)
        await expect(page).to_have_title(re.compile(rf"^(\(1\) )?{title} · agiraph$"))

    # Nobody has opened these pages yet; now a person goes from one to the other.
    heading = page.get_by_role("heading", level=1)
    await page.keyboard.press("g")
    await page.keyboard.press("b")
    await expect(heading.filter(has_text="Board")).to_be_focused()
    await page.keyboard.press("Control+k")
    await page.get_by_role("combobox", name="Jump to").fill("Cost")
    await page.keyboard.press("Enter")
    await expect(heading.filter(has_text="Cost")).to_be_focused()
    await sidebar(page).get_by_role("link", name="Inbox").click()
    await expect(heading.filter(has_text="Inbox")).to_be_focused()
    # The next item of a list is no other page: the focus stays where the person is.
    await page.get_by_role("link", name="The beans have arrived.").click()
    await expect(page).to_have_title("The beans have arrived. · Inbox · agiraph")
    await expect(heading.filter(has_text="Inbox")).not_to_be_focused()
