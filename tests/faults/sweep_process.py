"""Sweep process: runs sweeps in a subprocess that is small enough to be forked thousands of times.

As a program it writes a list of reports:
`sweep_process.py points SCENARIO`, for a kill at every fault point of a scenario;
`sweep_process.py planted MUTANT…`, for kills until each of these planted bugs is caught;
`sweep_process.py kinds`, for one kill at each kind of fault point over all scenarios;
`sweep_process.py pairs SCENARIO SECONDS AT_LEAST SEED`.
"""

import contextlib
import gc
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

import orjson

from agiraph.core.services.lifecycle import claims
from agiraph.testing.sweep import Report, Scenario, Sweep, place_of_sweeps
from agiraph.testing.world import preload
from tests.faults import (
    asking,
    deletion,
    endings,
    given_folder,
    later,
    life,
    mcp_calls,
    mutants,
    research,
    spent_day,
    stopping,
    waits,
)
from tests.faults.scenarios import ALL, scenario
from tests.faults.teamwork import program, program_ran_once, teamwork

SCENARIOS = ALL | {
    "teamwork": teamwork,
    "program": program,
    "life": life.life,
    "endings": endings.endings,
    "spent_day": spent_day.spent_day,
    "deletion": deletion.deletion,
    "asking": asking.asking,
    "research": research.research,
    "waits": waits.waits,
    "stopping": stopping.stopping,
    "restarting": stopping.restarting,
    "later": later.later,
    "given_folder": given_folder.given_folder,
}
LONG = {"mcp_calls": mcp_calls.mcp_calls}
"""Scenarios that only `make faults` runs: each process of theirs starts a server."""
ROW = claims.MAX_CRASHES - 1
"""Kills in a row: after one more at the same step, an agent waits for a person."""
EXTRA_CHECKS = {
    "life": life.after_recovery,
    "program": program_ran_once,
    "endings": endings.after_recovery,
    "spent_day": spent_day.after_recovery,
    "deletion": deletion.after_recovery,
    "asking": asking.after_recovery,
    "research": research.after_recovery,
    "mcp_calls": mcp_calls.after_recovery,
    "waits": waits.after_recovery,
    "stopping": stopping.after_recovery,
    "restarting": stopping.after_restart,
    "later": later.after_recovery,
    "given_folder": given_folder.after_recovery,
}
"""Additional checks after the recovery, for some scenarios."""


def scenario_of(name: str, arm: Callable[[], object]) -> Scenario:
    extra = [EXTRA_CHECKS[name]] if name in EXTRA_CHECKS else []
    if name in LONG:
        # Imported once here, not in each forked process: it takes a second.
        import agiraph.features.mcp.transport  # noqa: F401  # pyright: ignore[reportUnusedImport]
    return scenario(name, (SCENARIOS | LONG)[name], arm, *extra)


def no_bug() -> None:
    """Plant no bug."""


def sweep_points(name: str) -> Report:
    """Kill at every point of a scenario."""
    return _reports("points", name)[0]


def sweep_planted(names: Sequence[str]) -> dict[str, Report]:
    """Kill with each of these planted bugs in turn, until it is caught."""
    return dict(zip(names, _reports("planted", *names), strict=True))


def sweep_by_kind() -> list[Report]:
    """Kill once at each kind of fault point, in one of the scenarios that pass it."""
    return _reports("kinds")


def sweep_in_pairs(name: str, *, seconds: float, at_least: int, seed: int) -> Report:
    """Kill at random pairs of points, the second in the recovery from the first."""
    return _reports("pairs", name, str(seconds), str(at_least), str(seed))[0]


def _reports(*arguments: str) -> list[Report]:
    command = [sys.executable, "-m", "tests.faults.sweep_process", *arguments]
    place = {"cwd": Path(__file__).parents[2], "start_new_session": True}
    with subprocess.Popen(command, stdout=subprocess.PIPE, **place) as running:
        try:
            out, _ = running.communicate()
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)
    assert running.returncode == 0
    return [Report(**report) for report in orjson.loads(out)]


def main() -> None:
    how, *rest = sys.argv[1:]
    preload(place_of_sweeps())
    gc.freeze()  # the collector of a forked process need not copy the pages of these objects
    reports = {"points": _points, "planted": _planted, "kinds": _kinds, "pairs": _pairs}[how](*rest)
    sys.stdout.buffer.write(orjson.dumps([asdict(report) for report in reports]))


def _points(name: str) -> list[Report]:
    return [Sweep(scenario_of(name, no_bug)).run()]


def _planted(*names: str) -> list[Report]:
    every = [mutants.ALL[name] for name in names]
    sweeps = [Sweep(scenario_of(planted.where, planted.arm)) for planted in every]
    return [
        sweep.run(until_caught=True, first=planted.first)
        for sweep, planted in zip(sweeps, every, strict=True)
    ]


def _kinds() -> list[Report]:
    sweeps = [Sweep(scenario_of(name, no_bug)) for name in SCENARIOS]
    for sweep in sweeps:
        sweep.count()
    for sweep, kinds in zip(sweeps, _shares(sweeps), strict=True):
        ordered = sorted(kinds, key=sweep.middle)
        unmet = sweep.kill_in_rows(
            [ordered[at : at + ROW] for at in range(0, len(ordered), ROW)]
        ).unmet
        sweep.kill_at([sweep.middle(name) for name in unmet])
    return [sweep.report for sweep in sweeps]


def _shares(sweeps: list[Sweep]) -> list[list[str]]:
    """Give each kind of point to a scenario that passes it.

    The kinds before, in and after one verb or effect stay together: kills in a row then follow one
    another closely. Every scenario gets some; the longer one is, the fewer.
    """
    shares: list[list[str]] = [[] for _ in sweeps]
    passed = [sweep.report.points for sweep in sweeps]
    for subject in sorted({_about(point) for points in passed for point in points}):
        kinds = [{point for point in points if _about(point) == subject} for points in passed]
        most = max(map(len, kinds))
        able = [i for i, found in enumerate(kinds) if len(found) == most]
        chosen = min(able, key=lambda i: len(shares[i]) * len(passed[i]))
        shares[chosen] += kinds[chosen]
    return shares


def _about(point: str) -> str:
    """Return what a point is about: `db reply` for `db:before:reply`."""
    kind, _, subject = point.split(":")
    return f"{kind} {subject}"


def _pairs(name: str, seconds: str, at_least: str, seed: str) -> list[Report]:
    sweep = Sweep(scenario_of(name, no_bug))
    return [sweep.run_pairs(seconds=float(seconds), at_least=int(at_least), seed=int(seed))]


if __name__ == "__main__":
    main()
