"""Research in the browser: the card while it runs, the words behind a report, and the reply."""

import asyncio
import os
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from agiraph.core.domain.times.time import SystemClock
from agiraph.testing import says
from tests.local_web import local_web
from tests.research.kit import (
    FACTS,
    OLD,
    OLD_GUIDE,
    QUESTION,
    SITES,
    TALL,
    Cast,
    brief_of,
    reads,
)
from tests.web_ui.browsing import PHONE, go, watched
from tests.web_ui.test_accessibility import THEMES, axe_violations
from tests.web_ui.test_flow import thread
from tests.web_ui.windows import serving

pytestmark = pytest.mark.asyncio(loop_scope="session")

SECOND = "What do older guides say?"
REPORT = (
    "## Answer\n\nThe tower is 330 metres tall [e1]. An old guide says 312 metres [e2].\n\n"
    "## Key findings\n\n- It is 330 metres tall [e1].\n"
)
PICTURES = os.environ.get("AGIRAPH_PICTURES", "")
"""A folder for screenshots, for whoever works on these screens."""


def cast() -> tuple[Cast, asyncio.Event]:
    """Return a model that plays the parts; its second reader waits for the event."""
    go_on = asyncio.Event()
    played = Cast(
        brief=[says(brief_of(QUESTION, SECOND, kind="comparison"))],
        readers={
            QUESTION: reads(FACTS, ("It is 330 metres tall.", TALL)),
            SECOND: reads(OLD_GUIDE, ("It was said to be 312 metres tall.", OLD)),
        },
        writing=[says(REPORT)],
    )

    async def second_waits() -> None:
        _, _, task = played.requests[-1]
        if SECOND in task.partition("Others read")[0]:
            await go_on.wait()

    played.before_reading = second_waits
    return played, go_on


async def picture(page: Page, name: str) -> None:
    if not PICTURES:
        return
    for theme in ("light", "dark"):
        await page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
        await page.screenshot(path=Path(PICTURES) / f"{name}-{theme}.png")


async def test_a_person_watches_research_and_reads_the_words_behind_its_report(
    browser: Browser, tmp_path: Path
) -> None:
    clock, (played, go_on) = SystemClock(), cast()
    async with (
        local_web(clock, SITES) as web,
        serving(tmp_path / "home", clock=clock, web=web.access, model="scripted/rob") as served,
        watched(browser, served.origin) as (page, _),
        watched(browser, served.origin, **PHONE) as (phone, _),
    ):
        served.world.model("rob", played)
        _, team = await served.ask("POST", "/teams", {"goal": "Know towers", "start": False})
        lead = team["coordinator_id"]
        _, job = await served.ask("POST", f"/agents/{lead}/research", {"goal": QUESTION})

        # The card shows the plan and what was noted while the second reader is at work.
        await go(page, f"{served.origin}/t/{team['id']}/a/{lead}")
        card = page.get_by_role("listitem").filter(has_text=QUESTION).first
        await card.get_by_role("button", expanded=False).first.press("Enter")
        plan = page.get_by_role("list", name="Plan")
        await expect(plan.get_by_role("listitem")).to_have_count(2)
        await page.get_by_role("button", name="1 quotation from 1 site").press("Enter")
        await page.get_by_text(TALL).wait_for()
        await picture(page, "research-card")
        assert await axe_violations(page, contrast_in=THEMES) == []
        await go(phone, f"{served.origin}/t/{team['id']}/a/{lead}")
        card = phone.get_by_role("listitem").filter(has_text=QUESTION).first
        await card.get_by_role("button", expanded=False).first.tap()
        plan = phone.get_by_role("list", name="Plan")
        await expect(plan.get_by_role("listitem")).to_have_count(2)
        await picture(phone, "research-card-phone")

        # The report: a mark has the words of its page, for the mouse, the keyboard and a finger.
        go_on.set()
        await thread(page).get_by_text("The research is done").wait_for()
        # The summary in the conversation has the same marks, and leads to the report.
        await thread(page).get_by_role("button", name="Source 2: ").focus()
        await expect(page.get_by_role("tooltip")).to_contain_text(OLD)
        await picture(page, "research-summary")
        await page.keyboard.press("Escape")
        await thread(page).get_by_role("link", name="Open the report").click()
        await expect(page.get_by_role("heading", name=f"Research: {QUESTION}")).to_be_visible()
        _, inbox = await served.ask("GET", "/inbox")
        [item] = [i["message"]["id"] for i in inbox["items"] if i["message"]["kind"] == "report"]
        await go(page, f"{served.origin}/inbox/{item}")
        await page.get_by_role("link", name="Reply").wait_for()  # the conversation has marks, too
        mark = page.get_by_role("button", name="Source 1: ").first
        words = page.get_by_role("tooltip")
        await mark.focus()
        await expect(words).to_contain_text(TALL)
        await picture(page, "research-report")
        assert await axe_violations(page, contrast_in=THEMES) == []
        await page.keyboard.press("Escape")
        await expect(words).to_have_count(0)
        await page.get_by_role("button", name="Source 2: ").first.hover()
        await expect(words).to_contain_text(OLD)

        # A reply goes to the agent that was asked, not to the researcher, who has left.
        await page.get_by_role("link", name="Reply").click()
        await expect(page).to_have_url(f"{served.origin}/t/{team['id']}/a/{lead}")
        field = page.get_by_role("textbox", name="Message Coordinator")
        await expect(field).to_have_value(f"About “Research: {QUESTION}”: ")

        await go(phone, f"{served.origin}/inbox/{item}")
        await phone.get_by_role("link", name="Reply").wait_for()
        await phone.get_by_role("button", name="Source 2: ").first.tap()
        await expect(phone.get_by_role("tooltip")).to_contain_text(OLD)
        await picture(phone, "research-report-phone")
        assert job["status"] == "assigned"


async def test_a_report_that_found_nothing_is_not_done(browser: Browser, tmp_path: Path) -> None:
    clock = SystemClock()
    async with (
        local_web(clock, SITES) as web,
        serving(tmp_path / "home", clock=clock, web=web.access, model="scripted/rob") as served,
        watched(browser, served.origin) as (page, _),
        watched(browser, served.origin, **PHONE) as (phone, _),
    ):
        served.world.model("rob", Cast())
        _, team = await served.ask("POST", "/teams", {"goal": "Know towers", "start": False})
        lead = team["coordinator_id"]
        _, job = await served.ask("POST", f"/agents/{lead}/research", {"goal": QUESTION})
        await go(page, f"{served.origin}/t/{team['id']}/a/{lead}")
        await thread(page).get_by_text("The research found nothing").wait_for()
        await picture(page, "research-nothing-conversation")
        # The card of the work goes with its end, which moves what is above it.
        await expect(page.get_by_role("region", name="Work in progress")).to_have_count(0)
        await thread(page).get_by_role("link", name="Open the report").press("Enter")
        await expect(page.get_by_role("main").get_by_text("Nothing found")).not_to_have_count(0)
        await expect(page.get_by_role("main").get_by_text("Not reached")).to_have_count(0)
        await picture(page, "research-nothing")
        await go(page, f"{served.origin}/t/{team['id']}/board?node={job['id']}")
        about = page.get_by_role("complementary", name="Task")
        await expect(about.get_by_role("note")).to_contain_text("Not reached")
        await expect(about.get_by_role("note").get_by_role("listitem")).to_have_text(QUESTION)
        await picture(page, "research-nothing-task")
        await go(phone, f"{served.origin}/t/{team['id']}/a/{lead}")
        await thread(phone).get_by_text("The research found nothing").wait_for()
        await picture(phone, "research-nothing-phone")
