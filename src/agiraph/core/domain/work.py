"""Work: the node, its statuses and the moves between them, what it waits for, its budget and its
effort."""

import re
from collections.abc import Callable
from dataclasses import field
from datetime import datetime
from enum import StrEnum
from operator import attrgetter
from typing import Any, Literal, NamedTuple, cast, get_args

from agiraph.core.domain.errors import IllegalMove, Refused
from agiraph.core.domain.ids import AgentId, NodeId, StageId, TeamId, ThreadId, TriggerId
from agiraph.core.domain.provenance.labels import CLEAN, Label
from agiraph.core.domain.records.doubts import Doubt
from agiraph.core.domain.value import changed, dataclass, value
from agiraph.core.domain.work_kinds import SINGLE_ANSWER, TASK, Lane, WorkKind

Effort = Literal["none", "low", "medium", "high", "max"]
"""`none` switches thinking off, for models that can answer without it."""
EFFORTS: tuple[Effort, ...] = get_args(Effort)
_BY_NAME: dict[str, Effort] = {effort: effort for effort in EFFORTS}


def parse_effort(text: str) -> Effort | None:
    """Return the effort that the text names, None for an empty text; refuse any other one."""
    word = text.strip().lower()
    if word and word not in _BY_NAME:
        raise Refused(f"{text!r} is not an effort; write one of {', '.join(EFFORTS)}.")
    return _BY_NAME.get(word)


def first_effort(*efforts: Effort | None) -> Effort | None:
    """Return the first effort that is set: the most specific one, if given in that order."""
    return next((effort for effort in efforts if effort is not None), None)


WaitKind = Literal["answer", "approval", "reply", "node", "stage", "tasks", "time", "day"]
"""A person's answer, a person's approval, a teammate's answer, another node's end, a stage's end,
the end of all tasks below the waiting node (the id is its own), a timer, or the end of a day on
which the daily limit was reached (the id is its date)."""
TimerKind = Literal["wait", "stage", "trigger", "day", "ask", "snooze", "digest", "unowned"]
"""What a timer is for: a sleeping node, a stage's end, a trigger, the end of a day on which the
daily limit was reached, a request that ends, an item that comes back into the inbox, a notice of a
digest, a node that nobody has taken."""
ASKED_PERSON = "asked the human"
"""Begins the reason of a wait for a person."""
_KINDS = frozenset(get_args(WaitKind))
_ID = re.compile(r" \(node_[0-9a-z]+\)")


class Timer(NamedTuple):
    """A time at which something happens to a node, a stage, a trigger and so on."""

    kind: TimerKind
    subject: str
    """The id of what it is about; of a day, its date."""

    @property
    def id(self) -> str:
        return self.subject if self.kind == "wait" else f"{self.kind}:{self.subject}"


@dataclass(frozen=True, slots=True)
class WaitingOn:
    """One thing that a node waits for: the id of a question, a request, a node, a stage or a timer.

    `str()` gives the form that events hold, such as `node:node_01j9…`.
    """

    kind: WaitKind
    id: str

    def __str__(self) -> str:
        # Events have named a day as its timer from the beginning.
        return (
            str(WaitingOn("time", self.timer.id))
            if self.kind == "day"
            else f"{self.kind}:{self.id}"
        )

    @classmethod
    def parse(cls, text: str) -> "WaitingOn":
        """Read the form that `str()` writes; raise ValueError for anything else."""
        match text.split(":"):
            case ["time", "day", day]:
                return cls("day", day)
            case [kind, identity] if kind in _KINDS:
                return cls(cast(WaitKind, kind), identity)
            case _:
                raise ValueError(f"{text!r} names nothing that a node can wait for.")

    @property
    def is_for_person(self) -> bool:
        """Whether only a person can end this wait."""
        return self.kind in ("answer", "approval")

    @property
    def timer(self) -> Timer:
        """The timer that ends this wait for a time."""
        return Timer("day" if self.kind == "day" else "wait", self.id)


