"""Channels: what comes in from a person's phone or mailbox, and who is paired with a channel."""

from datetime import datetime

from agiraph.domain.chat import Attachment
from agiraph.domain.ids import AgentId, MessageId, PersonId
from agiraph.domain.messages import Decision, MessageKind
from agiraph.domain.value import value


@value
class Receipt:
    """What a receiver says about a message that it took."""

    id: str
    """Its own id of the message: a reply names it, and an edit."""
    is_open: bool = False
    """Whether the message there offers an answer that has to go away once there is one."""
    may_decide: bool = False
    """Whether it shows an approval to the last byte, with buttons to decide."""


@value
class Choice:
    """A pressed button."""

    message_id: MessageId
    option: int | None = None
    """Which option of a question, from 0."""
    decision: Decision | None = None


@value
class Incoming:
    """A message that a channel brings in."""

    key: str
    """The channel's own id of it. It is taken in once, however often it is received."""
    sender: str
    """Who sent it, as the channel names people."""
    text: str
    sent_at: datetime
    attachments: tuple[Attachment, ...] = ()
    replies_to: tuple[str, ...] = ()
    """The receipts of messages of ours that it answers, the nearest first."""
    choice: Choice | None = None
    is_proven: bool = True
    """Whether the channel vouches for the sender. If not, the message must answer one of ours: only
    who got that knows its id."""
    handle: str = ""
    """What the channel needs to acknowledge it."""


@value
class Received:
    """What a channel received, and the cursor to go on from."""

    cursor: str
    messages: tuple[Incoming, ...] = ()


@value
class ChannelState:
    """A registered channel, who is paired with it, and how far it has been read."""

    name: str
    kinds: tuple[MessageKind, ...]
    person_id: PersonId
    is_two_way: bool = False
    """Whether it also receives. It sends nothing before somebody is paired with it."""
    address: str | None = None
    """Who is paired with it, as the channel names people."""
    paired_at: datetime | None = None
    code_digest: str | None = None
    code_until: datetime | None = None
    code_tries: int = 0
    cursor: str = ""
    dropped: int = 0
    """Messages of unknown senders. Nothing else is kept of them."""
    agent_id: AgentId | None = None
    """The agent that words without an addressee are for."""
    muted_until: datetime | None = None
    reader: str | None = None
    reader_until: datetime | None = None


@value
class ReceivedRow:
    """A message that was taken in, by its channel and key."""

    id: str
    channel: str
    message_id: MessageId | None
    received_at: datetime
