"""Retry: a model that is asked again when it could not answer, with patience that grows."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from agiraph.domain.errors import ModelError, ModelGarbled, ModelUnavailable
from agiraph.domain.time import Clock
from agiraph.providers.base import Model, OnDelta, Reply, Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrying:
    """Tries again after what may pass by itself, and after nothing else."""

    model: Model
    clock: Clock
    tries: int = 4
    first_wait: float = 1.0
    longest_wait: float = 60.0
    jitter: Callable[[], float] = field(default=random.random)

    @property
    def name(self) -> str:
        return self.model.name

    async def reply(self, request: Request, on_delta: OnDelta | None = None) -> Reply:
        garbled, unused = 0, True
        for attempt in range(1, self.tries + 1):
            try:
                return await self.model.reply(request, on_delta)
            except ModelUnavailable as error:
                # One try that may have cost something is enough for the call to have.
                unused = error.unused = unused and error.unused
                wait = self._wait(attempt, error.retry_after)
                if attempt == self.tries or wait > self.longest_wait:
                    raise
                await self.clock.sleep(wait)
            except ModelGarbled:
                garbled, unused = garbled + 1, False
                if garbled == 2 or attempt == self.tries:  # one repair is worth its price
                    raise
            except ModelError as error:
                error.unused = unused and error.unused
                raise
        raise AssertionError("every try returns, raises or waits")

    def _wait(self, attempt: int, retry_after: float | None) -> float:
        grown = min(self.first_wait * 2 ** (attempt - 1), self.longest_wait)
        return max(retry_after or 0.0, grown * (0.5 + self.jitter() / 2))
