"""Time: the clock interface, so that tests can use a clock of their own."""

import asyncio
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    def now(self) -> datetime:
        """Return the wall-clock time in UTC, for what is stored."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never jump, to measure durations."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Sleep for so many seconds."""
        ...

    async def sleep_until(self, moment: datetime) -> None:
        """Sleep until the wall clock shows this moment."""
        ...


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def sleep_until(self, moment: datetime) -> None:
        # In steps: the wall clock may be set, or the machine suspended, during the sleep.
        while (left := (moment - self.now()).total_seconds()) > 0:
            await self.sleep(min(left, 60))
