"""Ticker: does for triggers what no transaction can: hears events, reads files, makes calls."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from fnmatch import fnmatchcase

from agiraph.domain.errors import Misconfigured, Refused
from agiraph.domain.events import Event
from agiraph.domain.ids import TeamId, TriggerId
from agiraph.domain.time import Clock
from agiraph.domain.triggers import Call
from agiraph.faultpoints import fault
from agiraph.home.layout import Home
from agiraph.runtime.periodic import PeriodicTasks
from agiraph.services.triggers import configuration, due, firing
from agiraph.store import triggers
from agiraph.store.database import Store
from agiraph.store.triggers import TRIGGERS, Errand, EventSubscription
from agiraph.store.tx import Aftermath

EVERY = timedelta(minutes=1)
"""How often it looks for what another process heard of and did not live to do."""
LARGEST = 4 * 2**20
"""Bytes of a watched file that are looked at."""

Callback = Callable[[Call], Awaitable[object]]
"""May be called again with the same key, if the process ended before its end was written down."""


@dataclass(slots=True, kw_only=True)
class Ticker:
    store: Store
    home: Home
    clock: Clock
    periodic: PeriodicTasks
    callbacks: Mapping[str, Callback] = field(default_factory=dict[str, Callback])
    alone: bool = True
    """Whether no other process works on this database."""
    _ears: list[EventSubscription] = field(default_factory=list[EventSubscription])
    """Who waits for events, as far as is known."""
    _is_stale: bool = True
    """Whether that may have changed."""
    _is_asking: bool = False
    _meanwhile: list[Event] = field(default_factory=list[Event])
    """What happened while it was asked for: perhaps too late to be in the answer."""
    _heard: set[TriggerId] = field(default_factory=set[TriggerId])
    _told: asyncio.Event = field(default_factory=asyncio.Event)
    _rested: asyncio.Event = field(default_factory=asyncio.Event)
    _tasks: list[asyncio.Task[None]] = field(default_factory=list[asyncio.Task[None]])

    async def start(self) -> None:
        if self.alone:
            await self.store.write(triggers.forget_takers)
        self.store.subscribe(self._notice)
        self._look_around()
        self._tasks = [
            asyncio.create_task(self.periodic.repeat("triggers", self._work), name="ticker"),
            asyncio.create_task(self._look_now_and_then(), name="ticker's rounds"),
        ]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def idle(self) -> None:
        """Return when all that was heard of is done."""
        while self._told.is_set() or not self._rested.is_set():
            await self._rested.wait()
            await asyncio.sleep(0)

    def _notice(self, aftermath: Aftermath) -> None:
        for event in aftermath.events:
            if event.type.startswith(("trigger.", "team.")):
                self._look_around()
            if self._is_asking:
                self._meanwhile.append(event)
            self._hear(event)
        if aftermath.alarm or self._heard:
            self._tell()

    def _hear(self, event: Event) -> None:
        for ear in self._ears:
            if ear.team_id == event.team_id and fnmatchcase(event.type, ear.pattern):
                self._heard.add(ear.trigger_id)

    def _tell(self) -> None:
        self._rested.clear()
        self._told.set()

    def _look_around(self) -> None:
        """Whoever waits for events may have changed: look anew, at all teams."""
        self._is_stale = True
        self._tell()

    async def _look_now_and_then(self) -> None:
        while True:
            await self.clock.sleep_until(self.clock.now() + EVERY)
            self._look_around()

    async def _work(self) -> None:
        await self._told.wait()
        self._told.clear()
        try:
            await self._listen()
            for errand in await self.store.read(triggers.open_errands):
                with self.periodic.isolated(f"errand {errand.id}"):
                    await self._run(errand)
        except Exception:
            self._look_around()  # at all of it: what was heard may be forgotten
            raise
        if not self._told.is_set():
            self._rested.set()

    async def _listen(self) -> None:
        if self._is_stale:
            self._is_stale, self._is_asking = False, True
            try:
                self._ears = await self.store.read(triggers.event_subscriptions)
            finally:
                self._is_asking = False
                came, self._meanwhile = self._meanwhile, []
            self._heard.update(ear.trigger_id for ear in self._ears if ear.is_behind)
            for event in came:
                self._hear(event)
        heard, self._heard = self._heard, set()
        for trigger_id in heard:
            with self.periodic.isolated(f"hearing for {trigger_id}"):
                while await self.store.write(due.hear, trigger_id):
                    pass

    async def _run(self, errand: Errand) -> None:
        trigger = await self.store.read(TRIGGERS.get, errand.trigger_id)
        if errand.id == triggers.look_of(trigger.id).id:
            if await self.store.write(triggers.take_errand, errand.id):
                form = configuration.read(trigger.type, trigger.config)
                watch = form.watch if isinstance(form, configuration.Heartbeat) else []
                hashes = await asyncio.to_thread(self._hashes, trigger.team_id, watch)
                await self.store.write(due.look, trigger.id, hashes)
            return
        name = str(trigger.payload["callback"])
        if name not in self.callbacks:
            error = Misconfigured(f"This process has no callback {name!r}.")
            then = "its triggers wait for a process that has it"
            self.periodic.item_failed(f"callback {name!r}", error, then, trace=False)
        elif await self.store.write(triggers.take_errand, errand.id):
            call = Call(
                key=f"{trigger.id}:{errand.slot}",
                trigger_id=trigger.id,
                team_id=trigger.team_id,
                slot=errand.slot,
                payload=trigger.payload,
            )
            await self._call(name, call, errand)

    async def _call(self, name: str, call: Call, errand: Errand) -> None:
        fault("fx:before:callback")
        try:
            said = await self.callbacks[name](call)
        except Exception as error:  # whatever it was, it is theirs, and is written down
            self.periodic.item_failed(
                f"callback {name!r}", error, "the firing is recorded as failed"
            )
            outcome, reason = "failed", repr(error)
        else:
            self.periodic.item_succeeded(f"callback {name!r}")
            outcome, reason = "fired", "" if said is None else str(said)
        fault("fx:after:callback")
        await self.store.write(firing.called, errand, outcome=outcome, reason=reason)

    def _hashes(self, team_id: TeamId, paths: list[str]) -> dict[str, str]:
        """What the files of a team hold now, as far as they can be read."""
        found: dict[str, str] = {}
        with self.home.team(team_id).folder as folder:
            for path in paths:
                try:
                    found[path] = hashlib.sha256(folder.read(path, limit=LARGEST)).hexdigest()
                except Refused:
                    found[path] = ""
        return found
