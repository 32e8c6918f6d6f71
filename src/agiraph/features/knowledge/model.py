"""Model: who may find an insight, how a new one relates to a known one, and how long each lasts.

An owner is one agent, all agents of a specialist, or the whole team.
"""

from datetime import datetime, timedelta
from typing import Literal

from agiraph.core.domain.agents import Agent
from agiraph.core.domain.provenance.labels import Label
from agiraph.core.domain.records.notes import FRONT
from agiraph.core.domain.text.passages import EVERYONE, Owner
from agiraph.core.domain.value import value

GENERAL_ROLES = ("coordinator", "worker")
"""Roles that name no specialist."""
UNVERIFIED_FOR: timedelta = timedelta(days=90)
"""How long what is unverified is kept after it was written or last read."""


def of_specialist(name: str) -> Owner:
    return f"specialist:{name}"


def of_learned(agent: Agent) -> Owner:
    """Return who owns what this agent learns.

    An agent that was hired for one task leaves with its work. So what it learned belongs to its
    specialist, or to the team if it is none, and the next agent begins with it. A program reads no
    insights, so what was learned from its work belongs to the team.
    """
    if agent.role not in GENERAL_ROLES:
        return of_specialist(agent.role)
    stays = agent.persistent and agent.retired_at is None and agent.has_model
    return agent.id if stays else EVERYONE


def visible_to(agent: Agent) -> tuple[Owner, ...]:
    """Return the owners whose insights this agent may find, its own first."""
    if agent.role in GENERAL_ROLES:
        return (agent.id, EVERYONE)
    return (agent.id, of_specialist(agent.role), EVERYONE)


Action = Literal["add", "update", "supersede", "contradict"]


@value
class Relation:
    """How a new insight relates to a known one, as the model that found it has decided."""

    action: Action = "add"
    """update: it says the same, more exactly or once more. supersede: the known one is no longer
    true. contradict: only one of the two can be true, and it is not clear which."""
    id: str = ""
    """The known insight; empty if the new one is only added."""


def front_line(label: Label, at: datetime) -> str:
    """Return the line above a note in its unverified file."""
    return f"{FRONT} of {at:%Y-%m-%d}: nobody has confirmed it. Its words come from {label}."
