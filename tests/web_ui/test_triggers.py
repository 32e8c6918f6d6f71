"""Triggers: a person runs a trigger at once and changes it in the browser."""

import os
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, expect

from agiraph.testing import call, says
from agiraph.testing.model_server import Seen, Step
from tests.web_ui.browsing import EMPTY, PHONE, Desk, Visit
from tests.web_ui.test_accessibility import axe_violations

pytestmark = pytest.mark.asyncio(loop_scope="session")

PICTURES = os.environ.get("AGIRAPH_PICTURES", "")
"""A folder for screenshots, for whoever works on these screens."""
DAILY = {"cron": "0 9 * * *", "zone": "Europe/Berlin", "max_fires": 9}


async def play(seen: Seen) -> Step:
    return says(call("finish", summary="All is well."))


async def reloaded(desk: Desk, made: dict[str, Any]) -> dict[str, Any]:
    listed = await desk.up.ask("GET", f"/teams/{made['team_id']}/triggers")
    [found] = [one for one in listed if one["id"] == made["id"]]
    return found


async def watched_team(visit: Visit) -> tuple[Desk, dict[str, Any], str]:
    """Open a team with a trigger for every morning; return the trigger and the triggers' path."""
    desk = await visit(play, path=EMPTY)
    team = await desk.found("Watch the herons", start=False)
    body = {"type": "scheduled", "config": DAILY, "payload": {"task": "Look at the herons"}}
    made = await desk.up.ask("POST", f"/teams/{team['id']}/triggers", body)
    return desk, made, f"/t/{team['id']}/triggers"


async def picture(page: Page, name: str) -> None:
    if not PICTURES:
        return
    for theme in ("light", "dark"):
        await page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
        await page.screenshot(path=Path(PICTURES) / f"{name}-{theme}.png")


async def test_a_person_runs_a_trigger_now_and_its_schedule_stays(visit: Visit) -> None:
    desk, made, path = await watched_team(visit)
    await desk.go(path)
    page = desk.page
    card = page.get_by_role("article").filter(has_text="Look at the herons")
    run = card.get_by_role("button", name="Run now")
    await run.focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("The trigger runs now. Its schedule stays.")).to_be_visible()
    await expect(card).to_contain_text("1 time")
    await card.get_by_role("button", name="History").click()
    await expect(card).to_contain_text("A person ran it by hand.")
    await picture(page, "triggers")
    assert desk.world is not None
    await desk.world.settle()
    after = await reloaded(desk, made)
    assert (after["due_at"], after["status"]) == (made["due_at"], "active")
    assert await axe_violations(page) == []


async def test_a_person_edits_a_trigger_and_only_what_changed_is_sent(visit: Visit) -> None:
    desk, made, path = await watched_team(visit)
    await desk.go(path)
    page = desk.page
    card = page.get_by_role("article").filter(has_text="herons")
    await card.get_by_role("button", name="Edit").click()
    dialog = page.get_by_role("dialog", name="Edit the trigger")
    await expect(dialog.get_by_label("How often")).to_have_value("0 9 * * *")
    await expect(dialog.get_by_label("Time zone")).to_have_value("Europe/Berlin")
    task = dialog.get_by_label("What to do")
    await expect(task).to_have_value("Look at the herons")
    assert await axe_violations(page) == []
    await picture(page, "edit")
    await task.fill("Count the herons")
    await dialog.get_by_role("button", name="Save").click()
    await expect(dialog).to_be_hidden()
    await expect(card).to_contain_text("Count the herons")
    told = await reloaded(desk, made)
    assert told["payload"] == {"task": "Count the herons"}
    assert (told["config"], told["due_at"]) == (DAILY, made["due_at"])

    await card.get_by_role("button", name="Edit").click()
    await dialog.get_by_label("How often").select_option("Something else (cron)")
    desk.watch.is_server_away = True  # the browser logs the refusal
    await dialog.get_by_label("Cron expression").fill("0 25 * * *")
    await dialog.get_by_role("button", name="Save").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("0 25 * * *")
    desk.watch.is_server_away = False
    await dialog.get_by_label("Cron expression").fill("0 7 * * *")
    await dialog.get_by_role("button", name="Save").click()
    await expect(card.get_by_role("heading")).to_have_text("Every day at 07:00 (Europe/Berlin)")
    told = await reloaded(desk, made)
    assert told["config"] == DAILY | {"cron": "0 7 * * *"}


async def test_the_triggers_fit_a_phone_and_an_ended_one_cannot_be_changed(visit: Visit) -> None:
    desk, _, path = await watched_team(visit)
    page = await desk.opens(**PHONE)
    await desk.go(path, page)
    await expect(page.get_by_role("button", name="Run now").first).to_be_visible()
    await picture(page, "triggers-phone")
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    await page.get_by_role("article").filter(has_text="herons").get_by_label("Cancel").click()
    await page.get_by_role("button", name="Cancel it").click()
    await expect(page.get_by_role("article").filter(has_text="herons")).to_have_count(0)
    await desk.go(f"{path}?show=ended", page)
    await expect(page.get_by_text("Cancelled", exact=True)).to_be_visible()
    await expect(page.get_by_role("button", name="Edit")).to_have_count(0)
    await expect(page.get_by_role("button", name="Run now")).to_have_count(0)
