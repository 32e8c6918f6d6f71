"""Chat: a thread of turns, the checkpoint from which work goes on after anything."""

from collections.abc import Iterable, Iterator
from dataclasses import field, replace
from datetime import datetime
from typing import Any, Literal

from agiraph.domain import taint
from agiraph.domain.ids import AgentId, NodeId, TeamId, ThreadId
from agiraph.domain.value import value
from agiraph.domain.work import Lane, Usage

Role = Literal["system", "user", "assistant", "tool", "intent"]
"""Who speaks. An intent is for the journal alone: a call was begun that costs money, or that must
not be made twice."""

AGAIN = "again:"
"""How the ref of a notice begins that gives another try; what came before no longer counts."""

WAITS = "waits:"
"""How the ref of a notice begins that tells a node that replied in words, at that place of its
thread, what it now waits for."""

IN_WORDS = "(in words)"
"""Stands for the call id in the waits of a node that replied in words while work it gave away was
open. No call is open then; the first of these waits that settles ends them all."""

THINKING = "thinking"
"""What an intent to ask the model is about; it carries what was held for the call."""


@value
class ToolSpec:
    """A tool as a model sees it: the schema goes to the API, the guidance into the prompt."""

    name: str
    description: str
    schema: dict[str, Any] = field(hash=False)
    guidance: str = ""


@value
class ToolCall:
    id: str
    name: str
    arguments: dict[str, Any] = field(default_factory=dict[str, Any])
    malformed: str | None = None
    """What the model wrote instead of a JSON object, if it did."""


@value
class Attachment:
    """A picture or a file that goes with a turn; its bytes inline, never a link to fetch."""

    name: str
    media_type: str
    data: str
    """Base64."""


@value
class Thread:
    """One agent on one node (or one reply). Closed when done, never destroyed."""

    id: ThreadId
    team_id: TeamId
    agent_id: AgentId
    created_at: datetime
    node_id: NodeId | None = None
    kind: Lane = "work"
    parent_id: ThreadId | None = None
    epoch: int = 0
    """Raised by every claim; an append that carries an older one is refused."""
    claimed_seq: int = 0
    closed_at: datetime | None = None
    harvested_at: datetime | None = None
    """When its agent looked back on it and kept what it learned."""
    reflection_id: NodeId | None = None
    """The node in which its agent looks back on it."""
    tainted_by: str | None = None
    """Where words came from that nobody on the team vouches for, if any are in it."""


@value
class VendorParts:
    """A reply in the form of the vendor that wrote it: signed thinking, for one."""

    vendor: str
    """Only this vendor is sent the parts again; another one would refuse them."""
    parts: list[dict[str, Any]]


@value
class TextMark:
    """What the text protocol needs to send a reply again to the byte."""

    key: str
    """The key that the request ended with; calls in the reply carry it."""
    kind: str
    missed: bool = False
    """Whether the reply held something like a call that was not read as one."""


@value
class ProviderData:
    """What a provider keeps with a reply beside its text and its calls."""

    thinking: str = ""
    vendor: VendorParts | None = None
    text: TextMark | None = None


@value
class Reserved:
    """What was set aside from the budget for one model call."""

    tokens: int
    usd: float


@value
class OutboxMark:
    """How far a program's outbox file was read; the hash tells whether it was written anew."""

    end: int
    """Bytes from its start."""
    sha256: str


@value
class Turn:
    """One entry of a thread; written before the next thing starts, never changed."""

    thread_id: ThreadId
    seq: int
    node_id: NodeId | None
    role: Role
    text: str
    at: datetime
    ref: str | None = None
    """What a turn is about: the call it answers or begins, the notice or message it carries."""
    calls: tuple[ToolCall, ...] = ()
    attachments: tuple[Attachment, ...] = ()
    model: str | None = None
    usage: Usage = Usage()
    provider_data: ProviderData = ProviderData()
    """Of a reply: what its provider reads back when it sends the thread again."""
    failed: bool = False
    """Of a tool's answer: whether the model is told that its call failed."""
    tainted_by: str | None = None
    """Where its words came from, if nobody on the team vouches for them."""
    is_summary: bool = False
    """Whether it stands in for all turns before it, which the model is no longer shown."""
    reserved: Reserved | None = None
    """Of an intent to ask the model: what the call may cost at most."""
    timeout_s: float | None = None
    """Of an intent to run a program: how long the program may take."""
    foreseen: dict[str, Any] = field(default_factory=dict[str, Any])
    """Of an intent to call a tool: what the tool wrote down before it acted. After a crash the tool
    reads it to find out whether it did; the keys are the tool's own."""
    outbox: OutboxMark | None = None
    """Of a turn that carries a program's messages: how far its outbox was read."""


