"""Board: a team's tasks as a tree that fits its window, folds, and is read with the keyboard."""

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, Page, expect

from agiraph.core.domain.ids import StageId
from agiraph.core.domain.times.time import SystemClock
from agiraph.core.store.nodes import NODES
from tests.api.serving import Served
from tests.web_ui import seeding
from tests.web_ui.browsing import PHONE, watched
from tests.web_ui.test_accessibility import HORIZONTAL_OVERFLOW, THEMES, axe_violations
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


# A team of 311 tasks on four levels: what is finished, and what nobody has begun, is folded.

SHOWN = 1 + 10 + 15 + 15
"""The goal, its leads, and the parts and pieces that are under way."""
PLACE = """(one) => {
  const card = one.getBoundingClientRect();
  return [Math.round(card.x), Math.round(card.y)];
}"""
OUTSIDE_FRAME = """([stage, titles]) => {
  const frame = [...document.querySelectorAll("[data-stage]")].map((one) =>
    [one.textContent.startsWith(stage), one.getBoundingClientRect()]).find(([is]) => is)[1];
  return [...document.querySelectorAll("[data-card]")].filter((one) =>
    titles.some((title) => one.textContent.includes(title))).map((one) =>
    one.getBoundingClientRect()).filter((one) => one.left < frame.left || one.top < frame.top
    || one.right > frame.right || one.bottom > frame.bottom).length;
}"""


@dataclass(frozen=True, slots=True)
class Deep:
    page: Page
    team: seeding.Wide
    served: Served

    async def open(self, search: str = "") -> None:
        await self.page.goto(f"{self.served.origin}/t/{self.team.team}/board{search}")
        await self.page.wait_for_selector(CARDS)
        await all_in_sight(self.page)

    def card(self, title: str, at: int = 0) -> Locator:
        return self.page.locator(CARDS, has_text=title).nth(at)


@pytest_asyncio.fixture(loop_scope="session")
async def deep(browser: Browser, tmp_path: Path) -> AsyncIterator[Deep]:
    made = await seeding.deep_team(tmp_path / "home")
    assert len(made.nodes) == 311
    async with (
        serving(tmp_path / "home", clock=SystemClock()) as served,
        watched(browser, served.origin) as (page, _),
    ):
        yield Deep(page, made, served)


async def places(*cards: Locator) -> list[list[int]]:
    return [await card.evaluate(PLACE) for card in cards]


async def zoom_in(page: Page, times: int) -> None:
    """Zoom until cards show all they have."""
    for _ in range(times):
        await page.get_by_role("button", name="Zoom in").click()
    await page.get_by_text("Running").first.wait_for()


async def test_work_stands_below_its_task_and_inside_the_frame_of_its_stage(deep: Deep) -> None:
    page = deep.page
    await deep.open()
    await expect(page.locator(CARDS)).to_have_count(SHOWN)
    # Four levels: each further to the right and further down than the one above.
    goal, lead = deep.card("Bring the"), deep.card("Design the")
    part, piece = deep.card("Do the work"), deep.card("Make a draft")
    down = await places(goal, lead, part, piece)
    assert down == sorted(down)
    assert sorted(y for _, y in down) == [y for _, y in down]
    assert [await one.get_attribute("aria-level") for one in (goal, lead, part, piece)] == [
        "1", "2", "3", "4",
    ]  # fmt: skip
    titles = ["Design the", "Write the", "Test everything", "Plan it", "Make a draft", "Sum up"]
    assert await page.evaluate(OUTSIDE_FRAME, ["Build", titles]) == 0
    assert await page.evaluate(OUTSIDE_FRAME, ["Research", titles]) > 0
    assert await axe_violations(page, contrast_in=THEMES) == []
    # The cost of a task is that of all below it, and of a stage that of its tasks.
    await zoom_in(page, 3)
    await expect(deep.card("Design the")).to_contain_text("$0.13")
    await expect(deep.card("Do the work")).to_contain_text("$0.03")
    await page.get_by_role("treeitem", name="Ask the customers").focus()
    await expect(page.locator("[data-stage]", has_text="Research")).to_contain_text("4/4 · $1.00")
    assert await axe_violations(page, contrast_in=THEMES) == []


async def test_a_fold_says_what_it_hides_and_is_there_after_a_reload(deep: Deep) -> None:
    page = deep.page
    await deep.open()
    await zoom_in(page, 3)
    lead = deep.card("Write the")
    fold = page.locator(f"[data-fold='{await lead.get_attribute('data-card')}']")
    await fold.click()
    await expect(lead).to_have_attribute("aria-expanded", "false")
    await expect(fold).to_contain_text("30 tasks · 1 failed")
    await expect(lead).to_contain_text("Folded: 30 tasks · 1 failed")
    await expect(page.locator(CARDS)).to_have_count(SHOWN - 10)
    await deep.open()
    await expect(page.locator(CARDS)).to_have_count(SHOWN - 10)
    await page.get_by_role("button", name="Show every task").click()
    await page.get_by_role("button", name="Fit").click()
    await expect(page.locator(CARDS)).to_have_count(311)
    await page.get_by_role("button", name="Fold all").click()
    await expect(page.locator(CARDS)).to_have_count(11)
    # A link to a task that is folded away marks the task that hides it.
    await deep.open(f"?node={deep.team.nodes[-1]}")
    about = page.get_by_role("complementary", name="Task")
    await expect(about).to_contain_text("Sum up")
    await expect(page.locator("[data-card][aria-selected=true]")).to_contain_text("Open the")


