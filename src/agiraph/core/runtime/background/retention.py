"""Retention: removes, once a day, the steps and working files of work that ended long ago."""

import asyncio
from datetime import timedelta
from functools import partial

from agiraph.core.domain.chat import Thread
from agiraph.core.domain.times.time import Clock
from agiraph.core.home import team_files
from agiraph.core.home.layout import Home
from agiraph.core.runtime.background.periodic import PeriodicTasks, Wait
from agiraph.core.services.lifecycle import removal
from agiraph.core.store.database import Store

EVERY = timedelta(days=1)
BATCH = 100
"""Threads that one transaction marks."""


class Retention:
    """Removes what is older than `age`, in the background; None: nothing is removed."""

    def __init__(
        self,
        store: Store,
        home: Home,
        clock: Clock,
        periodic: PeriodicTasks,
        age: timedelta | None,
    ) -> None:
        self._store = store
        self._home = home
        self._clock = clock
        self._periodic = periodic
        self._age = age
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        if self._age is not None:
            repeated = self._periodic.repeat("removing old work", partial(self._daily, self._age))
            self._task = asyncio.create_task(repeated, name="retention")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _daily(self, age: timedelta) -> Wait:
        await self.prune(age)
        return partial(self._clock.sleep_until, self._clock.now() + EVERY)

    async def prune(self, age: timedelta) -> None:
        """Remove the steps and working files of threads that were closed so long ago."""
        # Also what a crash has interrupted.
        await self._remove(await self._store.read(removal.marked_threads))
        before = self._clock.now() - age
        while found := await self._store.write(removal.mark_old_threads, before, limit=BATCH):
            await self._remove(found)

    async def _remove(self, found: list[Thread]) -> None:
        for thread in found:
            with self._periodic.isolated(f"removal of the steps of {thread.id}"):
                calls = await self._store.read(removal.all_calls, thread)
                await asyncio.to_thread(team_files.remove_work, self._home, thread, calls)
                await self._store.write(removal.drop_turns, thread)
