"""Deliveries: the state of sending one message to a person through one channel."""

from datetime import datetime, timedelta
from typing import Literal

from agiraph.core.domain.ids import MessageId, TeamId
from agiraph.core.domain.messages import Message
from agiraph.core.domain.value import value

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
    receipt: str | None = None
    """The receiver's own id of the message; a reply to it names it."""
    is_open: bool = False
    """Whether the message there offers an answer that goes away once there is one."""
    may_decide: bool = False
    """Whether a button there decides on an approval: the message shows the call to the last
    byte."""


@value
class StoredDelivery(Delivery):
    """A delivery with what only its channel is told."""

    revoked: tuple[str, str] | None = None
    """Address and receipt of the message if its receiver is not paired any more, but its buttons
    are still there."""


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
    address: str = ""
    """Who is paired with the channel; empty: the channel knows its recipients itself."""
    answers: str = ""
    """The channel's id of the person's message that this one replies to; empty: none."""
    is_silent: bool = False
    """Whether the person's quiet hours are on: the message makes no sound."""
    waits_until: str = ""
    """Of a question: when the work that asks goes on without an answer, in the person's zone."""
    answer: str = ""
    """Of an edit: how the question was answered."""
    others: tuple[Delivery, ...] = ()
    """Deliveries of further questions of the team, which this message lists with its own."""
    is_unpaired: bool = False
    """Of an edit: the receiver is not paired any more. They are told nothing but that."""

    @property
    def key(self) -> str:
        """The idempotency key of the delivery."""
        return self.delivery.id

    @property
    def age(self) -> timedelta:
        """How old the message is."""
        return self.claimed_at - self.message.created_at
