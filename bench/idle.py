"""Idle: the cost of idle teams in memory, CPU and database growth."""

import gc
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

from agiraph.core.domain.agents import Limits
from agiraph.core.domain.persons import OWNER
from agiraph.core.services.lifecycle import teams, timers
from agiraph.core.services.triggers import definitions
from agiraph.core.store.tx import Tx
from agiraph.testing import World
from agiraph.testing.clock import ManualClock

TEAMS = 10_000
EVERY = 60.0
MINUTES = 5
_AT_ONCE = 200


def _found(tx: Tx, first: int, count: int) -> None:
    """Create teams with a heartbeat that checks for news every minute."""
    for number in range(first, first + count):
        founded = teams.create(
            tx,
            owner_id=OWNER,
            goal=f"Be idle {number}",
            model="scripted/ada",
            start=False,
            heartbeat=None,
            limits=Limits(),
        )
        config = {"interval_seconds": EVERY, "when": "news"}
        definitions.create(tx, agent_id=founded.coordinator.id, type="heartbeat", config=config)


def _pages(tx: Tx) -> int:
    found = [tx.one(f"pragma {what}") for what in ("page_count", "page_size", "freelist_count")]
    count, size, free = (0 if row is None else int(row[0]) for row in found)
    return (count - free) * size


def _count_checks(tx: Tx) -> int:
    row = tx.one("select sum(gated) from triggers")
    return 0 if row is None else int(row[0])


async def _pass_minute(world: World) -> None:
    world.clock.advance(seconds=EVERY)
    while await world.store.write(timers.fire_due):
        pass


def _kib() -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return float(line.split()[1])
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


async def measure(count: int = TEAMS, minutes: int = MINUTES) -> dict[str, Any]:
    """Measure idle teams for some minutes of simulated time."""
    world = World(
        Path(tempfile.mkdtemp(prefix="agiraph-bench-")),
        clock=ManualClock(),
        validates_events=False,
        easy_endings=True,
    )
    asked = world.script("ada")
    await world.start()
    empty = _kib()
    for first in range(0, count, _AT_ONCE):
        await world.store.write(_found, first, min(_AT_ONCE, count - first))
    await _pass_minute(world)  # after the first check, rows no longer grow
    gc.collect()
    full, size = _kib(), await world.store.read(_pages)
    checked, began = await world.store.read(_count_checks), time.process_time()
    for _ in range(minutes):
        await _pass_minute(world)
    cpu = time.process_time() - began
    checks = await world.store.read(_count_checks) - checked
    await world.settle()
    gc.collect()
    found = {
        "teams": count,
        "KiB of memory a team": (full - empty) / count,
        "KiB of memory more after": _kib() - full,
        "checks": checks,
        "µs of CPU a check": cpu / max(checks, 1) * 1e6,
        "bytes of database a team": size / count,
        "bytes of database more after": await world.store.read(_pages) - size,
        "calls of a model": len(asked.requests),
    }
    await world.stop()
    return found


if __name__ == "__main__":
    import asyncio

    for what, value in asyncio.run(measure()).items():
        print(f"  {what:<32} {value:>14,.1f}")
