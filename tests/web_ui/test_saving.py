"""Saving: a report is saved as a Markdown file, and printed without the page around it."""

import os
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from agiraph.testing import call, says
from agiraph.testing.model_server import Seen, Step
from tests.web_ui.browsing import EMPTY, PHONE, Desk, Visit
from tests.web_ui.test_accessibility import axe_violations

pytestmark = pytest.mark.asyncio(loop_scope="session")

PICTURES = os.environ.get("AGIRAPH_PICTURES", "")
"""A folder for screenshots, for whoever works on these screens."""
LAST = "The last line of the report."
STAY = "addEventListener('afterprint', (event) => event.stopImmediatePropagation())"
REPORT = "\n\n".join(
    ["## Where they nest", *[f"Herons nest in tree {number}." for number in range(60)], LAST]
)


async def play(seen: Seen) -> Step:
    return says(call("finish", summary=REPORT))


async def finished_team(visit: Visit) -> tuple[Desk, str]:
    """Open a team that has delivered a report; return its id."""
    desk = await visit(play, path=EMPTY)
    team = await desk.found("Watch: the herons", name="Birds")
    assert desk.world is not None
    await desk.world.settle()
    return desk, team["id"]


async def saved_by(page: Page) -> tuple[str, str]:
    """Save what is open; return the name of the file and its text."""
    async with page.expect_download() as waiting:
        await page.get_by_role("button", name="Save as Markdown").first.press("Enter")
    download = await waiting.value
    text = Path(await download.path()).read_bytes().decode()
    return download.suggested_filename, text


async def picture(page: Page, name: str) -> None:
    if PICTURES:
        await page.screenshot(path=Path(PICTURES) / f"{name}.png")


async def is_alone_on_paper(page: Page) -> None:
    """Check that on paper the report stands alone, whole and in light colours."""
    await page.emulate_media(media="print")
    await expect(page.get_by_role("navigation", name="Teams")).to_be_hidden()
    await expect(page.get_by_role("button", name="Print")).to_have_count(0)
    await expect(page.locator("[data-print]").get_by_text(LAST)).to_be_visible()
    ground = "getComputedStyle(document.body).backgroundColor"
    assert await page.evaluate(ground) == "rgb(255, 255, 255)"
    marked = "document.querySelector('[data-print]')"
    assert await page.evaluate(f"{marked}.innerText === document.body.innerText.trim()")
    # Nothing is cut off: it takes more than one page.
    assert await page.evaluate(f"document.body.scrollHeight >= {marked}.scrollHeight")
    assert (await page.pdf(format="A5")).count(b"/Type /Page\n") > 1


async def test_a_message_is_saved_as_markdown_and_printed_by_itself(visit: Visit) -> None:
    desk, _ = await finished_team(visit)
    page = desk.page
    await desk.go("/inbox")
    await page.get_by_role("link", name="Watch: the herons").first.click()
    await expect(page.get_by_role("article").get_by_text(LAST)).to_be_visible()
    await page.evaluate("document.documentElement.dataset.theme = 'dark'")
    name, text = await saved_by(page)
    head, byline, *rest = text.split("\n\n")
    assert (name, head) == ("Watch the herons.md", "# Watch: the herons")
    assert byline.startswith("*Coordinator · Birds · ")
    assert "\n\n".join(rest).startswith(REPORT)
    await picture(page, "reader")
    assert await axe_violations(page) == []
    await is_alone_on_paper(page)
    await picture(page, "reader-print")


async def test_a_result_is_saved_as_markdown_and_printed_by_itself(visit: Visit) -> None:
    desk, team = await finished_team(visit)
    page = desk.page
    await desk.go(f"/t/{team}/results")
    await page.evaluate("document.documentElement.dataset.theme = 'dark'")
    name, text = await saved_by(page)
    assert (name, text.split("\n\n")[0]) == ("Watch the herons.md", "# Watch: the herons")
    assert REPORT in text
    await picture(page, "results")
    # Without a printer, the browser is done with printing at once.
    await page.evaluate(STAY)
    await page.get_by_role("button", name="Print").press("Enter")
    await expect(page.locator("[data-print]")).to_have_count(1)
    await is_alone_on_paper(page)
    await picture(page, "results-print")


async def test_the_actions_of_a_message_fit_a_phone(visit: Visit) -> None:
    desk, _ = await finished_team(visit)
    page = await desk.opens(**PHONE)
    await desk.go("/inbox", page)
    await page.get_by_role("link", name="Watch: the herons").first.click()
    await expect(page.get_by_role("button", name="Save as Markdown")).to_be_visible()
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    await picture(page, "reader-phone")
