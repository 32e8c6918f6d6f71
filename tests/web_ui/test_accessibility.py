"""Accessibility: every screen passes axe and can be used with the keyboard."""

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable
from importlib.resources import files
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from tests.cli.shell import Shell
from tests.postgres_server import free_port
from tests.web_ui import lively
from tests.web_ui.browsing import EMPTY, PHONE, Desk, Visit, visiting
from tests.web_ui.screens import Screen, screens
from tests.web_ui.test_flow import asks_with_options, sidebar, thread

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(480)]

AXE = (files("axe_playwright_python") / "axe.min.js").read_text()
REMEMBER_COLOURS = """
const { prototype } = axe.commons.color.Color;
const { parseString } = prototype;
const known = new Map();
prototype.parseString = function (text) {
  if (!known.has(text)) {
    parseString.call(this, text);
    const { r, g, b, alpha } = this;
    known.set(text, { r, g, b, alpha });
  }
  return Object.assign(this, known.get(text));
};"""
"""A page has few colours; axe reads the text of each for every element below every other."""
REMEMBER_CONTRAST = """
const passed = new Set();
const ground = (one) => {
  if (one === null) return "";
  if (!grounds.has(one)) {
    const style = getComputedStyle(one);
    const own = [style.backgroundColor, style.backgroundImage, style.opacity].join();
    const isMoved = style.position === "absolute" || style.position === "fixed";
    const isPlain = own === "rgba(0, 0, 0, 0),none,1" && !isMoved;
    const mark = isPlain ? "" : `/${own}${isMoved ? one.getAttribute("class") : ""}`;
    grounds.set(one, ground(one.parentElement) + mark);
  }
  return grounds.get(one);
};
const look = (one) => {
  const { color, fontSize, fontWeight, textShadow } = getComputedStyle(one);
  return [color, fontSize, fontWeight, textShadow, ground(one)].join();
};
const rule = axe._audit.rules.find(({ id }) => id === "color-contrast");
const check = axe._audit.checks["color-contrast"];
const { matches } = rule, { evaluate } = check;
rule.matches = (one, ...more) => !passed.has(look(one)) && matches.call(rule, one, ...more);
check.evaluate = function (one, ...more) {
  const isEnough = evaluate.call(this, one, ...more);
  if (isEnough === true) passed.add(look(one));
  return isEnough;
};"""
"""Checks the contrast of a text only if no other text with the same colour, size, weight and shadow
and the same backgrounds of its ancestors has passed before. Contrast takes longer than all other
rules together. An element that lies behind a text and is not its ancestor is not compared, so the
long test checks every text."""
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
RUN_AXE = """async ([all, theme, without, colours]) => {
  document.documentElement.dataset.theme = theme;
  globalThis.grounds = new WeakMap();  // of this theme
  const contrast = {type: "rule", values: ["color-contrast"]};
  const runOnly = all.length ? {type: "tag", values: all} : contrast;
  // No rule that is on by default needs the text of the style sheets, which takes long to parse.
  const rules = {"color-contrast": {enabled: colours}};
  const options = {runOnly, rules, resultTypes: ["violations"], preload: {assets: ["media"]}};
  const found = await axe.run({include: [document], exclude: without}, options);
  return found.violations.flatMap(({id, nodes}) => nodes.map((one) => `${id}: ${one.html}`));
}"""
OTHER_LINKS = "nav[aria-label=Teams] :is(a:not([aria-current]), button, input)"
"""What the sidebar has on every screen: all but the link to the screen itself."""
HORIZONTAL_OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"

