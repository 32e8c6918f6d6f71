"""Rounds: background activities of a process, each repeated until it is stopped.

A task that ended with an error would be missed by nobody: timers would no longer ring, events no
longer be heard, and the rest of the process would go on as if all were well. So a failed round is
logged, remembered for health checks, and retried.
"""

import contextlib
import logging
from collections.abc import Awaitable, Callable, Generator
from typing import NoReturn

from agiraph.domain.errors import StoreUnavailable
from agiraph.domain.time import Clock
from agiraph.logs import Streak

log = logging.getLogger("agiraph.rounds")

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 10.0
"""Seconds to wait after a failed round; doubled with each failure in a row."""
MOST_ITEMS = 1000
"""Items whose failures are remembered, so that items that vanish do not fill the memory."""


Rest = Callable[[], Awaitable[object]]
Round = Callable[[], Awaitable[Rest | None]]
"""Does what is due, and returns what to wait for before the next round; None: go on at once."""


class Rounds:
    """The background activities of one runtime, and which of them fail just now."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._streaks: dict[str, Streak] = {}
        """The state of each activity, by name."""
        self._items: dict[str, Streak] = {}
        """Single timers, errands and the like whose last attempt failed."""

    def failing(self) -> list[str]:
        """A sentence for each activity whose last round failed: what, since when, and why."""
        return [streak.told for streak in self._streaks.values() if streak.since is not None]

    def streak(self, what: str) -> Streak:
        """The failures of an activity; for one that is not driven by `go`, to be kept by it."""
        return self._streaks.setdefault(what, Streak(what, log, self._clock))

    async def go(self, what: str, once: Round) -> NoReturn:
        """Do it again and again until cancelled."""
        pause, streak = FIRST_PAUSE, self.streak(what)
        while True:
            try:
                rest = await once()
                streak.succeeded()  # before the rest, which may last for days
                pause = FIRST_PAUSE
                if rest is not None:
                    await rest()
            except Exception as error:
                then = f"it is retried, at least every {LONGEST_PAUSE:.0f} s"
                streak.failed(error, then, trace=not isinstance(error, StoreUnavailable))
                await self._clock.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)

    @contextlib.contextmanager
    def by_itself(self, what: str) -> Generator[None]:
        """Log what fails in here, and let the rest of the round go on."""
        try:
            yield
        except StoreUnavailable:
            raise
        except Exception as error:
            self.item_failed(what, error, "the rest of the round goes on without it")
        else:
            self.item_succeeded(what)

    def item_failed(self, what: str, error: Exception, then: str, *, trace: bool = True) -> None:
        """Log that one of many items failed: once with its traceback, then counted."""
        if len(self._items) >= MOST_ITEMS:
            self._items.clear()  # what still fails is logged in full once more, and no worse
        streak = self._items.setdefault(what, Streak(what, log, self._clock))
        streak.failed(error, then, trace=trace)

    def item_succeeded(self, what: str) -> None:
        if what in self._items:
            self._items.pop(what).succeeded()
