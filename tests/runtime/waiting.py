"""Waiting: for what happens, never for a time to pass."""

import asyncio
from collections.abc import Awaitable, Callable

from agiraph.store.tx import Aftermath
from agiraph.testing import ManualClock, World


class Gate(asyncio.Event):
    """Holds a scripted model back, and says when somebody has come to it."""

    def __init__(self) -> None:
        super().__init__()
        self._arrivals = asyncio.Semaphore(0)

    async def wait(self) -> bool:  # type: ignore[override]
        self._arrivals.release()
        return await super().wait()  # type: ignore[return-value]

    async def reached(self, times: int = 1) -> None:
        for _ in range(times):
            await self._arrivals.acquire()


class PatientClock(ManualClock):
    """A pause lasts until the test says that it is over."""

    def __init__(self) -> None:
        super().__init__()
        self.paused = asyncio.Event()
        self.over = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.paused.set()
        await self.over.wait()


async def until(world: World, holds: Callable[[], Awaitable[bool]]) -> None:
    """Return when this holds; asked again after each commit of this world's runtime."""
    committed = asyncio.Event()
    world.store.subscribe(lambda _: committed.set())
    while not await holds():
        await committed.wait()
        committed.clear()


async def commits(world: World, number: int) -> None:
    """Return at this commit from now on; at once, if it is none."""
    left = number
    reached = asyncio.Event()

    def count(_: Aftermath) -> None:
        nonlocal left
        left -= 1
        if left <= 0:
            reached.set()

    world.store.subscribe(count)
    if number:
        await reached.wait()
