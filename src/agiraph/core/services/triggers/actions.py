"""Actions: what triggers do that a feature brings. The core's own actions are in `firing`."""

from collections.abc import Mapping
from typing import Any, Protocol

from agiraph.core.domain.agents import Agent, Specialist
from agiraph.core.domain.errors import Refused
from agiraph.core.domain.features import found_at, installed
from agiraph.core.domain.triggers import Trigger
from agiraph.core.domain.work import WorkNode
from agiraph.core.services.mail.bus import TEXT_LIMIT
from agiraph.core.store.tx import Tx


class Action(Protocol):
    guidance: str
    """An example of the action as JSON, and what it does, for the `schedule` tool."""

    def check(self, payload: dict[str, Any]) -> None:
        """Raise `Refused` if the payload is not one of this action."""
        ...

    def complete(self, payload: dict[str, Any], known: Mapping[str, Specialist]) -> dict[str, Any]:
        """Return the payload of a new trigger with what a firing cannot look up: it cannot read the
        specialists' files."""
        ...

    def start(self, tx: Tx, agent: Agent, trigger: Trigger) -> WorkNode:
        """Start the work of one firing."""
        ...


def brought() -> dict[str, Action]:
    """Return the actions that features bring, by their names."""
    return {n: found_at(p) for feature in installed() for n, p in feature.actions.items()}


def text(value: object, name: str, *, may_be_empty: bool = False) -> str:
    """Return a text of a payload; raise `Refused` if it is none, or too long."""
    if not isinstance(value, str) or not (value.strip() or may_be_empty):
        raise Refused(f"action: {name!r} must be given, as text.")
    if len(value) > TEXT_LIMIT:
        raise Refused(f"action: {name!r} holds {TEXT_LIMIT:,} characters; put it into a file.")
    return value
