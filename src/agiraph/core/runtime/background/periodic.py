"""Periodic tasks: the background tasks of a process, each repeated until it is stopped.

Nobody would notice a background task that ended with an error: timers would no longer fire and
events would no longer be delivered, while the rest of the process looked healthy. So a failed
iteration is logged, reported to health checks, and retried.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Generator
from typing import NoReturn

from agiraph.core.domain.errors import StoreUnavailable
from agiraph.core.domain.times.time import Clock
from agiraph.logs import Streak

log: logging.Logger = logging.getLogger("agiraph.periodic")

FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 10.0
"""The pause after a failed iteration; doubled with each failure in a row."""
MAX_ITEMS = 1000
"""Items whose failures are remembered. Without a limit, items that vanish would fill the memory."""


Wait = Callable[[], Awaitable[object]]
Iteration = Callable[[], Awaitable[Wait | None]]
"""Does what is due. Returns what to await before the next iteration; None: start it at once."""


class PeriodicTasks:
    """The background tasks of one runtime, and which of them are failing now."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._streaks: dict[str, Streak] = {}
        """The failures of each task, by the task's name."""
        self._items: dict[str, Streak] = {}
        """The failures of single items, such as one timer, whose last attempt failed."""

    def failing(self) -> list[str]:
        """Return a sentence for each task whose last iteration failed: what, since when, why."""
        return [streak.description for streak in self._streaks.values() if streak.since is not None]

    def streak(self, what: str) -> Streak:
        """Return the failures of a task. A task that `repeat` does not run reports to it itself."""
        return self._streaks.setdefault(what, Streak(what, log, self._clock))

    def start(self, what: str, once: Iteration) -> asyncio.Task[None]:
        """Start a task that runs the iteration again and again until it is cancelled."""
        return asyncio.create_task(self.repeat(what, once), name=what)

    async def repeat(self, what: str, once: Iteration) -> NoReturn:
        """Run the iteration again and again until cancelled."""
        pause_s, streak = FIRST_PAUSE_S, self.streak(what)
        while True:
            try:
                wait = await once()
                streak.succeeded()  # before the wait, which may last for days
                pause_s = FIRST_PAUSE_S
                if wait is not None:
                    await wait()
            except Exception as error:
                # A cancellation is no `Exception`: it passes and ends the task.
                then = f"it is retried, at least every {LONGEST_PAUSE_S:.0f} s"
                streak.failed(error, then, trace=not isinstance(error, StoreUnavailable))
                await self._clock.sleep(pause_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    @contextlib.contextmanager
    def isolated(self, what: str) -> Generator[None]:
        """Log an error of one item, so that the other items of the iteration are still handled.

        `StoreUnavailable` is raised: without the store every other item would fail as well.
        """
        try:
            yield
        except StoreUnavailable:
            raise
        except Exception as error:
            self.item_failed(what, error, "the other items are handled without it")
        else:
            self.item_succeeded(what)

    def item_failed(self, what: str, error: Exception, then: str, *, trace: bool = True) -> None:
        """Log that one of many items failed: the first time with its traceback, then counted."""
        if len(self._items) >= MAX_ITEMS:
            self._items.clear()  # an item that still fails is logged in full once more
        streak = self._items.setdefault(what, Streak(what, log, self._clock))
        streak.failed(error, then, trace=trace)

    def item_succeeded(self, what: str) -> None:
        """End the streak of an item that failed before."""
        if what in self._items:
            self._items.pop(what).succeeded()
