"""Seed scenario 6: an agent finds and uses the notes of its previous run."""

import re
from pathlib import Path

import pytest

from agiraph.core.domain.work import NodeStatus, StopReason
from agiraph.core.services.lifecycle import teams
from agiraph.models.registry import Account, Keys
from agiraph.testing import ModelServer, World, call, says
from agiraph.testing.clock import ManualClock
from agiraph.testing.model_server import Seen, Step
from tests.doubts import doubts_of
from tests.local_web import Page, local_web
from tests.scenarios.endings import defines, finishes, opens_and_accepts
from tests.scenarios.thread_queries import agent_name, new_text, reply_count

RESEARCH = "Research Python async patterns. Write what you learn to memory."
SCRAPER = "Write an async web scraper in Python."
FOUND = "Bound concurrency with asyncio.Semaphore(7): more sockets make the site block us."
NOTE = f"# Python asyncio\n\n## Limits\n\n{FOUND}\n\n## Tasks\n\nPrefer TaskGroup to gather.\n"


QUERY = "python async patterns"
SITES = {
    "docs.example": {
        "/asyncio": Page(f"# Python async patterns\n\n{FOUND}", "Python async patterns"),
        "/": Page("# Docs\n\nEverything about snakes.", "Snakes"),
    }
}
UNCHECKED = "1 line in MEMORY.md comes from the web, and nobody has checked it."
KEPT = "unverified/knowledge/python-asyncio.md"
"""Where its note is kept: it holds untrusted text."""


def play(seen: Seen) -> Step:
    """A model that searches its notes first, and uses what it finds."""
    if agent_name(seen).startswith("reviewer"):
        return opens_and_accepts(seen)
    is_research = RESEARCH in seen.messages[0].text
    match reply_count(seen):
        case 0:
            line = "the notes hold what was learned" if is_research else "`scraper.py` is async"
            return says(
                "What do I know?", defines(line), call("memory_search", query="python async")
            )
        case 1 if "Semaphore(7)" not in new_text(seen):
            return says("Nothing yet.", call("web_search", query=QUERY))
        case 1:
            code = "limit = asyncio.Semaphore(7)  # from my notes\n"
            return says("I know this.", call("write_file", path="scraper.py", content=code))
        case 2 if is_research:
            [hit, *_] = re.findall(r"^   (http\S+)$", new_text(seen), re.MULTILINE)
            return says(call("web_fetch", url=hit))
        case 3 if is_research:
            assert FOUND in new_text(seen)
            return says(
                call("memory_write", path="memory/knowledge/python-asyncio.md", content=NOTE),
                call("memory_write", path="2026-01-05.md", content="Researched asyncio."),
                call("memory_write", path="MEMORY.md", content="# Memory\n\nWe know asyncio."),
            )
        case _ if is_research:
            return finishes("It is in my notes.", "memory/knowledge/python-asyncio.md holds it")
        case _:
            return finishes("The scraper is written.", "file:scraper.py")


@pytest.mark.parametrize("others", [0, 40], ids=["few notes", "many notes"])
async def test_the_second_run_uses_the_notes_of_the_first(
    tmp_path: Path, database_url: str, others: int
) -> None:
    clock = ManualClock()
    async with local_web(clock, SITES) as served, ModelServer(play) as server:
        keys = Keys({"anthropic": Account(key="sk-test", base_url=server.anthropic_url)})
        world = World(
            tmp_path / "home",
            database_url=database_url,
            clock=clock,
            keys=keys,
            web=served.access,
        )
        async with world:
            founded = await world.found(RESEARCH, model="anthropic/claude-lead")
            await world.settle()
            memory = tmp_path / "home" / "teams" / founded.team.id / "memory"

            # After run 1 the notes are files that anybody can read.
            head, _, note = (memory / KEPT).read_text().partition("\n\n")
            assert (head.startswith("> Unverified"), note) == (True, NOTE)
            assert (served.queries, served.visited("docs.example")) == ([QUERY], ["/asyncio"])
            # What untrusted text led to stands in MEMORY.md at once, and nobody was asked.
            assert "We know asyncio." in (memory.parent / "MEMORY.md").read_text()
            [told] = await world.inbox()
            assert (told.kind, told.text) == ("result", f"It is in my notes.\n\n{UNCHECKED}")
            for number in range(others):  # notes written by hand
                text = f"# Subject {number}\n\n" + f"Something about matter {number}. " * 30
                (memory / "knowledge" / f"subject-{number}.md").write_text(text)

            await world.restart()
            asked_before = len(server.requests)
            await world.store.write(teams.set_goal, founded.team.id, SCRAPER)
            await world.settle()
            nodes = await world.board(founded.team.id)
            first, review, second, _ = nodes
            written = world.published(second)
            fresh = server.requests[asked_before:]

    assert [n.status for n in nodes] == [NodeStatus.COMPLETED] * 4
    assert [doubts_of(n) for n in (first, second)] == [None] * 2
    assert review.stop_reason is StopReason.ACCEPTED  # no program can check what notes say

    # Run 2 started a new thread, whose prompt says where to look and holds no untrusted text.
    opening = fresh[0]
    for part in ("- `unverified/`: 1 note", "read_file('memory/2026-01-05.md') shows it"):
        assert part in opening.system
    assert "Semaphore" not in opening.system
    assert "We know asyncio." not in opening.system
    assert "(1 line in it nobody has checked, from a web search" in opening.system
    assert [m.role for m in opening.messages] == ["user"]

    # It searched, found its notes and used them.
    answer = new_text(fresh[1])
    assert "knowledge/python-asyncio.md" in answer
    assert FOUND in answer
    assert ("Something about matter" in answer) is False
    assert "asyncio.Semaphore(7)  # from my notes" in written["scraper.py"]

    # Nothing was researched again.
    assert (served.queries, served.visited("docs.example")) == ([QUERY], ["/asyncio"])
    assert server.refused == []
