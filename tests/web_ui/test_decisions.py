"""Decisions: a person confirms, rejects and revokes in the browser what a team may know and do."""

import re
from base64 import b64encode
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.async_api import Locator, Page, expect

from tests.web_ui import lively
from tests.web_ui.browsing import EMPTY, Desk, Visit
from tests.web_ui.windows import cookie_of, keep_key

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def kinds_to_decide(desk: Desk) -> Counter[str]:
    """Return how many entries of each kind the digest has."""
    digest = await desk.up.ask("GET", "/inbox/digest")
    return Counter(entry["kind"] for team in digest for entry in team["entries"])


async def click(card: Locator, name: str) -> None:
    """Click a button of a card of the conversation once it rests: one that has just moved takes no
    press, and a click scrolls to its button first."""
    button = card.get_by_role("button", name=name)
    await button.scroll_into_view_if_needed()
    await expect(card.locator("[data-unsettled]")).to_have_count(0)
    await button.click()


async def press(page: Page, button: Locator) -> None:
    """Press a button with the keyboard alone."""
    await button.focus()
    await page.keyboard.press("Enter")


async def test_a_person_decides_on_the_entries_of_the_digest(visit: Visit) -> None:
    desk = await visit(lively.Lively().play, path=EMPTY)
    page = desk.page
    team = await lively.forward_offers(desk)
    before = await kinds_to_decide(desk)
    await desk.open("/inbox")
    await page.get_by_role("link", name=re.compile("Needs review")).click()

    # The words are shown as they are, with the file that they come from; no button for a request.
    entry = page.get_by_role("listitem")
    note = entry.filter(has_text="Nordlicht delivers first")
    unverified = page.get_by_role("group", name="Unverified")
    await expect(unverified).to_contain_text(f"from the file {lively.OFFER_FILE}")
    request = page.get_by_role("group", name="Asks for your approval").get_by_role("listitem")
    await expect(request).to_contain_text(lively.CHECK_STOCK)
    await expect(request.get_by_role("button")).to_have_count(0)

    # With the keyboard: each decision leaves the focus at the entry that follows.
    await press(page, note.get_by_role("button", name="Confirm"))
    await expect(note).to_have_count(0)
    fact = entry.filter(has_text="Nordlicht sold the RTX PRO 6000 for $7,890 in week 47")
    await expect(entry.locator(":focus")).to_have_count(1)
    await press(page, fact.get_by_role("button", name="Reject"))
    await expect(fact).to_have_count(0)
    file = entry.filter(has_text="PLAN.md")
    await expect(file.get_by_role("link", name="Read the file")).to_have_attribute(
        "href", f"/t/{team['id']}/files/PLAN.md"
    )

    # All means knowledge and triggers: the request and the file stay.
    await page.get_by_role("button", name=re.compile("Confirm all")).press("Enter")
    await page.get_by_text(re.compile(r"\d entries confirmed")).wait_for()
    await expect(page.get_by_role("button", name=re.compile("Confirm all"))).to_have_count(0)
    assert before["pending"] == before["trigger"] == before["ask"] == before["file"] == 1
    assert await kinds_to_decide(desk) == {"ask": 1, "file": 1}

    # "Always" is offered in the card of the request, and says what it allows.
    await page.get_by_role("link", name="Look at the call and decide").click()
    await page.get_by_role("button", name=re.compile("run exactly this command")).click()
    await page.get_by_text("You approved").wait_for()
    [grant] = [g for g in await grants_of(desk, team) if g["kind"] == "command"]
    assert grant["pattern"] == lively.CHECK_STOCK


async def test_all_knowledge_is_confirmed_at_once_and_an_uploaded_file_says_why_it_is_listed(
    visit: Visit,
) -> None:
    desk = await visit(lively.Lively().play, path=EMPTY)
    page = desk.page
    team = await lively.forward_offers(desk)
    note = {"name": "offer notes.txt", "data": b64encode(b"Ten cards.").decode()}
    await desk.up.ask("POST", f"/teams/{team['id']}/uploads", note)
    known = await desk.up.ask("GET", f"/teams/{team['id']}/unconfirmed")
    assert len(known) > 1
    await desk.open(f"/t/{team['id']}/memory?tab=unconfirmed")
    await page.get_by_role("button", name=f"Confirm all {len(known)}", exact=True).click()
    await page.get_by_text("Nothing needs review").wait_for()
    # What acts or leaves the team is decided by itself.
    assert await kinds_to_decide(desk) == {"trigger": 1, "ask": 1, "file": 2}

    await desk.go("/inbox/digest")
    uploaded = page.get_by_role("group", name="Uploaded files")
    await expect(uploaded).to_contain_text("Others may have written their text")
    await expect(uploaded.get_by_role("listitem")).not_to_contain_text("from the file")
    await uploaded.get_by_role("link", name="Read the file").click()
    await page.get_by_text("Ten cards.").wait_for()
    await page.get_by_text("Uploaded. Others may have written its text").wait_for()
    await expect(page.get_by_text("Contains text from")).to_have_count(0)


