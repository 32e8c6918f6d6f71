"""Watchdog: looks now and then whether something comes of what runs."""

import logging
from datetime import timedelta

from agiraph.domain.errors import StoreUnavailable
from agiraph.domain.time import Clock
from agiraph.services import stalls
from agiraph.store import nodes
from agiraph.store.database import Store

log = logging.getLogger("agiraph.watchdog")

EVERY = timedelta(minutes=2)


async def watch(store: Store, clock: Clock) -> None:
    """Look at running work until cancelled. A look costs one short query, and no model."""
    while True:
        await clock.reach(clock.now() + EVERY)
        try:
            if await store.read(nodes.at_work):
                await store.write(stalls.look)
        except StoreUnavailable as error:
            log.warning("could not look after running work: %s", error)
