"""Engine: who looks at whose queue, and when. The rows decide who owns what."""

from typing import Protocol

from agiraph.domain.ids import TeamId
from agiraph.domain.work import Queue


class Drive(Protocol):
    async def __call__(self, queue: Queue, *, owner: str, only: TeamId | None = None) -> bool:
        """Run what is next in this queue; False if there was nothing that could run."""
        ...


class Engine(Protocol):
    async def start(self, only: TeamId | None = None) -> None:
        """Take up what a former process left, then whatever is committed; of one team, or all."""
        ...

    async def stop(self) -> None:
        """Let go of everything; running nodes go back to their queues."""
        ...

    async def idle(self) -> None:
        """Return when no node can run: all are done, or wait for a person or a time."""
        ...
