"""Channels: the ways out to a person; each takes a parcel, or says why it could not."""

from typing import Protocol

from agiraph.domain.deliveries import OutgoingMessage
from agiraph.domain.messages import MessageKind


class Undelivered(Exception):
    """The other end did not take it; it may the next time."""

    def __init__(self, reason: str, *, pause: float | None = None) -> None:
        super().__init__(reason)
        self.pause = pause
        """How many seconds the other end wants to be left alone, if it said so."""


class Channel(Protocol):
    @property
    def kinds(self) -> frozenset[MessageKind]:
        """What goes this way."""
        ...

    @property
    def shown(self) -> str:
        """Where that is, for people to look at; without what must be kept secret."""
        ...

    async def send(self, parcel: OutgoingMessage) -> None:
        """Hand it over, or raise `Undelivered`. It may be handed over again, with the same key."""
        ...
