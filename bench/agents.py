"""Agents: what the start and the end of an agent cost, without the turns between them."""

import asyncio
import tempfile
import time
from pathlib import Path

from agiraph.core.domain.times.time import SystemClock
from agiraph.models.registry import Account, Keys
from agiraph.testing.world import World
from bench.stub import Stub
from bench.turns import MODEL, note_tool

AGENTS = 200
FEW, MANY = 1, 11
"""Calls of the model that an agent makes in the two runs."""


async def measure() -> float:
    """Return the milliseconds of CPU of an agent's start and end."""
    # A run before the measurement makes what a process makes once.
    await _each(FEW, agents=5)
    few, many = await _each(FEW), await _each(MANY)
    turn = (many - few) / (MANY - FEW)
    return (few - FEW * turn) * 1000


async def _each(calls: int, agents: int = AGENTS) -> float:
    """Return the seconds of CPU of an agent that makes this many calls."""
    with Stub(calls) as stub, tempfile.TemporaryDirectory(prefix="agiraph-bench-") as home:
        world = World(
            Path(home),
            clock=SystemClock(),
            keys=Keys({"openai": Account(key="k", base_url=stub.url)}),
            tools=(note_tool(),),
            validates_events=False,
            easy_endings=True,
        )
        async with world:
            teams = [
                await world.found(f"Goal {number}", model=MODEL, start=False)
                for number in range(agents)
            ]
            began = time.process_time()
            await asyncio.gather(
                *(world.say(one.coordinator.id, "Go", team_id=one.team.id) for one in teams)
            )
            await world.settle()
            spent = time.process_time() - began
            done = [(await world.board(one.team.id))[0].status for one in teams]
            assert done == ["completed"] * agents, done
    return spent / agents


if __name__ == "__main__":
    print(f"start and end of an agent: {asyncio.run(measure()):.2f} ms")
