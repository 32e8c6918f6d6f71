"""Channels: what comes in from a person's phone or mailbox, and who is paired with a channel."""

from datetime import datetime

from agiraph.core.domain.chat import Attachment
from agiraph.core.domain.ids import AgentId, MessageId, PersonId
from agiraph.core.domain.messages import Decision, MessageKind
from agiraph.core.domain.value import value


@value
class Receipt:
    """What a channel returns for a message that the service behind it has accepted."""

    id: str
    """The service's id of the message. Replies and edits refer to it."""
    is_open: bool = False
    """Whether the sent message has buttons that must be removed once there is an answer."""
    may_decide: bool = False
    """Whether the message shows the whole call of an approval, and has buttons to decide on it."""


@value
class Choice:
    """A pressed button."""

    message_id: MessageId
    option: int | None = None
    """Which option of a question, from 0."""
    decision: Decision | None = None
    act: int | None = None
    """Which act of a reply is undone, from 0."""


@value
class Incoming:
    """A message that a channel received."""

    key: str
    """The service's id of the message. A message that is received twice is processed once."""
    sender: str
    """The sender's address in the channel's own form, such as a chat id or an e-mail address."""
    text: str
    sent_at: datetime
    attachments: tuple[Attachment, ...] = ()
    replies_to: tuple[str, ...] = ()
    """The receipts of our messages that this message replies to, the nearest first."""
    choice: Choice | None = None
    is_proven: bool = True
    """Whether the channel has authenticated the sender. If not, the message must reply to one of
    ours, whose id only its recipient knows."""
    handle: str = ""
    """What `acknowledge` needs to answer this message, such as the id of a pressed button."""


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
    """The paired person's address in the channel's own form; None: nobody is paired."""
    paired_at: datetime | None = None
    code_digest: str | None = None
    code_until: datetime | None = None
    code_tries: int = 0
    cursor: str = ""
    dropped: int = 0
    """How many messages came from senders who are not paired. Nothing else is stored of them."""
    agent_id: AgentId | None = None
    """The agent that gets messages without an addressee; chosen with `/to`."""
    muted_until: datetime | None = None
    reader: str | None = None
    reader_until: datetime | None = None


@value
class ReceivedRow:
    """Records that a message was processed, by its channel and key."""

    id: str
    channel: str
    message_id: MessageId | None
    received_at: datetime
