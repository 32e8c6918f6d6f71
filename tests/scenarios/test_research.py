"""Research: a person asks for it in a chat, and the report arrives in the inbox."""

import json
import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agiraph.core.domain.messages import Message
from agiraph.core.domain.records.search import Hit
from agiraph.core.domain.work import NodeStatus
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.models.base import Request
from agiraph.testing import PowerCut, World, call, says
from agiraph.testing.script import Says
from agiraph.testing.scripted import Line
from agiraph.web.access import Web
from agiraph.web.search import LocalEngine
from tests.doubts import doubts_of
from tests.web.sites import Site, fetcher, html, site

PLAN = json.dumps(
    {
        "question": "Do heat pumps save power?",
        "language": "English",
        "kind": "fact",
        "sub_questions": [{"question": "What do heat pumps use?", "answer": "a ratio"}],
    }
)
REPORT = """\
## Summary

A heat pump gives three units of heat for one of power [e1].

## Key findings

- It gives three units of heat for one of power [e1].
- In deep frost it gives two [e2].
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


def _notes(page: int, claim: str, quote: str) -> Line:
    def line(request: Request) -> Says:
        found = [link for t in request.transcript.turns for link in _urls_in(t.text)]
        return says(call("note_evidence", claim=claim, quote=quote, url=found[page]))

    return line


RESEARCHES: tuple[Line, ...] = (
    says(PLAN),
    says(call("web_search", query="heat pumps power")),
    _fetches_page(0),
    _notes(0, "Three units for one.", "Three units of heat for one of power."),
    _fetches_page(1),
    _notes(1, "Two in deep frost.", "In deep frost it gives two."),
    says(call("done")),
    says(REPORT),
)


async def messages_of_coordinator(world: World, team: NewTeam) -> list[Message]:
    said = await world.conversation(team.coordinator)
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
    await world.chat(team.coordinator.id, f"Please research: {goal}")
    await world.settle()

    node, *_ = await world.board(team.team.id)
    assert (node.status, doubts_of(node), node.source, node.asked_of) == (
        NodeStatus.COMPLETED,
        None,
        "user",
        team.coordinator.id,
    )
    acknowledged, summary = await messages_of_coordinator(world, team)
    assert acknowledged.text == "I look into it and write to your inbox."
    assert summary.text.endswith("A heat pump gives three units of heat for one of power [1].")
    [report] = await world.inbox()
    assert (report.kind, report.title) == ("report", f"Research: {goal}")
    assert "- In deep frost it gives two [2]" in report.text
    assert all(library.url(page) in report.text for page in ("/pumps", "/winter"))
    assert report.label  # it is made of web pages
    assert [request.split()[1] for request in library.requests] == ["/pumps", "/winter"]
    read = [turn.text for turn in rob.requests[-2].turns if turn.role == "tool"]
    assert "Three units of heat" in read[1]

    await world.chat(team.coordinator.id, "How far is it?")
    await world.settle()
    status = [turn.text for turn in ada.requests[-1].turns if turn.role == "tool"][-1]
    assert f"Research: {goal} ({node.id}, researcher): done, 1 of 4 searches used, 2 of 6" in status


@pytest.mark.parametrize("cut_at", [1, 4, len(RESEARCHES)])  # `tests/faults/research.py` has all
async def test_research_interrupted_by_a_crash_reports_once(world: World, cut_at: int) -> None:
    start = call("research_start", goal="Do heat pumps save power?")
    world.script("ada", says("Yes.", start))
    lines: list[Line] = list(RESEARCHES)
    lines.insert(cut_at - 1, PowerCut())
    world.script("rob", *lines)
    team = await world.found("Heat the house", start=False)
    await world.chat(team.coordinator.id, "Research heat pumps")
    await world.settle()
    await world.restart()
    await world.settle()
    assert [m.kind for m in await world.inbox()] == ["report"]
    assert len(await messages_of_coordinator(world, team)) == 2