@value
class Lease:
    """The right to write to one thread, as long as nobody claims it again."""

    team_id: TeamId
    agent_id: AgentId
    node_id: NodeId
    thread_id: ThreadId
    epoch: int


class Transcript:
    """A thread in memory: read once when a run starts, then grown by what is written."""

    def __init__(self, turns: Iterable[Turn] = ()) -> None:
        self.turns: list[Turn] = []
        self.wire: dict[str, Any] = {}
        """What a wire keeps of the turns it has already encoded; a turn never changes."""
        self._replies: list[Turn] = []
        self._tried = 0
        """How many of the replies came before the newest try."""
        self._answered: set[str] = set()
        self._called: set[str] = set()
        self._intents: dict[str, Turn] = {}
        self._refs: set[str] = set()
        self.cuts = 0
        self.first = 0
        """Where what is shown begins: at the newest summary, if there is one."""
        self.tainted_by: str | None = None
        """Where words in it came from that nobody on the team vouches for."""
        self.add(*turns)

    def add(self, *turns: Turn) -> None:
        for turn in turns:
            if turn.is_summary:
                self.cuts += 1
                self.first = len(self.turns)
                self.wire.clear()
            self.turns.append(turn)
            if turn.tainted_by is not None:
                self.tainted_by = taint.graver(self.tainted_by, turn.tainted_by)
            if turn.role == "assistant":
                self._replies.append(turn)
                self._called.update([c.id for c in turn.calls])
            if turn.ref is None:
                continue
            if turn.role == "tool":
                self._answered.add(turn.ref)
            elif turn.role == "intent":
                self._intents[turn.ref] = turn
            else:
                if turn.ref.startswith(AGAIN):  # another try has its own end, and its own warning
                    self._tried = len(self._replies)
                    ended = ("budget:", "landing")
                    self._refs = {ref for ref in self._refs if not ref.startswith(ended)}
                self._refs.add(turn.ref)

    def spoken(self, start: int = 0) -> Iterator[Turn]:
        """The turns a model is shown in order, from the start-th entry on."""
        for index in range(max(start, self.first), len(self.turns)):
            if self.turns[index].role not in ("intent", "system"):
                yield self.turns[index]

    @property
    def system(self) -> str:
        """What the agent was told for good when the thread was opened."""
        return self.turns[0].text if self.turns and self.turns[0].role == "system" else ""

    @property
    def last_spoken(self) -> Turn:
        """The newest turn that is not the journal's own."""
        return next(t for t in reversed(self.turns) if t.role != "intent")

    @property
    def last_reply(self) -> Turn | None:
        return self._replies[-1] if self._replies else None

    def replies(self, most: int) -> list[Turn]:
        """The replies of the newest try, newest first."""
        return self._replies[max(self._tried, len(self._replies) - most) :][::-1]

    def open_calls(self) -> list[ToolCall]:
        """Calls of the last reply that have no answer yet."""
        reply = self.last_reply
        return [c for c in reply.calls if c.id not in self._answered] if reply else []

    def named_apart(self, calls: Iterable[ToolCall]) -> tuple[ToolCall, ...]:
        """The calls with ids no other call of this thread has; some servers repeat theirs."""
        taken: set[str] = set()
        apart: list[ToolCall] = []
        for call in calls:
            stem = call.id or "call"
            name, number = stem, len(self._called) + 1
            while not call.id or name in taken or name in self._called:
                name, number, call = f"{stem}_{number}", number + 1, replace(call, id=stem)
            taken.add(name)
            apart.append(call if name == call.id else replace(call, id=name))
        return tuple(apart)

    def intent(self, call_id: str) -> Turn | None:
        """The record that this call was begun, if it was and may have happened."""
        return self._intents.get(call_id)

    def has(self, ref: str) -> bool:
        """Whether a notice or message was already put into this thread."""
        return ref in self._refs

    @property
    def head(self) -> int:
        return self.turns[-1].seq if self.turns else 0


@value
class Words:
    """A piece of a reply that is still being written."""

    team_id: TeamId
    agent_id: AgentId
    node_id: NodeId
    thread_id: ThreadId
    lane: Lane
    after: int
    """The place of its thread's last reply: by it one reply is told from the next."""
    offset: int
    text: str
