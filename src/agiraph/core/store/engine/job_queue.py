"""Job queue: the interface through which the clustered engine gets jobs from the database.

A job asks some worker process to work off one agent's queue. The queue only delivers: which process
owns a node is decided by the node's row, in the transaction that claims it.
"""

from collections.abc import Awaitable, Callable
from typing import NamedTuple, Protocol

from agiraph.core.domain.work import Queue
from agiraph.logs import Streak


class RetryLater(NamedTuple):
    """A handler's answer that the job stays in the queue and is delivered again."""

    reason: str
    delay_s: float = 0.0


JobHandler = Callable[[Queue, str], Awaitable[RetryLater | None]]
"""Works off a queue. The text names the job; it becomes the `owner` of the nodes it claims. None:
the job is done, and its row is deleted."""


class JobQueue(Protocol):
    @property
    def is_visible(self) -> bool:
        """Whether other workers can see that this one is alive. If not, they free its jobs."""
        ...

    async def open(self) -> None:
        """Connect, add missing jobs and register this worker; raise `StoreUnavailable`."""
        ...

    async def deliver(self, handle: JobHandler, failures: Streak) -> None:
        """Hand each job to `handle` until `stop_delivery` is called; reconnect as needed."""
        ...

    def stop_delivery(self) -> None:
        """Let `deliver` return once the handlers under way have returned."""
        ...

    async def add_missing_jobs(self) -> None:
        """Add a job for each queue that has work and no job; raise `StoreUnavailable`."""
        ...

    def mark_loop_alive(self) -> None:
        """Record that the event loop runs. A worker that stops doing so is taken for stuck."""
        ...

    async def close(self) -> None:
        """Unregister this worker and close the connections."""
        ...
