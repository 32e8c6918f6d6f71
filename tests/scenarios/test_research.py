"""Research: a person asks for it in a chat, and the report arrives in the inbox."""

import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agiraph.domain.messages import Message
from agiraph.domain.persons import OWNER
from agiraph.domain.search import Hit
from agiraph.domain.work import NodeStatus
from agiraph.providers.base import Request
from agiraph.services.lifecycle import conversation
from agiraph.services.lifecycle.teams import NewTeam
from agiraph.store import messages
from agiraph.testing import PowerCut, World, call, says
from agiraph.testing.script import Says
from agiraph.testing.scripted import Line
from agiraph.web.access import Web
from agiraph.web.search import LocalEngine
from tests.web.sites import Site, fetcher, html, site

REPORT = """\
## Summary

Heat pumps use a third of the power of electric heaters. Two sources agree.

## Key findings

- A heat pump gives three units of heat for one of power [1].
- In deep frost it gives two [2].

## Sources

1. Heat pumps, read today
2. Heat pumps in winter, read today
"""
RESEARCHER = (
    "---\nname: researcher\ndescription: Finds out.\nmodel: scripted/rob\n---\nYou find out.\n"
)


@asynccontextmanager
async def pages_about_pumps() -> AsyncGenerator[Site]:
    pages = {
        "pumps": html("<h1>Heat pumps</h1><p>Three units of heat for one of power.</p>", "Pumps"),
        "winter": html("<h1>In winter</h1><p>In deep frost it gives two.</p>", "Winter"),
    }
    async with site(**pages) as opened:
        yield opened


@asynccontextmanager
async def world_with(library: Site, home: Path, database_url: str = "") -> AsyncGenerator[World]:
    """A world whose researcher finds the pages of this site."""
    hits = [
        Hit(title=f"Heat pumps {name}", url=library.url(f"/{name}"), snippet="heat and power")
        for name in ("pumps", "winter")
    ]
    (home / "agents").mkdir(parents=True)
    (home / "agents" / "researcher.md").write_text(RESEARCHER)
    web = Web(fetcher=fetcher(), engine=LocalEngine(hits))
    async with World(home, database_url=database_url, web=web) as opened:
        yield opened


@pytest.fixture
async def library() -> AsyncIterator[Site]:
    async with pages_about_pumps() as opened:
        yield opened


@pytest.fixture
async def world(tmp_path: Path, database_url: str, library: Site) -> AsyncIterator[World]:
    async with world_with(library, tmp_path / "home", database_url) as opened:
        yield opened


def _fetches_page(number: int) -> Line:
    def line(request: Request) -> Says:
        found = [link for t in request.transcript.turns for link in _urls_in(t.text)]
        return says(call("web_fetch", url=found[number]))

    return line


def _urls_in(text: str) -> list[str]:
    return re.findall(r"^   (http://\S+)", text, re.MULTILINE)


RESEARCHES: tuple[Line, ...] = (
    says("First what we know.", call("knowledge_search", query="heat pumps")),
    says(call("web_search", query="heat pumps power")),
    _fetches_page(0),
    _fetches_page(1),
    says(call("publish", summary=REPORT)),
)


async def messages_of_coordinator(world: World, team: NewTeam) -> list[Message]:
    said = await world.store.read(messages.conversation, team.team.id, team.coordinator.id, OWNER)
    return [message for message in said if message.sender == team.coordinator.id]


async def test_research_gives_a_report_in_the_inbox_and_a_summary_in_the_chat(
    world: World, library: Site
) -> None:
    goal = "Do heat pumps save power?"
    ada = world.script(
        "ada",
        says("I look into it and write to your inbox.", call("research_start", goal=goal)),
        says("Let me look.", call("job_status")),
        says("It is done: see your inbox.", call("no_work_needed")),
    )
    rob = world.script("rob", *RESEARCHES)
    team = await world.found("Heat the house", start=False)
    await world.store.write(
        conversation.say, team.coordinator.id, f"Please research: {goal}", person_id=OWNER
    )
    await world.settle()

    [node] = await world.board(team.team.id)
    assert (node.status, node.doubts, node.source, node.asked_of) == (
        NodeStatus.COMPLETED,
        None,
        "user",
        team.coordinator.id,
    )
    acknowledged, summary = await messages_of_coordinator(world, team)
    assert acknowledged.text == "I look into it and write to your inbox."
    assert summary.text.endswith(
        "Heat pumps use a third of the power of electric heaters. Two sources agree."
    )
    [report] = await world.inbox()
    assert (report.kind, report.title, report.text) == (
        "report",
        f"Research: {goal}",
        REPORT.strip(),
    )
    assert report.label  # it is made of web pages
    assert [request.split()[1] for request in library.requests] == ["/pumps", "/winter"]
    read = [turn.text for turn in rob.requests[-1].turns if turn.role == "tool"]
    assert "Three units of heat" in read[2]

    await world.store.write(
        conversation.say, team.coordinator.id, "How far is it?", person_id=OWNER
    )
    await world.settle()
    status = [turn.text for turn in ada.requests[-1].turns if turn.role == "tool"][-1]
    assert status.endswith("done, 1 of 5 searches used, 2 of 3 pages used")


async def test_a_page_that_was_read_is_found_without_a_second_download(
    world: World, library: Site
) -> None:
    start = call("research_start", goal="Do heat pumps save power?")
    world.script("ada", says("Yes.", start), says("Again?", start))
    rob = world.script(
        "rob",
        *RESEARCHES,
        says(call("knowledge_search", query="heat units power")),
        says(call("publish", summary=REPORT)),
    )
    team = await world.found("Heat the house", start=False)
    for text in ("Research heat pumps", "Research them again"):
        await world.store.write(conversation.say, team.coordinator.id, text, person_id=OWNER)
        await world.settle()
    assert len(library.requests) == 2
    found = next(turn.text for turn in rob.requests[-1].turns if turn.role == "tool")
    assert "Three units of heat for one of power." in found
    assert len([m for m in await world.inbox() if m.kind == "report"]) == 2


@pytest.mark.parametrize("cut_at", range(1, len(RESEARCHES) + 1))
async def test_research_interrupted_by_a_crash_reports_once(world: World, cut_at: int) -> None:
    start = call("research_start", goal="Do heat pumps save power?")
    world.script("ada", says("Yes.", start))
    lines: list[Line] = list(RESEARCHES)
    lines.insert(cut_at - 1, PowerCut())
    world.script("rob", *lines)
    team = await world.found("Heat the house", start=False)
    await world.store.write(
        conversation.say, team.coordinator.id, "Research heat pumps", person_id=OWNER
    )
    await world.settle()
    await world.restart()
    await world.settle()
    assert [m.kind for m in await world.inbox()] == ["report"]
    assert len(await messages_of_coordinator(world, team)) == 2