async def test_the_arrow_keys_go_along_the_tree(deep: Deep) -> None:
    page = deep.page
    await deep.open()
    press = page.keyboard.press
    await deep.card("Bring the").focus()
    steps = (
        ("ArrowDown", "Ask the customers"),
        ("ArrowRight", "Ask the customers"),  # unfolds it
        ("ArrowRight", "Plan it"),
        ("ArrowDown", "Collect what"),
        ("ArrowLeft", "Ask the customers"),
        ("ArrowLeft", "Ask the customers"),  # folds it
        ("ArrowDown", "Read the rivals"),
        ("ArrowUp", "Ask the customers"),
        ("ArrowLeft", "Bring the"),
        ("End", "Open the shops"),
        ("Home", "Bring the"),
    )
    focused = page.locator("[data-card]:focus")
    for key, title in steps:
        await press(key)
        await expect(focused).to_contain_text(title)
    # One stop of Tab for all cards, and it is the one that was left.
    await expect(page.locator("[data-card][tabindex='0']")).to_have_count(1)
    await press("ArrowDown")
    await expect(focused).to_contain_text("Ask the customers")
    await press("Tab")
    await press("Shift+Tab")
    await expect(focused).to_contain_text("Ask the customers")


async def test_a_task_leads_to_a_talk_with_its_agent(deep: Deep) -> None:
    page = deep.page
    await deep.open()
    await deep.card("Write the").click()
    about = page.get_by_role("complementary", name="Task")
    await about.get_by_role("link", name="Talk to Finn").click()
    await page.get_by_placeholder("Message Finn").wait_for()


async def test_work_that_arrives_does_not_move_what_a_person_looks_at(deep: Deep) -> None:
    page, store = deep.page, deep.served.world.store
    await deep.open()
    await zoom_in(page, 3)
    last = deep.card("Test everything")
    await last.click()
    await expect(page.get_by_role("complementary", name="Task")).to_contain_text("Test everything")
    await page.keyboard.press("Escape")
    await expect(last).to_be_focused()
    before = await places(last)
    # In the stage on the left: all of the board to its right moves.
    goal, lead = deep.team.nodes[:2]
    stage = await stage_of(deep, lead)
    for word in ("First", "Second", "Third", "Fourth", "Fifth", "Sixth"):
        await store.write(
            partial(seeding.add_node, team=deep.team.team, number=1, parent=goal, stage=stage,
                    title=f"{word} question")
        )  # fmt: skip
    await page.get_by_text("317 tasks").first.wait_for()
    await page.get_by_role("button", name=re.compile(r"^\d new tasks?$")).wait_for()
    assert await places(last) == before


async def stage_of(deep: Deep, node: str) -> StageId:
    found = await deep.served.world.store.read(NODES.get, node)
    assert found.stage_id is not None
    return found.stage_id


async def test_a_map_beside_the_conversation_leads_to_the_agents(deep: Deep) -> None:
    page = deep.page
    await page.goto(f"{deep.served.origin}/t/{deep.team.team}/a/{deep.team.agents[4]}")
    details = page.get_by_role("complementary", name="Details")
    words = "3 failed, 3 running, 7 waiting, 135 pending, 163 done"
    link = details.get_by_role("link", name=f"Open the board: 311 tasks, {words}")
    await link.wait_for()
    await expect(details).to_contain_text("3 failed · 3 running · 7 waiting")
    assert await axe_violations(page, contrast_in=THEMES) == []
    # The first card below the goal is the lead Ada's.
    await link.click(position={"x": 14, "y": 26})
    await page.get_by_placeholder("Message Ada").wait_for()
    await link.press("Enter")
    await page.wait_for_url("**/board")
    # It needs room, and more than one task.
    await page.set_viewport_size({"width": 1100, "height": 800})
    await page.go_back()
    await page.get_by_placeholder("Message Ada").wait_for()
    await page.get_by_role("button", name="Details").click()
    await page.get_by_role("dialog").get_by_role("heading", name="Agent").wait_for()
    await expect(page.get_by_role("heading", name="Map of the work")).to_have_count(0)


async def test_a_large_tree_opens_with_words_on_a_phone_and_fits_when_asked(
    browser: Browser, tmp_path: Path
) -> None:
    made = await seeding.deep_team(tmp_path / "home")
    async with (
        serving(tmp_path / "home", clock=SystemClock()) as served,
        watched(browser, served.origin, **PHONE) as (page, _),
    ):
        await page.goto(f"{served.origin}/t/{made.team}/board?view=graph")
        zoomed_out = page.locator("[data-card][aria-label^='Bring the'] [dir=auto]")
        await expect(zoomed_out).to_be_visible()
        assert await page.evaluate(SMALLEST_TITLE_PX) >= 10
        assert await page.evaluate(HORIZONTAL_OVERFLOW) == 0
        assert await axe_violations(page, contrast_in=THEMES) == []
        await page.get_by_role("button", name="Fit").click()
        await all_in_sight(page)
