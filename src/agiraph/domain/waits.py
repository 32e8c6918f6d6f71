"""Waits: what a parked node waits for."""

from dataclasses import dataclass
from typing import Literal, cast, get_args

WaitKind = Literal["answer", "approval", "reply", "node", "stage", "tasks", "time"]
"""A person's answer, a person's approval, a teammate's answer, another node's end, a stage's end,
the end of all tasks below the waiting node (the id is its own), or a timer."""
DAY = "day:"
"""Prefix of the ids of timers that end a day on which the daily limit was reached."""
_KINDS = frozenset(get_args(WaitKind))


@dataclass(frozen=True, slots=True)
class WaitingOn:
    """One thing that a node waits for: the id of a question, a request, a node, a stage or a timer.

    `str()` gives the form that rows and events hold, such as `node:node_01j9…`.
    """

    kind: WaitKind
    id: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.id}"

    @classmethod
    def parse(cls, text: str) -> "WaitingOn":
        """Read the form that `str()` writes; raise ValueError for anything else."""
        kind, colon, identity = text.partition(":")
        if not colon or kind not in _KINDS:
            raise ValueError(f"{text!r} names nothing that a node can wait for.")
        return cls(cast(WaitKind, kind), identity)

    @property
    def is_for_person(self) -> bool:
        """Whether only a person can end this wait."""
        return self.kind in ("answer", "approval")
