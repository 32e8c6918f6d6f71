"""Alone: a sweep in a program of its own, small enough to be forked thousands of times.

As a program: `alone.py SCENARIO MUTANT EVERY`, where the mutant may be empty; it says a report.
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
from tests.faults.teamwork import program, teamwork

EVERY = ALL | {"teamwork": teamwork, "program": program, "life": life.life}
MORE = {"life": life.after_recovery}
"""What must hold besides, of some."""


def scenario_of(name: str, arm: Callable[[], object]) -> Scenario:
    more = [MORE[name]] if name in MORE else []
    return scenario(name, EVERY[name], arm, *more)


def unharmed() -> None:
    """The code as it is."""


def swept(name: str, *, mutant: str = "", every: int = 1) -> Report:
    """Kill at every so many points of a scenario; with a planted bug, until it is caught."""
    command = [sys.executable, "-m", "tests.faults.alone", name, mutant, str(every)]
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
    name, mutant, every = sys.argv[1:]
    specialists()  # what every life would read first is there before they are forked
    if mutant:
        planted = mutants.ALL[mutant]
        sweep = Sweep(scenario_of(name, planted.arm))
        report = sweep.run(until_caught=True, first=planted.first)
    else:
        report = Sweep(scenario_of(name, unharmed)).run(every=int(every))
    sys.stdout.buffer.write(orjson.dumps(asdict(report)))


if __name__ == "__main__":
    main()
