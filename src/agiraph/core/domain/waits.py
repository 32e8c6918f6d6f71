"""Waits: what a parked node waits for."""

import re
from typing import Literal, NamedTuple, cast, get_args

from agiraph.core.domain.value import dataclass

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
