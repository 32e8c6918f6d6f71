"""Messages: everything anyone says to anyone; conversation, mailbox and inbox are views of it."""

from datetime import datetime
from typing import Literal

from agiraph.domain.chat import Attachment, ToolCall
from agiraph.domain.ids import MessageId, NodeId, TeamId
from agiraph.domain.value import value

MessageKind = Literal[
    "message",
    "question",
    "approval",
    "answer",
    "result",
    "failure",
    "briefing",
    "report",
    "notice",
    "suggestion",
    "nudge",
]

State = Literal["unread", "read", "answered"]
"""How the person has dealt with something in their inbox."""
Decision = Literal["approve", "deny"]
Rating = Literal["up", "down"]

NEEDS_ANSWER: frozenset[MessageKind] = frozenset({"question", "approval"})
ASKS_FOR_WORK: frozenset[MessageKind] = frozenset({"message", "nudge", "suggestion"})
"""What an agent with nothing to do takes up; the rest it hears when it is next at work."""
INTERRUPTS: frozenset[MessageKind] = frozenset({"message", "nudge", "suggestion", "notice"})
"""What ends a wait for teammates early, so that it is heard now."""
MOST_HOPS = 8
"""Messages that answer each other, after which nobody is set to work by the next."""
INBOX: frozenset[MessageKind] = frozenset(
    {"question", "approval", "briefing", "report", "failure", "result"}
)


@value
class Message:
    id: MessageId
    team_id: TeamId
    seq: int
    """Order among the messages to one recipient."""
    sender: str
    recipient: str
    text: str
    created_at: datetime
    kind: MessageKind = "message"
    title: str = ""
    options: tuple[str, ...] = ()
    node_id: NodeId | None = None
    in_reply_to: MessageId | None = None
    ref: str | None = None
    """For an approval: the call it is about, with the hash of its arguments."""
    client_id: str | None = None
    hops: int = 0
    seen_at: datetime | None = None
    """When its recipient heard it: an agent at a yield point, a person by reading."""
    answered_at: datetime | None = None
    decision: Decision | None = None
    reply_id: NodeId | None = None
    """The node that answers it, if a person said it and wants an answer."""
    attachments: tuple[Attachment, ...] = ()
    tainted_by: str | None = None
    """Where its words came from, if nobody on the team vouches for them."""
    rating: Rating | None = None
    """What the person thought of a briefing."""
    call: ToolCall | None = None
    """For an approval: the call as data. `text` does not repeat its arguments."""
