"""The crash sweep: SIGKILL at every durable write and outside effect loses nothing."""

import pytest

from tests.conftest import SweepLog
from tests.faults import mutants
from tests.faults.sweep_process import (
    LONG,
    SCENARIOS,
    sweep_by_kind,
    sweep_in_pairs,
    sweep_planted,
    sweep_points,
)
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
@pytest.mark.parametrize("name", [*SCENARIOS, *LONG])
def test_a_kill_at_any_fault_point_loses_and_repeats_nothing(
    name: str, sweep_log: SweepLog
) -> None:
    report = sweep_points(name)
    sweep_log.append(str(report))
    assert report.violations == []
    assert report.kills == len(report.points) >= FEWEST.get(name, 50)


@pytest.mark.timeout(600)
def test_one_planted_bug_of_each_kind_passes_a_clean_run_and_is_caught(sweep_log: SweepLog) -> None:
    """`make faults` plants all of them."""
    _check_caught(mutants.ONE_OF_EACH_KIND, sweep_log)


@pytest.mark.long
def test_every_planted_bug_passes_a_clean_run_and_is_caught(sweep_log: SweepLog) -> None:
    _check_caught(tuple(mutants.ALL), sweep_log)


def _check_caught(names: tuple[str, ...], sweep_log: SweepLog) -> None:
    reports = sweep_planted(names)
    for name, report in reports.items():
        sweep_log.append(f"planted {name}, caught after {report.kills} kills: {report}")
    found = {name: report.violations for name, report in reports.items()}
    unclean = {
        name: problems
        for name, problems in found.items()
        if any(problem.startswith("clean run") for problem in problems)
    }
    assert unclean == {}
    assert [name for name, problems in found.items() if not problems] == []


@pytest.mark.long(share=0.02)
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_second_kill_in_the_recovery_loses_nothing(
    name: str, time_box: TimeBox, seed: int, sweep_log: SweepLog
) -> None:
    report = sweep_in_pairs(name, seconds=time_box.left, at_least=FEWEST_PAIRS, seed=seed)
    sweep_log.append(f"pairs, seed {seed}, of {report}")
    assert report.violations == []
    assert report.kills >= FEWEST_PAIRS
