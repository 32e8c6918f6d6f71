"""Connections: a person adds MCP servers in the browser, with the consent that the CLI asks for."""

import asyncio
import re
import sys
from pathlib import Path

import pytest
from playwright.async_api import Locator, Page, expect

from agiraph.core.domain.ids import TeamId
from agiraph.core.domain.times.time import SystemClock
from agiraph.core.home.named_secrets import NamedSecrets
from agiraph.testing import call, says
from agiraph.testing.model_server import Seen, Step
from tests import programs
from tests.extensions.test_consent import greeting
from tests.mcp.kit import RUDE, behave
from tests.mcp.test_sign_in import browse, protected
from tests.postgres_server import free_port
from tests.runtime.bot_api import TOKEN, BotApi
from tests.runtime.receivers import WebhookServer
from tests.web_ui.browsing import EMPTY, PHONE, Visit
from tests.web_ui.test_accessibility import THEMES, axe_violations

pytestmark = pytest.mark.asyncio(loop_scope="session")
PATH = "/operations?section=connections"
PASSWORD = "correct horse 42"


def servers_of(page: Page) -> Locator:
    return page.get_by_role("region", name="MCP servers")


async def fill_server(page: Page, name: str, how: str) -> Locator:
    """Open the dialog with the keyboard, and say which server it is."""
    await servers_of(page).get_by_role("button", name="Add an MCP server").press("Enter")
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_label("Name", exact=True)).to_be_focused()
    await page.keyboard.type(name)
    if how.startswith("http"):
        await dialog.get_by_role("button", name="An address").press("Enter")
    await dialog.get_by_label("Address" if how.startswith("http") else "Command").fill(how)
    return dialog


async def agree(page: Page, name: str) -> None:
    """Read all that is shown, and agree with the button of this name."""
    button = page.get_by_role("dialog").get_by_role("button", name=name, exact=True)
    await button.wait_for()
    async with asyncio.timeout(30):
        while await button.is_disabled():
            # It goes with the last part, perhaps before a click would reach it.
            on = page.get_by_role("button", name="Go on reading")
            await on.evaluate_all("found => found[0]?.click()")
    await button.press("Enter")


def converts_time(seen: Seen) -> Step:
    if "finish" not in seen.tools:
        return says("Fine.")
    if seen.index == 0:
        given = {"source_timezone": "Europe/Berlin", "time": "12:00"}
        given["target_timezone"] = "Asia/Tokyo"
        return says(call("call_tool", name="mcp__clock__convert_time", arguments=given))
    return says(call("finish", summary="It is evening in Tokyo."))


async def test_a_server_is_added_with_consent_used_by_an_agent_and_removed(
    visit: Visit, tmp_path: Path
) -> None:
    desk = await visit(converts_time, path=EMPTY)
    page, settings = desk.page, desk.home / "agiraph.toml"
    await desk.open(PATH)
    await servers_of(page).get_by_text("One gives agents the tools of another program").wait_for()
    clock = programs.pypi("mcp-pypi", "mcp-server-time")
    dialog = await fill_server(page, "clock", f"{clock} --local-timezone UTC")
    await dialog.get_by_text("What it and agents may do").click()
    await dialog.get_by_label("Of these, tools that change nothing").fill("*")
    assert await axe_violations(page, contrast_in=THEMES) == []
    await dialog.get_by_label("Name", exact=True).press("Enter")

    # What is started, word for word, and the words of the command line. Nothing has happened yet,
    # and no key but the button's own agrees.
    reached = dialog.get_by_role("group", name="How it is reached")
    await expect(reached).to_contain_text(
        f"argument: {clock}argument: --local-timezoneargument: UTCIts program reaches no network."
    )
    await expect(dialog).to_contain_text("This is your consent to start it.")
    await expect(dialog).to_contain_text("Start it, and ask for its tools?")
    await expect(reached).to_be_focused()
    await page.keyboard.press("Enter")
    await page.keyboard.press("Control+Enter")
    assert await axe_violations(page, contrast_in=THEMES) == []
    assert (settings.exists(), (await desk.up.ask("GET", "/mcp-servers"))) == (False, [])
    await agree(page, "Start it")

    await expect(page.get_by_role("dialog", name="Accept clock?")).to_be_visible()
    tool = dialog.get_by_role("region", name="convert_time")
    await expect(tool).to_contain_text("New")
    await expect(tool).to_contain_text("only reads")
    await agree(page, "Accept")
    await expect(dialog).to_have_count(0)
    item = servers_of(page).get_by_role("listitem")
    await expect(item).to_contain_text("2 tools")
    assert "[mcp.clock]" in settings.read_text()

    team = await desk.found("What time is it in Tokyo?", acceptance=["answer"], review="never")
    await desk.go(f"/t/{team['id']}/a/{team['coordinator_id']}")
    await page.get_by_text("The team completed its goal").first.wait_for()
    assert desk.world is not None
    [goal] = await desk.world.board(TeamId(team["id"]))
    told = [turn.text for turn in await desk.world.turns(goal.id) if turn.role == "tool"]
    assert "+09:00" in told[0]

    await desk.go(PATH)
    await item.get_by_role("button", name="Remove clock").press("Enter")
    await dialog.get_by_role("button", name="Remove it").press("Enter")
    await expect(item).to_have_count(0)
    assert "[mcp.clock]" not in settings.read_text()


