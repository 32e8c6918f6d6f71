"""Commands: what the sandbox adds to the time of a command, by level, all in one run."""

import asyncio
import statistics
import tempfile
import time
from pathlib import Path

from agiraph.home import commands, levels, sandbox
from agiraph.home.sandbox import Level, Mount, Spec

RUNS = 40


async def measure() -> dict[str, float]:
    """Return the milliseconds by which each level is slower than an unconfined command."""
    ways: dict[str, Spec | None] = {"none": None}
    with tempfile.TemporaryDirectory(prefix="agiraph-bench-") as name:
        folder = Path(name).resolve()
        scratch = folder / "scratch"
        scratch.mkdir()
        given = (Mount(source=scratch, target=scratch, is_writable=True),)
        names: tuple[Level, ...] = ("namespaces", "bubblewrap", "landlock")
        for level in names:
            found = levels.choose(level)
            if not found.reasons:
                user = sandbox.FIRST_SPARE_USER if found.has_spare_user else 0
                ways[level] = Spec(level=level, mounts=given, user=user)
        taken: dict[str, list[float]] = {way: [] for way in ways}
        for number in range(RUNS):
            for way, spec in ways.items():  # interleaved, so that load hits all of them alike
                begun = time.perf_counter()
                await commands.run(
                    folder / f"{way}-{number}",
                    command="true",
                    cwd=scratch,
                    timeout=60,
                    env=commands.child_environment(scratch),
                    spec=spec,
                )
                taken[way].append((time.perf_counter() - begun) * 1000)
    base = statistics.median(taken.pop("none"))
    more = {way: statistics.median(times) - base for way, times in taken.items()}
    return {"unconfined ms": base} | {f"{way} adds ms": added for way, added in more.items()}


if __name__ == "__main__":
    print(asyncio.run(measure()))
