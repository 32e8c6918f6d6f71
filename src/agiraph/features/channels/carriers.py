"""Carriers: the channels of a runtime, with what sends on them and what reads them."""

import asyncio
from collections.abc import Mapping
from datetime import datetime
from functools import cached_property, partial
from typing import Any

from agiraph.core.domain.ids import new_id
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.records.channels import Channel, DeliveryFailed, WantedChannel, is_two_way
from agiraph.core.domain.records.deliveries import OutgoingMessage
from agiraph.core.domain.times.time import Clock
from agiraph.core.home.named_secrets import NamedSecrets
from agiraph.core.runtime.background.periodic import PeriodicTasks, Wait
from agiraph.core.runtime.parts import Installation, Part
from agiraph.core.services.mail import deliveries
from agiraph.core.store import channels as channel_rows
from agiraph.core.store import deliveries as rows
from agiraph.core.store.database import Store
from agiraph.core.store.tx import Aftermath, Tx
from agiraph.faultpoints import fault
from agiraph.features.channels.inlet import Inlet

MAX_CONCURRENT = 4
"""Deliveries that one channel sends at the same time."""
GRACE_S = 0.5
"""How long a stop waits for messages that are being sent."""
POLL_S = 5.0
"""How often to look for deliveries that another process queued or left behind."""


