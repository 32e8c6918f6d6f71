"""Alone: a sweep in a program of its own, small enough to be forked thousands of times.

As a program: `alone.py points SCENARIO MUTANT EVERY`, where the mutant may be empty, or
`alone.py pairs SCENARIO SECONDS AT_LEAST SEED`; it writes a report.
"""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import orjson

from agiraph.home.specialists import specialists
from agiraph.testing.sweep import Report, Scenario, Sweep
from tests.faults import life, mutants
from tests.faults.scenarios import ALL, scenario
from tests.faults.teamwork import program, program_ran_once, teamwork

EVERY = ALL | {"teamwork": teamwork, "program": program, "life": life.life}
MORE = {"life": life.after_recovery, "program": program_ran_once}
"""What must hold besides, of some."""


def scenario_of(name: str, arm: Callable[[], object]) -> Scenario:
    more = [MORE[name]] if name in MORE else []
    return scenario(name, EVERY[name], arm, *more)


def unharmed() -> None:
    """The code as it is."""


def swept(name: str, *, mutant: str = "", every: int = 1) -> Report:
    """Kill at every so many points of a scenario; with a planted bug, until it is caught."""
    return _reported("points", name, mutant, str(every))


def swept_in_pairs(name: str, *, seconds: float, at_least: int, seed: int) -> Report:
    """Kill at random pairs of points, the second in the recovery from the first."""
    return _reported("pairs", name, str(seconds), str(at_least), str(seed))


def _reported(*arguments: str) -> Report:
    command = [sys.executable, "-m", "tests.faults.alone", *arguments]
    place = {"cwd": Path(__file__).parents[2], "start_new_session": True}
    with subprocess.Popen(command, stdout=subprocess.PIPE, **place) as running:
        try:
            out, _ = running.communicate()
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)
    assert running.returncode == 0
    return Report(**orjson.loads(out))


def main() -> None:
    how, name, *rest = sys.argv[1:]
    specialists()  # what every life would read first is there before they are forked
    report = _pairs(name, *rest) if how == "pairs" else _points(name, *rest)
    sys.stdout.buffer.write(orjson.dumps(asdict(report)))


def _points(name: str, mutant: str, every: str) -> Report:
    if not mutant:
        return Sweep(scenario_of(name, unharmed)).run(every=int(every))
    planted = mutants.ALL[mutant]
    return Sweep(scenario_of(name, planted.arm)).run(until_caught=True, first=planted.first)


def _pairs(name: str, seconds: str, at_least: str, seed: str) -> Report:
    sweep = Sweep(scenario_of(name, unharmed))
    return sweep.run_pairs(seconds=float(seconds), at_least=int(at_least), seed=int(seed))


if __name__ == "__main__":
    main()
