"""Time box: the seconds that a long test may use, as its share of the minutes of `make faults`."""

import time
from dataclasses import dataclass, field

import pytest

MINUTES = 50.0
"""The default of `--minutes`: how long `make faults` takes on two cores."""
SLACK_SECONDS = 1800.0
"""Added to the share, so that a test can reach its minimum, finish its last run and check it."""


@dataclass(frozen=True, slots=True)
class TimeBox:
    seconds: float
    _began: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> float:
        """Return the seconds until the share is used up; not below zero."""
        return max(0.0, self._began + self.seconds - time.monotonic())

    @property
    def is_open(self) -> bool:
        return self.left > 0


def seconds_of(item: pytest.Item) -> float:
    """Return the seconds of a long test; zero if it does a fixed amount of work."""
    marker = item.get_closest_marker("long")
    share = 0.0 if marker is None else float(marker.kwargs.get("share", 0.0))
    return share * minutes_of(item) * 60


def minutes_of(item: pytest.Item) -> float:
    """Return the minutes of all long tests together (`--minutes`)."""
    minutes = item.config.getoption("--minutes")
    assert minutes is not None
    return float(minutes)


def start_order(item: pytest.Item) -> tuple[bool, float]:
    """Return the sort key of a long test: the longest first, then the short ones.

    A process of `pytest --workers=2` knows its next test while it runs the present one; the other
    process takes over the rest. So a short test must come after the longest.
    """
    seconds = seconds_of(item)
    most = minutes_of(item) * 60 / 2
    return seconds < most, seconds


def set_timeout(item: pytest.Item) -> None:
    """Set the timeout of a long test: its share plus the slack."""
    seconds = seconds_of(item) + SLACK_SECONDS
    item.add_marker(pytest.mark.timeout(seconds), append=False)
