"""Connect: opens the store for a database URL, SQLite or PostgreSQL."""

from pathlib import Path

from agiraph.core.domain.errors import Misconfigured
from agiraph.core.domain.times.time import Clock
from agiraph.core.store.database import Store
from agiraph.core.store.engine.sqlite import SqliteStore


async def open_store(url: str, clock: Clock, *, sole: bool = False) -> Store:
    """Return the store for this URL, ready for use.

    With `sole`, a database file is locked against other runtimes; PostgreSQL allows many.
    """
    if url.startswith("sqlite:///"):
        return SqliteStore(Path(url.removeprefix("sqlite:///")), clock, sole=sole)
    if url.startswith(("postgresql://", "postgres://")):
        from agiraph.core.store.engine.postgres import PostgresStore  # loaded only where it is used

        return await PostgresStore.open(url, clock)
    raise Misconfigured(f"AGIRAPH_DATABASE_URL {url!r} is not sqlite:///PATH or postgresql://….")
