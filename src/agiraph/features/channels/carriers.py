"""Carriers: the channels of a runtime, with what sends on them and what reads them."""

from functools import cached_property

from agiraph.core.domain.records.channels import Channel, WantedChannel, is_two_way
from agiraph.core.runtime.parts import Installation, Part
from agiraph.features.channels.inlet import Inlet
from agiraph.features.channels.outbox import Outbox


class Carriers(Part):
    """Sends the person's messages on their channels, and takes in what comes by them."""

    def __init__(self, given: Installation) -> None:
        self._given = given

    @cached_property
    def channels(self) -> dict[str, Channel]:
        """The channels by name, own ones in the place of those that the settings only name."""
        named: dict[str, Channel] = self._given.settings.get("channels", {})
        return {name: self._resolved(channel) for name, channel in named.items()}

    def _resolved(self, channel: Channel) -> Channel:
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

    async def start(self) -> None:
        await self.outbox.start()
        await self.inlet.start()

    async def stop(self) -> None:
        await self.inlet.stop()
        await self.outbox.stop()

    async def idle(self) -> None:
        await self.outbox.idle()


async def open_part(given: Installation) -> Carriers:
    """Return the channels of the settings. Nothing is sent or read before the start."""
    return Carriers(given)
