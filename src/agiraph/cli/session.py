"""Session: a command's connection to the server of a home, or to its database."""

import asyncio
import gc
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import orjson
import uvloop
from pydantic import BaseModel
from rich.markup import escape

from agiraph import location
from agiraph.client import Client
from agiraph.domain.errors import (
    Declined,
    HomeInUse,
    Misconfigured,
    NotFound,
    Refused,
    Unreachable,
)
from agiraph.domain.time import SystemClock
from agiraph.home.layout import Home, known_token
from agiraph.home.lock import HomeLock
from agiraph.location import Location
from agiraph.redaction import environment, keep

if TYPE_CHECKING:  # most commands only talk to a server
    from agiraph.cli.local import Local
    from agiraph.store.database import Store

R = TypeVar("R")
CONNECTION_LOST = "[yellow]…[/] the connection to the server was lost; connecting again"
# Agents quote web pages. An escape sequence in one could overwrite on the screen what a person is
# about to approve, or make the terminal type text into the shell.
_STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Characters that control a terminal: control characters except tab and newline, and bidi marks."""


def tune() -> None:
    """Run the garbage collector less often: transcripts stay in memory and make few cycles."""
    # The default of 700 objects would walk long transcripts many times a second without finding
    # anything.
    gc.set_threshold(50_000, 20, 100)


def command(act: Callable[..., Awaitable[R]]) -> Callable[..., R]:
    """Make a click callback of a coroutine function."""

    @wraps(act)
    def run(*args: Any, **kwargs: Any) -> R:
        tune()
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                return runner.run(_awaited(act(*args, **kwargs)))
        finally:
            gc.freeze()  # the process exits: skip the last garbage collection, which takes long

    return run


async def _awaited(result: Awaitable[R]) -> R:
    return await result


@asynccontextmanager
async def opened(*, to_write: bool = False) -> AsyncGenerator[tuple[Location, "Store"]]:
    """Open the database of this home.

    With `to_write`, take the home's lock: a server that runs would not notice the change.
    """
    from agiraph.store.connect import open_store  # imported here: most commands do not need it

    where = location.find(environment())
    embedded = where.database_url.startswith("sqlite:")
    home = Home.open(where.home)
    lock: HomeLock | None = home.lock() if to_write and embedded else None
    store = await open_store(where.database_url, SystemClock())
    try:
        yield where, store
    finally:
        await store.close()
        if lock is not None:
            lock.release()


@asynccontextmanager
async def connected() -> AsyncGenerator[Client]:
    """Connect to the server of this home; raise `Unreachable` if none runs."""
    where = location.find(environment())
    async with Client.of(where) as client:
        await _check(client, where)
        yield client


async def _check(client: Client, where: Location) -> None:
    try:
        if not client.has_token:
            raise client.unreachable()
        await client.check()
    except Unreachable as error:
        if holder := _holder(where):
            raise Unreachable(
                f"{holder} No server answers at {client.url}: if it is `agiraph up`, set "
                "AGIRAPH_HOST and AGIRAPH_PORT as they are set there; if not, end it first."
            ) from error
        raise
    except Declined as error:
        if error.status != 401:
            raise
        raise Misconfigured(
            f"The server at {client.url} rejects the token of {str(where.home)!r}: it "
            "may serve another home. Set AGIRAPH_HOME or AGIRAPH_PORT, or AGIRAPH_TOKEN."
        ) from error


def _holder(where: Location) -> str:
    """Return a sentence that names the process that holds the home's lock; empty if none does."""
    if not where.home.is_dir() or not where.database_url.startswith("sqlite:"):
        return ""
    try:
        Home.open(where.home).lock().release()
    except HomeInUse as error:
        return str(error).partition(". ")[0] + "."
    return ""


@asynccontextmanager
async def source(*, to_write: bool = False) -> AsyncGenerator["Client | Local"]:
    """Connect to the server of this home; if none runs, open the database."""
    async with Client.of(location.find(environment())) as client:
        if await _is_there(client):
            yield client
            return
    from agiraph.cli.local import Local  # imported here: most commands do not need it

    async with opened(to_write=to_write) as (_, store):
        yield Local(store)


async def _is_there(client: Client) -> bool:
    """Return whether this home's server answers. The server of another home rejects the token."""
    try:
        if client.has_token:
            await client.check()
            return True
    except (Unreachable, Declined):
        pass
    return False


def remember_secrets(home: Path, database_url: str) -> None:
    """Redact the home's token and the database's password too, besides the environment's keys."""
    password = urlsplit(database_url).password if "://" in database_url else None
    keep({"token": known_token(home), "the database's password": password or ""})


def is_missing(error: Refused) -> bool:
    """Return whether the database or the server said that something does not exist."""
    return isinstance(error, NotFound) or (isinstance(error, Declined) and error.status == 404)


def clean(text: str) -> str:
    """Return text of agents with the characters replaced that control a terminal."""
    return _STEERING.sub("\N{REPLACEMENT CHARACTER}", text)


def shown(text: str) -> str:
    """Return text of agents, cleaned and escaped, for a line with rich markup."""
    return escape(clean(text))


def as_json(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2, default=_plain).decode()


def _plain(value: Any) -> Any:
    return value.model_dump() if isinstance(value, BaseModel) else str(value)
