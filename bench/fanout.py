"""Fan-out: one coordinator hires 50 workers, who take 5 turns each side by side."""

import tempfile
import time
from pathlib import Path
from typing import Any

from agiraph.domain.people import Limits
from agiraph.domain.time import SystemClock
from agiraph.providers.base import Request
from agiraph.providers.registry import Keys
from agiraph.testing import Says, World, call, says
from agiraph.testing.scripted import ReactiveModel
from bench.stub import Stub
from bench.turns import note_tool

WORKERS = 50
TURNS = 5
SECONDS = 0.2


def _coordinate(request: Request) -> Says:
    """Two replies make the work, the third waits for it, the fourth ends."""
    answers = [t.text for t in request.transcript.turns if t.role == "tool"]
    made = [text.split()[1].strip(",") for text in answers if text.startswith("Created")]
    if len(made) < WORKERS:
        half = range(WORKERS // 2)
        task = [call("create_work_node", task=f"{n}", assigned_to="new:openai/stub") for n in half]
        return says(*task)
    if len(answers) == WORKERS:
        terms = {"turns_per_node": TURNS + 5, "timeout_seconds": 60}
        return says(call("start_stage", name="all", nodes=made, contract=terms))
    return says(call("finish", summary="done"))


async def measure() -> dict[str, Any]:
    home = Path(tempfile.mkdtemp(prefix="agiraph-bench-"))
    limits = Limits(agents=WORKERS + 1, children=WORKERS, hires_per_minute=WORKERS + 1)
    with Stub(TURNS, delay=SECONDS, ending="publish") as stub:
        keys = Keys(openai_key="k", openai_url=stub.url)
        world = World(home, clock=SystemClock(), keys=keys, tools=(note_tool([]),))
        world.model("ada", ReactiveModel("scripted/ada", _coordinate))
        async with world:
            world.runtime.models.window("openai/stub")  # the list of prices is read once a process
            began, spent = time.perf_counter(), time.process_time()
            founded = await world.found("Do all parts", limits=limits)
            await world.settle()
            wall, cpu = time.perf_counter() - began, time.process_time() - spent
            nodes = await world.board(founded.team.id)
    return {
        "completed": sum(node.status == "completed" for node in nodes),
        "wall": wall,
        "ideal": TURNS * SECONDS,
        "cpu": cpu,
    }
