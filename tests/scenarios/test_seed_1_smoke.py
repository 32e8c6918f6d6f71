"""Seed scenario 1: a single agent, a simple task, from goal to answer."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from agiraph.domain.outcomes import Answer, Done
from agiraph.domain.time import SystemClock
from agiraph.domain.work import NodeStatus, StopReason
from agiraph.providers.registry import Account, Keys
from agiraph.run_context import RunContext
from agiraph.testing import ModelServer, World, call, says
from agiraph.testing.model_server import Seen, Step
from agiraph.tools.base import tool
from tests.scenarios.traces import exported, statuses

GOAL = "What are the top 3 programming languages in 2026?"
PAGES = {
    "https://index.example/2026": "Top programming languages 2026: 1. Python 2. TypeScript 3. Rust",
    "https://cooking.example/soup": "Top 3 soups of the season",
    "https://history.example/1970": "Programming languages of 1970: Fortran, COBOL, Lisp",
}


@tool(effect="repeatable", guidance="For what you cannot know yourself. Name your sources.")
async def web_search(
    ctx: RunContext, query: Annotated[str, Field(min_length=1, description="A few words")]
) -> Answer:
    """Search the web."""
    words = set(query.lower().split())
    hits = sorted(PAGES.items(), key=lambda page: -len(words & set(page[1].lower().split())))
    url, text = hits[0]
    return Done(f"{url}\n{text}")


def plays_the_researcher(seen: Seen) -> Step:
    last = seen.messages[-1]
    match seen.index:
        case 0:
            assert last.text == GOAL
            return says("I look it up.", call("web_search", query="top programming languages 2026"))
        case 1:
            url, found = last.text.splitlines()
            note = f"# Languages in 2026\n\n{found}\n\nSource: {url}\n"
            return says(call("write_file", path="research.md", content=note))
        case _:
            summary = "Python, TypeScript and Rust, in this order (see research.md)."
            return says(call("finish", summary=summary))


async def test_an_agent_searches_writes_a_note_and_answers(
    tmp_path: Path, database_url: str
) -> None:
    async with ModelServer(plays_the_researcher) as server:
        keys = Keys({"openai": Account(key="sk-test", base_url=server.openai_url)})
        async with World(
            tmp_path / "home",
            database_url=database_url,
            clock=SystemClock(),
            keys=keys,
            tools=(web_search,),
        ) as world:
            founded = await world.found(
                GOAL, model="openai/test", tools=("web_search", "write_file", "finish")
            )
            await world.settle()

            [goal] = await world.board(founded.team.id)
            events = await world.events(founded.team.id)
            published = world.published(goal)
            export = await exported(world, founded.team, tmp_path / "export")

    research = (
        "# Languages in 2026\n\nTop programming languages 2026: 1. Python 2. TypeScript 3. Rust"
        "\n\nSource: https://index.example/2026\n"
    )
    answer = "Python, TypeScript and Rust, in this order (see research.md)."
    assert statuses(events) == ["idle", "working", "completed"]
    assert (goal.status, goal.stop_reason, goal.result) == (
        NodeStatus.COMPLETED,
        StopReason.FINISHED,
        answer,
    )
    assert published == {"research.md": research}
    assert (events[-1].at - events[0].at).total_seconds() < 60
    assert (server.refused, len(server.requests)) == ([], 3)
    assert {seen.tools for seen in server.requests} == {
        ("finish", "set_acceptance", "web_search", "write_file")
    }
    assert "For what you cannot know yourself. Name your sources." in server.requests[0].system

    assert export.said == [("coordinator", "human", "result", answer)]
    assert [event["type"] for event in export.events] == [event.type for event in events]
    assert [event["seq"] for event in export.events] == list(range(1, len(events) + 1))
    assert export.trace == [
        ("user", GOAL),
        ("assistant", "I look it up."),
        ("tool", f"https://index.example/2026\n{PAGES['https://index.example/2026']}"),
        ("assistant", "write_file"),
        ("tool", f"Wrote research.md ({len(research)} bytes)."),
        ("assistant", "finish"),
        ("tool", "Published: research.md."),
    ]
    assert (export.home / "GOAL.md").read_text() == f"# Goal\n\n{GOAL}\n"
    node = export.home / "nodes" / goal.id
    assert (node / "published" / "research.md").read_text() == research
