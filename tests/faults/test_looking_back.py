"""A kill anywhere while an agent looks back, briefs and is heard of: each thing happens once."""

import pytest

from agiraph.testing.sweep import Sweep
from tests.faults.looking_back import scenario


@pytest.mark.timeout(600)
def test_a_kill_at_many_points_keeps_briefs_and_delivers_once(sweep_log: list[str]) -> None:
    report = Sweep(scenario()).run(every=15)
    sweep_log.append(str(report))
    assert report.violations == []
    assert report.kills >= 10


@pytest.mark.long
def test_a_kill_at_any_point_keeps_briefs_and_delivers_once(sweep_log: list[str]) -> None:
    report = Sweep(scenario()).run()
    sweep_log.append(str(report))
    assert report.violations == []
    assert report.kills == len(report.points) >= 150
