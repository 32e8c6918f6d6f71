"""Phases: what a node's time goes into, and the moments that a timeline marks."""

from typing import Literal

Phase = Literal[
    "queued",
    "model",
    "tool",
    "program",
    "person",
    "child",
    "teammate",
    "timer",
    "provider",
    "budget",
    "interrupted",
    "other",
]
"""What a node's time went into. `person`, `child`, `teammate`, `timer`, `provider` and `budget` are
waits: for a person, for other work, for a teammate's answer, for a time, for a model that cannot
be reached, for the next day's money. `interrupted` lasts from the last step before a crash until
the work is taken up again; `other` is time of the runtime itself."""
WORK_PHASES: frozenset[Phase] = frozenset(("model", "tool", "program", "other"))
TickKind = Literal["tool", "message", "question", "answer", "failure"]
