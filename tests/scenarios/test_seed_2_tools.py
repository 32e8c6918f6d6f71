"""Seed scenario 2: a script is written, run, repaired and run again."""

import re
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web

from agiraph.core.domain.work import NodeStatus, StopReason
from agiraph.models.registry import Account, Keys
from agiraph.testing import ModelServer, World, call, says
from agiraph.testing.model_server import Script, Seen, Step
from agiraph.web.access import Web
from agiraph.web.addresses import AddressPolicy, StandIn
from agiraph.web.fetch import Fetcher
from tests.doubts import doubts_of
from tests.scenarios.endings import ACCEPTS, OPENS, defines, finishes
from tests.scenarios.traces import exported, statuses

GOAL = (
    "Create a Python script that fetches the current Bitcoin price from a public API, and run it "
    "to verify it works."
)
SCRIPT = """\
import json
import urllib.request

with urllib.request.urlopen("http://prices.example/price") as answer:
    price = json.load(answer)["usd"]
print(f"Bitcoin costs {price:.2f} dollars.")
"""
HOST = "prices.example"
RUN = f"{sys.executable} btc_price.py"
DONE = ("`btc_price.py` fetches the price", "it was run and printed a price")


@asynccontextmanager
async def price_service() -> AsyncGenerator[Web]:
    """A public service, played on loopback, whose JSON differs from what the script expects."""

    async def quote(_: web.Request) -> web.Response:
        return web.json_response({"bitcoin": {"usd": 64123.45}})

    app = web.Application()
    app.router.add_get("/price", quote)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        stand_in = StandIn(*runner.addresses[0][:2])
        yield Web(fetcher=Fetcher(policy=AddressPolicy(stand_ins={HOST: stand_in})))
    finally:
        await runner.cleanup()


def plays_the_programmer() -> Script:
    def play(seen: Seen) -> Step:
        last = seen.messages[-1].text
        if "give_verdict" in seen.tools:
            return OPENS if seen.messages[-1].role == "user" else ACCEPTS
        match seen.index:
            case 0:
                return says(defines(*DONE), call("write_file", path="btc_price.py", content=SCRIPT))
            case 1:
                return says("Does it work?", call("bash", command=RUN, network="open"))
            case 2:
                assert "KeyError: 'usd'" in last
                return says("It does not; look.", call("read_file", path="btc_price.py"))
            case 3:
                assert '["usd"]' in last
                repair = call(
                    "edit_file", path="btc_price.py", old='["usd"]', new='["bitcoin"]["usd"]'
                )
                return says(repair, call("bash", command=RUN, network="open", wait=True))
            case _:
                price = re.search(r"costs ([\d.]+) dollars", last)
                assert price is not None
                evidence = ["file:btc_price.py", f"ran:{RUN}"]
                return finishes(f"It works: {price[1]} dollars.", *evidence)

    return play


async def test_a_script_is_written_run_repaired_and_run_again(
    tmp_path: Path, database_url: str
) -> None:
    async with price_service() as served, ModelServer(plays_the_programmer()) as server:
        keys = Keys({"openai": Account(key="sk-test", base_url=server.openai_url)})
        given = {"database_url": database_url, "keys": keys, "web": served}
        async with World(tmp_path / "home", **given) as world:
            founded = await world.found(GOAL, model="openai/test")
            await world.settle()
            # Nobody has named the service that the script has read, so its second run asks.
            for question in await world.questions(founded.team.id):
                await world.answer(question, decision="approve")
            await world.settle()

            goal, review = await world.board(founded.team.id)
            events = await world.events(founded.team.id)
            published = world.published(goal)
            export = await exported(world, founded.team, tmp_path / "export")

    script = SCRIPT.replace('["usd"]', '["bitcoin"]["usd"]')
    runs = [
        e.data
        for e in events
        if e.type == "tool.result" and e.data["tool"] == "bash" and e.data["node_id"] == goal.id
    ]
    # It waits for the person, and then for the reviewer.
    waited = ("waiting", "working") * 2
    assert statuses(events, without=review) == ["idle", "working", *waited, "completed"]
    assert (goal.status, goal.stop_reason, goal.result, doubts_of(goal)) == (
        NodeStatus.COMPLETED,
        StopReason.FINISHED,
        "It works: 64123.45 dollars.",
        None,
    )
    assert review.stop_reason is StopReason.ACCEPTED
    assert published == {"btc_price.py": script}
    assert [run["failed"] for run in runs] == [True, False]
    assert (server.refused, len(server.requests)) == ([], 7)

    assert [kind for _, _, kind, _ in export.said] == ["approval", "answer", "result"]
    assert export.said[-1] == ("coordinator", "human", "result", "It works: 64123.45 dollars.")
    assert [role for role, _ in export.trace(goal)] == [
        "user",
        *("assistant", "tool", "tool"),
        *("assistant", "tool") * 2,
        *("assistant", "tool", "tool"),
        *("assistant", "tool"),
    ]
    assert export.trace(goal)[5][1].splitlines()[::2][:2] == [
        "[exit code 1]",
        "Traceback (most recent call last):",
    ]
    role, printed = export.trace(goal)[-3]
    assert (role, printed.splitlines()[::2][:2]) == (
        "tool",
        ["[exit code 0]", "Bitcoin costs 64123.45 dollars."],
    )
    node = export.home / "nodes" / goal.id
    assert (node / "published" / "btc_price.py").read_text() == script
