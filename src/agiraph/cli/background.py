"""Background: the processes that do background work and their failures, for `agiraph doctor`."""

from typing import NamedTuple

from agiraph.client import Client
from agiraph.domain.errors import Declined, Unreachable
from agiraph.location import Location
from agiraph.store.database import Store

SILENT_S = 10.0


class Background(NamedTuple):
    workers: list[str]
    """The processes that do background work."""
    problems: list[str]


async def find(place: Location, store: Store) -> Background:
    """Return the workers. Read their rows on PostgreSQL; with SQLite, ask the running server."""
    if place.database_url.startswith("sqlite:"):
        return await _ask(place)
    from agiraph.store.presence import workers  # loaded only where it is used

    found = await store.read(workers)
    names = [f"process {worker.pid} on {worker.host}" for worker in found]
    silent = [
        f"{name} was last active {worker.silent_s:.0f} s ago: it hangs, or its machine is down."
        for name, worker in zip(names, found, strict=True)
        if worker.silent_s > SILENT_S
    ]
    failing = [
        f"{name}: {sentence}"
        for name, worker in zip(names, found, strict=True)
        for sentence in worker.failing
    ]
    return Background(names, silent + failing)


async def _ask(place: Location) -> Background:
    # No retries: a server that is not ready answers at once and gives the reason.
    async with Client.of(place, patience=0.0) as client:
        try:
            await client.ready()
        except Unreachable:
            return Background([], [])
        except Declined as error:
            is_not_ready = error.status == 503
            return Background([client.url], [str(error)] if is_not_ready else [])
        return Background([client.url], [])