CUT_TABS = """() => {
  const groups = [...document.querySelectorAll("main [role=group]:has(> [aria-pressed])")];
  const cut = groups.flatMap((group) => [...group.children]).filter((one) => {
    const box = one.getBoundingClientRect();
    const frame = one.parentElement.getBoundingClientRect();
    return one.checkVisibility() && (box.right > frame.right + 1 || box.right > innerWidth);
  });
  return cut.map((one) => `cut off: ${one.textContent}`);
}"""
"""Finds buttons of a row that can be seen only after the row was scrolled to its side."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def lively_desk(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[Desk, dict[str, Any]]]:
    """A page at teams in the middle of their work, and the main team."""
    home = tmp_path_factory.mktemp("lively") / "home"
    async with visiting(browser, Shell(home), free_port()) as visit:
        desk = await visit(lively.Lively().play, settings=lively.SETTINGS)
        await desk.page.goto(EMPTY)  # it would have toasts of what is asked meanwhile
        yield desk, await lively.begin(desk)


THEMES = ("light", "dark")


async def axe_violations(
    page: Page,
    *,
    contrast_in: Collection[str] = ("light",),
    without: str = "",
    remembers: bool = True,
) -> list[str]:
    """Return what axe finds: all rules in the light theme, and contrast in these themes.

    The first call on a page decides whether looks that have passed are remembered.
    """
    if not await page.evaluate("'axe' in window"):
        # Evaluated, because the page's policy blocks added scripts.
        contrast = REMEMBER_CONTRAST if remembers else ""
        await page.evaluate(f"{AXE};{{ {REMEMBER_COLOURS} }} {{ {contrast} }} null")
    excluded = [without] if without else []
    light = await page.evaluate(RUN_AXE, [RULES, "light", excluded, "light" in contrast_in])
    if "dark" not in contrast_in:
        return light
    return [*light, *await page.evaluate(RUN_AXE, [[], "dark", excluded, True])]


RECORD_FOCUS = """(without) => {
  globalThis.left = without ? [...document.querySelectorAll(without)] : [];
  for (const one of left) one.inert = true;
  const modal = document.querySelector("[role=dialog][data-state=open]") ?? document;
  globalThis.reached = new Set([document.activeElement]);
  globalThis.unseen = [];
  globalThis.first = null;
  globalThis.isRound = false;
  globalThis.wanted = [...modal.querySelectorAll("a[href], button, input, textarea, select")]
    .filter((one) => one.checkVisibility({visibilityProperty: true}) && !one.disabled)
    .filter((one) => one.tabIndex >= 0 && !one.closest("[inert]"));
  globalThis.hear ??= addEventListener("focusin", ({target: one}) => {
    isRound ||= one === first;
    first ??= one;
    reached.add(one);
    const {width, height} = one.getBoundingClientRect();
    const style = getComputedStyle(one);
    const ring = style.outlineStyle !== "none" || one.closest("[class*=focus-within]") !== null;
    if (!width || !height || !ring) unseen.push(one);
  }) ?? true;
}"""
MISSED_BY_TAB = """() => {
  for (const one of left) one.inert = false;
  return [
    ...unseen.map((one) => `no visible focus: ${one.outerHTML.slice(0, 160)}`),
    ...wanted.filter((one) => one.isConnected && !reached.has(one))
      .map((one) => `not reached: ${one.outerHTML.slice(0, 160)}`),
  ];
}"""


async def unreachable_by_tab(page: Page, *, without: str) -> list[str]:
    """Tab through a screen, but for some elements; return those not reached or without focus."""
    await page.evaluate(RECORD_FOCUS, without)
    before, reached, is_round = 0, 1, False
    while before < reached and not is_round:  # until Tab is back at the first element
        # Held down, as each message to the browser counts.
        await asyncio.gather(*(page.keyboard.down("Tab") for _ in range(10)))
        before = reached
        reached, is_round = await page.evaluate("[reached.size, isRound]")
    await page.keyboard.up("Tab")
    return await page.evaluate(MISSED_BY_TAB)


async def violations(
    page: Page,
    shown: Iterable[Screen],
    *,
    is_phone: bool,
    contrast_in: Collection[str],
    remembers: bool = True,
) -> list[str]:
    """Show these screens; return what axe, the Tab key and the width find wrong on each."""
    found: dict[str, list[str]] = {}
    for screen in shown:
        await screen.show(page)
        without = OTHER_LINKS if found else ""
        found[screen.name] = await axe_violations(
            page, contrast_in=contrast_in, without=without, remembers=remembers
        )
        if not is_phone:
            found[screen.name] += await unreachable_by_tab(page, without=without)
        if is_phone:
            found[screen.name] += await page.evaluate(CUT_TABS)
        if wide := await page.evaluate(HORIZONTAL_OVERFLOW):
            found[screen.name].append(f"{wide} pixels of horizontal overflow")
    return [f"{name}: {one}" for name, there in found.items() for one in there]


ON_A_PHONE = frozenset(
    {
        "job-card",
        "inbox-way-out",
        "digest",
        "sources",  # its folded lines are too narrow for their links
        "team-settings",
        "board",
        "files-table",
        "insights",
    }
)
"""Screens of different layouts, which every run shows on a phone."""
LIKE_ANOTHER = frozenset(
    {
        "coordinator",
        "conversation",
        "inbox-approval",
        "inbox-briefing",
        "sources",
        "files-sources",
        "notes",
        "changes",
        "board-list",
        "team-permissions",
        "team-deletion",
        "timeline",  # these four: tests/web_ui/test_timeline.py
        "timeline-table",
        "replay",
        "event-log",
        "results",  # tests/web_ui/test_files.py
        "operations",  # these three: tests/web_ui/test_operations.py
        "operations-audit",
        "setup",
        "archive",  # tests/web_ui/test_shell.py
        "board",  # tests/web_ui/test_board.py
        "inbox",  # these two: tests/web_ui/test_inbox_bulk.py
        "digest",
        "connections",  # these five: tests/web_ui/test_connections.py
        "mcp-form",
        "mcp-consent",
        "own-tool-form",
        "channel-form",
        "share-off",  # these two: tests/web_ui/test_sharing.py
        "device-off",
        "cost-table",  # these two: tests/web_ui/test_costs.py
        "window",
        "editing",  # tests/web_ui/test_editing.py
        "trigger-edit",  # tests/web_ui/test_triggers.py
        "duplicate",  # tests/web_ui/test_team_settings.py
        "inbox-way-out",  # these four: on a phone
        "insights",
        "files-table",
        "team-settings",
    }
)
"""Screens that differ little from another one, or that another test checks with axe; only the long
test looks at them here."""


async def test_every_screen_is_accessible(lively_desk: tuple[Desk, dict[str, Any]]) -> None:
    desk, team = lively_desk
    everything = await screens(desk, team)
    shown = [screen for screen in everything if screen.name not in LIKE_ANOTHER]

    wrong = await violations(desk.page, shown, is_phone=False, contrast_in=["light"])

    assert len(shown) == len(everything) - len(LIKE_ANOTHER)
    assert not wrong, "\n".join(wrong)


async def test_screens_on_a_phone_are_accessible(lively_desk: tuple[Desk, dict[str, Any]]) -> None:
    desk, team = lively_desk
    shown = [screen for screen in await screens(desk, team) if screen.name in ON_A_PHONE]
    page = await desk.opens(**PHONE)

    # The colours are the same on a phone.
    wrong = await violations(page, shown, is_phone=True, contrast_in=[])

    assert len(shown) == len(ON_A_PHONE)
    assert not wrong, "\n".join(wrong)


@pytest.mark.long
@pytest.mark.parametrize("size", ["desktop", "phone"])
async def test_every_screen_is_accessible_in_both_themes_and_on_a_phone(
    lively_desk: tuple[Desk, dict[str, Any]], size: str
) -> None:
    desk, team = lively_desk
    page = await desk.opens(**PHONE if size == "phone" else {})  # nothing is remembered there
    shown = await screens(desk, team)

    # The colours are the same on a phone.
    contrast_in = THEMES if size == "desktop" else ()
    wrong = await violations(
        page, shown, is_phone=size == "phone", contrast_in=contrast_in, remembers=False
    )

    assert not wrong, "\n".join(wrong)


async def test_the_welcome_and_sign_in_pages_are_accessible(visit: Visit) -> None:
    desk = await visit([])
    await desk.page.get_by_text("What should a team do?").wait_for()
    welcome = await axe_violations(desk.page, contrast_in=THEMES)
    await desk.context.clear_cookies()
    desk.watch.is_server_away = True  # the browser logs the refused requests
    await desk.page.reload()
    await desk.page.get_by_text("Sign in to agiraph").wait_for()

    assert [*welcome, *await axe_violations(desk.page, contrast_in=THEMES)] == []


async def test_a_used_sign_in_link_opens_the_app_or_says_how_to_get_a_new_one(
    visit: Visit,
) -> None:
    desk = await visit([])
    page = desk.page
    link = await desk.up.ask("POST", "/tokens/link")
    address = f"{desk.up.origin}{link['path']}"
    await (await desk.opens()).goto(address)

    await page.goto(address)
    await page.get_by_text("What should a team do?").wait_for()
    assert "#" not in page.url
    await desk.context.clear_cookies()
    desk.watch.is_server_away = True  # the browser logs the refused requests
    await page.goto(address)
    await page.get_by_role("heading", name="This link is no longer valid").wait_for()
    await page.get_by_text("agiraph link").wait_for()

    assert await axe_violations(page, contrast_in=THEMES) == []


async def test_the_web_ui_can_be_used_with_the_keyboard_alone(visit: Visit) -> None:
    desk = await visit(asks_with_options)
    page = desk.page
    press = page.keyboard.press
    await page.get_by_text("Live", exact=True).wait_for()

    goal = page.get_by_label("What should a team do?")
    await expect(goal).to_be_focused()
    await page.keyboard.type("Paint")
    # Outside of the field letters are shortcuts, and what was typed is kept.
    await press("Escape")
    await press("g")
    await press("i")
    await page.get_by_role("heading", name="Inbox").wait_for()
    await press("n")
    await expect(goal).to_be_focused()
    await page.keyboard.type(" it")
    await press("Enter")
    await thread(page).get_by_text("Red or blue?").wait_for()

    # To the board and back by shortcuts and the palette; then mark the question and choose its
    # second option by number.
    await page.locator("#main").focus()
    await press("g")
    await press("b")
    await page.get_by_role("heading", name="Board").wait_for()
    await press("Control+k")
    await expect(page.get_by_role("combobox", name="Jump to")).to_be_focused()
    await page.keyboard.type("coord")
    await press("Enter")
    await thread(page).get_by_text("Red or blue?").wait_for()
    await press("a")
    await thread(page).locator("[data-question][data-marked]").wait_for()
    while not await thread(page).get_by_text("You answered: blue").count():
        await press("2")  # it counts once the card was on screen for a second

    await press("r")
    await expect(page.get_by_role("textbox", name="Message Coordinator")).to_be_focused()
    await page.keyboard.type("Thank you")
    await press("Enter")
    await expect(thread(page).get_by_text("Thank you", exact=True)).to_have_count(1)
    await press("Escape")
    await expect(thread(page)).to_be_focused()
    await page.get_by_role("button", name="Team actions").press("Enter")
    await expect(page.get_by_role("menuitem").first).to_be_focused()
    await press("Escape")
    await expect(page.get_by_role("button", name="Team actions")).to_be_focused()
    await press("?")
    await expect(page.get_by_role("dialog")).to_contain_text("Jump to anything")
    await press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    # The dialog does not bring the focus back to the message, which the person left before it.
    await press("[")
    await expect(sidebar(page)).to_have_count(0)
