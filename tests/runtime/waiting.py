"""Waiting: wait for an event of the runtime, never for time to pass."""

import asyncio
from collections.abc import Awaitable, Callable

from agiraph.core.store.tx import Aftermath
from agiraph.testing import ManualClock, World


class Gate(asyncio.Event):
    """Holds a scripted model back; `reached` returns once the model is called."""

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
    """A clock whose sleeps last until the test sets `over`; `paused` is set when one begins."""

    def __init__(self) -> None:
        super().__init__()
        self.paused = asyncio.Event()
        self.over = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.paused.set()
        await self.over.wait()


async def until(world: World, holds: Callable[[], Awaitable[bool]]) -> None:
    """Wait until a condition holds. It is checked after each commit of this world's runtime."""
    committed = asyncio.Event()
    world.store.subscribe(lambda _: committed.set())
    while not await holds():
        await committed.wait()
        committed.clear()


async def nth_commit(world: World, number: int) -> None:
    """Wait for the nth commit from now on; return at once if n is 0."""
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
