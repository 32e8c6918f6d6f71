"""The crash sweep: a SIGKILL at every durable write and outside effect, and nothing is lost."""

import pytest

from tests.conftest import SweepLog
from tests.faults import mutants
from tests.faults.alone import EVERY, swept, swept_by_kind, swept_in_pairs
from tests.time_box import TimeBox

FEWEST = {"teamwork": 450, "life": 330}
"""Points that these have at least, however commits fall together; the others have fifty."""
FEWEST_PAIRS = 40
"""Of each scenario, however little time there is; at random, so every run tries others."""


@pytest.mark.timeout(600)
def test_a_kill_at_each_kind_of_point_loses_and_doubles_nothing(sweep_log: SweepLog) -> None:
    """`make faults` kills at every point of every scenario."""
    reports = swept_by_kind()
    for report in reports:
        sweep_log.append(str(report))
    assert [violation for report in reports for violation in report.violations] == []
    assert {report.scenario for report in reports if report.kills} == set(EVERY)
    kinds = {point for report in reports for point in report.points}
    assert sum(report.kills for report in reports) == len(kinds) >= 60
    assert all(len(r.points) >= FEWEST.get(r.scenario, 50) for r in reports)


@pytest.mark.long
@pytest.mark.parametrize("name", EVERY)
def test_a_kill_at_any_point_loses_and_doubles_nothing(name: str, sweep_log: SweepLog) -> None:
    report = swept(name)
    sweep_log.append(str(report))
    assert report.violations == []
    assert report.kills == len(report.points) >= FEWEST.get(name, 50)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", mutants.ALL)
def test_a_planted_bug_passes_a_clean_run_and_is_caught(name: str, sweep_log: SweepLog) -> None:
    report = swept(mutants.ALL[name].where, mutant=name)
    sweep_log.append(f"planted {name}, caught after {report.kills} kills: {report}")
    assert not any(v.startswith("clean run") for v in report.violations), report.violations
    assert report.violations, f"{name} survived {report.kills} kills"


@pytest.mark.long(share=0.02)
@pytest.mark.parametrize("name", EVERY)
def test_a_second_kill_in_the_recovery_loses_nothing(
    name: str, time_box: TimeBox, seed: int, sweep_log: SweepLog
) -> None:
    report = swept_in_pairs(name, seconds=time_box.left, at_least=FEWEST_PAIRS, seed=seed)
    sweep_log.append(f"pairs, seed {seed}, of {report}")
    assert report.violations == []
    assert report.kills >= FEWEST_PAIRS
