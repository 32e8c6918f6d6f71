"""Watchdog: marks running nodes as stalled that have made no progress for a while."""

from datetime import timedelta

from agiraph.core.domain.times.time import Clock
from agiraph.core.runtime.background.periodic import PeriodicTasks, Wait
from agiraph.core.services.lifecycle import timers
from agiraph.core.store import nodes
from agiraph.core.store.database import Store

INTERVAL = timedelta(minutes=2)
"""How often running nodes are checked: a fraction of `timers.STALLED_AFTER_SECONDS`."""


async def watch(store: Store, clock: Clock, periodic: PeriodicTasks) -> None:
    """Check running nodes until cancelled. A check costs one short query and calls no model."""

    async def wait() -> None:
        await clock.sleep_until(clock.now() + INTERVAL)

    async def check() -> Wait:
        # A read first: while nobody works, the check costs no transaction and no fsync.
        if await store.read(nodes.at_work):
            await store.write(timers.report_stalled)
        return wait

    await wait()
    await periodic.repeat("watchdog", check)
