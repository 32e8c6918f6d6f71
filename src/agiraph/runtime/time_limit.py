"""Time limit: how long one step of a node may take, and what happens when it takes longer."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from agiraph.domain.errors import OutOfTime

T = TypeVar("T")

SPENT = "The time limit of this work was reached before the model had answered."


async def within(seconds: float | None, ask: Callable[[], Awaitable[T]]) -> T:
    """Return what the model answers, or raise `OutOfTime` after so many seconds.

    Without seconds there is no limit; with none left the model is not asked at all.
    """
    if seconds is not None and seconds <= 0:
        raise OutOfTime(SPENT, unused=True)
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return await ask()
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise OutOfTime(SPENT) from error
