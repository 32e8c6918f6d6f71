"""Chat: threads of turns. A thread is the checkpoint from which work continues after a crash."""

from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from datetime import datetime
from typing import Any, Literal, cast

from agiraph.core.domain.ids import AgentId, MessageId, NodeId, TeamId, ThreadId
from agiraph.core.domain.provenance.labels import CLEAN, Label
from agiraph.core.domain.records.acts import Act
from agiraph.core.domain.value import value
from agiraph.core.domain.work import Lane, Usage

Role = Literal["system", "user", "assistant", "tool", "intent"]
"""The author of a turn. An intent is never sent to a model: it records that a call is about to be
made that costs money or must not be made twice."""

AGAIN = "again"
"""The note that starts a retry; earlier attempts no longer count."""

WAITS = "waits"
"""The note that tells an agent what it waits for after a plain-text reply; the reply's number
follows."""

IN_WORDS = "(in words)"
"""The call id in the waits of a node whose model replied in plain text while delegated work was
open. No call is open then, and the first of these waits that ends, ends them all."""

HOUSEKEEPING = frozenset({"flush", "compact", "landing"})
"""Notes that ask for something beside the work: to save notes, for a summary, for a last answer.
The replies to them are no steps of the work."""
OF_ATTEMPT = frozenset({"budget", "landing"})
"""Notes that each attempt gets anew."""

LEAN_SYSTEM = "system:lean"
"""The ref of a system prompt for a small window. It decides which tools the thread shows."""

LONGEST_SENT = 20_000
"""Characters of a call's arguments up to which later requests repeat them whole."""
_HEAD, _TAIL = 8_000, 4_000
_SMALL_HEAD, _SMALL_TAIL = 800, 200
LEFT_OUT = "characters of this argument are left out of later requests"
"""The words that mark where a long argument is cut. The call itself had all of it."""

THINKING = "thinking"
"""The ref of an intent to ask the model; it carries what was reserved for the call."""


@value
class ToolSpec:
    """A tool as a model sees it."""

    name: str
    description: str
    schema: dict[str, Any] = field(hash=False)


@value
class ToolCall:
    id: str
    name: str
    arguments: dict[str, Any] = field(default_factory=dict[str, Any])
    malformed: str | None = None
    """The text that the model wrote where a JSON object was expected, if it did."""
    refusal: str | None = None
    """Why the call is never made, if that was clear when its reply was read."""
    via: str | None = None
    """The tool by which the model called this one; None if it called it directly."""

    @property
    def as_written(self) -> "ToolCall":
        """The call as the model wrote it."""
        if self.via is None:
            return self
        given = self.arguments if self.malformed is None else self.malformed
        wrapped = {"name": self.name, "arguments": given}
        return ToolCall(id=self.id, name=self.via, arguments=wrapped)

    @property
    def as_sent(self) -> "ToolCall":
        """The call as later requests repeat it: as it was written, with long arguments cut."""
        written = self.as_written
        short = _shortened(written.arguments)
        return written if short is written.arguments else replace(written, arguments=short)

    @property
    def is_cut_off(self) -> bool:
        """Whether its arguments broke off, whatever reason the server gave for the end."""
        return self.malformed is not None and is_unterminated(self.malformed)


