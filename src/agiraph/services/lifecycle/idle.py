"""Idle: starts an agent's idle triggers and a reflection when its last work has ended."""

from agiraph.domain.agents import Agent
from agiraph.domain.work import WorkNode
from agiraph.services.board.kind_verbs import verbs_of
from agiraph.services.knowledge import reflection
from agiraph.services.triggers import due, firing
from agiraph.store import nodes
from agiraph.store.tx import Tx


def start_if_idle(tx: Tx, agent: Agent, last: WorkNode) -> None:
    """Start idle triggers and a reflection if the node that has just ended was the agent's last.

    After a reflection, go on with the ended threads that it left.
    """
    verbs_of(last).agent_idle(tx, agent, last)
    if not last.is_work or nodes.has_open(tx, agent.id):
        return
    due.agent_idle(tx, agent, last)
    # A run that found nothing to do needs no reflection.
    if not firing.found_nothing_to_do(last) and last.kind.is_reflected_on:
        reflection.start(tx, agent, last)
