"""Rest: what begins when an agent has no more work before it."""

from agiraph.domain.agents import Agent
from agiraph.domain.work import WorkNode
from agiraph.services.knowledge import reflection
from agiraph.services.triggers import due, firing
from agiraph.store import nodes
from agiraph.store.tx import Tx


def begin(tx: Tx, agent: Agent, last: WorkNode) -> None:
    """The agent has ended its last piece of work; unless there is more, it rests from now on."""
    if last.lane != "work" or nodes.has_open(tx, agent.id):
        return
    due.agent_idle(tx, agent, last)
    if not firing.found_nothing_to_do(
        last
    ):  # whoever found nothing to do has nothing to look back on
        reflection.start(tx, agent, last)
