"""Channels: list them, and pair a phone or a mailbox with one."""

from agiraph.api.features.channel_views import ChannelView, PairingView
from agiraph.client.connection import Connection, path_of


class ChannelCalls(Connection):
    async def channels(self) -> list[ChannelView]:
        """List the person's channels."""
        return await self.get(list[ChannelView], "/channels")

    async def pair_channel(self, channel: str) -> PairingView:
        """Make a code that pairs the person who sends it on the channel."""
        return await self.post(PairingView, path_of("channels", channel, "pair"))

    async def unpair_channel(self, channel: str) -> ChannelView:
        """Forget who is paired with a channel."""
        said = await self.ask("DELETE", path_of("channels", channel, "pairing"))
        return self.read(ChannelView, said)
