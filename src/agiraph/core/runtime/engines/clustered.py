"""Clustered: the engine for any number of processes over one PostgreSQL.

The job queue delivers jobs and frees those of dead processes. The rows decide who owns a node: a
claim raises the thread's epoch, and a write of a former owner is refused (`Fenced`).
"""

import asyncio
import contextlib
import logging
import random

from agiraph.core.domain.errors import StoreUnavailable
from agiraph.core.domain.ids import TeamId
from agiraph.core.domain.times.time import Clock
from agiraph.core.domain.work import Queue
from agiraph.core.runtime.background import timers
from agiraph.core.runtime.background.periodic import PeriodicTasks, Wait
from agiraph.core.runtime.engines.engine import Drive
from agiraph.core.services.lifecycle import claims
from agiraph.core.store import nodes, waits
from agiraph.core.store.database import Store
from agiraph.core.store.engine import work_stop
from agiraph.core.store.engine.job_queue import JobQueue, RetryLater
from agiraph.core.store.engine.notify import Notification, listen
from agiraph.core.store.engine.postgres import CONTROL_CHANNEL
from agiraph.core.store.teams import AGENTS
from agiraph.core.store.tx import Aftermath

log: logging.Logger = logging.getLogger("agiraph.engine")

IDLE_POLL_S = 1.0
"""How often `idle` polls: another process may end the last node without a notification."""
TIMER_POLL_S = 0.5
"""How often timers are read: another process may set an earlier one without a notification."""
RECONCILE_S = 4.0
"""The mean time between two searches for queues without a job."""
FAILED_RETRY_S = 5.0
"""Seconds before a job is delivered again whose handler raised."""
OTHER_WORKER_S = 1.0
"""Seconds before a job is delivered again that this process must leave to another."""


