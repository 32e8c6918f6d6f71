"""Time: the clock everything asks, so that tests can hand out another one."""

import asyncio
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    def now(self) -> datetime:
        """The wall clock, in UTC: for what is written down."""
        ...

    def monotonic(self) -> float:
        """Seconds that never jump: for how long something took."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Let a while pass before trying again."""
        ...

    async def reach(self, moment: datetime) -> None:
        """Return when the wall clock shows this moment."""
        ...


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def reach(self, moment: datetime) -> None:
        # In steps, since the wall clock may be set while we wait.
        while (left := (moment - self.now()).total_seconds()) > 0:
            await self.sleep(min(left, 60))
