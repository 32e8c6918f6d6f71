"""Trigger worker: does the work of triggers that no transaction may do.

It watches committed events for triggers that wait for them, reads the files that heartbeats watch,
and runs callbacks. Work that must survive a crash is a row in `errands`.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from datetime import timedelta
from fnmatch import fnmatchcase

from agiraph.core.domain.errors import Misconfigured, Refused
from agiraph.core.domain.events import Event
from agiraph.core.domain.ids import TeamId, TriggerId
from agiraph.core.domain.times.time import Clock
from agiraph.core.domain.triggers import CallbackRequest, Trigger
from agiraph.core.domain.value import dataclass
from agiraph.core.home.layout import Home
from agiraph.core.runtime.background.periodic import PeriodicTasks
from agiraph.core.services.triggers import due, firing
from agiraph.core.services.triggers.due import EventListener
from agiraph.core.services.triggers.kinds import registry
from agiraph.core.store import triggers
from agiraph.core.store.database import Store
from agiraph.core.store.triggers import TRIGGERS, Errand
from agiraph.core.store.tx import Aftermath
from agiraph.faultpoints import fault

RESCAN_EVERY = timedelta(minutes=1)
"""How often the worker reads everything anew, in case another process died before it acted."""
MAX_FILE_BYTES = 4 * 2**20
"""Bytes of a watched file that go into its hash."""

Callback = Callable[[CallbackRequest], Awaitable[object]]
"""Called again with the same key if the process ended before the outcome was committed."""


@dataclass(slots=True, kw_only=True)
class TriggerWorker:
    store: Store
    home: Home
    clock: Clock
    periodic: PeriodicTasks
    callbacks: Mapping[str, Callback] = field(default_factory=dict[str, Callback])
    is_sole_process: bool = True
    """Whether no other process works on this database."""
    _listeners: list[EventListener] = field(default_factory=list[EventListener])
    """The triggers that wait for events, as of the last read."""
    _is_stale: bool = True
    """Whether `_listeners` may have changed in the database."""
    _is_reading: bool = False
    _committed_meanwhile: list[Event] = field(default_factory=list[Event])
    """Events committed while the listeners are read; the result may not know of them."""
    _to_read: set[TriggerId] = field(default_factory=set[TriggerId])
    """Triggers with new events that match their patterns."""
    _has_work: asyncio.Event = field(default_factory=asyncio.Event)
    _is_idle: asyncio.Event = field(default_factory=asyncio.Event)
    _tasks: list[asyncio.Task[None]] = field(default_factory=list[asyncio.Task[None]])

    async def start(self) -> None:
        # No other process is alive, so the takers of these errands are dead. Where others may be
        # alive, `ERRAND_SECONDS` decides.
        if self.is_sole_process:
            await self.store.write(triggers.release_errands)
        # Before the first read of the listeners, so that no commit falls between the two.
        self.store.subscribe(self._after_commit)
        self._rescan()
        self._tasks = [
            asyncio.create_task(
                self.periodic.repeat("triggers", self._work), name="trigger worker"
            ),
            asyncio.create_task(self._rescan_periodically(), name="trigger worker's rescan"),
        ]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def idle(self) -> None:
        """Return when the worker has nothing left to do."""
        while self._has_work.is_set() or not self._is_idle.is_set():
            await self._is_idle.wait()
            await asyncio.sleep(0)

    def _after_commit(self, aftermath: Aftermath) -> None:
        for event in aftermath.events:
            # These may add or end listeners.
            if event.type.startswith(("trigger.", "team.")):
                self._rescan()
            if self._is_reading:
                self._committed_meanwhile.append(event)
            if self._listeners:
                self._match(event)
        if aftermath.alarm or self._to_read:
            self._request_work()

    def _match(self, event: Event) -> None:
        for listener in self._listeners:
            if listener.team_id == event.team_id and fnmatchcase(event.type, listener.pattern):
                self._to_read.add(listener.trigger_id)

    def _request_work(self) -> None:
        self._is_idle.clear()
        self._has_work.set()

    def _rescan(self) -> None:
        """Have the list of triggers that wait for events read again when the worker next wakes."""
        self._is_stale = True
        self._request_work()

    async def _rescan_periodically(self) -> None:
        while True:
            await self.clock.sleep_until(self.clock.now() + RESCAN_EVERY)
            self._rescan()

    async def _work(self) -> None:
        await self._has_work.wait()
        # Before the work: a commit during it sets the event again, and another round follows.
        self._has_work.clear()
        try:
            await self._read_events()
            for errand in await self.store.read(triggers.open_errands):
                with self.periodic.isolated(f"errand {errand.id}"):
                    await self._run(errand)
        except Exception:
            # `_to_read` may have lost entries; a rescan finds them again by their cursors.
            self._rescan()
            raise
        if not self._has_work.is_set():
            self._is_idle.set()

    async def _read_events(self) -> None:
        if self._is_stale:
            await self._read_listeners()
        to_read, self._to_read = self._to_read, set()
        for trigger_id in to_read:
            with self.periodic.isolated(f"events of trigger {trigger_id}"):
                # One transaction for each batch: a trigger that is far behind must not
                # hold its locks for long.
                while await self.store.write(due.read_events, trigger_id):
                    pass

    async def _read_listeners(self) -> None:
        self._is_stale, self._is_reading = False, True
        try:
            self._listeners = await self.store.read(due.event_listeners)
        finally:
            self._is_reading = False
            committed, self._committed_meanwhile = self._committed_meanwhile, []
        self._to_read.update(one.trigger_id for one in self._listeners if one.is_behind)
        for event in committed:
            self._match(event)

    async def _run(self, errand: Errand) -> None:
        trigger = await self.store.read(TRIGGERS.get, errand.trigger_id)
        if errand.id == triggers.file_check_of(trigger.id).id:
            await self._read_watched_files(trigger, errand)
            return
        name = str(trigger.payload["callback"])
        if name not in self.callbacks:
            error = Misconfigured(f"This process has no callback {name!r}.")
            then = "its triggers wait for a process that has it"
            self.periodic.item_failed(f"callback {name!r}", error, then, trace=False)
        elif await self.store.write(triggers.take_errand, errand.id):
            # Taken in a commit of its own, before the call: another process must not make the same
            # call while this one is under way.
            request = CallbackRequest(
                key=f"{trigger.id}:{errand.slot}",
                trigger_id=trigger.id,
                team_id=trigger.team_id,
                slot=errand.slot,
                payload=trigger.payload,
            )
            await self._call(name, request, errand)

    async def _read_watched_files(self, trigger: Trigger, errand: Errand) -> None:
        if await self.store.write(triggers.take_errand, errand.id):
            kind = registry.kind_of(trigger)
            paths = kind.watched_files(kind.read(trigger.config))
            hashes = await asyncio.to_thread(self._hashes, trigger.team_id, paths)
            await self.store.write(due.apply_file_hashes, trigger.id, hashes)

    async def _call(self, name: str, request: CallbackRequest, errand: Errand) -> None:
        fault("fx:before:callback")
        try:
            result = await self.callbacks[name](request)
        except Exception as error:  # a callback is the embedding program's code: record any error
            self.periodic.item_failed(
                f"callback {name!r}", error, "the firing is recorded as failed"
            )
            outcome, reason = "failed", repr(error)
        else:
            self.periodic.item_succeeded(f"callback {name!r}")
            outcome, reason = "fired", "" if result is None else str(result)
        fault("fx:after:callback")
        # A crash before this commit leaves the errand: after `ERRAND_SECONDS` the callback is
        # called again with the same key.
        await self.store.write(firing.finish_callback, errand, outcome=outcome, reason=reason)

    def _hashes(self, team_id: TeamId, paths: Sequence[str]) -> dict[str, str]:
        """Return the SHA-256 of files in the team's folder; the empty text for unreadable ones."""
        found: dict[str, str] = {}
        with self.home.team(team_id).folder as folder:
            for path in paths:
                try:
                    content = folder.read(path, limit=MAX_FILE_BYTES)
                except Refused:
                    found[path] = ""
                else:
                    found[path] = hashlib.sha256(content).hexdigest()
        return found
