"""Clock: time that moves when a test says so."""

import asyncio
from datetime import UTC, datetime, timedelta


class ManualClock:
    def __init__(self, start: datetime = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)) -> None:
        self._now = start
        self._elapsed = 0.0
        self._alarms: list[tuple[datetime, asyncio.Future[None]]] = []
        self.slept: list[float] = []
        """Every pause that was asked for, in order."""

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._elapsed

    async def sleep(self, seconds: float) -> None:
        """A pause takes no time but is remembered, and moves the clock."""
        self.slept.append(seconds)
        self.advance(seconds=seconds)
        await asyncio.sleep(0)

    async def sleep_until(self, moment: datetime) -> None:
        if moment <= self._now:
            return
        alarm: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._alarms.append((moment, alarm))
        await alarm

    def advance(
        self, *, seconds: float = 0, minutes: float = 0, hours: float = 0, days: float = 0
    ) -> None:
        passed = timedelta(seconds=seconds, minutes=minutes, hours=hours, days=days)
        self._now += passed
        self._elapsed += passed.total_seconds()
        for moment, alarm in self._alarms:
            if moment <= self._now and not alarm.done():
                alarm.set_result(None)
        self._alarms = [(m, a) for m, a in self._alarms if not a.done()]