def told_person(reason: str) -> str:
    """Return the reason of a wait for a person. It is written for agents: with ids behind the
    titles of work, and with the person as "the human"."""
    is_asked = reason.startswith(ASKED_PERSON)
    words = f"asked you{reason.removeprefix(ASKED_PERSON)}" if is_asked else reason
    return _ID.sub("", words)


Source = Literal["user", "delegation", "trigger", "self", "system"]
"""Who asked for the work. Every node has exactly one reason to exist."""


IfUnmet = Literal["fail", "skip", "go_on", "ask"]
"""What happens to a node when one of its dependencies did not succeed."""


JobState = Literal["running", "waiting", "queued", "done", "partial", "failed", "cancelled"]
"""The status of a node in the words of a list of jobs."""


HeldBy = Literal[
    "all_stopped",
    "team_paused",
    "team_stopped",
    "budget",
    "dependencies",
    "decision",
    "nobody_free",
]
"""What keeps a node from starting: all work is stopped, its team is paused or stopped, the budget
that pays for it is used up, it needs other nodes, one of these did not succeed and somebody has to
decide, or the team has nobody for it."""


class Queue(NamedTuple):
    """The nodes that are assigned to an agent in one lane."""

    agent_id: AgentId
    lane: Lane = "work"

    @property
    def key(self) -> str:
        """The queue's name in messages between processes."""
        return self.agent_id if self.lane == "work" else f"{self.agent_id}/{self.lane}"

    @classmethod
    def of(cls, key: str) -> "Queue":
        agent_id, _, lane = key.partition("/")
        return cls(AgentId(agent_id), cast(Lane, lane or "work"))


ANSWER = "answer"
"""The acceptance line of a goal that only asks a question: a summary that answers it is enough."""
RESULT_FILE = "_result.md"
"""The file in a node's folder that holds a result too long for a message."""

Halt = Literal["cancel", "pause"]
"""What a person may request of running work; obeyed at the next yield point."""


LineKind = Literal["file", "ran", "judged"]
"""What proves an acceptance line: a file, a command that was run, or somebody's judgement."""


Reached = Literal["yes", "partly", "no"]
"""What the agent says of its own work when it ends it."""


class Line(NamedTuple):
    """An acceptance line; without a kind, evidence of any kind may be given for it."""

    text: str
    kind: LineKind | None = None


class NodeStatus(StrEnum):
    PENDING = "pending"  # nobody owns it yet, or a dependency is open
    ASSIGNED = "assigned"  # in its assignee's queue
    RUNNING = "running"  # leased by a runner
    WAITING = "waiting"  # parked on a person, another node or a time
    COMPLETED = "completed"
    PARTIAL = "partial"  # a limit or a loop ended it with something to show, or its agent said so
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        return self in _ENDED


S = NodeStatus
MOVES: dict[NodeStatus, frozenset[NodeStatus]] = {
    S.PENDING: frozenset({S.ASSIGNED, S.FAILED, S.CANCELLED}),
    S.ASSIGNED: frozenset({S.PENDING, S.RUNNING, S.CANCELLED}),
    S.RUNNING: frozenset({S.ASSIGNED, S.WAITING, S.COMPLETED, S.PARTIAL, S.FAILED, S.CANCELLED}),
    S.WAITING: frozenset({S.ASSIGNED, S.CANCELLED}),
    S.COMPLETED: frozenset(),
    S.PARTIAL: frozenset({S.ASSIGNED}),
    S.FAILED: frozenset({S.ASSIGNED}),
    S.CANCELLED: frozenset({S.PENDING, S.ASSIGNED}),  # a person starts it again
}
"""From which status a node may go to which. Every change of status is checked against it."""
_ENDED = frozenset({S.COMPLETED, S.PARTIAL, S.FAILED, S.CANCELLED})
"""A person may start the last three again."""


