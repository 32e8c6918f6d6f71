"""Own channels: sends messages by a function that a person's file declares."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from agiraph.domain.deliveries import OutgoingMessage
from agiraph.domain.messages import MessageKind
from agiraph.extensions.context import Context
from agiraph.extensions.declarations import ChannelDeclaration
from agiraph.extensions.loading import Extensions
from agiraph.extensions.own_threads import OwnThreads, Raised, TookTooLong
from agiraph.extensions.own_tools import Secrets
from agiraph.extensions.results import error_text
from agiraph.extensions.signatures import takes_context
from agiraph.runtime.channels import Channel, DeliveryFailed
from agiraph.runtime.channels.wanted import WantedChannel


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnChannel:
    """A channel that a person's file declares."""

    declared: ChannelDeclaration
    kinds: frozenset[MessageKind]
    secrets: Secrets = field(repr=False)
    threads: OwnThreads = field(repr=False)

    @property
    def description(self) -> str:
        return f"own:{self.declared.name}"

    async def send(self, outgoing: OutgoingMessage) -> None:
        """Call the person's function; an error of it means that the message was not taken."""
        declared = self.declared
        context = Context(declared.name, declared.secrets, self.secrets)
        first = (context,) if takes_context(declared.act) else ()
        try:
            await self.threads.call(
                f"channel {declared.name}",
                partial(declared.act, *first, outgoing),
                timeout_s=declared.timeout_s,
            )
        except TookTooLong:
            raise DeliveryFailed(f"{self.description} did not return in time") from None
        except Raised as raised:
            raise DeliveryFailed(error_text(raised.error)) from raised.error


def resolved(channels: Mapping[str, Channel], extensions: Extensions) -> dict[str, Channel]:
    """Return the channels with the own ones in their places, as far as they are enabled."""
    return {name: _resolved(channel, extensions) for name, channel in channels.items()}


def _resolved(channel: Channel, extensions: Extensions) -> Channel:
    if not isinstance(channel, WantedChannel):
        return channel
    declared = extensions.declared.get(("channels", channel.own_name))
    if not isinstance(declared, ChannelDeclaration):
        return channel
    return OwnChannel(
        declared=declared,
        kinds=channel.kinds,
        secrets=extensions.secrets.get,
        threads=extensions.threads,
    )
