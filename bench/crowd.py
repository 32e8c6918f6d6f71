"""Crowd: 200 agents with 20 calls each to a model that takes 200 ms, everything durable.

The floor is the same calls without agiraph: each call is a request with an encoded body over a bare
socket, and one append to SQLite with a full fsync.
"""

import asyncio
import tempfile
import time
from pathlib import Path
from typing import Any

from agiraph.core.domain.times.time import SystemClock
from agiraph.core.domain.work import Budget
from agiraph.models.registry import Account, Keys
from agiraph.testing.world import World
from bench.stub import Stub
from bench.turns import Floor, bodies, note_tool, raw_request

AGENTS = 200
CALLS = 20
SECONDS = 0.2


async def measure() -> dict[str, Any]:
    home = Path(tempfile.mkdtemp(prefix="agiraph-bench-"))
    with Stub(CALLS, delay=SECONDS) as stub:
        keys = Keys({"openai": Account(key="k", base_url=stub.url)})
        world = World(
            home,
            clock=SystemClock(),
            keys=keys,
            tools=(note_tool(),),
            validates_events=False,
            easy_endings=True,
        )
        async with world:
            teams = [
                await world.found(f"Goal {n}", model="openai/stub", budget=Budget(turns=CALLS + 5),
                                  start=False)
                for n in range(AGENTS)
            ]  # fmt: skip
            began, spent = time.perf_counter(), time.process_time()
            await asyncio.gather(
                *(world.say(f.coordinator.id, "Go", team_id=f.team.id) for f in teams)
            )
            await world.settle()
            wall, cpu = time.perf_counter() - began, time.process_time() - spent
            done = [(await world.board(founded.team.id))[0].status for founded in teams]
    return {
        "completed": sum(status == "completed" for status in done),
        "wall": wall,
        "ideal": CALLS * SECONDS,
        "cpu": cpu,
    }


async def floor() -> float:
    """Return the CPU seconds of the same calls without agiraph."""
    book, body = Floor(), bodies()
    with Stub(CALLS, delay=SECONDS) as stub:
        host, port = stub.url.removeprefix("http://").removesuffix("/v1").split(":")

        async def one() -> None:
            reader, writer = await asyncio.open_connection(host, int(port))
            for number in range(CALLS):
                answer = await raw_request(reader, writer, body(number))
                book.append(answer[:300].decode())
            writer.close()

        spent = time.process_time()
        await asyncio.gather(*(one() for _ in range(AGENTS)))
        cpu = time.process_time() - spent
    book.close()
    return cpu
