"""Timers: fires every due timer; a timer that fails does not keep the others from firing."""

from datetime import timedelta

from agiraph.core.domain.errors import StoreUnavailable
from agiraph.core.runtime.background.periodic import PeriodicTasks
from agiraph.core.services.lifecycle import timers
from agiraph.core.store import waits
from agiraph.core.store.database import Store

RETRY_AFTER = timedelta(minutes=10)
"""When a timer that failed is tried again."""
ALL = "firing all due timers at once"


async def fire_due(store: Store, periodic: PeriodicTasks) -> None:
    """Fire all due timers in one transaction; if it fails, fire each in a transaction of its own.

    One transaction is the fast path. A timer that fails alone is put off, because it would stay
    the next one due and the engine would try it again without a pause.
    """
    try:
        await store.write(timers.fire_due)
    except StoreUnavailable:
        raise
    except Exception as error:
        periodic.item_failed(ALL, error, "each is fired by itself")
        # Read anew: another process may have fired some of them since.
        for timer in await store.read(waits.due):
            with periodic.isolated(f"timer {timer.id}"):
                await store.write(timers.fire_due, timer)
                continue
            await store.write(
                waits.postpone_timer, timer, RETRY_AFTER
            )  # `isolated` caught an error
    else:
        periodic.item_succeeded(ALL)
