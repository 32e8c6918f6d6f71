"""Server clock: the time of the database server, which all its clients share.

The wall clocks of two machines differ, but due times and timestamps must follow one clock. The
server's time is measured at connect and every 30 seconds. Between measurements the monotonic clock
counts on, so setting this machine's clock has no effect.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple

from agiraph.core.domain.times.time import SystemClock

RENEW_S = 30.0
"""The age at which the next use of a connection measures the time again."""
JUMP = timedelta(seconds=1)
"""If the wall clock moved this much further than the monotonic one, it was set, or the machine
slept: the time is measured again."""
LONGEST_TRIP_S = 1.0
"""An answer may be wrong by the time of its round trip; a slower one is used only if no recent
measurement exists."""
WORST_AGE_S = 600.0
"""From this age on, a slow answer is better than the old measurement."""
NOTABLE = timedelta(seconds=5)
"""A skew that is worth a warning."""


class _Measured(NamedTuple):
    server: datetime
    monotonic: float
    wall: datetime


class ServerClock(SystemClock):
    """Returns the server's time; before the first measurement, this machine's."""

    def __init__(self, own: SystemClock) -> None:
        self.own = own
        self.measurements: int = 0
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
        """Return how far this machine's clock is ahead of the server's."""
        return self.own.now() - self.now()

    @property
    def is_stale(self) -> bool:
        if (last := self._last) is None:
            return True
        passed = self.own.monotonic() - last.monotonic
        jumped = self.own.now() - last.wall - timedelta(seconds=passed)
        return passed > RENEW_S or abs(jumped) > JUMP

    def measure(self, ask: Callable[[], datetime]) -> None:
        """Measure the server's time by one round trip, `ask`; the answer counts for its middle."""
        before = self.own.monotonic()
        server = ask()
        after = self.own.monotonic()
        self.measurements += 1
        last = self._last
        is_slow = after - before > LONGEST_TRIP_S
        if is_slow and last is not None and after - last.monotonic < WORST_AGE_S:
            return
        # The server read its clock at some moment of the round trip; the
        # middle is wrong by half at most.
        middle = (before + after) / 2
        wall = self.own.now() - timedelta(seconds=self.own.monotonic() - middle)
        self._last = _Measured(server, middle, wall)


def skew_warning(skew: timedelta) -> str:
    """Return a warning about the skew; empty if it is small."""
    if abs(skew) < NOTABLE:
        return ""
    way = "ahead of" if skew > timedelta(0) else "behind"
    much = timedelta(seconds=round(abs(skew).total_seconds()))
    return (
        f"This machine's clock is {much} {way} the database server's. agiraph goes by the "
        "server's clock; correct this machine's clock (NTP) for its logs and certificates."
    )
