"""Embedded: the engine of one process on one database file. Nothing is polled."""

import asyncio
from datetime import datetime
from functools import partial

from agiraph.domain.ids import TeamId, new_id
from agiraph.domain.time import Clock
from agiraph.domain.work import Queue
from agiraph.runtime import timers
from agiraph.runtime.engine import Drive
from agiraph.runtime.periodic import PeriodicTasks, Wait
from agiraph.store import nodes, waits
from agiraph.store.database import Store
from agiraph.store.tx import Aftermath

AGAIN_SECONDS = 30.0
"""How long a queue is left alone that could not be worked off, for whatever reason."""


class EmbeddedEngine:
    """A commit that leaves something to do wakes its queue; one task sleeps to the next due time.

    The home's lock keeps every other runtime away, so a node found running was left by a crash.
    """

    def __init__(self, store: Store, clock: Clock, drive: Drive, periodic: PeriodicTasks) -> None:
        self._store = store
        self._clock = clock
        self._drive = drive
        self._periodic = periodic
        self._owner = new_id("run")
        self._running: dict[Queue, asyncio.Task[None]] = {}
        self._again: set[Queue] = set()
        self._timers: asyncio.Task[None] | None = None
        self._alarm = asyncio.Event()
        self._changed = asyncio.Event()
        self._stopping = False
        self._only: TeamId | None = None

    async def start(self, only: TeamId | None = None) -> None:
        self._only = only
        # The home is ours alone: whatever is running now was left behind.
        await self._store.write(nodes.forget_owners)
        self._store.subscribe(self._notice)
        self._timers = asyncio.create_task(
            self._periodic.repeat("timers", self._keep_time), name="timers"
        )
        for queue in await self._store.read(nodes.queues):
            self._wake(queue)

    async def stop(self) -> None:
        self._stopping = True
        tasks = [*self._running.values(), *([self._timers] if self._timers else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def idle(self) -> None:
        while self._running:
            self._changed.clear()
            await self._changed.wait()

    def _notice(self, aftermath: Aftermath) -> None:
        for queue in aftermath.wakes:
            self._wake(queue)
        for queue in aftermath.cancels:
            if task := self._running.get(queue):
                task.cancel()
        if aftermath.alarm:
            self._alarm.set()

    def _wake(self, queue: Queue) -> None:
        if self._stopping:
            return
        if queue in self._running:
            self._again.add(queue)
            return
        task = asyncio.create_task(self._run(queue), name=f"drive {queue.key}")
        self._running[queue] = task
        task.add_done_callback(lambda done: self._finished(queue, done))

    async def _run(self, queue: Queue) -> None:
        """Work off a queue. Who wakes it while a node runs is heard by the look that follows."""
        found = True
        while found or queue in self._again:
            self._again.discard(queue)
            found = await self._drive(queue, owner=self._owner, only=self._only)
        self._periodic.item_succeeded(f"work on the queue of {queue.key}")

    def _finished(self, queue: Queue, task: asyncio.Task[None]) -> None:
        del self._running[queue]
        self._changed.set()
        if not task.cancelled() and isinstance(error := task.exception(), Exception):
            then = f"it is retried in {AGAIN_SECONDS:.0f} s"
            self._periodic.item_failed(f"work on the queue of {queue.key}", error, then)
            asyncio.get_running_loop().call_later(AGAIN_SECONDS, self._wake, queue)
        elif queue in self._again or task.cancelled():
            self._wake(queue)

    async def _keep_time(self) -> Wait | None:
        """Ring what is due, then rest until the next due time."""
        self._alarm.clear()
        due = await self._store.read(waits.next_due)
        if due is not None and due <= self._clock.now():
            await timers.fire_due(self._store, self._periodic)
            return None
        return self._alarm.wait if due is None else partial(self._nap, due)

    async def _nap(self, due: datetime) -> None:
        """Sleep until this time; a nearer one written meanwhile wakes us early."""
        reached = asyncio.create_task(self._clock.reach(due))
        nearer = asyncio.create_task(self._alarm.wait())
        try:
            await asyncio.wait({reached, nearer}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            reached.cancel()
            nearer.cancel()
