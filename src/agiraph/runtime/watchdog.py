"""Watchdog: marks running nodes as stalled that have made no progress for a while."""

from datetime import timedelta

from agiraph.domain.time import Clock
from agiraph.runtime.periodic import PeriodicTasks, Wait
from agiraph.services.lifecycle import timers
from agiraph.store import nodes
from agiraph.store.database import Store

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
