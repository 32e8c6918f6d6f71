"""A kill at any point while an agent reflects, briefs and delivers: each happens once."""

import pytest

from agiraph.testing.sweep import Sweep
from tests.faults.reflection import scenario


@pytest.mark.timeout(600)
def test_kills_at_many_points_of_a_reflection_lose_and_repeat_nothing(sweep_log: list[str]) -> None:
    report = Sweep(scenario()).run(every=15)
    sweep_log.append(str(report))
    assert report.violations == []
    assert report.kills >= 10


@pytest.mark.long
def test_a_kill_at_any_point_of_a_reflection_loses_and_repeats_nothing(
    sweep_log: list[str],
) -> None:
    report = Sweep(scenario()).run()
    sweep_log.append(str(report))
    assert report.violations == []
    assert report.kills == len(report.points) >= 150