class ClusteredEngine:
    def __init__(
        self,
        jobs: JobQueue,
        url: str,
        store: Store,
        clock: Clock,
        drive: Drive,
        periodic: PeriodicTasks,
    ) -> None:
        self._jobs = jobs
        self._url = url
        self._store = store
        self._clock = clock
        self._drive = drive
        self._periodic = periodic
        self._running: dict[Queue, asyncio.Task[None]] = {}
        self._again: set[Queue] = set()
        """Queues that got another job while one ran here: they are checked once more."""
        self._alarm = asyncio.Event()
        self._changed = asyncio.Event()
        self._stopping = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._only: TeamId | None = None

    async def start(self, only: TeamId | None = None) -> None:
        self._only = only
        await self._jobs.open()
        # After `open`, which may fail: a listener cannot be removed from the store.
        self._store.subscribe(self._on_commit)
        control = listen(
            *(self._url, (CONTROL_CHANNEL,)),
            on_connect=self._apply_missed_cancels,
            on_notification=self._on_cancel,
            failures=self._periodic.streak("listening for cancels"),
        )
        deliver = self._jobs.deliver(self._run_job, self._periodic.streak("the job queue"))
        # The event loop keeps only weak references: without this list a task could be
        # collected while it runs. `stop` relies on the delivery being the first.
        self._tasks = [
            asyncio.create_task(deliver, name="queue"),
            asyncio.create_task(control, name="control"),
            asyncio.create_task(self._show_loop_alive(), name="turn"),
            asyncio.create_task(self._periodic.repeat("timers", self._fire_timers), name="timers"),
            asyncio.create_task(
                self._periodic.repeat("reconciling queues", self._reconcile), name="reconcile"
            ),
        ]

    async def _show_loop_alive(self) -> None:
        while True:
            self._jobs.mark_loop_alive()
            await asyncio.sleep(1)

    async def stop(self) -> None:
        self._stopping.set()
        if not self._tasks:
            return  # `start` was never called, or failed
        deliver, *others = self._tasks
        for task in others:
            task.cancel()
        # Delivery is asked to stop, never cancelled: a cancel would delete running jobs' rows.
        self._jobs.stop_delivery()
        await asyncio.gather(deliver, *others, return_exceptions=True)
        # Last: until here this process had jobs, and peers must see that it is alive.
        await self._jobs.close()

    async def idle(self) -> None:
        while True:
            self._changed.clear()  # before the read, so that a change after it is not lost
            if not (self._running or await self._store.read(nodes.queues)):
                return
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(IDLE_POLL_S):
                    await self._changed.wait()

    def _on_commit(self, aftermath: Aftermath) -> None:
        if aftermath.alarm:
            self._alarm.set()
        self._changed.set()

    async def _run_job(self, queue: Queue, owner: str) -> RetryLater | None:
        """Work off the queue of a job; return when to deliver the job again, if at all."""
        if self._only is not None:
            agent = await self._store.read(AGENTS.get, queue.agent_id)
            if agent.team_id != self._only:
                return RetryLater("of another team", OTHER_WORKER_S)
        if not self._jobs.is_visible:
            # Peers take this worker for dead: they would free the job and do the work twice.
            return RetryLater("not connected", OTHER_WORKER_S)
        try:
            if queue not in self._running and await self._was_delivered_before(queue, owner):
                return None
        except StoreUnavailable as error:  # an error would delete the job's row
            return RetryLater(str(error), FAILED_RETRY_S)
        # The job's row is deleted, but its work is not forgotten: the run
        # under way checks the queue again.
        if queue in self._running:
            self._again.add(queue)
            return None
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            self._again.add(queue)
            while queue in self._again:
                self._again.discard(queue)
                if retry := await self._run(queue, owner, stopping):
                    return retry
            return None
        finally:
            self._running.pop(queue, None)
            stopping.cancel()
            self._changed.set()

    async def _run(
        self, queue: Queue, owner: str, stopping: asyncio.Task[bool]
    ) -> RetryLater | None:
        what = f"work on the queue of {queue.key}"
        task = asyncio.create_task(self._work_off(queue, owner), name=f"drive {queue.key}")
        self._running[queue] = task
        try:
            await asyncio.wait({task, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                task.cancel()
                # The run gives its node back before the job does: another process could otherwise
                # get the job and find the node still owned.
                await asyncio.wait({task})
                return RetryLater("this process stops")
            if task.cancelled():
                # The run has given its node back. The job is delivered again, and
                # the claim ends the node.
                return RetryLater("cancelled")
            if isinstance(error := task.exception(), Exception):
                self._periodic.item_failed(what, error, "it is retried")
                return RetryLater(repr(error), FAILED_RETRY_S)
            self._periodic.item_succeeded(what)
            return None
        finally:
            task.cancel()

    async def _was_delivered_before(self, queue: Queue, owner: str) -> bool:
        """Whether this job was delivered before; then its node is disowned and gets a new job.

        A running node that this very job owns shows it: the first handler is dead or slow. The new
        job has a new number, so that a slow handler can neither claim the node again nor delete the
        new job when it ends its own. Nothing runs under the old job, not even for a moment: a new
        job that arrived meanwhile would be left to that run, which the slow handler could end.
        """
        left = await self._store.read(nodes.running, queue)
        if left is None or left.owner != owner:
            return False
        await self._store.write(claims.clear_owner, queue, owner=owner)
        return True

    async def _work_off(self, queue: Queue, owner: str) -> None:
        """Drive the queue until it is empty."""
        while await self._drive(queue, owner=owner, only=self._only):
            self._again.discard(queue)  # the next drive reads whatever that job announced

    async def _on_cancel(self, notification: Notification) -> None:
        """Cancel the task of a queue for which some process asks."""
        if task := self._running.get(Queue.of(notification.payload)):
            task.cancel()

    async def _apply_missed_cancels(self) -> None:
        """Cancel what was asked for while the connection was lost: NOTIFY keeps nothing."""
        for queue, task in list(self._running.items()):
            node = await self._store.read(nodes.running, queue)
            is_stopped = await self._store.read(work_stop.find) is not None
            if is_stopped or (node is not None and node.cancel_requested):
                task.cancel()

    async def _fire_timers(self) -> Wait | None:
        """Fire the timers that are due. If none is due, return the wait before the next check."""
        # Before the read, so that a timer which is committed meanwhile is not missed.
        self._alarm.clear()
        due = await self._store.read(waits.next_due)
        if due is None or due > self._clock.now():
            return self._wait_for_alarm
        await timers.fire_due(self._store, self._periodic)
        return None

    async def _wait_for_alarm(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(TIMER_POLL_S):
                await self._alarm.wait()

    async def _reconcile(self) -> None:
        # Random, so that processes started together do not all look at the same moment.
        await asyncio.sleep(RECONCILE_S * random.uniform(0.75, 1.5))
        await self._jobs.add_missing_jobs()
