"""Timers: what is due is rung, and one that breaks does not keep the others from it."""

import logging
from datetime import timedelta

from agiraph.domain.errors import StoreUnavailable
from agiraph.runtime.rounds import by_itself
from agiraph.services import work
from agiraph.store import waits
from agiraph.store.database import Store

log = logging.getLogger("agiraph.timers")

PUT_OFF = timedelta(minutes=10)
"""When one that broke is tried again."""


async def ring(store: Store) -> None:
    """All that are due in one transaction; each in its own if that breaks."""
    try:
        await store.write(work.ring)
    except StoreUnavailable:
        raise
    except Exception:
        log.exception("ringing broke; each timer is rung by itself")
        for timer in await store.read(waits.due):
            with by_itself(f"timer {timer}"):
                await store.write(work.ring, timer)
                continue
            await store.write(waits.put_off, timer, PUT_OFF)
