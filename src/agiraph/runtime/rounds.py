"""Rounds: what a process does again and again in the background, whatever becomes of one of them.

A task that ended with an error would be missed by nobody: timers would no longer ring, events no
longer be heard, and the rest of the process would go on as if all were well.
"""

import contextlib
import logging
from collections.abc import Awaitable, Callable, Generator
from typing import NoReturn

from agiraph.domain.errors import StoreUnavailable
from agiraph.domain.time import Clock

log = logging.getLogger("agiraph.rounds")

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 10.0
"""Seconds after a round that broke; twice as long each time, as long as none succeeds."""


async def go_round(what: str, once: Callable[[], Awaitable[None]], clock: Clock) -> NoReturn:
    """Do it again and again until cancelled."""
    pause = FIRST_PAUSE
    while True:
        try:
            await once()
            pause = FIRST_PAUSE
            continue
        except StoreUnavailable as error:
            log.warning("%s: waiting for the store: %s", what, error)
        except Exception:
            log.exception("%s broke; it is tried again in %.0f s", what, pause)
        await clock.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)


@contextlib.contextmanager
def by_itself(what: str) -> Generator[None]:
    """What breaks in here is written down, and keeps nothing else of the round from being done."""
    try:
        yield
    except StoreUnavailable:
        raise
    except Exception:
        log.exception("%s broke; going on without it", what)
