"""Embedded engine: one process on one database file. It is driven by commits and never polls."""

import asyncio
from datetime import datetime
from functools import partial

from agiraph.core.domain.ids import TeamId, new_id
from agiraph.core.domain.times.time import Clock
from agiraph.core.domain.work import Queue
from agiraph.core.runtime.background import timers
from agiraph.core.runtime.background.periodic import PeriodicTasks, Wait
from agiraph.core.runtime.engines.engine import Drive
from agiraph.core.store import nodes, waits
from agiraph.core.store.database import Store
from agiraph.core.store.tx import Aftermath

RETRY_S = 30.0
"""The pause before a queue is tried again whose run ended with an unexpected error."""


class EmbeddedEngine:
    """Each commit wakes the queues it has given work; one task sleeps until the next due time.

    The home's lock keeps every other runtime out, so a node found running was left by a crash.
    """

    def __init__(self, store: Store, clock: Clock, drive: Drive, periodic: PeriodicTasks) -> None:
        self._store = store
        self._clock = clock
        self._drive = drive
        self._periodic = periodic
        self._owner = new_id("run")
        self._running: dict[Queue, asyncio.Task[None]] = {}
        self._woken: set[Queue] = set()
        self._timer_task: asyncio.Task[None] | None = None
        self._timers_changed = asyncio.Event()
        self._changed = asyncio.Event()
        self._stopping = False
        self._only: TeamId | None = None

    async def start(self, only: TeamId | None = None) -> None:
        self._only = only
        # This process holds the home's lock: a node that is running now was left by a crash.
        await self._store.write(nodes.forget_owners)
        # Before the queues are read: work that commits in between is woken by its commit.
        self._store.subscribe(self._on_commit)
        self._timer_task = asyncio.create_task(
            self._periodic.repeat("timers", self._fire_timers), name="timers"
        )
        for queue in await self._store.read(nodes.queues):
            self._wake(queue)

    async def stop(self) -> None:
        # First: each cancelled run gives its node back, and that commit would wake the queue again.
        self._stopping = True
        tasks = [*self._running.values(), *([self._timer_task] if self._timer_task else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def idle(self) -> None:
        while self._running:
            self._changed.clear()
            await self._changed.wait()

    def _on_commit(self, aftermath: Aftermath) -> None:
        for queue in aftermath.wakes:
            self._wake(queue)
        for queue in aftermath.cancels:
            if task := self._running.get(queue):
                task.cancel()
        if aftermath.alarm:
            self._timers_changed.set()

    def _wake(self, queue: Queue) -> None:
        if self._stopping:
            return
        if queue in self._running:
            self._woken.add(queue)
            return
        task = asyncio.create_task(self._run(queue), name=f"drive {queue.key}")
        self._running[queue] = task
        task.add_done_callback(lambda done: self._finished(queue, done))

    async def _run(self, queue: Queue) -> None:
        """Run the queue's nodes until none can run.

        A wake that arrives while a node runs sets a flag, which is checked before this returns.
        """
        found = True
        while found or queue in self._woken:
            self._woken.discard(queue)
            # The flag is cleared before the drive: a wake during it is not lost.
            found = await self._drive(queue, owner=self._owner, only=self._only)
        self._periodic.item_succeeded(f"work on the queue of {queue.key}")

    def _finished(self, queue: Queue, task: asyncio.Task[None]) -> None:
        del self._running[queue]
        self._changed.set()
        if not task.cancelled() and isinstance(error := task.exception(), Exception):
            then = f"it is retried in {RETRY_S:.0f} s"
            self._periodic.item_failed(f"work on the queue of {queue.key}", error, then)
            asyncio.get_running_loop().call_later(RETRY_S, self._wake, queue)
        elif queue in self._woken or task.cancelled():
            # A cancelled run has given its node back with a wake that came while the queue was
            # still running; the next claim ends the node.
            self._wake(queue)

    async def _fire_timers(self) -> Wait | None:
        """Fire the due timers, or return the wait for the next due time."""
        # Before the read, so that a timer which is committed meanwhile is not missed.
        self._timers_changed.clear()
        due = await self._store.read(waits.next_due)
        if due is not None and due <= self._clock.now():
            await timers.fire_due(self._store, self._periodic)
            return None
        return self._timers_changed.wait if due is None else partial(self._sleep_until, due)

    async def _sleep_until(self, due: datetime) -> None:
        """Sleep until this time, or until a commit sets or changes a timer."""
        due_time = asyncio.create_task(self._clock.sleep_until(due))
        changed = asyncio.create_task(self._timers_changed.wait())
        try:
            await asyncio.wait({due_time, changed}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            due_time.cancel()
            changed.cancel()
