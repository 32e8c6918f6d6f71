"""Notify: receives the notifications of other processes through PostgreSQL's LISTEN.

PostgreSQL keeps no notification for a listener that is disconnected. The caller therefore reads the
rows again after each connect; a notification only says that there is something to read.
"""

# asyncpg has no types of its own.
# pyright: basic

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, NamedTuple, NoReturn

import asyncpg

from agiraph.core.domain.errors import StoreUnavailable
from agiraph.core.domain.times.time import SystemClock
from agiraph.core.store.engine.reachability import CONNECTION_ERRORS
from agiraph.logs import Streak

log: logging.Logger = logging.getLogger("agiraph.listening")

CONNECT_TIMEOUT_S = 10
PROBE_S = 10.0
"""After this long without a notification a query tests whether the connection is alive."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.3, 5.0
"""Seconds before a lost connection is opened again; doubled with each failure in a row."""
MAX_QUEUED = 10_000
"""Notifications that wait to be handled. Beyond that they are dropped, and the rows are read
anew."""


class Notification(NamedTuple):
    channel: str
    payload: str


OnConnect = Callable[[], Awaitable[None]]
OnNotification = Callable[[Notification], Awaitable[None]]


async def listen(
    url: str,
    channels: Iterable[str],
    *,
    on_connect: OnConnect,
    on_notification: OnNotification,
    failures: Streak | None = None,
) -> NoReturn:
    """Call `on_notification` for each notification, in order; reconnect as often as needed.

    `on_connect` runs after each connect and after an overflow, since notifications may have been
    lost then. `failures` counts failed connections for health checks.
    """
    failures = failures or Streak("listening to other processes", log, SystemClock())
    pause_s = FIRST_PAUSE_S

    async def catch_up() -> None:
        nonlocal pause_s
        await on_connect()
        failures.succeeded()
        pause_s = FIRST_PAUSE_S

    while True:
        try:
            await _listen(url, channels, catch_up, on_notification)
        except Exception as error:
            # Any error: a listener that ended would miss every further notification, unnoticed.
            # asyncpg raises errors of its own when a connection is cut while it is being made.
            is_lost = isinstance(error, (*CONNECTION_ERRORS, StoreUnavailable))
            failures.failed(error, "the connection is reopened", trace=not is_lost)
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


class _Inbox:
    """Notifications received and not handled yet; None marks the end of the connection."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[Notification | None] = asyncio.Queue(MAX_QUEUED)
        self.has_overflowed = False
        """Whether some were dropped; `on_connect` finds out what they were about."""

    def put(self, notification: Notification | None) -> None:
        try:
            self.queue.put_nowait(notification)
        except asyncio.QueueFull:
            # If this drops the end mark itself, the probe finds the dead
            # connection within `PROBE_S`.
            self.has_overflowed = True


async def _listen(
    url: str, channels: Iterable[str], catch_up: OnConnect, on_notification: OnNotification
) -> None:
    """Handle notifications until the connection is lost."""
    inbox = _Inbox()
    connection = await asyncpg.connect(url, timeout=CONNECT_TIMEOUT_S)
    try:
        connection.add_termination_listener(lambda _: inbox.put(None))
        for channel in channels:
            await connection.add_listener(
                channel, lambda _connection, _pid, *received: inbox.put(Notification(*received))
            )
        # After LISTEN, not before: whatever commits in between is then notified or read.
        await catch_up()
        await _handle(connection, inbox, catch_up, on_notification)
    finally:
        with contextlib.suppress(Exception):  # an error here would replace a cancellation
            await connection.close(timeout=1)


async def _handle(
    connection: Any, inbox: _Inbox, catch_up: OnConnect, on_notification: OnNotification
) -> None:
    while True:
        try:
            # Not `wait_for`: in Python 3.11 it swallows a cancellation that comes at the same
            # moment as an item, and then nothing would ever stop this task.
            async with asyncio.timeout(PROBE_S):
                notification = await inbox.queue.get()
        except TimeoutError:
            await connection.execute("select 1", timeout=PROBE_S)
            continue
        if notification is None:
            return
        await on_notification(notification)
        if inbox.has_overflowed:
            inbox.has_overflowed = False
            await catch_up()
