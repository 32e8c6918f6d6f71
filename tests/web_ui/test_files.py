"""Files and results: what a team delivered can be found, read, changed and taken along."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from agiraph.domain.time import SystemClock
from agiraph.testing import call, says
from tests.api.serving import TOKEN, Served, serving
from tests.web_ui.browsing import DESKTOP, STILL, Watch
from tests.web_ui.test_accessibility import OTHER_LINKS, axe_violations

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(120)]

LONG_LINE = f"begin {'x' * 2_900_000} finish"


@dataclass(frozen=True, slots=True)
class Shelf:
    """A page at a team that has delivered files."""

    served: Served
    page: Page
    team: str
    folder: Path

    async def show(self, screen: str, rest: str = "") -> None:
        """Show a screen of the team, as a link would."""
        to = f"/t/{self.team}/{screen}" + (f"/{rest}" if rest else "")
        if not self.page.url.startswith(self.served.origin):
            await self.page.goto(f"{self.served.origin}{to}")
        await self.page.evaluate("(to) => history.pushState(null, '', to)", to)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shelf(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Shelf]:
    home = tmp_path_factory.mktemp("shelf") / "home"
    async with serving(home, clock=SystemClock()) as served:
        served.world.script("ada", *DELIVERY)
        goal = {"goal": "Compare prices", "learns": False}
        _, team = await served.ask("POST", "/teams", goal)
        await served.world.settle()
        folder = home / "teams" / team["id"]
        write_files(folder)
        context = await browser.new_context(**DESKTOP | STILL, accept_downloads=True)
        session = {"name": "agiraph_session", "value": TOKEN, "url": served.origin}
        await context.add_cookies([session])  # type: ignore[list-item]
        page = await context.new_page()
        watch = Watch(served.origin)
        watch.over(page)
        yield Shelf(served, page, team["id"], folder)
        await context.close()
    assert watch.faults == []


DELIVERY = (
    says(
        call("write_file", path="report.md", content="# Prices\n\nApples cost **2 euros**.\n"),
        call("write_file", path="table.csv", content="fruit,price\napple,2\npear,3\n"),
    ),
    says(call("finish", summary="Apples are cheaper: see `report.md` and `table.csv`.")),
)


def write_files(folder: Path) -> None:
    (folder / "one-line.txt").write_text(LONG_LINE)
    (folder / "one-line.json").write_text(f'{{"key": "{"y" * 2_900_000}"}}')
    (folder / "one-line.csv").write_text("a,b," * 700_000)
    (folder / "many-lines.log").write_text("\n" * 9_000_000)


CHARACTERS = "document.querySelector('main').textContent.length"


async def test_a_file_with_a_line_of_millions_of_characters_opens(shelf: Shelf) -> None:
    """Only the visible part is in the page: to lay out the whole line takes a browser seconds."""
    page = shelf.page
    await shelf.show("files", "one-line.txt")
    await expect(page.get_by_text("begin xxx")).to_be_visible()
    assert await page.evaluate(CHARACTERS) < 200_000

    await page.get_by_role("region", name="Source").focus()
    await page.keyboard.press("End")
    await expect(page.get_by_text("xxx finish")).to_be_visible()

    await shelf.show("files", "one-line.json")
    await page.get_by_role("button", name="more characters").wait_for()
    assert await page.evaluate(CHARACTERS) < 200_000

    await shelf.show("files", "one-line.csv")
    await page.get_by_text("Only the first 60 columns are shown").wait_for()
    assert await page.evaluate("document.querySelectorAll('*').length") < 2_000

    await shelf.show("files", "many-lines.log")
    await page.get_by_text("Only the first 8.0 MB are shown").wait_for()
    await page.get_by_text("Only the first 200,000 lines are shown").wait_for()
    assert await page.evaluate("document.querySelectorAll('*').length") < 2_000


async def test_results_show_who_delivered_what_and_preview_it(shelf: Shelf) -> None:
    page = shelf.page
    await shelf.show("results")
    card = page.get_by_role("listitem").filter(has=page.get_by_role("heading", name="Compare"))
    await expect(card).to_contain_text("delivered 2 files")
    await expect(card.get_by_role("link", name="Coordinator")).to_be_visible()
    assert await axe_violations(page, without=OTHER_LINKS) == []

    await card.get_by_role("link", name="report.md").first.press("Enter")
    preview = page.get_by_role("region", name="Preview")
    await expect(preview.get_by_text("Apples cost 2 euros.")).to_be_visible()
    assert await axe_violations(page, contrast_in=(), without=OTHER_LINKS) == []
    await preview.get_by_role("link", name="Close the preview").click()
    await expect(preview).to_have_count(0)

    await page.get_by_role("button", name="Files", exact=True).click()
    await page.get_by_role("link", name="table.csv").first.click()
    await expect(preview.get_by_role("cell", name="pear")).to_be_visible()
    async with page.expect_download() as started:
        await page.get_by_role("link", name="Download all").click()
    assert (await started.value).suggested_filename == "Compare prices results.zip"
    await page.get_by_role("button", name="Changes", exact=True).click()
    await expect(page.get_by_role("heading", name="No changes yet")).to_be_visible()
