"""Owners: who may find an insight: one agent, all agents of a specialist, or the whole team."""

from agiraph.core.domain.agents import Agent
from agiraph.core.domain.text.passages import EVERYONE, Owner

GENERAL_ROLES = ("coordinator", "worker")
"""Roles that name no specialist."""


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
