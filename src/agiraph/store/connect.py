"""Opening: the database at an address, whichever kind it is."""

from pathlib import Path

from agiraph.domain.errors import Misconfigured
from agiraph.domain.time import Clock
from agiraph.store.database import Store
from agiraph.store.sqlite import SqliteStore


async def open_store(url: str, clock: Clock, *, sole: bool = False) -> Store:
    """The database at this address, ready for use.

    The sole runtime on a database file keeps others off it; on PostgreSQL there may be many.
    """
    if url.startswith("sqlite:///"):
        return SqliteStore(Path(url.removeprefix("sqlite:///")), clock, sole=sole)
    if url.startswith(("postgresql://", "postgres://")):
        from agiraph.store.postgres import PostgresStore  # loaded only where it is used

        return await PostgresStore.open(url, clock)
    raise Misconfigured(f"AGIRAPH_DATABASE_URL {url!r} is not sqlite:///PATH or postgresql://….")