def _shortened(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with long texts cut. The same arguments are always cut alike, so that
    the bytes of later requests stay the same."""
    if len(str(arguments)) <= LONGEST_SENT:
        return arguments
    short = _cut(arguments, _HEAD, _TAIL, LONGEST_SENT)
    return (
        short if len(str(short)) <= 2 * LONGEST_SENT else _cut(short, _SMALL_HEAD, _SMALL_TAIL, 20)
    )


def _cut(value: Any, head: int, tail: int, items: int) -> Any:
    match value:
        case str() if len(value) > head + tail:
            left_out = f"[… {len(value) - head - tail:,} {LEFT_OUT} …]"
            return f"{value[:head]}\n{left_out}\n{value[-tail:]}"
        case list():
            return [_cut(item, head, tail, items) for item in cast(list[Any], value)[:items]]
        case dict():
            pairs = list(cast(dict[str, Any], value).items())[:items]
            return {_cut(k, head, tail, items): _cut(v, head, tail, items) for k, v in pairs}
        case _:
            return value


def _count_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode(errors="replace"))


def is_unterminated(text: str) -> bool:
    """Whether the text is the beginning of a JSON value and not the whole of it."""
    text = text.strip()
    if not text:
        return True
    if text[0] not in "{[":
        return False
    depth, in_string, is_escaped = 0, False, False
    for character in text:
        if is_escaped:
            is_escaped = False
        elif in_string:
            is_escaped = character == "\\"
            in_string = character != '"'
        elif character == '"':
            in_string = True
        else:
            depth += (character in "{[") - (character in "}]")
    return in_string or depth > 0


@value
class Attachment:
    """A picture or a file that goes with a turn. Its bytes are inline: links are never fetched."""

    name: str
    media_type: str
    data: str
    """Base64."""


@value
class Thread:
    """One agent's turns on one node. Closed when the node ends, and not deleted."""

    id: ThreadId
    team_id: TeamId
    agent_id: AgentId
    created_at: datetime
    node_id: NodeId | None = None
    kind: Lane = "work"
    parent_id: ThreadId | None = None
    epoch: int = 0
    """The fencing token: every claim raises it, and an append with an older one is refused."""
    claimed_seq: int = 0
    """Its last turn, intents apart, at the last claim: shows whether a run made progress."""
    closed_at: datetime | None = None
    harvested_at: datetime | None = None
    """When a reflection stored what was learned in it."""
    reflection_id: NodeId | None = None
    """The node of the reflection on it."""
    label: Label = CLEAN
    """The sources outside the team of words in this thread."""
    pruned_at: datetime | None = None
    """When its turns were removed, because it was closed long ago (the setting `retention`)."""


@value
class VendorParts:
    """Parts of a reply in the form of the vendor that wrote it, such as signed thinking."""

    vendor: str
    """Only this vendor is sent the parts again; another one would refuse them."""
    parts: list[dict[str, Any]]


@value
class TextMark:
    """The data with which the text protocol encodes a stored reply to the same bytes again."""

    key: str
    """The key that the request ended with; calls in the reply carry it."""
    kind: str
    missed: bool = False
    """Whether the reply contained something that looks like a call and is none."""


@value
class ProviderData:
    """The data that a provider stores with a reply, besides its text and its calls."""

    thinking: str = ""
    vendor: VendorParts | None = None
    text: TextMark | None = None
    served_model: str = ""
    """The model's name as its server gives it; a server may answer to any name."""
    refusal: str = ""
    """The vendor's reason for withholding the rest of the reply; empty if it is whole."""


NO_DATA, NO_USAGE = ProviderData(), Usage()


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
    """One entry of a thread. It is written before the next step starts, and never changed."""

    thread_id: ThreadId
    seq: int
    node_id: NodeId | None
    role: Role
    text: str
    at: datetime
    ref: str | None = None
    """What the turn is about: the id of a call or message, or a key that keeps a note from being
    written twice, such as `circle:12`."""
    calls: tuple[ToolCall, ...] = ()
    attachments: tuple[Attachment, ...] = ()
    model: str | None = None
    usage: Usage = NO_USAGE
    provider_data: ProviderData = NO_DATA
    """Of a reply: what its provider reads back when it sends the thread again."""
    failed: bool = False
    """Of a tool's answer: whether the model is told that its call failed."""
    sends_back: bool = False
    """Of a tool's answer: whether it sent a result back."""
    exit_code: int | None = None
    """Of the answer to a command that ended by itself: its exit code."""
    is_repeated: bool = False
    """Of a tool's answer: whether it only says that an earlier answer still holds."""
    is_held_back: bool = False
    """Of a tool's answer: whether the call was not made because a message came first."""
    reminds_of: MessageId | None = None
    """Of a tool's answer: the question that the agent must answer before it may wait."""
    label: Label = CLEAN
    """Web sites, files or programs that some of its text was taken from; empty: the team's own."""
    is_summary: bool = False
    """Whether it stands in for all turns before it, which the model is no longer shown."""
    is_cut: bool = False
    """Of a reply: whether it broke off, at the limit of output tokens or withheld by the vendor."""
    reserved: Reserved | None = None
    """Of an intent to ask the model: what the call may cost at most."""
    timeout_s: float | None = None
    """Of an intent to run a program: how long the program may take."""
    foreseen: dict[str, Any] = field(default_factory=dict[str, Any])
    """Of an intent to call a tool: what the tool wrote down before it acted. After a crash the tool
    reads it to find out whether it did; the keys are the tool's own."""
    did: Act | None = None
    """Of a tool's answer in a reply to a person: what the call did for them."""
    outbox: OutboxMark | None = None
    """Of a turn that carries a program's messages: how far its outbox was read."""

    @property
    def key(self) -> str:
        """The `ref` of a note or message; empty for calls and answers, whose ids others choose."""
        return self.ref or "" if self.role in ("user", "system") else ""

    @property
    def note(self) -> str:
        """The kind of a note: the part of its key before the number."""
        if not self.ref or self.role not in ("user", "system"):
            return ""
        return self.ref.partition(":")[0]

    @property
    def as_sent(self) -> "Turn":
        """The turn as every later request repeats it: see `ToolCall.as_sent`."""
        if not self.calls:
            return self
        sent = tuple(call.as_sent for call in self.calls)
        return self if sent == self.calls else replace(self, calls=sent)


def note_kind(key: str) -> str:
    return key.partition(":")[0]


@value
class Lease:
    """The right to append to one thread. The next claim raises the epoch and so ends it."""

    team_id: TeamId
    agent_id: AgentId
    node_id: NodeId
    thread_id: ThreadId
    epoch: int


class Transcript:
    """A thread in memory: read once when a run starts, then extended by each written turn."""

    def __init__(self, turns: Iterable[Turn] = ()) -> None:
        self.turns: list[Turn] = []
        self.wire: dict[str, Any] = {}
        """A provider's cache of the turns it has already encoded; a turn never changes."""
        self.last_reply: Turn | None = None
        self.newest_step: Turn | None = None
        """The newest step of the current attempt, if it has any: see `steps`."""
        self._steps: list[Turn] = []
        """The replies that are steps of the work, without those to `HOUSEKEEPING` notes."""
        self._firsts: list[dict[str, Any] | None] = []
        """For each step in order: the arguments of its first tool call; None without a call."""
        self._tried = 0
        """How many of the steps belong to earlier attempts."""
        self._before_cut = 0
        """How many of the steps the newest summary stands for."""
        self._last_note = ""
        """The kind of the last turn that is not an intent, if it is a note."""
        self._answered: set[str] = set()
        self._called: set[str] = set()
        self._intents: dict[str, Turn] = {}
        self._refs: set[str] = set()
        self._counted = 0
        """The tokens that the provider counted with the newest reply, if it is still shown."""
        self._uncounted = 0
        """The bytes that came since; all, if no provider has counted yet."""
        self.cuts: int = 0
        self.first: int = 0
        """The index of the first turn that is shown: the newest summary, if there is one."""
        self.label: Label = CLEAN
        """The sources outside the team of words in the turns: the union of their labels."""
        self.add(*turns)

    def add(self, *turns: Turn) -> None:
        for turn in turns:
            if turn.is_summary:
                self.cuts += 1
                self.first = len(self.turns)
                self._before_cut = len(self._steps)
                # The encoded bytes contain turns that the model is no longer shown.
                self.wire.clear()
                self._counted, self._uncounted = 0, _count_bytes(self.system)
            self.turns.append(turn)
            if turn.label.sources:
                self.label |= turn.label
            # Each kind by itself: a turn of a thread is added several times a second.
            if turn.role == "assistant":
                self._add_reply(turn)
                continue
            self._uncounted += _count_bytes(turn.text)
            if turn.role == "intent":
                if turn.ref is not None:
                    self._intents[turn.ref] = turn
            elif turn.role == "tool":
                self._last_note = ""
                if turn.ref is not None:
                    self._answered.add(turn.ref)
            else:
                self._add_note(turn)

    def _add_reply(self, turn: Turn) -> None:
        self.last_reply = turn
        if self._last_note not in HOUSEKEEPING:
            self.newest_step = turn
            self._steps.append(turn)
            self._firsts.append(turn.calls[0].arguments if turn.calls else None)
        self._last_note = ""
        if turn.ref is not None:
            self._refs.add(turn.ref)
        given = sent = 0
        for call in turn.calls:
            self._called.add(call.id)
            length = len(str(call.arguments))
            is_whole = length <= LONGEST_SENT and call.via is None
            given += length
            sent += length if is_whole else len(str(call.as_sent.arguments))
        if turn.usage.input_tokens:
            self._counted, self._uncounted = turn.usage.tokens, sent - given
        else:
            self._uncounted += _count_bytes(turn.text) + sent

    def _add_note(self, turn: Turn) -> None:
        self._last_note = turn.note
        if turn.ref is None:
            return
        if self._last_note == AGAIN:  # a retry gets its own warnings and closing note
            self._tried, self.newest_step = len(self._steps), None
            self._refs = {r for r in self._refs if note_kind(r) not in OF_ATTEMPT}
        self._refs.add(turn.ref)

    def spoken(self, start: int = 0) -> list[Turn]:
        """Return the turns that a model is shown, in order, from index `start` on."""
        turns = self.turns[max(start, self.first) :]
        return [turn for turn in turns if turn.role not in ("intent", "system")]

    @property
    def system(self) -> str:
        """The system prompt, as it was when the thread was opened."""
        return self.turns[0].text if self.turns and self.turns[0].role == "system" else ""

    @property
    def last_spoken(self) -> Turn:
        """The newest turn that is not an intent."""
        return next(t for t in reversed(self.turns) if t.role != "intent")

    def steps(self, most: int, *, since_cut: bool = False) -> list[Turn]:
        """Return the newest steps of the current attempt, newest first, at most that many.

        A step is a reply to the work itself, not to a `HOUSEKEEPING` note. `since_cut`: only those
        that the newest summary does not stand for.
        """
        first = max(self._tried, self._before_cut if since_cut else 0)
        return self._steps[max(first, len(self._steps) - most) :][::-1]

    def alike(self, most: int) -> int:
        """Return how many of so many newest steps begin with the arguments of the newest step."""
        firsts = self._firsts[-most:]
        return firsts.count(firsts[-1])

    def open_calls(self) -> list[ToolCall]:
        """Return the calls of the last reply that have no answer yet."""
        reply = self.last_reply
        return [c for c in reply.calls if c.id not in self._answered] if reply else []

    def with_unique_ids(self, calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
        """Return the calls with ids that are unique in this thread; some vendors repeat ids."""
        if len(calls) == 1 and calls[0].id and calls[0].id not in self._called:
            return tuple(calls)
        ids = {call.id for call in calls}
        if len(ids) == len(calls) and "" not in ids and ids.isdisjoint(self._called):
            return tuple(calls)
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
        """Return the intent of this call, if it was begun; the call may have taken effect."""
        return self._intents.get(call_id)

    def has(self, ref: str) -> bool:
        """Whether a note or message with this ref is already in this thread."""
        return ref in self._refs

    @property
    def next_tokens(self) -> int:
        """The estimated tokens of the next request: the provider's last count, and what came since,
        in bytes divided by four."""
        return self._counted + self._uncounted // 4

    @property
    def head(self) -> int:
        return self.turns[-1].seq if self.turns else 0


@value
class ReplyDelta:
    """A piece of the text of a reply that the model is still writing, for live display."""

    team_id: TeamId
    agent_id: AgentId
    node_id: NodeId
    thread_id: ThreadId
    lane: Lane
    after: int
    """The number of the thread's last reply before this one: it tells two replies apart."""
    offset: int
    text: str
