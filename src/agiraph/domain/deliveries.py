"""Deliveries: the state of sending one message to a person through one channel."""

from datetime import datetime
from typing import Literal

from agiraph.domain.ids import MessageId, TeamId
from agiraph.domain.messages import Message
from agiraph.domain.value import value

DeliveryStatus = Literal["queued", "sending", "sent", "failed"]


@value
class Delivery:
    id: str
    """Also the idempotency key by which the receiver recognises a repetition."""
    team_id: TeamId
    message_id: MessageId
    channel: str
    created_at: datetime
    due_at: datetime
    """When it is tried next; while it is being sent, when the sender's claim runs out."""
    status: DeliveryStatus = "queued"
    tries: int = 0
    owner: str | None = None
    error: str | None = None
    """Why the last try failed."""
    sent_at: datetime | None = None


@value
class OutgoingMessage:
    """A claimed delivery with its message and the names that a channel shows."""

    delivery: Delivery
    message: Message
    team: str
    sender: str
    """The name of the sending agent."""
    claimed_at: datetime
    """When it was claimed, by the database's clock."""

    @property
    def key(self) -> str:
        """The idempotency key of the delivery."""
        return self.delivery.id