class Outbox:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        channels: Mapping[str, Channel],
        *,
        is_sole_process: bool,
        periodic: PeriodicTasks | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._channels = dict(channels)
        self._is_sole_process = is_sole_process
        self._periodic = periodic or PeriodicTasks(clock)
        self._owner = new_id("outbox")
        self._tasks: list[asyncio.Task[None]] = []
        self._alarms = {name: asyncio.Event() for name in channels}
        self._sending = 0
        self._under_way: set[asyncio.Task[None]] = set()
        self._paused = asyncio.Event()

    async def start(self) -> None:
        wanted = {name: channel.kinds for name, channel in self._channels.items()}
        if wanted or await self._store.read(channel_rows.every):
            # The settings of the installation are its owner's, and so are the channels in them.
            await self._store.write(
                deliveries.open_channels,
                wanted,
                person_id=OWNER,
                is_sole_process=self._is_sole_process,
                two_way=[name for name, each in self._channels.items() if is_two_way(each)],
            )
        self._store.subscribe(self._after_commit)
        self._tasks = [
            self._periodic.start(f"channel {name}", partial(self._serve, name, channel))
            for name, channel in self._channels.items()
        ]

    async def stop(self) -> None:
        """Stop sending. A message that is being sent gets a moment to end, because one whose
        receipt is not stored is sent again at the next start."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._under_way:
            await asyncio.wait(self._under_way, timeout=GRACE_S)
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)

    async def idle(self) -> None:
        """Return when no delivery is due and none is being sent."""
        while self._channels:
            self._paused.clear()
            # In this order: `_sending` counts a delivery that is claimed during the read.
            if not await self._store.read(_has_due, list(self._channels)) and not self._sending:
                return
            await self._paused.wait()

    def _after_commit(self, aftermath: Aftermath) -> None:
        if aftermath.alarm:
            for alarm in self._alarms.values():
                alarm.set()

    async def _serve(self, name: str, channel: Channel) -> Wait | None:
        """Send due deliveries; if there are none, return the wait for the next one."""
        # Before the read, so that a delivery which is committed meanwhile is not missed.
        self._alarms[name].clear()
        due = await self._store.read(_next_due, name)
        if due is not None and due <= self._clock.now():
            await self._send_due(name, channel)
            return None
        return partial(self._wait, self._alarms[name], due)

    async def _send_due(self, name: str, channel: Channel) -> None:
        self._sending += 1
        try:
            # First: a delivery that is sent to another address now forgets the message at the old.
            await self._edit_due(name, channel)
            claimed = await self._store.write(
                deliveries.claim, name, owner=self._owner, limit=MAX_CONCURRENT
            )
            sends = {asyncio.create_task(self._send(channel, each)) for each in claimed}
            self._under_way |= sends
            for send in sends:
                send.add_done_callback(self._under_way.discard)
            if sends:
                # Not `gather`: if this task is cancelled, the sends go on until `stop` ends them.
                for send in (await asyncio.wait(sends))[0]:
                    send.result()
        finally:
            self._sending -= 1
            self._paused.set()

    async def _send(self, channel: Channel, outgoing: OutgoingMessage) -> None:
        delivery = outgoing.delivery
        what = f"delivery {delivery.id} by channel {delivery.channel}"
        try:
            fault("fx:before:deliver")
            receipt = await channel.send(outgoing)
            fault("fx:after:deliver")
        except DeliveryFailed as error:
            self._periodic.item_failed(what, error, "it is sent again later", trace=False)
            await self._retry_later(outgoing, str(error), error.retry_after_s)
        except Exception as error:  # a defect of the channel must not block other deliveries
            self._periodic.item_failed(what, error, "it is sent again later")
            await self._retry_later(outgoing, repr(error))
        else:
            self._periodic.item_succeeded(what)
            # A crash before this commit sends the message again when the claim has run out.
            address = outgoing.address
            await self._store.write(deliveries.mark_all_sent, outgoing, receipt, address=address)

    async def _edit_due(self, name: str, channel: Channel) -> None:
        """Take away the buttons under messages that were answered, wherever that was, or whose
        receiver is not paired any more."""
        if not is_two_way(channel):
            return
        for outgoing in await self._store.read(deliveries.to_edit, name, limit=MAX_CONCURRENT):
            delivery = outgoing.delivery
            what = f"edit of {delivery.id} on channel {name}"
            try:
                await channel.edit(outgoing, delivery.receipt or "")
            except DeliveryFailed as error:
                self._periodic.item_failed(what, error, "it is edited later", trace=False)
                pause_s = error.retry_after_s
                await self._store.write(deliveries.edit_later, outgoing, pause_s=pause_s)
            except Exception as error:  # a defect of the channel must not block deliveries
                self._periodic.item_failed(what, error, "it is edited later")
                await self._store.write(deliveries.edit_later, outgoing)
            else:
                self._periodic.item_succeeded(what)
                await self._store.write(deliveries.mark_edited, outgoing)

    async def _retry_later(
        self, outgoing: OutgoingMessage, error: str, pause_s: float | None = None
    ) -> None:
        await self._store.write(deliveries.retry_all_later, outgoing, error=error, pause_s=pause_s)

    async def _wait(self, alarm: asyncio.Event, due: datetime | None) -> None:
        """Wait for the next due time, a commit that queues something, or the next poll."""
        self._paused.set()
        waits: list[asyncio.Task[Any]] = [asyncio.create_task(alarm.wait())]
        if due is not None:
            waits.append(asyncio.create_task(self._clock.sleep_until(due)))
        # Another process may queue a delivery without telling this one, or die while it sends one.
        if not self._is_sole_process:
            waits.append(asyncio.create_task(asyncio.sleep(POLL_S)))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()


def _next_due(tx: Tx, channel: str) -> datetime | None:
    """Return when a channel has to send or edit something next."""
    dues = (rows.next_due(tx, channel), rows.next_edit(tx, channel))
    return min((due for due in dues if due is not None), default=None)


def _has_due(tx: Tx, channels: list[str]) -> bool:
    dues = (_next_due(tx, channel) for channel in channels)
    return any(due is not None and due <= tx.now for due in dues)


class Carriers(Part):
    """Sends the person's messages on their channels, and takes in what comes by them."""

    def __init__(self, given: Installation) -> None:
        self._given = given
        self._is_started = False
        self._changing = asyncio.Lock()

    @property
    def secrets(self) -> NamedSecrets:
        return self._given.secrets

    @cached_property
    def channels(self) -> dict[str, Channel]:
        """The channels by name, own ones in the place of those that the settings only name."""
        named: dict[str, Channel] = self._given.settings.get("channels", {})
        return {name: self.resolved(channel) for name, channel in named.items()}

    def resolved(self, channel: Channel) -> Channel:
        """Return the channel, or the own one that the settings only name."""
        if not isinstance(channel, WantedChannel):
            return channel
        found = (part.channel(channel) for part in self._given.parts)
        return next((own for own in found if own is not None), channel)

    @property
    def pairing_hints(self) -> dict[str, str]:
        """By channel, what to do with a pairing code."""
        named = self.channels.items()
        return {name: each.pairing_hint for name, each in named if is_two_way(each)}

    @cached_property
    def outbox(self) -> Outbox:
        given = self._given
        return Outbox(
            given.store,
            given.store.clock,
            self.channels,
            is_sole_process=given.is_sole_process,
            periodic=given.periodic,
        )

    @cached_property
    def inlet(self) -> Inlet:
        given = self._given
        return Inlet(given.store, given.store.clock, self.channels, given.periodic)

    async def put(self, name: str, channel: Channel | None) -> None:
        """Use a channel under this name from now on; None: use it no more. What is being sent gets
        a moment to end, as at a stop."""
        async with self._changing:
            if self._is_started:
                await self._halt()
            self.channels.pop(name, None)
            if channel is None:
                await self._given.store.write(deliveries.close_channel, name)
            else:
                self.channels[name] = channel
            for made in ("outbox", "inlet"):  # made anew, with the channels that there are now
                vars(self).pop(made, None)
            if self._is_started:
                await self._begin()

    async def start(self) -> None:
        self._is_started = True
        await self._begin()

    async def _begin(self) -> None:
        await self.outbox.start()
        await self.inlet.start()

    async def stop(self) -> None:
        self._is_started = False
        await self._halt()

    async def _halt(self) -> None:
        await self.inlet.stop()
        await self.outbox.stop()

    async def idle(self) -> None:
        await self.outbox.idle()


async def open_part(given: Installation) -> Carriers:
    """Return the channels of the settings. Nothing is sent or read before the start."""
    return Carriers(given)
