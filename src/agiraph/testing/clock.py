"""Clock: a clock that moves only when a test moves it."""

import asyncio
from datetime import UTC, datetime, timedelta


class ManualClock:
    """A clock for tests. `advance` moves it and wakes everything that is due by then."""

    def __init__(self, start: datetime = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)) -> None:
        self._now = start
        self._elapsed = 0.0
        self._alarms: list[tuple[datetime, asyncio.Future[None]]] = []
        self.slept: list[float] = []
        """The seconds of every `sleep`, in order: retries and backoff can be checked by it."""

    def now(self) -> datetime:
        """Return the current time in UTC."""
        return self._now

    def monotonic(self) -> float:
        """Return the seconds that have passed since the clock was made."""
        return self._elapsed

    async def sleep(self, seconds: float) -> None:
        """Move the clock by so many seconds at once, and remember them in `slept`."""
        self.slept.append(seconds)
        self.advance(seconds=seconds)
        # Lets the tasks run that `advance` has just woken, as a real sleep would.
        await asyncio.sleep(0)

    async def sleep_until(self, moment: datetime) -> None:
        """Return when the clock shows this time: at once, or during a later `advance`."""
        if moment <= self._now:
            return
        alarm: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._alarms.append((moment, alarm))
        await alarm

    def advance(
        self, *, seconds: float = 0, minutes: float = 0, hours: float = 0, days: float = 0
    ) -> None:
        """Move the clock forward and wake every `sleep_until` whose time has come."""
        passed = timedelta(seconds=seconds, minutes=minutes, hours=hours, days=days)
        self._now += passed
        self._elapsed += passed.total_seconds()
        for moment, alarm in self._alarms:
            if moment <= self._now and not alarm.done():
                alarm.set_result(None)
        self._alarms = [(m, a) for m, a in self._alarms if not a.done()]
