"""Board: a team's tasks as a tree that fits its window, folds, and is read with the keyboard."""

import asyncio
import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, Page, expect

from agiraph.core.domain.times.time import SystemClock
from tests.web_ui import seeding
from tests.web_ui.browsing import watched
from tests.web_ui.test_accessibility import THEMES, axe_violations
from tests.web_ui.windows import serving

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(120)]

CARDS = "[data-card]"
OUT_OF_SIGHT = """() => {
  const frame = document.querySelector(".react-flow").getBoundingClientRect();
  return [...document.querySelectorAll("[data-card]")].map((one) => one.getBoundingClientRect())
    .filter((one) => one.left < frame.left || one.top < frame.top || one.right > frame.right
      || one.bottom > frame.bottom).length;
}"""
IN_SIGHT = """() => {
  const frame = document.querySelector(".react-flow").getBoundingClientRect();
  return [...document.querySelectorAll("[data-card]")].map((one) => one.getBoundingClientRect())
    .filter((one) => one.right > frame.left && one.bottom > frame.top && one.left < frame.right
      && one.top < frame.bottom).length;
}"""
SMALLEST_TITLE_PX = """() => {
  const layer = document.querySelector(".react-flow__viewport");
  const zoom = new DOMMatrix(getComputedStyle(layer).transform).a;
  const titles = [...document.querySelectorAll("[data-card] [dir=auto]")];
  return Math.min(...titles.map((one) => zoom * parseFloat(getComputedStyle(one).fontSize)));
}"""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def book(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[Page, seeding.Wide]]:
    """A page at the board of a team with 201 tasks, 180 of them alike."""
    home = tmp_path_factory.mktemp("book") / "home"
    made = await seeding.translation_team(home)
    assert len(made.nodes) == 201
    async with (
        serving(home, clock=SystemClock()) as served,
        watched(browser, served.origin) as (page, _),
    ):
        await page.goto(f"{served.origin}/t/{made.team}/board")
        await page.wait_for_selector(CARDS)
        yield page, made


async def next_frame(page: Page) -> None:
    await page.evaluate("() => new Promise((next) => requestAnimationFrame(next))")


async def all_in_sight(page: Page) -> None:
    """Wait until the whole board is in its window."""
    async with asyncio.timeout(10):
        while await page.evaluate(OUT_OF_SIGHT) > 0:
            await next_frame(page)


def stack(page: Page) -> Locator:
    return page.get_by_role("treeitem", name="Translate page …")


async def test_a_board_of_201_tasks_fits_on_open_and_folds_alike_ones(
    book: tuple[Page, seeding.Wide],
) -> None:
    page, _ = book
    await expect(page.locator(CARDS)).to_have_count(22)
    await page.get_by_text("201 tasks", exact=False).first.wait_for()
    name = "Translate page …: 180 tasks, 1 failed, 60 pending, 119 done"
    await page.get_by_role("treeitem", name=name, exact=True).wait_for()
    await all_in_sight(page)
    assert await page.evaluate(SMALLEST_TITLE_PX) >= 10
    assert await axe_violations(page, contrast_in=THEMES) == []


async def test_the_board_cannot_be_moved_out_of_sight(book: tuple[Page, seeding.Wide]) -> None:
    page, _ = book
    await page.mouse.move(700, 500)
    for _ in range(4):
        await page.mouse.wheel(4000, 4000)
    await next_frame(page)
    assert await page.evaluate(IN_SIGHT) > 0
    await page.get_by_role("button", name="Fit").click()
    await expect(page.locator(CARDS)).to_have_count(22)
    await all_in_sight(page)


async def test_the_dependencies_of_a_card_are_drawn_while_it_is_pointed_at(
    book: tuple[Page, seeding.Wide],
) -> None:
    page, _ = book
    active, others = page.locator("[data-need]"), page.locator("[data-needs][d*=M]")
    await expect(others).to_have_count(0)
    await page.locator(CARDS, has_text="Build the index").hover()
    await expect(active).to_have_count(1)
    await page.mouse.move(700, 880)
    await expect(active).to_have_count(0)
    await page.locator(CARDS, has_text="Write the preface").focus()
    await expect(active).to_have_count(5)  # what it needs, and what needs it
    switch = page.get_by_role("button", name="Dependencies")
    await switch.click()
    await expect(others).to_have_count(1)  # all in one path
    await switch.click()
    await expect(others).to_have_count(0)


async def test_the_keyboard_opens_a_stack_and_folds_it_again(
    book: tuple[Page, seeding.Wide],
) -> None:
    page, made = book
    await stack(page).focus()
    await page.keyboard.press("Enter")
    await expect(stack(page)).to_have_attribute("aria-expanded", "true")
    await page.get_by_role("button", name="Fold all").wait_for()
    await page.get_by_role("button", name="Fit").click()
    await expect(page.locator(CARDS)).to_have_count(202)
    await stack(page).focus()
    await page.keyboard.press("Enter")
    await expect(page.locator(CARDS)).to_have_count(22)
    # A link to a task that is folded away opens its details, and its stack is marked.
    await page.evaluate("(to) => history.pushState(null, '', to)", f"?node={made.nodes[20]}")
    await expect(page.get_by_role("complementary", name="Task")).to_contain_text("page 19")
    await expect(stack(page)).to_have_class(re.compile("ring-2"))
