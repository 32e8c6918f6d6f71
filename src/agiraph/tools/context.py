"""Context: what a tool may know of the run it is called in."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from agiraph.domain.agents import Agent, Specialist, Team
from agiraph.domain.chat import Lease, ToolCall, Transcript, Turn
from agiraph.domain.outcomes import Done
from agiraph.domain.time import Clock
from agiraph.domain.waits import WaitingOn
from agiraph.domain.work import Usage, WorkNode
from agiraph.home.layout import Home
from agiraph.home.sandbox import CommandRules
from agiraph.home.scopes import Scope
from agiraph.services.board.budgets import Envelope
from agiraph.store.database import Store
from agiraph.store.rows import to_text
from agiraph.web.access import Web


@dataclass(slots=True)
class Tally:
    """What this node has used so far, kept while turns are added and never counted again."""

    turns: int = 0
    usage: Usage = Usage()
    calls: Counter[str] = field(default_factory=Counter[str])

    def add(self, turn: Turn) -> None:
        if turn.role == "assistant":
            self.turns += 1
            self.usage = self.usage + turn.usage
            for call in turn.calls:
                self.calls[call.name] += 1


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
    transcript: Transcript
    paid_from: tuple[Envelope, ...] = ()
    """The envelopes its calls to models are paid from, outermost first."""
    deadline: datetime | None = None
    """When the time limit of this node, or of one above it, is reached."""
    waiting: dict[str, WaitingOn] = field(default_factory=dict[str, WaitingOn])
    """Calls of this thread that were parked before this run began, and on what."""
    specialists: Mapping[str, Specialist] = field(default_factory=dict[str, Specialist])
    """Who can be hired by name."""
    check_model: Callable[[str], object] = lambda name: None
    """Raises what is wrong with a model's name, if anything is."""
    known_tools: frozenset[str] = frozenset()
    """Every tool there is, whoever may call it."""
    calling: str = ""
    """The id of the call under way; an agent does one thing at a time."""
    is_vouched_for: bool = False
    """Whether a person has allowed the call under way, by a rule or by their word."""
    web: Web = field(default_factory=Web)
    command_rules: CommandRules = CommandRules()
    """What holds for every command."""
    tally: Tally = field(default_factory=Tally)

    answered: list[tuple[ToolCall, Done]] = field(default_factory=list[tuple[ToolCall, Done]])
    """Answers that go with the next write, which comes before anything else can happen."""

    @property
    def seconds_left(self) -> float | None:
        """How long this run may still take; None if nothing limits it."""
        if self.deadline is None:
            return None
        return max((self.deadline - self.clock.now()).total_seconds(), 0.0)

    @property
    def tainted_by(self) -> str | None:
        """Where words in this thread came from that nobody on the team vouches for."""
        return self.transcript.tainted_by

    def leave(self, call: ToolCall, answer: Done) -> None:
        """Let an answer be written with whatever is written next: one commit instead of two."""
        if (kept := to_text(answer.text)) != answer.text:
            answer = replace(answer, text=kept)  # shown as it is kept
        self.answered.append((call, answer))
        self.heard(
            Turn(
                thread_id=self.lease.thread_id,
                seq=self.transcript.head + 1,
                node_id=self.node.id,
                role="tool",
                ref=call.id,
                text=answer.text,
                at=self.clock.now(),
                failed=answer.failed,
                tainted_by=answer.tainted_by,
            )
        )

    def take_answered(self) -> list[tuple[ToolCall, Done]]:
        taken, self.answered = self.answered, []
        return taken

    def heard(self, *turns: Turn) -> None:
        """Turns that were written, or are with the next write."""
        self.transcript.add(*turns)
        for turn in turns:
            if turn.node_id == self.node.id:
                self.tally.add(turn)
