"""Idle: what teams cost that do nothing: memory, CPU and the database's growth."""

import gc
import resource
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

from agiraph.domain.people import Limits
from agiraph.services import teams, triggers, work
from agiraph.store.tx import Tx
from agiraph.testing import World
from agiraph.testing.clock import ManualClock

TEAMS = 10_000
EVERY = 60.0
MINUTES = 5
_AT_ONCE = 200


def _found(tx: Tx, first: int, count: int) -> None:
    """Teams whose coordinator looks every minute whether there is news."""
    for number in range(first, first + count):
        founded = teams.found(
            tx,
            goal=f"Be idle {number}",
            model="scripted/ada",
            start=False,
            heartbeat=None,
            limits=Limits(),
        )
        config = {"interval_seconds": EVERY, "when": "news"}
        triggers.create(tx, agent_id=founded.coordinator.id, type="heartbeat", config=config)


def _pages(tx: Tx) -> int:
    found = [tx.one(f"pragma {what}") for what in ("page_count", "page_size", "freelist_count")]
    count, size, free = (0 if row is None else int(row[0]) for row in found)
    return (count - free) * size


def _kib() -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return float(line.split()[1])
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


async def measure(count: int = TEAMS, minutes: int = MINUTES) -> dict[str, Any]:
    """Let so many teams be idle for some minutes of simulated time."""
    clock = ManualClock()
    world = World(Path(tempfile.mkdtemp(prefix="agiraph-bench-")), clock=clock)
    asked = world.script("ada")
    await world.start()
    empty = _kib()
    for first in range(0, count, _AT_ONCE):
        await world.store.write(_found, first, min(_AT_ONCE, count - first))
    gc.collect()
    full, size = _kib(), await world.store.read(_pages)
    began, rung = time.process_time(), 0
    end = clock.now() + timedelta(minutes=minutes)
    while clock.now() < end:
        clock.advance(seconds=EVERY)
        while at_once := await world.store.write(work.ring):
            rung += at_once
    cpu = time.process_time() - began
    await world.settle()
    gc.collect()
    found = {
        "teams": count,
        "KiB of memory a team": (full - empty) / count,
        "KiB of memory more after": _kib() - full,
        "looks": rung,
        "µs of CPU a look": cpu / max(rung, 1) * 1e6,
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
