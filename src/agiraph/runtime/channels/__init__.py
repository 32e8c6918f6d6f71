"""Channels: the ways on which messages leave for a person, besides the inbox."""

from typing import Protocol

from agiraph.domain.deliveries import OutgoingMessage
from agiraph.domain.messages import MessageKind


class DeliveryFailed(Exception):
    """The receiver did not take a message. The outbox sends it again later."""

    def __init__(self, reason: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(reason)
        self.retry_after_s = retry_after_s
        """How long the receiver asked us to wait; None if it did not say."""


class Channel(Protocol):
    @property
    def kinds(self) -> frozenset[MessageKind]:
        """Return the kinds of messages that are sent on this channel."""
        ...

    @property
    def description(self) -> str:
        """Return where the channel leads, for people to read. It contains no secrets."""
        ...

    async def send(self, outgoing: OutgoingMessage) -> None:
        """Deliver a message, or raise `DeliveryFailed`.

        The outbox may send the same message twice, after a crash or a timeout. Both times it has
        the same `key`, so that the receiver can drop the second one.
        """
        ...
