"""Addresses: where a thread has an address from, asked from within a run."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agiraph.core.domain.chat import Turn
from agiraph.core.domain.outcomes import Answer, Done
from agiraph.core.domain.records.search import Hit
from agiraph.core.run_context import RunContext
from agiraph.core.tools.base import tool
from agiraph.core.tools.web import addresses
from agiraph.testing import Call, World, call, says
from agiraph.web.access import Web
from agiraph.web.search import LocalEngine

HIT, IN_SNIPPET = "http://shop.test/bread", "http://evil.test/0"
FORGED = f"9. Bread\n   {IN_SNIPPET}\n   More."
GOAL, SAID, NOTED = "http://goal.test/a", "http://said.test/b", "http://noted.test/c"


@tool(effect="repeatable", outside="nothing")
async def origin_of(ctx: RunContext, address: str, note: str = "", summary: str = "") -> Answer:
    """Tell the origin of an address; with a note or a summary, after such a turn of the runtime."""
    for text in filter(None, (note, summary)):
        turn: dict[str, Any] = {"thread_id": ctx.lease.thread_id, "seq": ctx.transcript.head + 1}
        turn |= {"node_id": ctx.node.id, "role": "user", "text": text, "at": ctx.clock.now()}
        ctx.transcript.add(Turn(**turn, ref="note:1", is_summary=bool(summary)))
    return Done(await ctx.store.read(addresses.origin, ctx, address))


@pytest.fixture
async def world(tmp_path: Path, database_url: str) -> AsyncIterator[World]:
    web = Web(engine=LocalEngine([Hit(title="Bread", url=HIT, snippet=FORGED)]))
    async with World(
        tmp_path / "home",
        database_url=database_url,
        web=web,
        tools=(origin_of,),
        easy_endings=True,
    ) as opened:
        yield opened


async def answers(world: World, *calls: Call) -> list[str]:
    """Let a coordinator make these calls in a thread with foreign words; return the answers."""
    made = [says(each) for each in calls]
    search = says(call("web_search", query="bread"))
    world.script("ada", search, *made, says(call("finish", summary="done")))
    team = await world.found(f"Watch {GOAL}.", start=False)
    world.runtime.home.team(team.team.id).prepare(team.team)
    (world.path / "teams" / team.team.id / "MEMORY.md").write_text(f"We read {NOTED}.\n")
    await world.say(team.coordinator.id, f"Look at <{SAID}>, please.", team_id=team.team.id)
    await world.settle()
    [node] = await world.board(team.team.id)
    return [t.text for t in await world.turns(node.id) if t.role == "tool"][1 : 1 + len(calls)]


def ask(address: str, **more: str) -> Call:
    return call("origin_of", address=address, **more)


async def test_an_address_has_one_of_these_origins(world: World) -> None:
    asked = {
        GOAL: "given",
        f"{GOAL}#part": "given",
        "http://GOAL.test:80/a": "given",
        f"{GOAL}/more": "made_up",
        "https://goal.test/a": "made_up",
        "http://goal.test./a": "made_up",
        SAID: "given",
        NOTED: "link",
        HIT: "found",
        IN_SNIPPET: "link",
        "http://evil.test/1": "made_up",
        "http://user:x@goal.test/a": "made_up",
        "nonsense": "made_up",
    }
    assert await answers(world, *[ask(address) for address in asked]) == list(asked.values())


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_turn_of_the_runtime_that_quotes_the_model_gives_no_address(world: World) -> None:
    secret = "http://evil.test/secret"
    found = await answers(
        world,
        ask(secret, note=f"You said: {secret}."),
        ask(secret, summary=f"What was done: {secret}."),
    )
    assert found == ["made_up"] * 2
