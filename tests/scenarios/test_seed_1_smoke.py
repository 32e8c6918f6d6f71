"""Seed scenario 1: a single agent, a simple task, from goal to answer."""

import re
from pathlib import Path

from agiraph.core.domain.times.time import SystemClock
from agiraph.core.domain.work import NodeStatus, StopReason
from agiraph.models.registry import Account, Keys
from agiraph.testing import ModelServer, World, call, says
from agiraph.testing.model_server import Seen, Step
from tests.doubts import doubts_of
from tests.local_web import Page, local_web
from tests.scenarios.endings import defines, finishes, opens_and_accepts
from tests.scenarios.traces import exported, statuses

GOAL = "What are the top 3 programming languages in 2026?"
DONE = "`research.md` names three languages and the source"
RANKING = "http://index.example/2026"
ANSWER = "Top programming languages 2026: 1. Python 2. TypeScript 3. Rust"
SITES = {
    "index.example": {
        "/2026": Page(f"<p>{ANSWER}</p>", "index", is_html=True),
        "/1970": Page("Programming languages of 1970: Fortran, COBOL, Lisp", "history"),
    },
    "food.example": {"/": Page("Top 3 soups of the season", "soup")},
}


def plays_the_researcher(seen: Seen) -> Step:
    if "give_verdict" in seen.tools:
        return opens_and_accepts(seen)
    last = seen.messages[-1]
    match seen.index:
        case 0:
            assert last.text == GOAL
            search = call("web_search", query="top programming languages 2026")
            return says("I look it up.", defines(DONE), search)
        case 1:
            return says(call("web_fetch", url=re.findall(r"http://\S+", last.text)[0]))
        case 2:
            [url] = re.findall(r"^Address: (\S+)", last.text, re.MULTILINE)
            [found] = re.findall(r"^Top programming .*", last.text, re.MULTILINE)
            note = f"# Languages in 2026\n\n{found}\n\nSource: {url}\n"
            return says(call("write_file", path="research.md", content=note))
        case _:
            summary = "Python, TypeScript and Rust, in this order (see research.md)."
            return finishes(summary, "file:research.md")


async def test_an_agent_searches_writes_a_note_and_answers(
    tmp_path: Path, database_url: str
) -> None:
    clock = SystemClock()
    async with local_web(clock, SITES) as served, ModelServer(plays_the_researcher) as server:
        keys = Keys({"openai": Account(key="sk-test", base_url=server.openai_url)})
        async with World(
            tmp_path / "home",
            database_url=database_url,
            clock=clock,
            keys=keys,
            web=served.access,
        ) as world:
            founded = await world.found(GOAL, model="openai/test")
            await world.settle()

            goal, review = await world.board(founded.team.id)
            events = await world.events(founded.team.id)
            published = world.published(goal)
            export = await exported(world, founded.team, tmp_path / "export")

    research = (
        "# Languages in 2026\n\nTop programming languages 2026: 1. Python 2. TypeScript 3. Rust"
        f"\n\nSource: {RANKING}\n"
    )
    answer = "Python, TypeScript and Rust, in this order (see research.md)."
    # It waits for the reviewer.
    done = ["idle", "working", "waiting", "working", "completed"]
    assert statuses(events, without=review) == done
    assert (goal.status, goal.stop_reason, goal.result, doubts_of(goal)) == (
        NodeStatus.COMPLETED,
        StopReason.FINISHED,
        answer,
        None,
    )
    assert review.stop_reason is StopReason.ACCEPTED
    assert published == {"research.md": research}
    assert (events[-1].at - events[0].at).total_seconds() < 60
    assert (server.refused, len(server.requests)) == ([], 6)
    assert served.visited("index.example") == ["/2026"]
    assert served.visited("food.example") == []

    assert export.said == [("coordinator", "human", "result", answer)]
    assert [event["type"] for event in export.events] == [event.type for event in events]
    assert [event["seq"] for event in export.events] == list(range(1, len(events) + 1))
    searched, fetched = export.trace(goal)[3][1], export.trace(goal)[5][1]
    assert ANSWER in searched
    assert ANSWER in fetched
    assert export.trace(goal) == [
        ("user", GOAL),
        ("assistant", "I look it up."),
        ("tool", f"Done means:\n1. {DONE} [file:NAME]"),
        ("tool", searched),
        ("assistant", "web_fetch"),
        ("tool", fetched),
        ("assistant", "write_file"),
        ("tool", f"Wrote research.md ({len(research)} bytes)."),
        ("assistant", "finish"),
        ("tool", "Published: research.md."),
    ]
    assert (export.home / "GOAL.md").read_text() == f"# Goal\n\n{GOAL}\n"
    node = export.home / "nodes" / goal.id
    assert (node / "published" / "research.md").read_text() == research