async def test_a_server_that_fails_says_why_and_leaves_nothing(visit: Visit) -> None:
    desk = await visit([], path=EMPTY)
    page = desk.page
    await desk.open(PATH)
    dialog = await fill_server(page, "Bad Name", "bash -c 'echo no key >&2; exit 4'")
    go_on = dialog.get_by_role("button", name="Continue")
    await go_on.click()
    await expect(dialog.get_by_role("alert")).to_contain_text("cannot name a server")
    await dialog.get_by_label("Name", exact=True).fill("broken")
    await go_on.click()
    await agree(page, "Start it")
    await expect(dialog.get_by_role("alert")).to_contain_text("It ended (exit code 4). no key")
    await dialog.get_by_role("button", name="Back").press("Enter")
    await expect(dialog.get_by_label("Name", exact=True)).to_have_value("broken")
    await page.keyboard.press("Escape")
    await servers_of(page).get_by_text("No MCP servers.").wait_for()
    assert not (desk.home / "agiraph.toml").exists()
    assert [re.search("status of 422", fault) is None for fault in desk.watch.faults] == [False] * 2
    desk.watch.faults.clear()


async def test_a_secret_is_entered_by_name_and_a_changed_server_is_asked_again_on_a_phone(
    visit: Visit, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    desk = await visit([], path=EMPTY, world={"secrets": NamedSecrets(home=home)}, **PHONE)
    page = desk.page
    await desk.open(PATH)
    dialog = await fill_server(page, "rude", f"{sys.executable} -I -S {RUDE}")
    await dialog.get_by_role("button", name="Add a variable").click()
    await dialog.get_by_label("Name of variable 1").fill("API_KEY")
    await dialog.get_by_role("button", name="Enter a secret for variable 1").click()
    secret = page.get_by_role("dialog", name="Secret")
    await secret.get_by_label("Name").fill("bank-login")
    await secret.get_by_label("Secret", exact=True).fill(PASSWORD)
    await secret.get_by_role("button", name="Keep it").click()
    await expect(dialog.get_by_label("Value of variable 1")).to_have_value("${bank-login}")
    assert await axe_violations(page, contrast_in=()) == []
    await dialog.get_by_role("button", name="Continue").click()
    await expect(dialog).to_contain_text("It is handed these secrets: bank-login.")
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    await agree(page, "Start it")
    # More tools than fit on the screen are read before they are accepted.
    await dialog.get_by_role("button", name="Go on reading").wait_for()
    await expect(dialog.get_by_role("button", name="Accept", exact=True)).to_be_disabled()
    assert await axe_violations(page, contrast_in=()) == []
    await agree(page, "Accept")
    item = servers_of(page).get_by_role("listitem")
    await expect(item).to_contain_text("13 tools")
    assert PASSWORD not in await page.content()
    assert PASSWORD not in (home / "agiraph.toml").read_text()

    behave(home, descriptions={"echo": "Other words."})
    await item.get_by_role("button", name="Ask for its tools").click()
    await expect(item).to_contain_text("Changed")
    await item.get_by_role("button", name="Review").click()
    changed = dialog.get_by_role("group", name="Description of echo")
    await expect(changed).to_contain_text(re.compile("removed: .*Say it.*added: .*Other words"))
    await agree(page, "Accept")
    await expect(item).to_contain_text("Connected")


async def test_a_server_that_wants_a_sign_in_says_so_until_the_person_has_signed_in(
    visit: Visit,
) -> None:
    async with protected() as (url, _):
        desk = await visit([], path=EMPTY)
        page = desk.page
        await desk.open(PATH)
        dialog = await fill_server(page, "safe", url)
        await dialog.get_by_role("button", name="Continue").click()
        await expect(dialog.get_by_role("group", name="How it is reached")).to_contain_text(
            f"address: {url}"
        )
        await agree(page, "Connect to it")
        item = servers_of(page).get_by_role("listitem")
        await expect(item).to_contain_text("Needs a sign-in")
        await item.get_by_role("button", name="Sign in").click()
        link = dialog.get_by_role("link", name=re.compile("Open 127.0.0.1:"))
        address = await link.get_attribute("href")
        assert address is not None
        await browse(address)
        await expect(dialog).to_have_count(0)
        await item.get_by_role("button", name="Review").click()
        await expect(dialog).to_contain_text("Tell who you are.")
        await agree(page, "Accept")
        await expect(item).to_contain_text("1 tool")


def greets(seen: Seen) -> Step:
    if "finish" not in seen.tools:
        return says("Fine.")
    if seen.index == 0:
        return says(call("greet", name="Bob"))
    return says(call("finish", summary="Greeted."))


async def test_an_own_tool_is_added_read_enabled_and_used(visit: Visit) -> None:
    desk = await visit(greets, path=EMPTY)
    page = desk.page
    await desk.open(PATH)
    own = page.get_by_role("region", name="Own tools and skills")
    await own.get_by_role("button", name="Add an own tool").press("Enter")
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_label("Name")).to_be_focused()
    await page.keyboard.type("hi")
    await dialog.get_by_label("Code").fill(greeting() + "# more\n" * 60)
    assert await axe_violations(page, contrast_in=THEMES) == []
    await dialog.get_by_label("Name").press("Enter")
    await expect(dialog).to_contain_text("with all that your user may do. Read it first.")
    enable = dialog.get_by_role("button", name="Enable this content")
    await expect(enable).to_be_disabled()
    await dialog.get_by_role("button", name="Go on reading").wait_for()
    assert await axe_violations(page, contrast_in=THEMES) == []
    assert not (desk.home / "consents.json").exists()
    await agree(page, "Enable this content")
    item = own.get_by_role("listitem")
    await expect(item).to_contain_text("greet (nothing)")
    team = await desk.found("Greet Bob", acceptance=["answer"], review="never")
    await desk.go(f"/t/{team['id']}/a/{team['coordinator_id']}")
    await page.get_by_text("The team completed its goal").first.wait_for()
    assert desk.world is not None
    [goal] = await desk.world.board(TeamId(team["id"]))
    told = [turn.text for turn in await desk.world.turns(goal.id) if turn.role == "tool"]
    assert told[0] == "Hello Bob"

    # Other bytes are asked about again.
    (desk.home / "tools" / "hi.py").write_text(greeting("Goodbye"))
    await desk.go(PATH)
    await expect(item).to_contain_text("Changed")


