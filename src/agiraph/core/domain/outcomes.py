"""Outcomes: how a tool call ends, and how a run of a node ends."""

from collections.abc import Awaitable, Callable
from dataclasses import field
from typing import Any

from agiraph.core.domain.errors import Refused
from agiraph.core.domain.ids import MessageId
from agiraph.core.domain.provenance.labels import CLEAN, Label
from agiraph.core.domain.records.acts import Act
from agiraph.core.domain.records.doubts import Doubt
from agiraph.core.domain.value import dataclass, record
from agiraph.core.domain.work import Budget, StopReason, WaitingOn


@record
class Done:
    """The call has its answer. With an outcome, the answer also ends the node."""

    text: str
    outcome: "Finished | None" = None
    failed: bool = False
    """Whether the model is told that its call failed."""
    sends_back: bool = False
    """Whether it sends a result back, which happens once for an attempt."""
    exit_code: int | None = None
    """Of a command that ended by itself."""
    is_repeated: bool = False
    """Whether it only says that an earlier answer still holds."""
    is_held_back: bool = False
    """Whether the call was not made because a message came first."""
    reminds_of: MessageId | None = None
    """The question that the agent must answer before it may wait."""
    label: Label = CLEAN
    """The sources outside the team that some of its words came from."""
    did: Act | None = None
    """What the call did for the person whom a reply answers; the reply states it."""
    is_fenced: bool = False
    """Whether the tool has fenced the words of others itself; else the runtime fences all of a
    labelled answer."""

    @property
    def details(self) -> dict[str, Any]:
        """What the turn that holds the answer keeps of it, besides its text."""
        # Most answers have none of them.
        found: dict[str, Any] = {}
        if self.failed:
            found["failed"] = True
        if self.sends_back:
            found["sends_back"] = True
        if self.exit_code is not None:
            found["exit_code"] = self.exit_code
        if self.is_repeated:
            found["is_repeated"] = True
        if self.is_held_back:
            found["is_held_back"] = True
        if self.reminds_of is not None:
            found["reminds_of"] = self.reminds_of
        if self.label:
            found["label"] = self.label
        if self.did is not None:
            found["did"] = self.did
        return found


@dataclass(frozen=True, slots=True)
class Pending:
    """The call stays open until its wait is settled (`services/board/waiting.py`)."""

    waiting_on: WaitingOn
    reason: str = ""
    seconds: float | None = None
    """The longest wait; None: no limit."""
    if_late: str = ""
    """The call's answer when that time is over."""
    or_on: tuple[WaitingOn, ...] = ()
    """Other things that end the wait, too: the first of them that ends answers the call."""


@dataclass(frozen=True, slots=True)
class InTransaction:
    """The tool has done its slow part; `act` is the rest, which runs in one database transaction.

    The rows that `act` writes and the answer it returns are committed together.
    """

    act: "Callable[[Any], Done | Pending]"
    if_refused: "Callable[[Refused], Awaitable[Done | Pending]]"
    """Returns the answer if the transaction is refused; it has changed nothing then."""


Answer = Done | Pending


@dataclass(frozen=True, slots=True)
class Finished:
    """The node reached its end."""

    result: str
    reason: StopReason = StopReason.FINISHED
    manifest: dict[str, str] = field(default_factory=dict[str, str])
    doubts: tuple[Doubt, ...] = ()
    """What could not be verified about the result."""


@dataclass(frozen=True, slots=True)
class Parked:
    """The node waits and costs nothing."""

    waiting_on: tuple[WaitingOn, ...]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Failed:
    """The node ended without reaching its goal.

    With a reason that `is_cut_off` and something to show (a result, files, a checkpoint) it is
    stored as partial: code that returns a limit or a loop as the reason need not decide that.
    """

    reason: StopReason
    detail: str
    result: str | None = None
    """What the agent has so far, in its own words."""
    manifest: dict[str, str] = field(default_factory=dict[str, str])
    under: Budget | None = None
    """The limits that the run knew. If the node has others by now, it goes on instead."""


Outcome = Finished | Parked | Failed
