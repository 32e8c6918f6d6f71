"""Retry: repeats a model call that failed for a passing reason, with exponential backoff."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from agiraph.domain.errors import ModelError, ModelGarbled, ModelUnavailable
from agiraph.domain.time import Clock
from agiraph.providers.base import Model, OnDelta, Reply, Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrying:
    """Retries an unavailable model, and a garbled reply once. Other errors are raised at once."""

    model: Model
    clock: Clock
    max_attempts: int = 4
    first_wait_s: float = 1.0
    max_wait_s: float = 60.0
    """The longest backoff. If the provider asks for more, the error is raised instead."""
    jitter: Callable[[], float] = field(default=random.random)

    @property
    def name(self) -> str:
        return self.model.name

    async def reply(self, request: Request, on_delta: OnDelta | None = None) -> Reply:
        garbled, unused = 0, True
        for attempt in range(1, self.max_attempts + 1):
            try:
                return await self.model.reply(request, on_delta)
            except ModelUnavailable as error:
                # `unused` means that no attempt can have cost money, not only the last one.
                unused = error.unused = unused and error.unused
                wait_s = self._wait_s(attempt, error.retry_after)
                if attempt == self.max_attempts or wait_s > self.max_wait_s:
                    raise
                await self.clock.sleep(wait_s)
            except ModelGarbled:
                garbled, unused = garbled + 1, False
                if garbled == 2 or attempt == self.max_attempts:  # each attempt is paid for
                    raise
            except ModelError as error:
                error.unused = unused and error.unused
                raise
        raise AssertionError("every attempt returns, raises or waits")

    def _wait_s(self, attempt: int, retry_after: float | None) -> float:
        # Between half and all of the backoff, at random: agents that were refused together must not
        # come back together.
        backoff_s = min(self.first_wait_s * 2 ** (attempt - 1), self.max_wait_s)
        return max(retry_after or 0.0, backoff_s * (0.5 + self.jitter() / 2))
