"""Box: the time that a long test may use, as its share of the minutes that `make faults` has."""

import time
from dataclasses import dataclass, field

import pytest

MINUTES = 50.0
"""What `make faults` takes on two cores, unless told otherwise."""
SLACK_SECONDS = 1800.0
"""For what a test must do beyond its share: reach its minimum, end what it began, check it."""


@dataclass(frozen=True, slots=True)
class Box:
    seconds: float
    _began: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> float:
        """Seconds until the share is used up; not below zero."""
        return max(0.0, self._began + self.seconds - time.monotonic())

    @property
    def is_open(self) -> bool:
        return self.left > 0


def seconds_of(item: pytest.Item) -> float:
    """A long test's share of the box; zero if it does a fixed amount of work."""
    marker = item.get_closest_marker("long")
    share = 0.0 if marker is None else float(marker.kwargs.get("share", 0.0))
    return share * minutes_of(item) * 60


def minutes_of(item: pytest.Item) -> float:
    """The minutes of the whole box, as `--minutes` gives them."""
    minutes = item.config.getoption("--minutes")
    assert minutes is not None
    return float(minutes)


def turn(item: pytest.Item) -> tuple[bool, float]:
    """Where a long test stands in the queue: the longest first, then the short ones.

    A process of `pytest -n 2` keeps the test after its present one; the other process takes over
    the rest. So a short one must come after the longest.
    """
    seconds = seconds_of(item)
    most = minutes_of(item) * 60 / 2
    return seconds < most, seconds


def bound(item: pytest.Item) -> None:
    """Give a long test time for its share, and no more than it can need."""
    seconds = seconds_of(item) + SLACK_SECONDS
    item.add_marker(pytest.mark.timeout(seconds), append=False)
