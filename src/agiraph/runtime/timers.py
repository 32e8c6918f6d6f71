"""Timers: what is due is rung, and one that breaks does not keep the others from it."""

from datetime import timedelta

from agiraph.domain.errors import StoreUnavailable
from agiraph.runtime.periodic import Rounds
from agiraph.services.lifecycle import timers
from agiraph.store import waits
from agiraph.store.database import Store

PUT_OFF = timedelta(minutes=10)
"""When one that broke is tried again."""


async def ring(store: Store, rounds: Rounds) -> None:
    """All that are due in one transaction; each in its own if that breaks."""
    try:
        await store.write(timers.fire_due)
    except StoreUnavailable:
        raise
    except Exception as error:
        rounds.item_failed("ringing all timers at once", error, "each is rung by itself")
        for timer in await store.read(waits.due):
            with rounds.by_itself(f"timer {timer}"):
                await store.write(timers.fire_due, timer)
                continue
            await store.write(waits.put_off, timer, PUT_OFF)
    else:
        rounds.item_succeeded("ringing all timers at once")
