"""Growth: what a model call costs the processor while a store holds few agents, and many.

The same number of agents works on the same steps each time; the others are idle, each in a team of
its own.
"""

import asyncio
import resource
import statistics
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path

from agiraph.core.domain.times.time import SystemClock
from agiraph.core.domain.work import Budget
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.models.registry import Account, Keys
from agiraph.testing.world import World
from bench.stub import Stub
from bench.turns import note_tool

SIZES = 200, 5_000
WORKING = 30
CALLS = 20
ROUNDS = 5


async def _found(world: World, count: int) -> list[NewTeam]:
    budget = Budget(turns=CALLS + 5)
    return [
        await world.found(f"Goal {n}", model="openai/stub", budget=budget, start=False)
        for n in range(count)
    ]


async def _work(world: World, teams: list[NewTeam]) -> float:
    """Return the microseconds in user mode of a call, while these teams work."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    await asyncio.gather(*(world.say(f.coordinator.id, "Go", team_id=f.team.id) for f in teams))
    await world.settle()
    spent = resource.getrusage(resource.RUSAGE_SELF).ru_utime - before
    return spent * 1e6 / (CALLS * len(teams))


async def measure() -> dict[int, float]:
    """Return the microseconds in user mode of a model call, by the agents of the store: the median
    of rounds in turn, as other programs slow both."""
    found: dict[int, list[float]] = {size: [] for size in SIZES}
    at_work = WORKING * (ROUNDS + 1)
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="agiraph-bench-"))
        stub = stack.enter_context(Stub(CALLS))
        keys = Keys({"openai": Account(key="k", base_url=stub.url)})
        stores: dict[int, tuple[World, list[NewTeam]]] = {}
        for size in SIZES:
            world = World(
                Path(folder) / str(size),
                clock=SystemClock(),
                keys=keys,
                tools=(note_tool(),),
                validates_events=False,
                easy_endings=True,
            )
            await stack.enter_async_context(world)
            await _found(world, size - at_work)
            stores[size] = world, await _found(world, at_work)
        for begin in range(0, at_work, WORKING):
            for size, (world, teams) in stores.items():
                found[size].append(await _work(world, teams[begin : begin + WORKING]))
    # The first round makes what is made at the first use.
    return {size: statistics.median(each[1:]) for size, each in found.items()}


if __name__ == "__main__":
    import uvloop

    for size, us in uvloop.run(measure()).items():
        print(f"{size:>6} agents {us:8.0f} µs a call")
