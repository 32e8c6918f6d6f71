"""Channels: the interface of the services that carry messages to and from a person, what comes in
by them, and who is paired with a channel."""

from datetime import datetime
from typing import Protocol, TypeGuard

from agiraph.core.domain.chat import Attachment
from agiraph.core.domain.ids import AgentId, MessageId, PersonId
from agiraph.core.domain.messages import Decision, MessageKind
from agiraph.core.domain.records.deliveries import OutgoingMessage
from agiraph.core.domain.value import dataclass, value


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

    async def send(self, outgoing: OutgoingMessage) -> Receipt | None:
        """Deliver a message, or raise `DeliveryFailed`.

        The outbox may send the same message twice, after a crash or a timeout. Both times it has
        the same `key`, so that the receiver can drop the second one. A two-way channel returns the
        receiver's own id of the message.
        """
        ...


class TwoWayChannel(Channel, Protocol):
    """A channel that also receives. It serves nobody before a person is paired with it by a
    code, and then only that person."""

    @property
    def pairing_hint(self) -> str:
        """Return what to do with a pairing code; `{code}` stands for it."""
        ...

    async def receive(self, cursor: str, paired: str | None) -> Received:
        """Wait for new messages, at most a minute, and return them with the cursor after them.

        `paired` is who is paired with the channel. Of anybody else only the text is wanted, which
        may hold a code: files of unpaired senders are not downloaded.

        A message is returned again until the cursor after it is given; its `key` is always the
        same. Raise `DeliveryFailed` if the channel cannot be read now.
        """
        ...

    async def edit(self, outgoing: OutgoingMessage, receipt: str) -> None:
        """Take away what offers an answer under a sent message; `outgoing.answer` is the answer.
        If `outgoing.is_unpaired`, the receiver is not paired any more and is told no answer.

        Raise `DeliveryFailed` to be called again later. A message that is gone needs no edit.
        """
        ...

    async def acknowledge(self, incoming: Incoming, notice: str) -> None:
        """Tell the sender that a message was taken in, with a notice if it is not empty.

        It is called once, for messages of the paired person only.
        """
        ...


def is_two_way(channel: Channel) -> TypeGuard[TwoWayChannel]:
    return hasattr(channel, "receive")


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
