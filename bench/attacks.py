"""Attacks: how fast the API answers while commands of agents try to exhaust the machine.

    python -m bench.attacks --seconds 30

The server is `agiraph up` in a process of its own; for root its home lies on a disk of 1 GiB. One
team runs each attack, again and again, by the tool `bash` with the product's settings. At the end
the server is killed with SIGKILL, and the processes that are left a second later are counted.
"""

import argparse
import asyncio
import contextlib
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from agiraph.testing import ModelServer, call, says
from agiraph.testing.model_server import Seen, Step
from bench.load import origin_of

TOKEN = "a-token-of-32-characters-for-bench"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
ATTACKS = {
    "fork bomb": "bomb() { bomb | bomb & }; bomb; wait; sleep 1000",
    "8 GB": "python3 -c \"x = [b'x' * 2**20 for _ in range(8192)]\"",
    "full disk": "rm -f f*; for i in $(seq 10000); do head -c 64M /dev/zero > f$i || break; done",
    "endless file": "rm -f file; yes > file",
    "double fork": "for i in $(seq 20); do (setsid sh -c 'setsid sleep 1000 & sleep 1000' &) "
    "done; sleep 0.3",
}
PHASES = (("fork bomb", "8 GB", "double fork"), ("full disk", "endless file", "double fork"))
"""What runs at the same time. A full disk ends every command that writes to it."""
READ = ("/teams", "/inbox", "/status", "/teams/{team}", "/teams/{team}/board")
DISK_MIB, MEMORY_MIB = 1024, 2048
QUIET_S = 5.0


@dataclass(slots=True, kw_only=True)
class Attackers:
    """Plays the model of every team: the same attack, until it is told to stop."""

    phase: tuple[str, ...] = ()
    ends: Counter[str] = field(default_factory=Counter[str])
    """How the attacks ended, as the model was told."""

    def play(self, seen: Seen) -> Step:
        text = " ".join(message.text for message in seen.messages)
        names = [name for name in ATTACKS if f"Attack: {name}." in seen.system + text]
        if not names or "bash" not in seen.tools or names[0] not in self.phase:
            return says(call("finish", summary="Done.") if "finish" in seen.tools else "Done.")
        last = seen.messages[-1]
        if last.role == "tool":
            self.ends[f"{names[0]}: {_ending(last.text)}"] += 1
        # Else the runtime would remark that the same call is repeated.
        return says(call("bash", command=f"{ATTACKS[names[0]]} # {len(seen.messages)}", timeout=20))


def _ending(text: str) -> str:
    return re.sub(r"\d[\d,.]*", "N", text.strip().splitlines()[0])[:90]


async def _server(home: Path, model: ModelServer) -> tuple[asyncio.subprocess.Process, str]:
    (home / "agiraph.toml").write_text(f"[command_limits]\nmemory_mib = {MEMORY_MIB}\n")
    environ = {
        "PATH": os.environ["PATH"],
        "AGIRAPH_HOME": str(home),
        "AGIRAPH_PORT": "0",
        "AGIRAPH_TOKEN": TOKEN,
        "AGIRAPH_MODEL": "openai/test",
        "OPENAI_API_KEY": "sk-bench",
        "OPENAI_BASE_URL": model.openai_url,
    }
    with (home / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "agiraph", "up"),
            env=environ,
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
        )
    assert process.stdout is not None
    return process, await origin_of(process.stdout)


async def _read_all(
    http: aiohttp.ClientSession, origin: str, team: str, seconds: float
) -> tuple[list[float], list[str]]:
    """Read pages of the API one after the other; return the milliseconds of each, and errors."""
    taken: list[float] = []
    errors: list[str] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for path in READ:
            begun = time.monotonic()
            async with http.get(f"{origin}/api{path.format(team=team)}", headers=BEARER) as answer:
                await answer.read()
            taken.append((time.monotonic() - begun) * 1000)
            errors += [f"{path}: {answer.status}"] if answer.status != 200 else []
            await asyncio.sleep(0.01)
    return taken, errors


