"""Deliveries: a message on its way to a person through a channel, apart from what it says."""

from datetime import datetime
from typing import Literal

from agiraph.domain.ids import MessageId, TeamId
from agiraph.domain.messages import Message
from agiraph.domain.value import value

DeliveryStatus = Literal["queued", "sending", "sent", "failed"]


@value
class Delivery:
    id: str
    """Also the key by which whoever receives it knows a repetition."""
    team_id: TeamId
    message_id: MessageId
    channel: str
    created_at: datetime
    due_at: datetime
    """When it is tried next; while it is being sent, when whoever sends it counts as dead."""
    status: DeliveryStatus = "queued"
    tries: int = 0
    owner: str | None = None
    error: str | None = None
    """Why the last try failed."""
    sent_at: datetime | None = None


@value
class OutgoingMessage:
    """What a channel is handed: the delivery, the message, and the names around it."""

    delivery: Delivery
    message: Message
    team: str
    sender: str
    """Who says it, by name."""
    claimed_at: datetime
    """When it was taken up to be sent, by the clock that all processes share."""

    @property
    def key(self) -> str:
        return self.delivery.id
