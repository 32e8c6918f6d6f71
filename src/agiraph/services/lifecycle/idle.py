"""Idle: starts an agent's idle triggers and a reflection when its last work has ended."""

from agiraph.domain.agents import Agent
from agiraph.domain.work import WorkNode
from agiraph.services.knowledge import reflection
from agiraph.services.triggers import due, firing
from agiraph.store import nodes
from agiraph.store.tx import Tx


def start_if_idle(tx: Tx, agent: Agent, last: WorkNode) -> None:
    """Start idle triggers and a reflection if the node that has just ended was the agent's last.

    After a reflection, go on with the ended threads that it left.
    """
    if last.lane == "reflection":
        reflection.go_on(tx, agent, last)
    if last.lane != "work" or nodes.has_open(tx, agent.id):
        return
    due.agent_idle(tx, agent, last)
    # A run that found nothing to do, and a review, need no reflection.
    if not firing.found_nothing_to_do(last) and last.reviews_call is None:
        reflection.start(tx, agent, last)
