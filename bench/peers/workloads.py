"""Workloads: the same work for each runtime, measured in a process of its own.

    python -m bench.peers.workloads langgraph W2 http://127.0.0.1:4000/v1

This module and those of the peers import nothing of agiraph: they also run in an environment
without it. The figures are printed as one line of JSON.
"""

import asyncio
import importlib
import json
import statistics
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

from bench.peers.noting import stamps

WINDOW = 20


class Peer(Protocol):
    """A runtime that lets agents call `note` until their model ends."""

    async def open(self, url: str, folder: Path, *, is_durable: bool) -> None: ...

    async def run(self, name: str, turns: int) -> None:
        """Run an agent of this name until its model ends, after at most these turns."""
        ...

    async def close(self) -> None: ...


def _kib() -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith("VmRSS:"))


async def _turns(peer: Peer, turns: int, marks: tuple[int, ...]) -> dict[str, float]:
    await peer.run("first", turns)
    assert len(stamps) == turns - 1, f"{len(stamps)} calls of the tool instead of {turns - 1}"
    costs = [b - a for a, b in pairwise(stamps)]
    return {f"µs at {m}": statistics.median(costs[m - WINDOW : m]) * 1e6 for m in marks}


async def _crowd(peer: Peer, agents: int, turns: int) -> dict[str, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(peer.run(f"agent {number}", turns) for number in range(agents)))
    found = {"wall s": time.perf_counter() - wall, "CPU s": time.process_time() - cpu}
    assert len(stamps) == agents * (turns - 1), f"{len(stamps)} calls of the tool"
    return found


async def _idle(peer: Peer, agents: int) -> dict[str, float]:
    await peer.run("first", 2)
    before = _kib()
    for number in range(agents):
        await peer.run(f"agent {number}", 2)
    return {"KiB an agent": (_kib() - before) / agents}


async def _measure(name: str, workload: str, url: str) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="agiraph-peers-") as folder:
        module = importlib.import_module(f"bench.peers.runtimes.{name}")
        peer: Peer = module.Peer()
        await peer.open(url, Path(folder), is_durable=workload != "W1")
        try:
            match workload:
                case "W1":
                    return await _turns(peer, 60, (50,))
                case "W2":
                    return await _turns(peer, 110, (50, 100))
                case "W3":
                    return await _crowd(peer, 200, 20)
                case "W4":
                    return await _crowd(peer, 50, 5)
                case "W5":
                    await peer.run("first", 2)
                    cold = time.process_time()
                    return {"cold CPU s": cold} | await _idle(peer, 200)
                case _:
                    raise SystemExit(f"There is no workload {workload}. Choose W1 to W5.")
        finally:
            await peer.close()


def main(arguments: list[str]) -> Any:
    name, workload, url = arguments
    print(json.dumps(asyncio.run(_measure(name, workload, url))))


if __name__ == "__main__":
    main(sys.argv[1:])
