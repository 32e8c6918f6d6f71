"""Run context: everything one run of one node knows, handed to its tools, policies and steps."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from datetime import datetime, timedelta

from agiraph.core.domain.agents import Agent, Specialist, Team
from agiraph.core.domain.chat import Lease, ToolCall, Transcript, Turn
from agiraph.core.domain.outcomes import Done
from agiraph.core.domain.provenance.labels import CLEAN, Label
from agiraph.core.domain.records.skills import Skill
from agiraph.core.domain.times.time import Clock
from agiraph.core.domain.tools import ToolProperties
from agiraph.core.domain.value import dataclass
from agiraph.core.domain.work import Usage, WaitingOn, WorkNode
from agiraph.core.home.layout import Home
from agiraph.core.home.scopes import Scope
from agiraph.core.services.board.budgets import Envelope, LimitsOfRun
from agiraph.core.store.database import Store
from agiraph.core.store.rows import to_text
from agiraph.sandbox.levels import CommandRules
from agiraph.web import links
from agiraph.web.access import Web


@dataclass(slots=True)
class Consumption:
    """What a node has consumed so far. It is updated with each turn, so nothing is recounted."""

    turns: int = 0
    usage: Usage = Usage()
    calls: Counter[str] = field(default_factory=Counter[str])
    """Calls that the model asked for, by the tool's name, without those that failed: a search
    engine that does not answer and a dead link use up nothing."""
    names: dict[str, str] = field(default_factory=dict[str, str])
    """The tool's name of each call, by the call's id."""

    def add(self, turn: Turn) -> None:
        """Count a turn of the model; other turns cost nothing. A failed call is given back."""
        if turn.role == "assistant":
            self.turns += 1
            self.usage = self.usage + turn.usage
            for call in turn.calls:
                self.calls[call.name] += 1
                self.names[call.id] = call.name
        elif turn.role == "tool" and turn.failed and turn.ref in self.names:
            self.calls[self.names.pop(turn.ref)] -= 1


@dataclass(slots=True, kw_only=True)
class RunContext:
    """One run of one node by one agent."""

    store: Store
    home: Home
    clock: Clock
    team: Team
    agent: Agent
    node: WorkNode
    lease: Lease
    scope: Scope
    """Which files of the team the agent may read and write."""
    transcript: Transcript
    envelopes: tuple[Envelope, ...] = ()
    """The budgets that this run's model calls are charged to, outermost first."""
    deadline: datetime | None = None
    """The earliest time limit of this node and the nodes above it."""
    outermost_budget: str | None = None
    """The budget of the outermost node that pays for this one, as it was stored when the limits
    were read: another text at a yield point means that they have changed."""
    parked_calls: dict[str, WaitingOn] = field(default_factory=dict[str, WaitingOn])
    """Calls that an earlier run parked: call id to what the call waits for."""
    specialists: Mapping[str, Specialist] = field(default_factory=dict[str, Specialist])
    """Specialists that can be hired, by name."""
    check_model: Callable[[str], object] = lambda name: None
    """Raises an error that says what is wrong with a model's name."""
    known_tools: Mapping[str, ToolProperties] = field(default_factory=dict[str, ToolProperties])
    """All tools of this installation by name, whether or not this agent may call them."""
    current_call_id: str = ""
    """The id of the tool call under way; a run makes one call at a time."""
    trusted: frozenset[str] = frozenset()
    """Sources that a person trusts: their words do not label a thread."""
    label_before_call: Label = CLEAN
    """The thread's label when the call under way began. Its intent may have added to it since."""
    is_confirmed: bool = False
    """Whether a person has allowed the call under way, by a rule or by their word."""
    window: int = 0
    """Tokens that a request to the agent's model may have; 0 if it is not known."""
    skills: tuple[Skill, ...] = ()
    """Skills that a person has enabled for this team, by name."""
    web: Web = field(default_factory=Web)
    command_rules: CommandRules = field(default_factory=CommandRules)
    """How every shell command is confined and limited."""
    consumed: Consumption = field(default_factory=Consumption)

    has_word: bool = False
    """Whether a person's message to the agent waited for a yield point at the last write."""
    deferred_answers: list[tuple[ToolCall, Turn]] = field(
        default_factory=list[tuple[ToolCall, Turn]]
    )
    """Tool answers that the next write commits. The runtime writes before the next model call and
    before the next tool call, so a crash loses at most one answer; `Steps.recover` then resolves
    that call by the tool's effect."""

    @property
    def seconds_left(self) -> float | None:
        """Return the seconds that this run may still take; None without a time limit."""
        if self.deadline is None:
            return None
        return max((self.deadline - self.clock.now()).total_seconds(), 0.0)

    @property
    def label(self) -> Label:
        """Return the label of this thread: the sources of all that stands in it, but for those
        that a person trusts. Of a program also the sources of its command."""
        if not self.transcript.label.sources and not self.agent.label.sources:
            return CLEAN
        return (self.transcript.label | self.agent.label).without(self.trusted)

    def describe(self, label: Label) -> str:
        """Name the sources of a label for this thread's prompt.

        A stranger chooses the name of a host. So a host is named only if the settings or a person
        named it: in the goal, or in clean words that the thread was given.
        """
        turns = self.transcript.turns
        said = [turn.text for turn in turns if turn.role == "user" and not turn.label]
        named = [source.partition(":")[2] for source in label.sources]
        known = {
            host
            for host in named
            if self.web.reading_hosts.names(host)
            or any(host in links.hosts_in(text) for text in (self.team.goal, *said))
        }
        return label.describe(known)

    def take_limits(self, limits: LimitsOfRun) -> bool:
        """Keep to these limits from now on; return whether they leave more room than before."""
        budget, deadline = self.node.budget, self.deadline
        self.node = replace(self.node, budget=limits.budget)
        self.envelopes, self.deadline = limits.envelopes, limits.deadline
        self.outermost_budget = limits.outermost
        if limits.deadline is None or deadline is None:
            return limits.budget != budget or deadline is not None
        # Two readings of the same limit differ by the time between them.
        return limits.budget != budget or limits.deadline - deadline > timedelta(seconds=1)

    def defer_answer(self, call: ToolCall, answer: Done) -> None:
        """Add an answer to the transcript now and to the thread with the next write.

        This saves a commit for each tool call.
        """
        if (stored := to_text(answer.text)) != answer.text:
            # The model must see the same text after a restart, so it sees what the row can store.
            answer = replace(answer, text=stored)
        # The next write stores the deferred answers before anything else, in this order.
        turn = Turn(
            thread_id=self.lease.thread_id,
            seq=self.transcript.head + 1,
            node_id=self.node.id,
            role="tool",
            ref=call.id,
            text=answer.text,
            at=self.clock.now(),
            **answer.details,
        )
        self.deferred_answers.append((call, turn))
        self.add_turns(turn)

    def take_deferred_answers(self) -> list[tuple[ToolCall, Turn]]:
        """Return the answers for the write that follows, and forget them."""
        # Forgotten even if the write fails: the run then starts again from the thread, where the
        # calls have no answer, and `Steps.recover` settles them.
        taken, self.deferred_answers = self.deferred_answers, []
        return taken

    def add_turns(self, *turns: Turn) -> None:
        """Add turns to the transcript that are committed, or will be with the next write.

        A thread may go on from an earlier node; only this node's turns count as consumed.
        """
        self.transcript.add(*turns)
        for turn in turns:
            if turn.node_id == self.node.id:
                self.consumed.add(turn)