class StopReason(StrEnum):
    """Why a node ended, as a value that programs can act on."""

    PUBLISHED = "published"
    FINISHED = "finished"
    ACCEPTED = "accepted"  # a review that found the result good
    SENT_BACK = "sent_back"  # a review that found faults
    ANSWERED = "answered"  # in plain text, without publish or finish
    PARTLY_REACHED = "partly_reached"  # by the agent's own word, when it ended the work
    NOT_REACHED = "not_reached"  # the same
    NOTHING_TO_DO = "nothing_to_do"  # woken by a trigger, and found nothing
    TURNS_SPENT = "turns_spent"
    TOKENS_SPENT = "tokens_spent"
    MONEY_SPENT = "money_spent"
    CALLS_SPENT = "calls_spent"
    TIME_SPENT = "time_spent"
    LOOPING = "looping"
    SILENT = "silent"
    CANCELLED = "cancelled"
    UNMET = "unmet"  # something it needed did not succeed
    SKIPPED = "skipped"  # the same, and it may be left out
    NO_RESULT = "no_result"  # a program that ended without a result
    MODEL_REFUSED = "model_refused"  # delegated work whose provider has no such model, key or money
    BROKEN = "broken"  # an error in the runtime, logged with its traceback

    @property
    def is_limit(self) -> bool:
        """Whether a limit was used up. More of it lets the node go on."""
        return self in _LIMITS

    @property
    def is_cut_off(self) -> bool:
        """Whether the node was ended before its agent was done: by a limit or a loop.

        Such a node is partial if it has something to show, else failed.
        """
        return self.is_limit or self is StopReason.LOOPING

    @property
    def words(self) -> str:
        """The reason as a person reads it, such as *its turns are used up*."""
        return _WORDS[self]


_LIMITS = frozenset(
    {
        StopReason.TURNS_SPENT,
        StopReason.TOKENS_SPENT,
        StopReason.MONEY_SPENT,
        StopReason.CALLS_SPENT,
        StopReason.TIME_SPENT,
    }
)
_WORDS = {
    StopReason.PUBLISHED: "it submitted its result",
    StopReason.FINISHED: "it finished",
    StopReason.PARTLY_REACHED: "its agent reached it only in part",
    StopReason.NOT_REACHED: "its agent did not reach it",
    StopReason.ACCEPTED: "it accepted the result",
    StopReason.SENT_BACK: "it found faults",
    StopReason.ANSWERED: "it answered in words",
    StopReason.NOTHING_TO_DO: "there was nothing to do",
    StopReason.TURNS_SPENT: "its turns are used up",
    StopReason.TOKENS_SPENT: "its tokens are used up",
    StopReason.MONEY_SPENT: "its money is used up",
    StopReason.CALLS_SPENT: "its model calls are used up",
    StopReason.TIME_SPENT: "its time is used up",
    StopReason.LOOPING: "it went in a loop",
    StopReason.SILENT: "it stopped answering",
    StopReason.CANCELLED: "it was cancelled",
    StopReason.UNMET: "something it needs did not succeed",
    StopReason.SKIPPED: "something it needs did not succeed",
    StopReason.NO_RESULT: "it ended without a result",
    StopReason.MODEL_REFUSED: "its model cannot be used",
    StopReason.BROKEN: "an error in agiraph itself",
}


GOAL_TURNS = 500
GOAL_SECONDS = 24 * 3600.0
"""The time limit of a finite goal for which none is chosen."""
UNPRICED_TOKENS = 5_000_000
"""The token limit of a goal whose model has no known price, if none is chosen: no limit on money
would end it."""


@value
class Budget:
    """What a node may spend. None: no limit but its parent's."""

    turns: int = 100
    tokens: int | None = None
    usd: float | None = None
    model_calls: int | None = None
    """Counts this node and all below it, as tokens and usd do."""
    seconds: float | None = None
    calls: dict[str, int] = field(default_factory=dict[str, int])
    given: dict[str, float] = field(default_factory=dict[str, float])
    """Limits as they were first chosen, by name. No default lowers a limit that is listed here,
    and a retry grants the listed amount again."""
    chosen: dict[str, float] | None = None
    """Limits that a person has set since, by name. A retry or an extension changes none of them.
    None: not known, because an earlier release stored the goal."""

    @property
    def first_turns(self) -> float:
        """The turns that the node was created with; retries do not change that."""
        return self.given.get("turns", self.turns)

    @property
    def closing_turns(self) -> int:
        """Turns that another attempt needs besides: a node of one turn has none left to close."""
        return int(self.first_turns == 1)

    def kind_of(self, kind: WorkKind) -> WorkKind:
        """Return the kind of work with this budget: a task of one turn is one reply."""
        return SINGLE_ANSWER if kind is TASK and self.first_turns == 1 else kind


