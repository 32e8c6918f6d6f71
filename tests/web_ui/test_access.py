"""Access: every screen for every eye and without a mouse."""

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
LOOK = """async ([all, theme]) => {
  document.documentElement.dataset.theme = theme;
  const only = all.length ? {type: "tag", values: all} : {type: "rule", values: ["color-contrast"]};
  const found = await axe.run(document, {runOnly: only, resultTypes: ["violations"]});
  return found.violations.flatMap(({id, nodes}) => nodes.map((one) => `${id}: ${one.html}`));
}"""
WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


async def lively_desk(visit: Visit, **options: Any) -> tuple[Desk, dict[str, Any]]:
    desk = await visit(lively.Lively().play, settings=lively.PRICES, **options)
    return desk, await lively.begin(desk)


async def faults(page: Page, *, dark: bool = True) -> list[str]:
    """What axe finds in light, and what other colours change in dark."""
    await page.evaluate(AXE)  # past the page's policy, which lets no script in
    light = await page.evaluate(LOOK, [RULES, "light"])
    return [*light, *(await page.evaluate(LOOK, [[], "dark"]) if dark else [])]


WATCH = """() => {
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
MISSED = """() => [
  ...unseen.map((one) => `no sign of focus: ${one.outerHTML.slice(0, 160)}`),
  ...wanted.filter((one) => one.isConnected && !reached.has(one))
    .map((one) => `out of reach: ${one.outerHTML.slice(0, 160)}`),
]"""


async def walk(page: Page) -> list[str]:
    """Tab through a screen once; what cannot be reached, or is not seen to be reached."""
    await page.evaluate(WATCH)
    before, reached = 0, 1
    while before < reached:
        await asyncio.gather(*(page.keyboard.press("Tab") for _ in range(20)))
        before, reached = reached, await page.evaluate("reached.size")
    return await page.evaluate(MISSED)


@pytest.mark.timeout(240)
@pytest.mark.parametrize("size", ["desktop", "phone"])
async def test_nothing_on_any_screen_keeps_anyone_out(visit: Visit, size: str) -> None:
    options = {"desktop": DESKTOP, "phone": PHONE}[size] | {"reduced_motion": "reduce"}
    desk, team = await lively_desk(visit, **options)
    found: dict[str, list[str]] = {}
    for screen in await screens(desk, team):
        await screen.show(desk.page)
        found[screen.name] = await faults(desk.page, dark=size == "desktop")  # colours are the same
        if size == "desktop":
            found[screen.name] += await walk(desk.page)
        if wide := await desk.page.evaluate(WIDE):
            found[screen.name].append(f"{wide} pixels stick out")

    wrong = [f"{name}: {one}" for name, there in found.items() for one in there]
    assert not wrong, "\n".join(wrong)


async def test_the_door_is_open_to_everyone_too(visit: Visit) -> None:
    desk = await visit([])
    await expect(desk.page.get_by_text("Give a team something to do")).to_be_visible()
    welcome = await faults(desk.page)
    await desk.context.clear_cookies()
    desk.watch.is_server_away = True  # a browser says of every refusal that it was one
    await desk.page.reload()
    await expect(desk.page.get_by_text("Sign in to agiraph")).to_be_visible()

    assert [*welcome, *await faults(desk.page)] == []


async def test_a_whole_visit_without_a_mouse(visit: Visit) -> None:
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

    # Elsewhere and back by shortcuts and the palette; then the second option by its number.
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
