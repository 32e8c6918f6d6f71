"""The crash sweep: SIGKILL at every durable write and outside effect loses nothing."""

import pytest

from tests.conftest import SweepLog
from tests.faults import mutants
from tests.faults.sweep_process import SCENARIOS, sweep_by_kind, sweep_in_pairs, sweep_points
from tests.time_box import TimeBox

FEWEST = {"teamwork": 450, "life": 330}
"""The fewest fault points of these scenarios, however commits are grouped; others have fifty."""
FEWEST_PAIRS = 40
"""The fewest pairs of each scenario, however little time there is; each run tries others."""


@pytest.mark.timeout(600)
def test_a_kill_at_each_kind_of_fault_point_loses_and_repeats_nothing(sweep_log: SweepLog) -> None:
    """`make faults` kills at every point of every scenario."""
    reports = sweep_by_kind()
    for report in reports:
        sweep_log.append(str(report))
    assert [violation for report in reports for violation in report.violations] == []
    assert {report.scenario for report in reports if report.kills} == set(SCENARIOS)
    kinds = {point for report in reports for point in report.points}
    assert sum(report.kills for report in reports) == len(kinds) >= 60
    assert all(len(r.points) >= FEWEST.get(r.scenario, 50) for r in reports)


@pytest.mark.long
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_kill_at_any_fault_point_loses_and_repeats_nothing(
    name: str, sweep_log: SweepLog
) -> None:
    report = sweep_points(name)
    sweep_log.append(str(report))
    assert report.violations == []
    assert report.kills == len(report.points) >= FEWEST.get(name, 50)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", mutants.ALL)
def test_a_planted_bug_passes_a_clean_run_and_is_caught(name: str, sweep_log: SweepLog) -> None:
    report = sweep_points(mutants.ALL[name].where, mutant=name)
    sweep_log.append(f"planted {name}, caught after {report.kills} kills: {report}")
    assert not any(v.startswith("clean run") for v in report.violations), report.violations
    assert report.violations, f"{name} survived {report.kills} kills"


@pytest.mark.long(share=0.02)
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_second_kill_in_the_recovery_loses_nothing(
    name: str, time_box: TimeBox, seed: int, sweep_log: SweepLog
) -> None:
    report = sweep_in_pairs(name, seconds=time_box.left, at_least=FEWEST_PAIRS, seed=seed)
    sweep_log.append(f"pairs, seed {seed}, of {report}")
    assert report.violations == []
    assert report.kills >= FEWEST_PAIRS
