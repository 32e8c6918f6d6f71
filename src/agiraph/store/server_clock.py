"""Server clock: the time of the database server, which all processes over it share.

The wall clocks of two machines differ. What is due, and what is written down, goes by one clock
alone, so the time of the server is learned at connect and again now and then. In between it is
counted on with the monotonic clock: setting this machine's clock changes nothing.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple

from agiraph.domain.time import SystemClock

RENEW_S = 30.0
"""How old a measurement may be before the next connection that is used takes a new one."""
JUMP = timedelta(seconds=1)
"""A wall clock that moved by more than the monotonic one: it was set, or the machine slept."""
LONGEST_TRIP_S = 1.0
"""A slower answer is too old by up to so much; it is used only if there is nothing better."""
WORST_AGE_S = 600.0
"""From this age on a measurement is worse than a slow answer."""
NOTABLE = timedelta(seconds=5)
"""A skew that somebody should hear of."""


class _Measured(NamedTuple):
    server: datetime
    monotonic: float
    wall: datetime


class ServerClock(SystemClock):
    """The server's time in this process; before the first measurement, this machine's."""

    def __init__(self, own: SystemClock) -> None:
        self.own = own
        self.measurements = 0
        self._last: _Measured | None = None

    def now(self) -> datetime:
        last = self._last
        if last is None:
            return self.own.now()
        return last.server + timedelta(seconds=self.own.monotonic() - last.monotonic)

    def monotonic(self) -> float:
        return self.own.monotonic()

    @property
    def skew(self) -> timedelta:
        """How far this machine's clock is ahead of the server's."""
        return self.own.now() - self.now()

    @property
    def is_stale(self) -> bool:
        if (last := self._last) is None:
            return True
        passed = self.own.monotonic() - last.monotonic
        jumped = self.own.now() - last.wall - timedelta(seconds=passed)
        return passed > RENEW_S or abs(jumped) > JUMP

    def measure(self, ask: Callable[[], datetime]) -> None:
        """Learn the server's time; `ask` makes one round trip for it."""
        before = self.own.monotonic()
        server = ask()
        after = self.own.monotonic()
        self.measurements += 1
        last = self._last
        is_slow = after - before > LONGEST_TRIP_S
        if is_slow and last is not None and after - last.monotonic < WORST_AGE_S:
            return
        middle = (before + after) / 2
        wall = self.own.now() - timedelta(seconds=self.own.monotonic() - middle)
        self._last = _Measured(server, middle, wall)


def skew_warning(skew: timedelta) -> str:
    """A sentence about the skew; empty if it is too small to matter."""
    if abs(skew) < NOTABLE:
        return ""
    way = "ahead of" if skew > timedelta(0) else "behind"
    much = timedelta(seconds=round(abs(skew).total_seconds()))
    return (
        f"This machine's clock is {much} {way} the database server's. agiraph goes by the "
        "server's clock; set this machine's clock right (NTP), for its logs and certificates."
    )
