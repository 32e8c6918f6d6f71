"""Accessibility: every screen passes axe and can be used with the keyboard."""

import asyncio
from importlib.resources import files
from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.web_ui import lively
from tests.web_ui.browsing import DESKTOP, PHONE, Desk, Visit
from tests.web_ui.screens import screens
from tests.web_ui.test_flow import asks_with_options, sidebar, thread

pytestmark = pytest.mark.asyncio(loop_scope="session")

AXE = (files("axe_playwright_python") / "axe.min.js").read_text()
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
RUN_AXE = """async ([all, theme]) => {
  document.documentElement.dataset.theme = theme;
  const only = all.length ? {type: "tag", values: all} : {type: "rule", values: ["color-contrast"]};
  const found = await axe.run(document, {runOnly: only, resultTypes: ["violations"]});
  return found.violations.flatMap(({id, nodes}) => nodes.map((one) => `${id}: ${one.html}`));
}"""
HORIZONTAL_OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


async def lively_desk(visit: Visit, **options: Any) -> tuple[Desk, dict[str, Any]]:
    desk = await visit(lively.Lively().play, settings=lively.PRICES, **options)
    return desk, await lively.begin(desk)


async def axe_violations(page: Page, *, dark: bool = True) -> list[str]:
    """Return what axe finds: all rules in the light theme, contrast in the dark one."""
    await page.evaluate(AXE)  # evaluated, because the page's policy blocks added scripts
    light = await page.evaluate(RUN_AXE, [RULES, "light"])
    return [*light, *(await page.evaluate(RUN_AXE, [[], "dark"]) if dark else [])]


RECORD_FOCUS = """() => {
  const modal = document.querySelector("[role=dialog][data-state=open]") ?? document;
  globalThis.reached = new Set([document.activeElement]);
  globalThis.unseen = [];
  globalThis.wanted = [...modal.querySelectorAll("a[href], button, input, textarea, select")]
    .filter((one) => one.checkVisibility({visibilityProperty: true}) && !one.disabled)
    .filter((one) => one.tabIndex >= 0 && !one.closest("[inert]"));
  globalThis.hear ??= addEventListener("focusin", ({target: one}) => {
    reached.add(one);
    const {width, height} = one.getBoundingClientRect();
    const style = getComputedStyle(one);
    const ring = style.outlineStyle !== "none" || one.closest("[class*=focus-within]") !== null;
    if (!width || !height || !ring) unseen.push(one);
  }) ?? true;
}"""
MISSED_BY_TAB = """() => [
  ...unseen.map((one) => `no visible focus: ${one.outerHTML.slice(0, 160)}`),
  ...wanted.filter((one) => one.isConnected && !reached.has(one))
    .map((one) => `not reached: ${one.outerHTML.slice(0, 160)}`),
]"""


async def unreachable_by_tab(page: Page) -> list[str]:
    """Tab through a screen; return the elements that are not reached or show no focus."""
    await page.evaluate(RECORD_FOCUS)
    before, reached = 0, 1
    while before < reached:
        await asyncio.gather(*(page.keyboard.press("Tab") for _ in range(20)))
        before, reached = reached, await page.evaluate("reached.size")
    return await page.evaluate(MISSED_BY_TAB)


@pytest.mark.timeout(240)
@pytest.mark.parametrize("size", ["desktop", "phone"])
async def test_every_screen_is_accessible(visit: Visit, size: str) -> None:
    options = {"desktop": DESKTOP, "phone": PHONE}[size] | {"reduced_motion": "reduce"}
    desk, team = await lively_desk(visit, **options)
    found: dict[str, list[str]] = {}
    for screen in await screens(desk, team):
        await screen.show(desk.page)
        # The colours are the same on a phone.
        found[screen.name] = await axe_violations(desk.page, dark=size == "desktop")
        if size == "desktop":
            found[screen.name] += await unreachable_by_tab(desk.page)
        if wide := await desk.page.evaluate(HORIZONTAL_OVERFLOW):
            found[screen.name].append(f"{wide} pixels of horizontal overflow")

    wrong = [f"{name}: {one}" for name, there in found.items() for one in there]
    assert not wrong, "\n".join(wrong)


async def test_the_welcome_and_sign_in_pages_are_accessible(visit: Visit) -> None:
    desk = await visit([])
    await expect(desk.page.get_by_text("Give a team something to do")).to_be_visible()
    welcome = await axe_violations(desk.page)
    await desk.context.clear_cookies()
    desk.watch.is_server_away = True  # the browser logs the refused requests
    await desk.page.reload()
    await expect(desk.page.get_by_text("Sign in to agiraph")).to_be_visible()

    assert [*welcome, *await axe_violations(desk.page)] == []


async def test_the_web_ui_can_be_used_with_the_keyboard_alone(visit: Visit) -> None:
    desk = await visit(asks_with_options)
    page = desk.page
    press = page.keyboard.press
    await expect(page.get_by_text("Live")).to_be_visible()

    await press("c")
    await expect(page.get_by_label("Goal")).to_be_focused()
    await page.keyboard.type("Paint it")
    await press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await press("c")
    await expect(page.get_by_label("Goal")).to_be_focused()
    await page.keyboard.type("Paint it")
    while not await page.get_by_role("button", name="Get to work").evaluate(
        "(one) => one === document.activeElement"
    ):
        await press("Tab")
    await press("Enter")
    await expect(thread(page).get_by_text("Red or blue?")).to_be_visible()

    # To the board and back by shortcuts and the palette; then choose the second option by number.
    await page.locator("#main").focus()
    await press("g")
    await press("b")
    await expect(page.get_by_role("heading", name="Board")).to_be_visible()
    await press("Control+k")
    await expect(page.get_by_role("combobox")).to_be_focused()
    await page.keyboard.type("coord")
    await press("Enter")
    await expect(thread(page).get_by_text("Red or blue?")).to_be_visible()
    await press("2")
    await expect(thread(page).get_by_text("You answered: blue")).to_be_visible()

    await press("r")
    await expect(page.get_by_role("textbox", name="Message Coordinator")).to_be_focused()
    await page.keyboard.type("Thank you")
    await press("Enter")
    await expect(thread(page).get_by_text("Thank you", exact=True)).to_have_count(1)
    await press("Escape")
    await press("?")
    await expect(page.get_by_role("dialog")).to_contain_text("Jump to anything")
    await press("Escape")
    await press("[")
    await expect(sidebar(page)).to_have_count(0)
