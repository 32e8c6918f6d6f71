"""Session: a command's way to the home, the database and the settings in force."""

import asyncio
import gc
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import wraps
from typing import Any, TypeVar

import orjson
import uvloop
from rich.markup import escape

from agiraph import config
from agiraph.app import open_store
from agiraph.config import Settings
from agiraph.domain.time import SystemClock
from agiraph.hidden import environment
from agiraph.home.layout import Home, HomeLock
from agiraph.store.database import Store

R = TypeVar("R")
_STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Escape sequences and the like: all control characters but tab and newline, and bidi marks."""


def tune() -> None:
    """Collect garbage less often: threads are kept in memory and make few cycles."""
    gc.set_threshold(50_000, 20, 100)


def command(act: Callable[..., Awaitable[R]]) -> Callable[..., R]:
    """Let a coroutine be a command."""

    @wraps(act)
    def run(*args: Any, **kwargs: Any) -> R:
        tune()
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(_awaited(act(*args, **kwargs)))

    return run


async def _awaited(result: Awaitable[R]) -> R:
    return await result


@asynccontextmanager
async def opened(*, to_write: bool = False) -> AsyncGenerator[tuple[Settings, Store]]:
    """The database, for a command that looks something up or leaves a word.

    To write, nobody else may be running on the home: they would not notice.
    """
    settings = config.load(environment())
    embedded = settings.database_url.startswith("sqlite:")
    home = Home.open(settings.home)
    lock: HomeLock | None = home.lock() if to_write and embedded else None
    store = await open_store(settings.database_url, SystemClock())
    try:
        yield settings, store
    finally:
        await store.close()
        if lock is not None:
            lock.release()


def clean(text: str) -> str:
    """Words of others as a terminal may show them: nothing in them steers it."""
    return _STEERING.sub("\N{REPLACEMENT CHARACTER}", text)


def shown(text: str) -> str:
    """Words of others for a line with markup of ours around them."""
    return escape(clean(text))


def as_json(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2, default=str).decode()
