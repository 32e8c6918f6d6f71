"""Outbox: takes what is written for the person to their channels, until each has taken it.

Rows say what is still to be sent. A process that dies while it sends leaves a row whose time comes
again, and it is sent again with the same key.
"""

import asyncio
from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any

from agiraph.domain.deliveries import Delivery, OutgoingMessage
from agiraph.domain.ids import new_id
from agiraph.domain.time import Clock
from agiraph.faultpoints import fault
from agiraph.runtime.channels import Channel, DeliveryFailed
from agiraph.runtime.periodic import PeriodicTasks, Wait
from agiraph.services.mail import deliveries
from agiraph.store import deliveries as rows
from agiraph.store.database import Store
from agiraph.store.tx import Aftermath, Tx

AT_ONCE = 4
"""Parcels on their way through one channel at a time."""
NAP_SECONDS = 5.0
"""How often to look for what another process left, where there may be others."""


class Outbox:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        channels: Mapping[str, Channel],
        *,
        alone: bool,
        periodic: PeriodicTasks | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._channels = dict(channels)
        self._alone = alone
        self._periodic = periodic or PeriodicTasks(clock)
        self._owner = new_id("outbox")
        self._tasks: list[asyncio.Task[None]] = []
        self._alarms = {name: asyncio.Event() for name in channels}
        self._under_way = 0
        self._rested = asyncio.Event()

    async def start(self) -> None:
        wanted = {name: channel.kinds for name, channel in self._channels.items()}
        if wanted or await self._store.read(rows.channels):
            await self._store.write(deliveries.open_channels, wanted, alone=self._alone)
        self._store.subscribe(self._notice)
        self._tasks = [
            asyncio.create_task(
                self._periodic.repeat(f"channel {name}", partial(self._serve, name, channel)),
                name=f"channel {name}",
            )
            for name, channel in self._channels.items()
        ]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def idle(self) -> None:
        """Return when nothing can be sent now: all is sent, or waits for its time."""
        while self._channels:
            self._rested.clear()
            # In this order: what is taken up while we look is no longer due, but under way.
            if not await self._store.read(_has_due, list(self._channels)) and not self._under_way:
                return
            await self._rested.wait()

    def _notice(self, aftermath: Aftermath) -> None:
        if aftermath.alarm:
            for alarm in self._alarms.values():
                alarm.set()

    async def _serve(self, name: str, channel: Channel) -> Wait | None:
        """Send what is due, then rest until something is."""
        self._alarms[name].clear()
        due = await self._store.read(rows.next_due, name)
        if due is not None and due <= self._clock.now():
            await self._send_due(name, channel)
            return None
        return partial(self._rest, self._alarms[name], due)

    async def _send_due(self, name: str, channel: Channel) -> None:
        self._under_way += 1
        try:
            parcels = await self._store.write(
                deliveries.claim, name, owner=self._owner, limit=AT_ONCE
            )
            await asyncio.gather(*(self._send(channel, parcel) for parcel in parcels))
        finally:
            self._under_way -= 1
            self._rested.set()

    async def _send(self, channel: Channel, parcel: OutgoingMessage) -> None:
        delivery = parcel.delivery
        what = f"delivery {delivery.id} by channel {delivery.channel}"
        try:
            fault("fx:before:deliver")
            await channel.send(parcel)
            fault("fx:after:deliver")
        except DeliveryFailed as error:
            self._periodic.item_failed(what, error, "it is sent again later", trace=False)
            await self._put_off(delivery, str(error), error.retry_after_s)
        except Exception as error:  # one that a channel chokes on must not keep the others
            self._periodic.item_failed(what, error, "it is sent again later")
            await self._put_off(delivery, repr(error))
        else:
            self._periodic.item_succeeded(what)
            await self._store.write(deliveries.sent, delivery)

    async def _put_off(self, delivery: Delivery, error: str, pause: float | None = None) -> None:
        await self._store.write(deliveries.put_off, delivery, error=error, pause=pause)

    async def _rest(self, alarm: asyncio.Event, due: datetime | None) -> None:
        """Sleep until something is due, something was written, or it is time to look."""
        self._rested.set()
        waits: list[asyncio.Task[Any]] = [asyncio.create_task(alarm.wait())]
        if due is not None:
            waits.append(asyncio.create_task(self._clock.sleep_until(due)))
        if not self._alone:
            waits.append(asyncio.create_task(asyncio.sleep(NAP_SECONDS)))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()


def _has_due(tx: Tx, channels: list[str]) -> bool:
    dues = (rows.next_due(tx, channel) for channel in channels)
    return any(due is not None and due <= tx.now for due in dues)
