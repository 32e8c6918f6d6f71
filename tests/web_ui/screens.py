"""Screens: every screen of the web UI by name, and how to open it with content."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from playwright.async_api import Page, expect

from tests.web_ui.browsing import Desk

Act = Callable[[Page], Awaitable[None]]


async def _nothing(_: Page) -> None:
    """Do nothing on the screen."""


@dataclass(frozen=True, slots=True)
class Screen:
    name: str
    address: str
    shows: str
    """A text that is visible when the screen is complete."""
    act: Act = _nothing
    """An action on the screen before it is checked."""

    async def show(self, page: Page) -> None:
        """Open the screen: load the page the first time, then navigate as a link would."""
        is_new = not page.url.startswith(self.address[: self.address.index("/", 8)])
        if is_new:
            await page.goto(self.address)
        else:
            await page.keyboard.press("Escape")
            await page.evaluate("(to) => history.pushState(null, '', to)", self.address)
        await self.act(page)
        await page.get_by_text(self.shows).locator("visible=true").first.wait_for()
        if is_new:  # Markdown is loaded with the first text
            await page.wait_for_load_state("networkidle")


async def _palette(page: Page) -> None:
    await page.locator("#composer").wait_for()
    await page.keyboard.press("Control+k")
    await page.get_by_role("combobox", name="Jump to").wait_for()


async def _picture(page: Page) -> None:
    await expect(page.get_by_text("Drawing the board")).to_have_count(0)


def _presses(key: str) -> Act:
    async def press(page: Page) -> None:
        await page.locator("#composer").wait_for()
        await page.locator("#main").focus()
        await page.keyboard.press(key)

    return press


async def _open_job(page: Page) -> None:
    card = page.get_by_role("region", name="Work in progress").get_by_role("listitem")
    await card.filter(has_text="Which of these cards").locator("[aria-expanded]").click()
    await page.get_by_role("log").get_by_text(re.compile("^Read: ")).click()


async def _count_triggers(page: Page) -> None:
    which = page.get_by_role("group", name="Which triggers").get_by_role("button")
    # The active ones are the heartbeat and the schedule.
    await expect(which).to_have_text(["Active (2)", "Ended (1)"])


async def _show_permissions(page: Page) -> None:
    await page.get_by_role("region", name="Allowed without asking").scroll_into_view_if_needed()


async def _choose_model(page: Page) -> None:
    await page.get_by_role("button", name="Choose a model").click()
    await page.get_by_role("list", name="Models", exact=True).wait_for()


async def _try_specialist(page: Page) -> None:
    await page.get_by_role("button", name="Edit or try writer").click()
    await page.get_by_label("Try it with a task").fill("Write about the offers")
    await page.get_by_role("button", name="Show what its model would see").click()
    await page.get_by_role("heading", name="System prompt").wait_for()


async def _delete_team(page: Page) -> None:
    await page.get_by_role("button", name="Delete the team").click()


async def _new_team_with_options(page: Page) -> None:
    await _presses("n")(page)
    await page.get_by_role("button", name="Options").click()
    await page.get_by_label("Trust").select_option("open")
    await page.get_by_label("Type “open”").scroll_into_view_if_needed()


async def _edit_message(page: Page) -> None:
    await page.get_by_role("button", name="Edited; show the first version").click()
    await page.locator("#composer").press("ArrowUp")


async def _duplicate_team(page: Page) -> None:
    await page.get_by_role("button", name="Team actions").click()
    await page.get_by_role("menuitem", name="Duplicate the team").click()
    await page.get_by_label("Name", exact=True).scroll_into_view_if_needed()


async def _tabulate_cost(page: Page) -> None:
    await page.get_by_role("group", name="Whose cost").get_by_text("All teams").click()
    await page.get_by_text("As a table").click()


async def _explain_window(page: Page) -> None:
    await page.get_by_text(re.compile("^Context window: about ")).click()


def _clicks(name: str) -> Act:
    async def click(page: Page) -> None:
        await page.get_by_role("button", name=name, exact=True).first.click()

    return click


def _adds(what: str, *, name: str, fields: dict[str, str], goes_on: bool) -> Act:
    """Fill the dialog that adds a tool or a channel, and perhaps go on to the consent."""

    async def add(page: Page) -> None:
        await _clicks(what)(page)
        dialog = page.get_by_role("dialog")
        for label, text in {"Name": name, **fields}.items():
            await dialog.get_by_label(label, exact=True).fill(text)
        if goes_on:
            await dialog.get_by_role("button", name="Continue").click()

    return add


MCP_SERVER = {"Command": "/usr/bin/mcp-server-time --local-timezone UTC"}
OWN_TOOL = {"Code": "def greet(name: str) -> str:\n    return f'Hello {name}'\n"}


def _connections(desk: Desk) -> list[Screen]:
    """Return Operations → Tools and channels, and what adds to it."""
    at = f"{desk.origin}/operations?section=connections"
    server, tool, channel = "Add an MCP server", "Add an own tool", "Add a channel"
    form = _adds(server, name="clock", fields=MCP_SERVER, goes_on=False)
    consent = _adds(server, name="clock", fields=MCP_SERVER, goes_on=True)
    own = _adds(tool, name="greeting", fields=OWN_TOOL, goes_on=False)
    bot = _adds(channel, name="phone", fields={}, goes_on=False)
    return [
        Screen("connections", at, "No MCP servers"),
        Screen("mcp-form", at, "What it and agents may do", form),
        Screen("mcp-consent", at, "This is your consent", consent),
        Screen("own-tool-form", at, "Continue", own),
        Screen("channel-form", at, "Continue", bot),
    ]


async def screens(desk: Desk, team: dict[str, Any]) -> list[Screen]:
    """Return all screens for the team that `lively.begin` returned."""
    at = f"{desk.origin}/t/{team['id']}"
    done, watch = f"{desk.origin}/t/{team['done']}", f"{desk.origin}/t/{team['watch']}"
    agents = {a["name"]: a["id"] for a in await desk.up.ask("GET", f"/teams/{team['id']}/agents")}
    board = await desk.up.ask("GET", f"/teams/{team['id']}/board")
    nodes = {node["title"]: node for node in board}
    [report] = await desk.up.ask("GET", f"/teams/{team['done']}/board")
    offers = f"{desk.origin}/t/{team['offers']}"
    [catalogue] = await desk.up.ask("GET", f"/teams/{team['done']}/agents")
    [lead] = await desk.up.ask("GET", f"/teams/{team['offers']}/agents")
    inbox = (await desk.up.ask("GET", "/inbox"))["items"]
    said = [item["message"] for item in inbox]
    items = {
        message["kind"]: message["id"] for message in said if message["team_id"] != team["offers"]
    }
    [way_out] = [
        m["id"] for m in said if m["kind"] == "approval" and m["team_id"] == team["offers"]
    ]
    [result] = [message["id"] for message in said if message["node_id"] == report["id"]]
    nvidia = nodes["NVIDIA: cards and prices"]
    thread = f"{at}/threads/{nvidia['thread_id']}"
    published = f"nodes/{report['id']}/published"
    return [
        Screen("coordinator", f"{at}/a/{agents['coordinator']}", "0.31"),
        Screen("job-card", f"{at}/a/{agents['coordinator']}", "All steps", _open_job),
        Screen("question", f"{at}/a/{agents['alice']}", "is waiting for your answer"),
        Screen("thinking", f"{at}/a/{agents['dan']}", "thinking", _presses("v")),
        Screen("conversation", f"{at}/a/{agents['coordinator']}", "0.31", _presses("v")),
        Screen("editing", f"{done}/a/{catalogue['id']}", "Editing your message", _edit_message),
        Screen("inbox", f"{desk.origin}/inbox", "Latest"),
        Screen("inbox-question", f"{desk.origin}/inbox/{items['question']}", "Used ones too"),
        Screen("inbox-approval", f"{desk.origin}/inbox/{items['approval']}", "Approve"),
        Screen("inbox-briefing", f"{desk.origin}/inbox/{items['briefing']}", "Both have it"),
        Screen("inbox-report", f"{desk.origin}/inbox/{result}", "What would change this"),
        # Not "Always": a toast on the page that still loads says that, too.
        Screen("inbox-way-out", f"{desk.origin}/inbox/{way_out}", "· Offers ·"),
        Screen("archive", f"{desk.origin}/archive", "No archived teams"),
        Screen("digest", f"{desk.origin}/inbox/digest", "Agents use this text only"),
        Screen("sources", f"{offers}/a/{lead['id']}", "Contains text from"),
        Screen("unconfirmed", f"{offers}/memory?tab=unconfirmed", "Nordlicht delivers"),
        Screen("files-sources", f"{offers}/files/PLAN.md", "Contains text from"),
        Screen("team-settings", f"{offers}/settings", "Quiet hours"),
        Screen("team-permissions", f"{offers}/settings", "Quiet hours", _show_permissions),
        Screen("team-models", f"{offers}/settings", "Quiet hours", _choose_model),
        Screen("team-specialist", f"{offers}/settings", "Edit or try", _try_specialist),
        Screen("team-deletion", f"{offers}/settings", "Quiet hours", _delete_team),
        Screen("board", f"{at}/board", "Power draw and cooling", _picture),
        Screen("board-list", f"{at}/board?view=list", "Power draw and cooling"),
        Screen("board-detail", f"{at}/board?node={nvidia['id']}", "Requested by", _picture),
        Screen("files", f"{at}/files", "agents"),
        Screen("results", f"{done}/results", "delivered"),
        Screen("share-off", f"{done}/results", "over https only", _clicks("Share")),
        Screen("files-report", f"{done}/files/{published}/report.md", "What would change this"),
        Screen("files-table", f"{done}/files/{published}/bench/results.csv", "Gaudi 3"),
        Screen("memory", f"{at}/memory?tab=memories", "socket"),
        Screen("insights", f"{at}/memory?tab=insights", "Shops change"),
        Screen("changes", f"{at}/memory?tab=changes", "Likes figures"),
        Screen("notes", f"{watch}/memory/memory/prices.md", "$8,900"),
        Screen("triggers", f"{watch}/triggers", "Look at the prices", _count_triggers),
        Screen("trigger-edit", f"{watch}/triggers", "Edit the trigger", _clicks("Edit")),
        Screen("cost", f"{at}/cost", "Breakdown"),
        Screen("cost-table", f"{at}/cost", "Day (UTC)", _tabulate_cost),
        Screen("timeline", f"{at}/timeline", "Thinking"),
        Screen("timeline-table", f"{at}/timeline?as=table", "Cost so far"),
        Screen("replay", f"{at}/timeline?view=replay", "Now", _picture),
        Screen("event-log", f"{at}/timeline?view=log", "Model replied"),
        Screen("threads", f"{at}/threads", "NVIDIA"),
        Screen("thread", thread, "I begin with"),
        Screen("window", thread, "Instructions", _explain_window),
        Screen("settings", f"{desk.origin}/settings", "Theme"),
        Screen("device-off", f"{desk.origin}/settings", "cannot reach", _clicks("Show the code")),
        Screen("models", f"{desk.origin}/models", "Default model"),
        Screen("operations", f"{desk.origin}/operations", "Emergency stop"),
        Screen("operations-audit", f"{desk.origin}/operations?section=audit", "newest first"),
        *_connections(desk),
        Screen("setup", f"{desk.origin}/setup", "On this machine"),
        Screen("not-here", f"{desk.origin}/nowhere", "There is nothing at this address"),
        Screen("palette", f"{at}/a/{agents['bob']}", "Inbox", _palette),
        Screen("home", f"{desk.origin}/", "Spent today"),
        Screen("new-team", f"{at}/a/{agents['bob']}", "Type “open”", _new_team_with_options),
        Screen("duplicate", f"{at}/a/{agents['bob']}", "Get to work", _duplicate_team),
        Screen("keys", f"{at}/a/{agents['bob']}", "Jump to anything", _presses("?")),
    ]