async def test_a_channel_is_added_with_a_secret_paired_tested_and_removed(
    visit: Visit, tmp_path: Path
) -> None:
    home, clock = tmp_path / "home", SystemClock()
    async with BotApi(now=clock.now()).open() as bot, WebhookServer().open() as web:
        desk = await visit([], path=EMPTY, world={"secrets": NamedSecrets(home=home)})
        page = desk.page
        await desk.open(PATH)
        channels = page.get_by_role("region", name="Channels", exact=True)
        await channels.get_by_text("you answer from there").wait_for()
        await channels.get_by_role("button", name="Add a channel").press("Enter")
        dialog = page.get_by_role("dialog")
        await expect(dialog.get_by_label("Name", exact=True)).to_be_focused()
        await page.keyboard.type("hook")
        await dialog.get_by_label("Kind").select_option("webhook")
        await dialog.get_by_label("Address", exact=True).fill(
            f"http://127.0.0.1:{free_port()}/hook"
        )
        assert await axe_violations(page, contrast_in=THEMES) == []
        await dialog.get_by_label("Address", exact=True).press("Enter")
        await expect(dialog.get_by_role("group", name="Where it leads")).to_be_focused()
        await agree(page, "Try and add it")
        await expect(dialog.get_by_role("alert")).to_contain_text(
            "The channel 'hook' does not work"
        )
        await dialog.get_by_role("button", name="Back").press("Enter")
        assert not (home / "agiraph.toml").exists()
        assert desk.watch.faults.pop().count("status of 422") == 1

        await dialog.get_by_label("Address", exact=True).fill(f"http://127.0.0.1:{web.port}/hook")
        await dialog.get_by_role("button", name="Enter a secret: Secret that signs").click()
        secret = page.get_by_role("dialog", name="Secret")
        await secret.get_by_label("Name").fill("signing")
        await secret.get_by_label("Secret", exact=True).fill(PASSWORD)
        await secret.get_by_role("button", name="Keep it").click()
        await dialog.get_by_role("button", name="Continue").click()
        await expect(dialog).to_contain_text("It is handed these secrets: signing.")
        await expect(dialog).to_contain_text(f"webhook at 127.0.0.1:{web.port} (signed)")
        assert await axe_violations(page, contrast_in=THEMES) == []
        await agree(page, "Try and add it")
        hook = channels.get_by_role("listitem").filter(has_text="hook")
        await expect(hook).to_contain_text("sends only")
        await hook.get_by_role("button", name="Test hook").click()
        await page.get_by_text("A test message was sent by hook.").wait_for()
        assert PASSWORD not in (home / "agiraph.toml").read_text()

        await channels.get_by_role("button", name="Add a channel").click()
        await dialog.get_by_label("Name", exact=True).fill("phone")
        # The token itself, pasted where its name belongs, is sent nowhere.
        named = dialog.get_by_role("textbox", name="Secret with the bot's token")
        await named.fill(TOKEN)
        await dialog.get_by_role("button", name="Continue").click()
        assert await named.evaluate("field => field.validity.patternMismatch")
        await expect(dialog).not_to_contain_text("There is no secret")
        await dialog.get_by_role("button", name="Enter a secret: Secret with the bot").click()
        await secret.get_by_label("Name").fill("bot")
        await secret.get_by_label("Secret", exact=True).fill(TOKEN)
        await secret.get_by_role("button", name="Keep it").click()
        await dialog.get_by_label("Bot API server").fill(bot.url)
        await dialog.get_by_role("button", name="Continue").click()
        await expect(dialog).to_contain_text("what you write there counts as said by you")
        await agree(page, "Try and add it")
        phone = channels.get_by_role("listitem").filter(has_text="phone")
        await expect(phone).to_contain_text("not paired")
        await phone.get_by_role("button", name="Test phone").click()
        await page.get_by_text("phone works. Pair it next.").wait_for()
        for name in ("hook", "phone"):
            await channels.get_by_role("button", name=f"Remove {name}").press("Enter")
            await dialog.get_by_role("button", name="Remove it").press("Enter")
            await expect(dialog).to_have_count(0)
        await expect(channels.get_by_role("listitem")).to_have_count(0)
        assert "[channels" not in (home / "agiraph.toml").read_text()
