"""Commands: what the sandbox and control groups add to the time of a command, all in one run.

python -m bench.commands
"""

import asyncio
import contextlib
import statistics
import tempfile
import time
from collections.abc import Generator
from pathlib import Path

from agiraph.sandbox import cgroups, commands, levels, sandbox
from agiraph.sandbox.sandbox import Level, Mount, Spec

RUNS = 40
PLAIN = "unconfined"
WITH_GROUPS = " with control groups"
LEVELS: tuple[Level, ...] = ("namespaces", "bubblewrap", "landlock")


async def measure() -> dict[str, float]:
    """Return the milliseconds by which each level is slower than an unconfined command."""
    ways: dict[str, Spec | None] = {PLAIN: None}
    with tempfile.TemporaryDirectory(prefix="agiraph-bench-") as name:
        folder = Path(name).resolve()
        scratch = folder / "scratch"
        scratch.mkdir()
        given = (Mount(source=scratch, target=scratch, is_writable=True),)
        for level in LEVELS:
            found = levels.choose(level)
            if not found.reasons:
                user = sandbox.FIRST_SPARE_USER if found.has_spare_user else 0
                spec = Spec(level=level, mounts=given, user=user)
                ways[level] = ways[level + WITH_GROUPS] = spec
        taken: dict[str, list[float]] = {way: [] for way in ways}
        for number in range(RUNS):
            for way, spec in ways.items():  # interleaved, so that load hits all of them alike
                spool = folder / f"{way}-{number}"
                taken[way].append(
                    await _run(spool, scratch, spec, has_groups=way.endswith(WITH_GROUPS))
                )
    medians = {way: statistics.median(times) for way, times in taken.items()}
    plain = medians.pop(PLAIN)
    more = {f"{way} adds ms": median - plain for way, median in medians.items()}
    return {"unconfined ms": plain} | more


async def _run(spool: Path, scratch: Path, spec: Spec | None, *, has_groups: bool) -> float:
    """Return the milliseconds of a command that does nothing."""
    env = commands.child_environment(scratch)
    with contextlib.nullcontext() if has_groups else _no_groups():
        begun = time.perf_counter()
        await commands.run(spool, command="true", cwd=scratch, timeout=60, env=env, spec=spec)
        return (time.perf_counter() - begun) * 1000


@contextlib.contextmanager
def _no_groups() -> Generator[None]:
    """Act as a process that may not create control groups."""
    find = cgroups.find
    cgroups.find = lambda: None
    try:
        yield
    finally:
        cgroups.find = find


if __name__ == "__main__":
    for what, ms in asyncio.run(measure()).items():
        print(f"{what:<44} {ms:6.1f}")
