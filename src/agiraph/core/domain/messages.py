"""Messages: what agents and people send each other; chat, mailbox and inbox are views of it."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from agiraph.core.domain.chat import Attachment, ToolCall
from agiraph.core.domain.ids import MessageId, NodeId, TeamId
from agiraph.core.domain.provenance.labels import CLEAN, Label
from agiraph.core.domain.provenance.sinks import WayOut
from agiraph.core.domain.records.acts import Act
from agiraph.core.domain.records.doubts import Doubt, as_text, sentences
from agiraph.core.domain.value import value

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

State = Literal["unread", "read", "answered", "closed"]
"""Whether the person has read or answered an inbox item; closed: the work that asked has ended."""
Decision = Literal["approve", "deny"]
Rating = Literal["up", "down"]

StoppedBy = Literal["model", "crash"]
"""Why work cannot go on, in a question that the runtime asks for an agent."""
ProviderFault = Literal["key", "quota"]
"""What a provider refuses every call for: its key is wrong, or its money is spent."""
Topic = Literal[
    "call", "rerun", "spending", "model", "crash", "late_answer", "mention", "taken_back", "stage",
    "digest", "key", "quota",
]  # fmt: skip
"""What a message is about, beyond its node and the message that it answers; `ref` is the id of it.
A provider's key or quota (the provider): one question for all work that meets the fault.
Requests: a call (the call that waits for the decision, or none), the run of a program that was cut
off (its call), the spending of a goal (the goal). Questions: a model or crashes that stop the work,
a late answer (the answer). A person's message that mentions its recipient (the agent in whose
conversation it was written). A notice that a person takes back what had reached the agent: it
counts as their word, so work does not end without it. The end of a stage (the stage), and what
waits in a team's digest (the team)."""

Box = Literal["inbox", "snoozed", "archived"]
"""Where an item is: in sight, out of sight until a moment, or put away for good."""
Filing = Literal["read", "unread", "archive", "restore", "snooze"]
"""What a person does with items of the inbox. `restore` ends a snooze, or undoes an archiving."""

NEEDS_ANSWER: frozenset[MessageKind] = frozenset({"question", "approval"})
ASKS_FOR_WORK: frozenset[MessageKind] = frozenset({"message", "nudge", "suggestion", "question"})
"""Kinds that an idle agent starts work on. It reads the others when it next works. A question to an
agent comes from a teammate that waits for the answer."""
EndsWaits = Literal["none", "teammates", "all"]
"""Which waits of its recipient a message ends, so that it is read now: none (it is read at the next
yield point), those for teammates, or also those for a person."""
# Two agents that thank each other would otherwise work, and cost money, for ever.
MAX_HOPS = 8
"""Messages that may answer each other in a row; a further one starts no work."""
MOST_ATTACHMENTS = 10
"""Files that come with one message of a person."""
INBOX: frozenset[MessageKind] = frozenset(
    {"question", "approval", "briefing", "report", "failure", "result"}
)
"""Kinds that appear in the person's inbox and go to their channels."""


def option_with_number(options: Sequence[str], text: str) -> str | None:
    """Return the option whose number a text is, in the digits of any script; None if it is none."""
    number = text.strip().rstrip(".\u3002\u0964")
    # Short ones only: `int` raises an error for thousands of digits.
    place = int(number) if number.isdecimal() and len(number) < 4 else 0
    return options[place - 1] if 1 <= place <= len(options) else None


@value
class Draft:
    """A message before it is sent: what it says, to whom, and what it belongs to."""

    team_id: TeamId
    sender: str
    recipient: str
    text: str
    kind: MessageKind = "message"
    title: str = ""
    options: tuple[str, ...] = ()
    node_id: NodeId | None = None
    in_reply_to: MessageId | None = None
    topic: Topic | None = None
    ref: str | None = None
    """The id of its topic."""
    fingerprint: str | None = None
    """For an approval of a call: the hash of the call's name and arguments."""
    client_id: str | None = None
    hops: int = 0
    reply_id: NodeId | None = None
    """The reply node that answers it, if a person sent it."""
    edits: MessageId | None = None
    """The earlier message of the same person that it takes the place of."""
    attachments: tuple[Attachment, ...] = ()
    label: Label = CLEAN
    """Web sites, files or programs that some of its text was taken from; empty: the team's own."""
    call: ToolCall | None = None
    """For an approval: the tool call itself. `text` does not repeat its arguments."""
    way_out: WayOut | None = None
    """For an approval: the way out that the call takes; None if a rule of the team asks."""
    consulted: tuple[str, ...] = ()
    """Of a reply to a person: what its agent looked up before it wrote it, as calls."""
    acts: tuple[Act, ...] = ()
    """Of a reply to a person: what it did for them."""
    doubts: tuple[Doubt, ...] = ()
    """Of a result for a person: what could not be confirmed of it. `text` does not repeat it."""

    @property
    def full_text(self) -> str:
        """The text with its doubts below it, for readers who get one text."""
        return "\n\n".join(filter(None, (self.text, as_text(sentences(self.doubts)))))


@value
class Message(Draft):
    id: MessageId
    seq: int
    """Position among the messages to this recipient."""
    created_at: datetime
    seen_at: datetime | None = None
    """When the recipient got it: an agent at a yield point, a person by reading it."""
    answered_at: datetime | None = None
    closed_at: datetime | None = None
    """When a question was closed without an answer, as `answered_at`: its work has ended."""
    decision: Decision | None = None
    snoozed_until: datetime | None = None
    """Of an inbox item: until when it is out of sight; a moment in the past: it came back then."""
    archived_at: datetime | None = None
    rating: Rating | None = None
    """The person's rating of a briefing."""
    summary: str = ""
    """Of a briefing: the short text that the inbox shows instead of `text`."""
    ends_waits: EndsWaits = "none"
    heard_by: NodeId | None = None
    """The node that is to hear it; without one any work of its recipient."""
    edited_by: MessageId | None = None
    """The later message of the same person that takes its place: nobody reads this one any more."""

    def is_heard_in(self, node_id: NodeId) -> bool:
        """Whether it is heard in this node of its recipient: not in one that was made of it, nor
        if it is meant for another."""
        is_made_of_it = self.reply_id is not None and self.node_id == node_id
        return not is_made_of_it and self.heard_by in (None, node_id)

    @property
    def was_taken_in(self) -> bool:
        """Whether its recipient has read a person's message, or answers it."""
        return self.seen_at is not None or self.reply_id is not None

    @property
    def is_withdrawn(self) -> bool:
        """Whether the person edited it before its recipient had read it."""
        return self.edited_by is not None and not self.was_taken_in

    @property
    def stopped_by(self) -> StoppedBy | None:
        """Why work cannot go on, if the runtime asks; None for what an agent asks."""
        match self.topic:
            case "model" | "crash" as cause:
                return cause
            case "key" | "quota":
                return "model"
            case _:
                return None

    @property
    def fault(self) -> ProviderFault | None:
        """What is wrong with a provider, if it is a question about that: all work that meets the
        fault waits for its answer, in every team."""
        match self.topic:
            case "key" | "quota" as fault:
                return fault
            case _:
                return None

    @property
    def said_to(self) -> str | None:
        """The agent in whose conversation a person wrote it, if that is another than its
        recipient."""
        return self.ref if self.topic == "mention" else None


@value
class Notice:
    """A report of the runtime about itself, which a person gets once."""

    key: str
    """Names the change, so that a restart or a second run that meets it sends nothing."""
    title: str
    text: str