async def grants_of(desk: Desk, team: dict[str, Any]) -> list[dict[str, Any]]:
    found = await desk.up.ask("GET", f"/teams/{team['id']}/grants")
    return [grant for grant in found if grant["is_in_force"]]


async def open_settings(page: Page) -> Locator:
    await page.get_by_role("button", name="Team actions").click()
    await page.get_by_role("menuitem", name="Set a new goal").click()
    return page.get_by_role("main")


async def test_a_person_revokes_grants_sets_trust_and_says_that_they_are_away(visit: Visit) -> None:
    desk = await visit(lively.Lively().play, path="/settings")
    page = desk.page
    until = datetime.now(UTC).astimezone() + timedelta(days=30)
    await page.get_by_label("Away until").fill(f"{until:%Y-%m-%dT%H:%M}")
    await page.get_by_role("button", name="I am away").click()
    await page.get_by_text(f"Away until {until.day} {until:%b %Y}").wait_for()
    assert (await desk.up.ask("GET", "/persons/me"))["away_until"] is not None
    await page.get_by_role("button", name="I am back").click()
    await page.get_by_label("Away until").wait_for()
    assert (await desk.up.ask("GET", "/persons/me"))["away_until"] is None

    team = await lively.forward_offers(desk)
    await desk.go(f"/t/{team['id']}/a/{team['coordinator_id']}")
    log = page.get_by_role("log")
    # Under the reply, and the result below; not under the message that shows the file itself.
    contains = log.get_by_text(f"Contains text from the file {lively.OFFER_FILE}")
    await expect(contains).to_have_count(1)
    # While its card is on screen, no bar points at it.
    request = log.get_by_role("group", name="Coordinator asks")
    await expect(request).to_contain_text("May I call bash?")
    await expect(page.locator("[data-waiting]")).to_have_count(0)
    await click(request, "Deny")
    await page.get_by_text("You denied").wait_for()
    await expect(contains).to_have_count(2)
    await expect(page.locator("[data-waiting]")).to_have_count(0)
    settings_page = await open_settings(page)
    permissions = settings_page.get_by_role("region", name="Permissions", exact=True)
    notifications = settings_page.get_by_role("region", name="Notifications")
    allowed = permissions.get_by_role("region", name="Allowed without asking")
    await expect(allowed.get_by_role("listitem")).to_have_count(2)
    search = allowed.get_by_role("listitem").filter(has_text="Call the tool web_search")
    await press(page, search.get_by_role("button", name="Revoke"))
    await expect(search).to_have_count(0)
    assert [grant["kind"] for grant in await grants_of(desk, team)] == ["read"]

    await notifications.get_by_label("Quiet hours", exact=True).fill("22:00-07:00")
    await notifications.get_by_label("Time zone of the quiet hours").fill("Europe/Berlin")
    await notifications.get_by_role("button", name="Save").click()
    await expect(page.get_by_text("Saved.")).to_have_count(1)
    await permissions.get_by_label("Trust").select_option("strict")
    project = desk.home.parent / "project"
    project.mkdir()
    await permissions.get_by_label("Folders of this machine").fill(f"\n{project}:rw\n")
    await permissions.get_by_role("button", name="Save", exact=True).click()
    await expect(page.get_by_text("Saved.")).to_have_count(2)
    changed = await desk.up.ask("GET", f"/teams/{team['id']}")
    settings = (changed["trust"], changed["quiet_hours"], changed["quiet_zone"])
    assert settings == ("strict", "22:00-07:00", "Europe/Berlin")
    assert changed["folders"] == [{"name": "project", "path": str(project), "access": "rw"}]

    # Trust is the owner's to change: a session with less says so and changes nothing.
    token = await desk.up.ask("POST", "/tokens", {"name": "a friend", "scope": "operate"})
    await desk.context.add_cookies([cookie_of(token["secret"], desk.origin)])
    await page.evaluate(keep_key(token["secret"]))
    desk.watch.is_server_away = True  # the browser logs the refused request
    save = permissions.get_by_role("button", name="Save", exact=True)
    await permissions.get_by_label("Trust").select_option("open")
    await expect(save).to_be_disabled()
    await permissions.get_by_label("Type “Offers” to allow this").fill("Offers")
    await save.click()
    await expect(permissions.get_by_role("alert")).to_contain_text("needs the scope 'admin'")
    assert (await desk.up.ask("GET", f"/teams/{team['id']}"))["trust"] == "strict"
