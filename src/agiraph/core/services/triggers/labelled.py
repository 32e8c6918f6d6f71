"""Labelled triggers: bound what an agent schedules for itself after it has read untrusted text.

Untrusted text may be behind such a trigger. Without a person's word it fires a few times, with
an hour between two firings, and ends after a week; its task stays labelled and in a fence.
"""

from datetime import datetime, timedelta
from typing import Any

from agiraph.core.domain.ids import AgentId
from agiraph.core.domain.triggers import LEAST_APART, Trigger
from agiraph.core.services.triggers.kinds import registry
from agiraph.core.services.triggers.kinds.base import Kind
from agiraph.core.store import triggers
from agiraph.core.store.tx import Tx

MAX_OPEN = 3
"""Labelled triggers of one agent that may be active or paused at a time."""
MAX_FIRES = 10
LONGEST = timedelta(days=7)
"""How long after its creation a labelled trigger may fire."""
WITHIN = (
    f"at most {MAX_OPEN} at a time, an hour apart, {MAX_FIRES} firings each, for "
    f"{LONGEST.days} days"
)


def excess(tx: Tx, agent_id: AgentId, type: str, config: dict[str, Any]) -> str | None:
    """Return which limit this trigger of the agent would exceed, as a clause; None if none.

    The caller holds the agent's row lock if the trigger is created in the same transaction.
    """
    kind = registry.kind_named(type)
    read = kind.read(slowed(kind, config))
    count = triggers.count_labelled(tx, agent_id)
    if count >= MAX_OPEN:
        return f"{count} triggers like it are open already"
    if kind.repeats_after_s(read, tx.now) < LEAST_APART.total_seconds():
        return "it would fire more often than once an hour"
    due = kind.first_due(read, tx.now)
    if due is not None and due > tx.now + LONGEST:
        return f"it would fire more than {LONGEST.days} days from now"
    if due is not None and (near := _too_near(tx, agent_id, due)) is not None:
        return f"it would fire within an hour of {near:%Y-%m-%d %H:%M} UTC, as another one"
    return None


def slowed(kind: Kind[Any], config: dict[str, Any]) -> dict[str, Any]:
    """Return the configuration with an hour or more between two firings, if the kind can wait."""
    return kind.slowed(config, LEAST_APART.total_seconds())


def bounds(tx: Tx, columns: dict[str, Any]) -> dict[str, Any]:
    """Return the columns that bound a labelled trigger, from those of its configuration."""
    max_fires, until, end = columns["max_fires"], columns["until"], tx.now + LONGEST
    return {
        "max_fires": MAX_FIRES if max_fires is None else min(max_fires, MAX_FIRES),
        "until": end if until is None else min(until, end),
        # `all` would fire the missed slots in a row.
        "misfire": "once",
        "overlap": "skip",
    }


def describe_bounds(trigger: Trigger, sources: str) -> str:
    """Return a sentence that tells the agent how far its trigger goes without a person's word."""
    if registry.kind_of(trigger).fires_once:
        return ""
    until = "" if trigger.until is None else f" and ends on {trigger.until:%Y-%m-%d %H:%M} UTC"
    times = "once" if trigger.max_fires == 1 else f"{trigger.max_fires} times"
    return (
        f" Because this thread holds words from {sources}, it fires at most {times}, with an hour "
        f"or more in between,{until}; set it up again then if it is still needed."
    )


def _too_near(tx: Tx, agent_id: AgentId, due: datetime) -> datetime | None:
    """Return a firing of a labelled trigger of this agent, past or due, that is too near."""
    moments = triggers.labelled_moments(tx, agent_id)
    return next((moment for moment in moments if abs(due - moment) < LEAST_APART), None)
