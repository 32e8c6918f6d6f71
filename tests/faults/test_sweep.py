"""The crash sweep: a SIGKILL at every durable write and outside effect, and nothing is lost."""

from collections.abc import Callable

import pytest

from agiraph.testing.sweep import Scenario, Sweep
from tests.faults import life, mutants
from tests.faults.scenarios import ALL, scenario
from tests.faults.teamwork import program, teamwork

EVERY = ALL | {"teamwork": teamwork, "program": program, "life": life.life}
MORE = {"life": life.after_recovery}
"""What must hold besides, of some."""
LARGE = {"teamwork", "life"}


def _scenario(name: str, arm: Callable[[], object]) -> Scenario:
    more = [MORE[name]] if name in MORE else []
    return scenario(name, EVERY[name], arm, *more)


def _unharmed() -> None:
    """The code as it is."""


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", EVERY)
def test_a_kill_at_any_point_loses_and_doubles_nothing(name: str, sweep_log: list[str]) -> None:
    report = Sweep(_scenario(name, _unharmed)).run()
    sweep_log.append(str(report))
    assert report.violations == []
    assert report.kills == len(report.points) >= (300 if name in LARGE else 50)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", mutants.ALL)
def test_a_planted_bug_passes_a_clean_run_and_is_caught(name: str, sweep_log: list[str]) -> None:
    arm, where = mutants.ALL[name]
    sweep = Sweep(_scenario(where, arm))
    report = sweep.run(until_caught=True)
    sweep_log.append(f"planted {name}, caught after {report.kills} kills: {report}")
    assert not any(v.startswith("clean run") for v in report.violations), report.violations
    assert report.violations, f"{name} survived {report.kills} kills"


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", EVERY)
def test_a_second_kill_in_the_recovery_loses_nothing(name: str, sweep_log: list[str]) -> None:
    report = Sweep(_scenario(name, _unharmed)).run_pairs(every=7 if name in ALL else 501)
    sweep_log.append(f"pairs of {report}")
    assert report.violations == []
