"""Wanted channel: the placeholder of a channel that the settings name, until a file declares it."""

from dataclasses import dataclass

from agiraph.domain.deliveries import OutgoingMessage
from agiraph.domain.messages import MessageKind
from agiraph.runtime.channels import DeliveryFailed


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedChannel:
    """A channel that the settings name and no enabled file declares. Its messages wait in the
    outbox."""

    own_name: str
    kinds: frozenset[MessageKind]
    problem: str = ""
    """Why the channel that a file declares cannot be used."""

    @property
    def description(self) -> str:
        return f"own:{self.own_name} (not enabled)"

    async def send(self, outgoing: OutgoingMessage) -> None:
        if self.problem:
            raise DeliveryFailed(f"the channel {self.own_name!r} cannot be made: {self.problem}")
        raise DeliveryFailed(
            f"no enabled file declares the channel {self.own_name!r}; see `agiraph tools`"
        )
