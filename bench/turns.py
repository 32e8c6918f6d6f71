"""Turns: the CPU cost of a durable turn, as a ratio to the floor of the same run.

The floor is the least that a durable turn needs: an HTTP request with an encoded body, and one
append to SQLite with a full fsync; two appends for a tool that must run once, which is recorded
before it runs. Both sides send bodies of the same size to the same stub.
"""

import asyncio
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import aiohttp
import orjson
from pydantic import Field

from agiraph.core.domain.outcomes import Answer, Done
from agiraph.core.domain.times.time import SystemClock
from agiraph.core.domain.work import Budget
from agiraph.core.run_context import RunContext
from agiraph.core.tools.base import Effect, Tool, tool
from agiraph.models.registry import Account, Keys
from agiraph.testing.world import World
from bench.stub import Stub

TURNS = 800
MARKS = (50, 200, 800)
MODEL = "openai/gpt-4.1"
"""A model with a listed price, which is looked up for each turn."""
WINDOW = 40
RESULT = "noted: " + "y" * 200

Stamps = list[float]


def note_tool(stamps: Stamps | None = None, effect: Effect = "repeatable") -> Tool:
    @tool(effect=effect)
    async def note(ctx: RunContext, text: Annotated[str, Field()]) -> Answer:
        """Note a finding."""
        if stamps is not None:
            stamps.append(time.process_time())
        return Done(RESULT)

    return note


def written() -> dict[str, int]:
    lines = Path("/proc/self/io").read_text().splitlines()
    return {name: int(value) for name, _, value in (line.partition(": ") for line in lines)}


async def ours(url: str, stamps: Stamps, effect: Effect = "repeatable") -> dict[str, float]:
    """Run agiraph with everything on: journal, events, costs, budget, circuit breaker."""
    home = Path(tempfile.mkdtemp(prefix="agiraph-bench-"))
    keys = Keys({"openai": Account(key="k", base_url=url)})
    world = World(
        home,
        clock=SystemClock(),
        keys=keys,
        tools=(note_tool(stamps, effect),),
        validates_events=False,
        easy_endings=True,
    )
    before = written()
    async with world:
        founded = await world.found("Take notes", model=MODEL, budget=Budget(turns=TURNS + 10))
        await world.settle()
        [goal] = await world.board(founded.team.id)
        assert goal.status == "completed", (goal.status, goal.stop_reason, goal.result)
    after = written()
    return {k: (after[k] - before[k]) / TURNS for k in ("wchar", "write_bytes")}


class Floor:
    """The floor's database: one append with a full fsync a turn."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="agiraph-bench-"))
        self.db = sqlite3.connect(self.folder / "floor.db", isolation_level=None)
        self.db.execute("pragma journal_mode = wal")
        self.db.execute("pragma synchronous = full")
        self.db.execute("create table log (seq integer primary key, body text)")

    def append(self, body: str) -> None:
        self.db.execute("insert into log (body) values (?)", (body,))

    def close(self) -> None:
        self.db.close()


def bodies() -> Callable[[int], bytes]:
    """Return a function that gives an encoded request of the size that agiraph sends at a turn."""
    system = orjson.dumps({"role": "system", "content": "s" * 4000})
    call = {"id": "call_1", "type": "function", "function": {"name": "note", "arguments": "x" * 90}}
    turn = orjson.dumps({"role": "assistant", "content": None, "tool_calls": [call]})
    turn += b"," + orjson.dumps({"role": "tool", "tool_call_id": "call_1", "content": RESULT})
    head = b'{"model":"stub","stream":true,"tools":[' + b"t" * 5000 + b'],"messages":[' + system
    return lambda number: head + (b"," + turn) * number + b"]}"


async def ours_once(url: str, stamps: Stamps) -> dict[str, float]:
    return await ours(url, stamps, "once")


async def floor_aiohttp(url: str, stamps: Stamps, appends: int = 1) -> None:
    floor, body = Floor(), bodies()
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        for number in range(TURNS):
            # Before the clock starts: agiraph, too, has the bytes of old turns already encoded.
            data = body(number)
            began = time.process_time()
            async with session.post(f"{url}/chat/completions", data=data) as response:
                answer = await response.read()
            for _ in range(appends):
                floor.append(answer[:300].decode())
            stamps.append(time.process_time() - began)
    floor.close()


async def floor_once(url: str, stamps: Stamps) -> None:
    await floor_aiohttp(url, stamps, appends=2)


async def floor_raw(url: str, stamps: Stamps) -> None:
    """Run the floor over a bare socket, without an HTTP library."""
    floor, body = Floor(), bodies()
    host, port = url.removeprefix("http://").removesuffix("/v1").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    for number in range(TURNS):
        data = body(number)
        began = time.process_time()
        answer = await raw_request(reader, writer, data)
        floor.append(answer[:300].decode())
        stamps.append(time.process_time() - began)
    writer.close()
    floor.close()


async def raw_request(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, data: bytes
) -> bytes:
    """Send one request over a bare socket; return the body of the response."""
    writer.write(
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(data)
    )
    writer.write(data)
    await writer.drain()
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
    return await reader.readexactly(length)


def at(costs: list[float], mark: int) -> float:
    """Return the median cost of the turns before this one, in microseconds."""
    window = costs[max(0, mark - WINDOW) : mark]
    return statistics.median(window) * 1e6


async def measure(rounds: int) -> dict[str, Any]:
    runs: dict[str, Callable[[str, Stamps], Awaitable[Any]]] = {
        "raw": floor_raw,
        "aiohttp": floor_aiohttp,
        "ours": ours,
        "aiohttp once": floor_once,
        "ours once": ours_once,
    }
    found: dict[str, list[list[float]]] = {name: [] for name in runs}
    io: list[dict[str, float]] = []
    for _ in range(rounds):
        for name, run in runs.items():
            with Stub(TURNS) as stub:
                stamps: Stamps = []
                done = await run(stub.url, stamps)
            if name == "ours":
                io.append(done)
            if name.startswith("ours"):
                # A turn of agiraph is the CPU time between two calls of its tool.
                stamps = [b - a for a, b in pairwise(stamps)]
            found[name].append(stamps)
    table = {
        name: {mark: statistics.median(at(costs, mark) for costs in runs) for mark in MARKS}
        for name, runs in found.items()
    }
    return {"us": table, "io": {k: statistics.median(i[k] for i in io) for k in io[0]}}