@value
class Extension:
    """How much more of its limits a node is given; 0: as before."""

    turns: int = 0
    """Also added to its limit on model calls, if it has one."""
    tokens: int = 0
    usd: float = 0.0
    seconds: float = 0.0


AMOUNTS = ("turns", "tokens", "usd", "seconds")
"""The limits that a person can change. Both `Budget` and `Extension` have a field for each."""


MOST_TOKENS = 10**8
"""More tokens than any call takes: a higher count is an error of the vendor."""
MOST_USD = 10**6

_INT = frozenset({int})
_counts_of: Callable[["Usage"], tuple[object, ...]] = attrgetter(
    "input_tokens", "cached_tokens", "cache_write_tokens",
    "output_tokens", "thinking_tokens", "searches",
)  # fmt: skip


@value
class Usage:
    """What a model call used. An unknown price is None and adds no money."""

    input_tokens: int = 0
    output_tokens: int = 0
    """Thoughts are among them."""
    cached_tokens: int = 0
    """The input tokens that the vendor read from its cache."""
    usd: float | None = None
    cache_write_tokens: int = 0
    """The input tokens that the vendor wrote to its cache, if it charges for that."""
    thinking_tokens: int = 0
    """The output tokens spent on thinking; 0 if the vendor does not report it."""
    searches: int = 0
    """Web searches that the vendor made for the reply, and charges for."""
    is_estimated: bool = False
    """Whether the tokens were estimated from the length of the texts, because the vendor reported
    none or impossible ones."""

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def bounded(self) -> "Usage":
        """Return the usage with every number in its valid range, whatever the vendor reported.

        A token count that is not a number becomes 0, one that is too high MOST_TOKENS.
        """
        counts = _counts_of(self)
        if self._is_bounded(counts):  # as nearly all are
            return self
        tokens, cached, cache_written, written, thinking, searches = [
            min(max(count, 0), MOST_TOKENS) if isinstance(count, int) else 0  # pyright: ignore[reportUnnecessaryIsInstance]
            for count in counts
        ]
        cached, usd = min(cached, tokens), self.usd
        return Usage(
            input_tokens=tokens,
            output_tokens=written,
            cached_tokens=cached,
            usd=usd if isinstance(usd, (int, float)) and 0 <= usd <= MOST_USD else None,
            cache_write_tokens=min(cache_written, tokens - cached),
            thinking_tokens=min(thinking, written),
            searches=searches,
            is_estimated=self.is_estimated is True,
        )

    def priced(self, usd: float | None) -> "Usage":
        """Return the usage with this price."""
        return Usage(
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            cached_tokens=self.cached_tokens,
            usd=usd,
            cache_write_tokens=self.cache_write_tokens,
            thinking_tokens=self.thinking_tokens,
            searches=self.searches,
            is_estimated=self.is_estimated,
        )

    def _is_bounded(self, counts: tuple[object, ...]) -> bool:
        return (
            _INT.issuperset(map(type, counts))
            and min(cast(tuple[int, ...], counts)) >= 0
            and self.cached_tokens + self.cache_write_tokens <= self.input_tokens <= MOST_TOKENS
            and self.thinking_tokens <= self.output_tokens <= MOST_TOKENS
            and self.searches <= MOST_TOKENS
            and (self.usd is None or (type(self.usd) is float and 0 <= self.usd <= MOST_USD))
            and type(self.is_estimated) is bool
        )

    def __add__(self, other: "Usage") -> "Usage":
        priced = [u for u in (self.usd, other.usd) if u is not None]
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            usd=sum(priced) if priced else None,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
            thinking_tokens=self.thinking_tokens + other.thinking_tokens,
            searches=self.searches + other.searches,
            is_estimated=self.is_estimated or other.is_estimated,
        )


