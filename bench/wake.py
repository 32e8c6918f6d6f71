"""Wake: the time from an accepted message to the first model call."""

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from agiraph.core.domain.times.time import SystemClock
from agiraph.models.base import Request
from agiraph.testing import Says, World, call, says
from agiraph.testing.scripted import ReactiveModel

MESSAGES = 200


async def measure() -> dict[str, Any]:
    home = Path(tempfile.mkdtemp(prefix="agiraph-bench-"))
    asked: list[float] = []

    def react(request: Request) -> Says:
        asked.append(time.perf_counter())
        return says(call("finish", summary="done"))

    world = World(home, clock=SystemClock(), validates_events=False, easy_endings=True)
    world.model("ada", ReactiveModel("scripted/ada", react))
    late: list[float] = []
    async with world:
        founded = await world.found("Wait", mode="infinite", start=False)
        for number in range(MESSAGES):
            asked.clear()
            await world.say(founded.coordinator.id, f"message {number}", team_id=founded.team.id)
            accepted = time.perf_counter()
            await world.settle()
            late.append((asked[0] - accepted) * 1000)
    late.sort()
    return {"p50 ms": statistics.median(late), "p99 ms": late[int(len(late) * 0.99) - 1]}
