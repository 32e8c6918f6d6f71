"""Watchdog: looks now and then whether something comes of what runs."""

from datetime import timedelta

from agiraph.domain.time import Clock
from agiraph.runtime.periodic import Rest, Rounds
from agiraph.services.lifecycle import stalled
from agiraph.store import nodes
from agiraph.store.database import Store

EVERY = timedelta(minutes=2)


async def watch(store: Store, clock: Clock, rounds: Rounds) -> None:
    """Look at running work until cancelled. A look costs one short query, and no model."""

    async def rest() -> None:
        await clock.sleep_until(clock.now() + EVERY)

    async def look() -> Rest:
        if await store.read(nodes.at_work):
            await store.write(stalled.check_all)
        return rest

    await rest()
    await rounds.go("watchdog", look)
