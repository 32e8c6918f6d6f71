"""Listening: what other processes say on PostgreSQL's channels, heard until the listener is told to
stop. A notice said while the connection was lost is gone, so at each new beginning there is a look.
"""

# asyncpg has no types of its own.
# pyright: basic

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple, NoReturn

import asyncpg

from agiraph.domain.errors import StoreUnavailable
from agiraph.domain.time import SystemClock
from agiraph.logs import Streak
from agiraph.store.reachability import LOST

log = logging.getLogger("agiraph.listening")

CONNECT_SECONDS = 10
BEAT_SECONDS = 10.0
"""How long a quiet connection is trusted before it has to show that it lives."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.3, 5.0
"""Before the connection is opened again; doubled with each failure in a row."""
MOST_NOTICES = 10_000


class Notice(NamedTuple):
    channel: str
    payload: str


Look = Callable[[], Awaitable[None]]
Take = Callable[[Notice], Awaitable[None]]


async def listen(
    url: str, channels: Iterable[str], *, look: Look, take: Take, streak: Streak | None = None
) -> NoReturn:
    """Take each notice in turn; look for what was missed whenever some may have been.

    `streak` is where failures are counted, for whoever shows them.
    """
    streak = streak or Streak("hearing other processes", log, SystemClock())
    pause = FIRST_PAUSE_S

    async def look_around() -> None:
        nonlocal pause
        await look()
        streak.succeeded()
        pause = FIRST_PAUSE_S

    while True:
        try:
            await _listen(url, channels, look_around, take)
        except Exception as error:
            # Whatever it is: a listener that ends is deaf from then on, and nobody would know.
            # asyncpg has errors of its own for a connection cut while it is being made.
            is_lost = isinstance(error, (*LOST, StoreUnavailable))
            streak.failed(error, "the connection is opened again", trace=not is_lost)
        await asyncio.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE_S)


async def _listen(url: str, channels: Iterable[str], look: Look, take: Take) -> None:
    """Until the connection is lost."""
    notices: asyncio.Queue[Notice | None] = asyncio.Queue(MOST_NOTICES)
    is_behind = False

    def put(notice: Notice | None) -> None:
        nonlocal is_behind
        try:
            notices.put_nowait(notice)
        except asyncio.QueueFull:
            is_behind = True  # what it was about is found by looking

    connection = await asyncpg.connect(url, timeout=CONNECT_SECONDS)
    try:
        connection.add_termination_listener(lambda _: put(None))
        for channel in channels:
            await connection.add_listener(channel, lambda _c, _p, *said: put(Notice(*said)))
        await look()
        while True:
            try:
                # Not `wait_for`: in Python 3.11 it forgets to be cancelled when something
                # comes at that moment, and then nothing would ever stop this.
                async with asyncio.timeout(BEAT_SECONDS):
                    notice = await notices.get()
            except TimeoutError:
                await connection.execute("select 1", timeout=BEAT_SECONDS)
                continue
            if notice is None:
                return
            await take(notice)
            if is_behind:
                is_behind = False
                await look()
    finally:
        with contextlib.suppress(Exception):  # it would take the place of a cancellation
            await connection.close(timeout=1)
