"""Fan-out: one coordinator hires 50 workers, which take 5 turns each in parallel.

Every model call takes 200 ms. The coordinator hires with two replies, waits with the third and ends
with the fourth. The shortest possible run is eight calls in sequence: two to hire, five of the
workers that were hired last, and one to end.
"""

import asyncio
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agiraph.core.domain.agents import Limits
from agiraph.core.domain.times.time import SystemClock
from agiraph.models.base import OnDelta, Reply, Request
from agiraph.models.registry import Account, Keys
from agiraph.testing import Says, World, call, says
from agiraph.testing.scripted import ReactiveModel
from bench.stub import Stub
from bench.turns import note_tool

WORKERS = 50
TURNS = 5
SECONDS = 0.2


def _coordinate(request: Request) -> Says:
    """Create the tasks with two replies, wait for them with the third, finish with the fourth."""
    answers = [t.text for t in request.transcript.turns if t.role == "tool"]
    made = [text.split()[1].strip(",") for text in answers if text.startswith("Created")]
    if len(made) < WORKERS:
        half = range(len(made), len(made) + WORKERS // 2)  # the same task again is refused
        given = {"assigned_to": "new:openai/stub"}
        return says(*(call("create_work_node", task=f"Do part {n}", **given) for n in half))
    if len(answers) == WORKERS:
        terms = {"turns_per_node": TURNS + 5, "timeout_seconds": 60}
        return says(call("start_stage", name="all", nodes=made, contract=terms))
    return says(call("finish", summary="done"))


@dataclass(frozen=True, slots=True)
class Slow:
    """A model in this process that takes 200 ms a call."""

    model: ReactiveModel

    @property
    def name(self) -> str:
        return self.model.name

    async def reply(self, request: Request, on_delta: OnDelta | None = None) -> Reply:
        await asyncio.sleep(SECONDS)
        return await self.model.reply(request, on_delta)


async def measure() -> dict[str, Any]:
    home = Path(tempfile.mkdtemp(prefix="agiraph-bench-"))
    limits = Limits(agents=WORKERS + 1, children=WORKERS, hires_per_minute=WORKERS + 1)
    with Stub(TURNS, delay=SECONDS, ending="publish") as stub:
        keys = Keys({"openai": Account(key="k", base_url=stub.url)})
        world = World(
            home,
            clock=SystemClock(),
            keys=keys,
            tools=(note_tool(),),
            validates_events=False,
            easy_endings=True,
        )
        world.model("ada", Slow(ReactiveModel("scripted/ada", _coordinate)))
        async with world:
            # Loads the price list, which each process does once.
            world.runtime.models.window("openai/stub")
            began, spent = time.perf_counter(), time.process_time()
            founded = await world.found("Do all parts", limits=limits)
            await world.settle()
            wall, cpu = time.perf_counter() - began, time.process_time() - spent
            nodes = await world.board(founded.team.id)
    return {
        "completed": sum(node.status == "completed" for node in nodes),
        "wall": wall,
        "ideal": (TURNS + 3) * SECONDS,
        "cpu": cpu,
    }
