"""Acts: what a reply did for a person besides its words, as the runtime states it."""

from collections.abc import Iterable
from datetime import datetime
from typing import Literal

from agiraph.core.domain.text.fence import one_line
from agiraph.core.domain.value import value

ActKind = Literal[
    "told", "started", "stopped", "answered", "reminder", "trigger", "remembered", "forgot"
]
WORDS = 300
"""Characters that a statement quotes."""


@value
class Act:
    """One thing that was done. It can be undone (`services/lifecycle/routing.py`)."""

    kind: ActKind
    about: str
    """The id of the work, question, trigger or memory."""
    name: str = ""
    """Who or what it was done to, as the person knows it."""
    words: str = ""
    """What was passed on, answered, promised or remembered."""
    undone_at: datetime | None = None


_SENTENCES: dict[ActKind, str] = {
    "told": "Told {name}: \u201c{words}\u201d",
    "started": "Started: {name}",
    "stopped": "Stopped: {name}",
    "answered": "Answered \u201c{name}\u201d with \u201c{words}\u201d",
    "reminder": "Reminder for {name}: {words}",
    "trigger": "Set up, {name}: {words}",
    "remembered": "Remembered: {words}",
    "forgot": "Forgot: {words}",
}


def describe(act: Act) -> str:
    """Return what was done, in a line."""
    name, words = _short(act.name), _short(act.words)
    said = _SENTENCES[act.kind].format(name=name, words=words)
    if act.kind == "stopped" and words:
        said += f". Dropped with it: {words}"
    return said if act.undone_at is None else f"{said} (undone)"


def as_text(acts: Iterable[Act]) -> str:
    """Return the lines that stand under a reply where there are no buttons."""
    return "\n".join(f"\u2192 {describe(act)}" for act in acts)


def _short(text: str) -> str:
    text = one_line(text)
    return text if len(text) <= WORDS else f"{text[:WORDS]}\u2026"
