"""Inlet: reads the two-way channels and processes what the paired person writes there.

This installation polls each channel, so it need not be reachable from outside. If several processes
run, one reads a channel: two would take each other's messages.
"""

import asyncio
import logging
from collections.abc import Mapping
from functools import partial

from agiraph.core.domain.errors import Refused, StoreUnavailable
from agiraph.core.domain.ids import new_id
from agiraph.core.domain.records.channels import (
    Channel,
    DeliveryFailed,
    Incoming,
    TwoWayChannel,
    is_two_way,
)
from agiraph.core.domain.times.time import Clock
from agiraph.core.runtime.background.periodic import PeriodicTasks, Wait
from agiraph.core.store.database import Store
from agiraph.faultpoints import fault
from agiraph.features.channels import incoming, pairing
from agiraph.features.channels.incoming import Taken

log: logging.Logger = logging.getLogger("agiraph.channels")

OTHER_READS_S = 20.0
"""Seconds between two checks whether another process still reads the channel."""


class Inlet:
    def __init__(
        self, store: Store, clock: Clock, channels: Mapping[str, Channel], periodic: PeriodicTasks
    ) -> None:
        self._store = store
        self._clock = clock
        self._channels = {name: each for name, each in channels.items() if is_two_way(each)}
        self._periodic = periodic
        self._reader = new_id("inlet")
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Start one reading task for each channel. The outbox must have registered the channels."""
        self._tasks = [
            self._periodic.start(f"reading {name}", partial(self._read, name, channel))
            for name, channel in self._channels.items()
        ]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _read(self, name: str, channel: TwoWayChannel) -> Wait | None:
        """Wait for new messages of a channel and process them, if no other process reads it."""
        state = await self._store.write(incoming.claim_reading, name, reader=self._reader)
        if state is None:
            return partial(self._clock.sleep, OTHER_READS_S)
        received = await channel.receive(state.cursor, state.address)
        paired, unpaired = state.address, 0
        for message in received.messages:
            # Many messages of unpaired senders cost one write, not one each.
            if message.sender != paired and not pairing.may_hold_code(message.text):
                unpaired += 1
                continue
            taken = await self._take(name, channel, message)
            paired = message.sender if taken is not None else paired
        if received.cursor != state.cursor:
            # Last: after a crash before this they are received again, and known by their keys.
            await self._store.write(incoming.advance, name, received.cursor, dropped=unpaired)
        return None

    async def _take(self, name: str, channel: TwoWayChannel, message: Incoming) -> Taken | None:
        """Process one message and acknowledge it; return None if it was dropped."""
        fault("fx:before:receive")
        try:
            taken = await self._store.write(incoming.take, name, message)
        except StoreUnavailable:
            raise
        except Exception as error:  # one that cannot be taken must not block those after it
            is_refused = isinstance(error, Refused)
            log.warning("channel %s: a message cannot be processed", name, exc_info=not is_refused)
            await self._refuse(name, message)
            taken = Taken(notice=str(error) if is_refused else "That did not work; see the log.")
        fault("fx:after:receive")
        if taken is not None:
            await self._acknowledge(name, channel, message, taken.notice)
        return taken

    async def _refuse(self, name: str, message: Incoming) -> None:
        """Record that a message could not be processed.

        If that fails too, the error is logged, so that the cursor moves past the message. A
        database that is unavailable raises: the message is received again.
        """
        try:
            await self._store.write(incoming.refuse, name, message)
        except StoreUnavailable:
            raise
        except Exception:
            log.exception("channel %s: a refused message cannot be recorded", name)

    async def _acknowledge(
        self, name: str, channel: TwoWayChannel, message: Incoming, notice: str
    ) -> None:
        try:
            await channel.acknowledge(message, notice)
        except DeliveryFailed as error:
            # The message is stored; only its acknowledgement is lost.
            log.warning("channel %s: a message was stored but not acknowledged: %s", name, error)
