"""Chat: how soon an agent answers a person while every work slot is taken.

Agents whose model takes 200 ms a call hold all slots. Messages go to agents that work and to agents
that wait for a slot. Measured: the time until a message is stored and acknowledged, and the time
until the first words of the reply, whose model takes 200 ms too.
"""

import asyncio
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agiraph.core.domain.times.time import SystemClock
from agiraph.core.domain.work import Budget
from agiraph.core.run_context import RunContext
from agiraph.core.runtime.dispatcher import MAX_RUNNING
from agiraph.models.base import OnDelta, Reply, Request
from agiraph.models.registry import Account, Keys
from agiraph.testing.world import World
from bench.stub import Stub
from bench.turns import note_tool

SECONDS = 0.2
CALLS = 60
MESSAGES = 100
WAITING = 20


@dataclass(slots=True)
class _ReplyModel:
    """A model that answers after 200 ms, in a few words."""

    name: str = "scripted/reply"

    async def reply(self, request: Request, on_delta: OnDelta | None = None) -> Reply:
        await asyncio.sleep(SECONDS)
        if on_delta is not None:
            on_delta("I am on it.")
        return Reply(text="I am on it.")


async def measure() -> dict[str, Any]:
    sent: dict[str, float] = {}
    first: dict[str, float] = {}
    everyone = asyncio.Event()

    def on_delta(ctx: RunContext, words: str) -> None:
        if ctx.node.lane == "reply":
            first.setdefault(ctx.agent.id, time.perf_counter())
            if len(first) == MESSAGES:
                everyone.set()

    home = Path(tempfile.mkdtemp(prefix="agiraph-bench-"))
    with Stub(CALLS, delay=SECONDS) as stub:
        world = World(
            home,
            clock=SystemClock(),
            keys=Keys({"openai": Account(key="k", base_url=stub.url)}),
            tools=(note_tool(),),
            validates_events=False,
            reply_model="scripted/reply",
            on_delta=on_delta,
            easy_endings=True,
        )
        world.model("reply", _ReplyModel())
        async with world:
            busy = [
                await world.found(f"Goal {n}", model="openai/stub", budget=Budget(turns=CALLS + 5))
                for n in range(MAX_RUNNING["work"] + WAITING)
            ]
            await asyncio.sleep(2)  # until all work slots are taken
            acknowledged: list[float] = []
            for founded in busy[-MESSAGES:]:
                agent = founded.coordinator.id
                began = sent[agent] = time.perf_counter()
                await world.chat(agent, "Are you there?")
                acknowledged.append(time.perf_counter() - began)
                await asyncio.sleep(0.01)
            await everyone.wait()
    words = [first[agent] - sent[agent] for agent in first]
    return {"acknowledged": sorted(acknowledged), "words": sorted(words), "model": SECONDS}