def is_answer(line: str) -> bool:
    """Whether an acceptance line says that an answer is all that is asked for."""
    return line.strip().rstrip(".").lower() == ANSWER


@value
class WorkNode:
    """One piece of work. An agent's queue is the list of nodes assigned to it."""

    id: NodeId
    team_id: TeamId
    task: str
    source: Source
    created_at: datetime
    kind: WorkKind = TASK
    lane: Lane = "work"
    """That of its kind, for queries."""
    is_step: bool = False
    """As its kind says, for queries."""
    status: NodeStatus = NodeStatus.PENDING
    title: str = ""
    creator_id: str
    """A person, an agent, or the runtime."""
    assignee_id: AgentId | None = None
    parent_id: NodeId | None = None
    payer_id: NodeId | None = None
    """The node that pays for this one if it has no parent: the node that caused it."""
    stage_id: StageId | None = None
    trigger_id: TriggerId | None = None
    thread_id: ThreadId | None = None
    """Its thread; a node that resumes another one continues in that one's thread."""
    reviews_call: str | None = None
    """The call of its parent node that submitted the result it judges."""
    address: str | None = None
    """Of a reader: the page whose links it reads."""
    asked_of: AgentId | None = None
    """Of research: the agent that was asked; its conversation gets the summary."""
    label: Label = CLEAN
    """The sources outside the team that words of its task came from."""
    depth: int = 0
    """How many ancestors it has."""
    hops: int = 0
    """How many agent-to-agent messages in a row led to it; a limit ends endless exchanges."""
    needs_tools: tuple[str, ...] = ()
    if_unmet: IfUnmet = "fail"
    refs: dict[str, str] = field(default_factory=dict[str, str])
    acceptance: tuple[str, ...] = ()
    """What done means, one statement a line."""
    line_kinds: dict[str, LineKind] = field(default_factory=dict[str, LineKind])
    """Of lines that carry a kind: what proves them."""
    given_lines: int = 0
    """How many of the lines, from the first on, its agent may not change: a person gave them."""
    budget: Budget = Budget()
    effort: Effort | None = None
    """How much its agent's model thinks; None: as for the agent."""
    attempt: int = 0
    crashes: int = 0
    """How many runs crashed at the step that it is at now."""
    owner: str | None = None
    """The process that claimed it; only meaningful while it is running."""
    cancel_requested: bool = False
    canceller_id: str | None = None
    """The person or agent that has stopped it; None: the runtime, or nobody."""
    cancel_asked_at: datetime | None = None
    """When it was to stop. What was stopped with it below it ended at that time or later."""
    given_up: str | None = None
    """Why the agent that gave the task away has given it up; None: it has not."""
    waiting_reason: str | None = None
    stop_reason: StopReason | None = None
    checkpoint: str | None = None
    """The state of the work in its agent's words; a successor starts from it."""
    result: str | None = None
    manifest: dict[str, str] = field(default_factory=dict[str, str])
    doubts: tuple[Doubt, ...] = ()
    """What the runtime could not verify about its result."""
    stalled_at: datetime | None = None
    """When it was reported as stalled; None while it makes progress."""
    started_at: datetime | None = None
    claimed_at: datetime | None = None
    worked_seconds: float = 0.0
    """Seconds of work before its last claim; waiting does not count."""
    ended_at: datetime | None = None

    @property
    def is_goal(self) -> bool:
        """Whether this is the root node of its team's goal."""
        return self.source == "system" and self.parent_id is None

    @property
    def is_work(self) -> bool:
        """Whether it is a piece of the team's work, as boards show it: no reply, no reflection."""
        return self.lane == "work"

    @property
    def lines_to_prove(self) -> tuple[str, ...]:
        """The acceptance lines that need evidence; the line ANSWER needs none."""
        return tuple(line for line in self.acceptance if not is_answer(line))

    def moved(self, to: NodeStatus, **changes: Any) -> "WorkNode":
        """Return a copy in this status; `IllegalMove` if MOVES forbids it."""
        if to not in MOVES[self.status]:
            raise IllegalMove(self.id, self.status, to)
        return changed(self, status=to, **changes)
