"""Outcomes: how a tool call ends, and how a run of a node ends."""

from dataclasses import dataclass, field

from agiraph.domain.waits import WaitingOn
from agiraph.domain.work import StopReason


@dataclass(frozen=True, slots=True)
class Done:
    """The call has its answer. With an outcome, it also ends the node."""

    text: str
    outcome: "Finished | None" = None
    failed: bool = False
    """Told to the model as an error of its call."""
    tainted_by: str | None = None
    """Where its words came from, if nobody on the team vouches for them."""


@dataclass(frozen=True, slots=True)
class Pending:
    """The call stays open until somebody settles what it waits for."""

    waiting_on: WaitingOn
    reason: str = ""
    seconds: float | None = None
    """How long it waits at most; None: as long as it takes."""
    if_late: str = ""
    """The call's answer when that time is over."""


Answer = Done | Pending


@dataclass(frozen=True, slots=True)
class Finished:
    """The node reached its end."""

    result: str
    reason: StopReason = StopReason.FINISHED
    manifest: dict[str, str] = field(default_factory=dict[str, str])
    doubts: str | None = None
    """What could not be confirmed of it."""


@dataclass(frozen=True, slots=True)
class Parked:
    """The node waits and costs nothing."""

    waiting_on: tuple[WaitingOn, ...]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Failed:
    """The node ended without reaching its goal; what there is of a result is kept."""

    reason: StopReason
    detail: str
    result: str | None = None
    manifest: dict[str, str] = field(default_factory=dict[str, str])


Outcome = Finished | Parked | Failed
