"""Time limit: ends a model call that would outlast the node's time limit."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from agiraph.core.domain.errors import OutOfTime

T = TypeVar("T")

SPENT = "The time limit of this work was reached before the model had answered."


async def within(seconds: float | None, ask: Callable[[], Awaitable[T]]) -> T:
    """Return what `ask` returns, or raise `OutOfTime` after so many seconds.

    None means no limit. With no seconds left, `ask` is not called, and `OutOfTime.unused` says
    that the model was not called and costs nothing.
    """
    if seconds is not None and seconds <= 0:
        raise OutOfTime(SPENT, unused=True)
    if seconds is None:
        return await ask()
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return await ask()
    except TimeoutError as error:
        if not limit.expired():  # a timeout within `ask`, such as the connection's
            raise
        raise OutOfTime(SPENT) from error
