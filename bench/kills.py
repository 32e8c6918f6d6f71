"""Kills: the repeated and lost work of a run of 200 turns that is killed ten times."""

import asyncio
import os
import random
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from agiraph.core.domain.outcomes import Answer, Done
from agiraph.core.domain.times.time import SystemClock
from agiraph.core.domain.work import Budget
from agiraph.core.run_context import RunContext
from agiraph.core.runtime.steps import IN_DOUBT
from agiraph.core.store import teams
from agiraph.core.tools.base import tool
from agiraph.models.base import Request
from agiraph.testing import Says, World, call, says
from agiraph.testing.scripted import ReactiveModel

TURNS = 200
KILLS = 10


def _step(request: Request) -> int:
    return sum(turn.role == "assistant" for turn in request.transcript.turns)


async def _life(home: Path) -> None:
    """Start the run, or continue it after a kill."""
    ledger = os.open(home / "ledger", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    @tool(effect="once")
    async def stamp(ctx: RunContext, number: Annotated[int, Field()]) -> Answer:
        """Do something that must happen once."""
        os.write(ledger, f"{number}\n".encode())
        return Done(f"stamped {number}")

    def react(request: Request) -> Says:
        done = _step(request)
        if done >= TURNS:
            return says(call("finish", summary="done"))
        return says(call("stamp", number=done))

    world = World(home, clock=SystemClock(), tools=(stamp,), easy_endings=True)
    world.model("ada", ReactiveModel("scripted/ada", react))
    async with world:
        if not await world.store.read(teams.every):
            await world.found("Stamp", budget=Budget(turns=TURNS + 10))
        await world.settle()
        [team] = await world.store.read(teams.every)
        [goal] = await world.board(team.id)
        told = [turn.text for turn in await world.turns(goal.id)]
        print(team.status, told.count(IN_DOUBT))


def _count(ledger: Path) -> int:
    return len(ledger.read_text().splitlines()) if ledger.exists() else 0


def measure() -> dict[str, Any]:
    home = Path(tempfile.mkdtemp(prefix="agiraph-bench-"))
    ledger = home / "ledger"
    # A fixed seed: the kills fall on the same turns in every run, though not on the same
    # instruction.
    dice = random.Random(7)
    marks = sorted(dice.sample(range(5, TURNS - 5), KILLS))
    killed = 0
    for mark in marks:
        process = subprocess.Popen([sys.executable, "-m", "bench.kills", str(home)], text=True)
        while process.poll() is None and _count(ledger) < mark:
            pass  # busy waiting on purpose: the kill should hit any point of a turn
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            killed += 1
        process.wait()
    last = subprocess.run(
        [sys.executable, "-m", "bench.kills", str(home)],
        capture_output=True,
        text=True,
        check=False,
    )
    status, in_doubt = last.stdout.split() or ("", "0")
    stamped = Counter(ledger.read_text().split())
    missing = sum(str(number) not in stamped for number in range(TURNS))
    return {
        "killed": killed,
        "finished": status == "completed",
        "repeated": sum(n - 1 for n in stamped.values()),
        # A call that may have run is not run again; the model is told so, and nothing is lost.
        "lost": max(missing - int(in_doubt), 0),
        "in doubt": int(in_doubt),
    }


if __name__ == "__main__":
    asyncio.run(_life(Path(sys.argv[1])))
