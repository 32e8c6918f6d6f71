"""Context: what a tool may know of the run it is called in."""

from collections import Counter
from dataclasses import dataclass, field

from agiraph.domain.chat import Lease, Transcript, Turn
from agiraph.domain.people import Agent, Team
from agiraph.domain.time import Clock
from agiraph.domain.work import Usage, WorkNode
from agiraph.home.layout import Home
from agiraph.home.scopes import Scope
from agiraph.store.database import Store


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
            self.calls.update(call.name for call in turn.calls)


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
    waiting: dict[str, str] = field(default_factory=dict[str, str])
    """Calls of this thread that were parked before this run began, and on what."""
    calling: str = ""
    """The id of the call under way; an agent does one thing at a time."""
    tally: Tally = field(default_factory=Tally)

    def heard(self, *turns: Turn) -> None:
        """Turns that were just written."""
        self.transcript.add(*turns)
        for turn in turns:
            if turn.node_id == self.node.id:
                self.tally.add(turn)
