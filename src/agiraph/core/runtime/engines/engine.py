"""Engine: decides which process works on which agent's queue, and when.

An engine only schedules. Which run owns a node is decided by the lease in the node's row, so two
processes that pick the same queue cannot both work on a node.
"""

from typing import Protocol

from agiraph.core.domain.ids import TeamId
from agiraph.core.domain.work import Queue


class Drive(Protocol):
    async def __call__(self, queue: Queue, *, owner: str, only: TeamId | None = None) -> bool:
        """Run the next node of this queue; return False if no node of it can run now."""
        ...


class Engine(Protocol):
    async def start(self, only: TeamId | None = None) -> None:
        """Run the nodes that a stopped process left, then every node that is committed.

        With `only`, nodes of other teams are left alone.
        """
        ...

    async def stop(self) -> None:
        """Stop all runs; their nodes go back to their queues."""
        ...

    async def idle(self) -> None:
        """Return when no node can run: each has ended, or waits for a person or a time."""
        ...