async def _found(http: aiohttp.ClientSession, origin: str, goal: str, *, start: bool) -> str:
    body = {"goal": goal, "start": start, "learns": False}
    async with http.post(f"{origin}/api/teams", json=body, headers=BEARER) as response:
        team = await response.json()
        assert response.status == 201, team
    return team["id"]


def _left(home: Path) -> list[str]:
    """Return the processes of commands of this home."""
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"HOME={home}/teams/".encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_text().replace("\0", " "))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    quiet: list[float]
    attacked: dict[str, list[float]]
    """Milliseconds of each request, by phase."""
    errors: list[str]
    running: int
    """Processes of commands when the server was killed."""
    left: int
    gone_s: float
    """Seconds until no process was left."""
    ends: Counter[str]


async def measure(home: Path, seconds: float) -> Measured:
    attackers = Attackers()
    async with ModelServer(attackers.play) as model, aiohttp.ClientSession() as http:
        process, origin = await _server(home, model)
        try:
            idle = await _found(http, origin, "Listen", start=False)
            quiet, errors = await _read_all(http, origin, idle, QUIET_S)
            attacked: dict[str, list[float]] = {}
            for phase in PHASES:
                attackers.phase = phase
                await asyncio.gather(
                    *(_found(http, origin, f"Attack: {name}.", start=True) for name in phase)
                )
                taken, failed = await _read_all(http, origin, idle, seconds)
                attacked[", ".join(phase)] = taken
                errors += failed
            running = len(_left(home))
        finally:
            process.kill()
            await process.communicate()
    left, gone_s = _wait_until_gone(home)
    return Measured(
        quiet=quiet,
        attacked=attacked,
        errors=errors,
        running=running,
        left=left,
        gone_s=gone_s,
        ends=attackers.ends,
    )


def _wait_until_gone(home: Path) -> tuple[int, float]:
    """Return how many processes are left after five seconds at most, and how long it took."""
    killed = time.monotonic()
    while (left := _left(home)) and time.monotonic() < killed + 5:
        os.sched_yield()
    return len(left), time.monotonic() - killed


def _percentiles(taken: list[float]) -> str:
    ordered = sorted(taken)
    p99 = ordered[int(len(ordered) * 0.99)]
    median = statistics.median(ordered)
    return f"p50 {median:.1f} ms, p99 {p99:.1f} ms (goal 250), max {ordered[-1]:.1f} ms"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--home", type=Path, help="an empty folder; else one is made")
    given = parser.parse_args()
    if given.home is None:
        sys.exit(_on_a_small_disk(given.seconds))
    found = asyncio.run(measure(given.home, given.seconds))
    print(f"quiet: {len(found.quiet)} requests, {_percentiles(found.quiet)}")
    for phase, taken in found.attacked.items():
        print(f"{phase}: {len(taken)} requests, {_percentiles(taken)}")
    print(f"errors: {Counter(found.errors)}")
    for ending, times in sorted(found.ends.items()):
        print(f"  {times:>4} of {ending}")
    print(
        f"SIGKILL of the server: {found.running} processes before, "
        f"{found.left} left after {found.gone_s:.2f} s"
    )


def _on_a_small_disk(seconds: float) -> int:
    """Run this module again; for root in a mount namespace with a small disk at the home."""
    with tempfile.TemporaryDirectory(prefix="agiraph-bench-") as home:
        again = [sys.executable, "-m", "bench.attacks", "--home", home, "--seconds", str(seconds)]
        if os.geteuid() == 0:
            mount = f'mount -t tmpfs -o size={DISK_MIB}m tmpfs {home} && exec "$@"'
            again = ["unshare", "--mount", "sh", "-c", mount, "sh", *again]
        return subprocess.run(again, check=False).returncode


if __name__ == "__main__":
    main()
