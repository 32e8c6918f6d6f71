"""Mail events: messages, questions, briefings and deliveries."""

from typing import ClassVar

from agiraph.core.domain.events import EventType, TeamEvent, event
from agiraph.core.domain.messages import Decision, MessageKind, Rating
from agiraph.core.domain.records.acts import ActKind


@event
class MessageSent(TeamEvent):
    """A message was sent that needs no answer."""

    event_type: ClassVar[EventType] = "message.sent"

    message_id: str
    kind: MessageKind
    sender: str
    recipient: str
    text: str
    node_id: str | None
    consulted: list[str] | None = None
    """Of a reply to a person: what its agent looked up first, such as *look_into(bob)*."""
    acts: list[str] | None = None
    """Of a reply to a person: what it did for them, a line each."""
    doubts: list[str] | None = None
    """Of a result for a person: what could not be confirmed of it, a sentence each."""
    edits: str | None = None
    """The earlier message of the same person that it takes the place of."""


@event
class MessageSeen(TeamEvent):
    """The recipient received these messages."""

    event_type: ClassVar[EventType] = "message.seen"

    message_ids: list[str]


@event
class MessageFiled(TeamEvent):
    """A person has put items of their inbox away, or they came back."""

    event_type: ClassVar[EventType] = "message.filed"

    message_ids: list[str]
    filing: str
    """`archive`, `restore`, `snooze` or `unread`; `return`: a snooze has ended."""


@event
class QuestionAsked(TeamEvent):
    """A question or a request for approval was sent."""

    event_type: ClassVar[EventType] = "question.asked"

    message_id: str
    kind: MessageKind
    sender: str
    recipient: str
    text: str
    node_id: str | None


@event
class QuestionAnswered(TeamEvent):
    """A question or a request for approval was answered, or closed without an answer."""

    event_type: ClassVar[EventType] = "question.answered"

    message_id: str
    """The question."""
    node_id: str | None
    text: str
    decision: Decision | None
    is_closed: bool | None = None
    """Whether nobody answered it and the runtime closed it; `text` says why."""


@event
class ReplyActUndone(TeamEvent):
    """A person has undone one thing that a reply did."""

    event_type: ClassVar[EventType] = "reply.act_undone"

    message_id: str
    """The reply."""
    sender: str
    recipient: str
    place: int
    """The place of the act among those of the reply, from 0."""
    kind: ActKind
    about: str
    """The id of the work, question, trigger or memory; a question is open again."""
    text: str


@event
class BriefingDecided(TeamEvent):
    """An agent decided whether to send a briefing."""

    event_type: ClassVar[EventType] = "briefing.decided"

    node_id: str
    agent_id: str
    sent: bool
    message_id: str | None
    reason: str
    score: float | None = None
    threshold: float | None = None


@event
class BriefingRated(TeamEvent):
    """A person rated a briefing, which moved the threshold for the next ones."""

    event_type: ClassVar[EventType] = "briefing.rated"

    message_id: str
    rating: Rating
    threshold: float


@event
class DeliverySent(TeamEvent):
    """A channel accepted a message."""

    event_type: ClassVar[EventType] = "delivery.sent"

    delivery_id: str
    message_id: str
    channel: str
    tries: int


@event
class DeliveryFailed(TeamEvent):
    """A channel did not accept a message after the last try."""

    event_type: ClassVar[EventType] = "delivery.failed"

    delivery_id: str
    message_id: str
    channel: str
    tries: int
    error: str
