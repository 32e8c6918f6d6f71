"""Retry: repeats a model call that failed for a passing reason, with exponential backoff."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from agiraph.domain.errors import (
    CallGarbled,
    ModelError,
    ModelGarbled,
    ModelSilent,
    ModelUnavailable,
)
from agiraph.domain.time import Clock
from agiraph.domain.work import Usage
from agiraph.providers.base import Model, OnDelta, Reply, Request, lost_usage


@dataclass(slots=True)
class _Tried:
    """What the failed attempts of one call leave for the next."""

    unused: bool = True
    """Whether no attempt can have cost money."""
    lost: bool = False
    """Whether an attempt got no answer and may have cost money."""
    garbled: int = 0
    silences: int = 0
    usage: Usage = Usage()
    hint: str = ""

    def take_garbled(self, error: ModelGarbled) -> bool:
        """Note a reply that cannot be used, which is paid for; return whether it was the last."""
        self.garbled, self.unused = self.garbled + 1, False
        self.hint = error.hint
        self.usage += lost_usage(error)
        return self.garbled > error.retries

    def take_silence(self) -> bool:
        """Note that no reply began; return whether it was the last attempt."""
        self.silences += 1
        return self.silences > 1

    def with_cost(self, reply: Reply) -> Reply:
        """Return the reply with the cost of the replies that could not be used or never came."""
        if not self.garbled and not self.lost:
            return reply
        return replace(reply, usage=self.usage + reply.usage, after_lost=self.lost)


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrying:
    """Retries an unavailable model, and a garbled reply once. Other errors are raised at once.

    The model is told why it is asked again, at the end of the request. A broken tool call is asked
    for three times more; after that the reply counts as empty.
    """

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
        tried = _Tried()
        for attempt in range(1, self.max_attempts + 1):
            asked = replace(request, hint=tried.hint) if tried.hint else request
            try:
                return tried.with_cost(await self.model.reply(asked, on_delta))
            except ModelUnavailable as error:
                tried.lost = tried.lost or not error.unused
                # `unused` means that no attempt can have cost money, not only the last one.
                tried.unused = error.unused = tried.unused and error.unused
                wait_s = self._wait_s(attempt, error.retry_after)
                # A server that was silent for its whole patience may still work on the request. It
                # is asked only once more, after that patience, and with more of it (`wire.SLOW`).
                is_silent = isinstance(error, ModelSilent) and tried.take_silence()
                if attempt == self.max_attempts or wait_s > self.max_wait_s or is_silent:
                    raise
                await self.clock.sleep(wait_s)
            except ModelGarbled as error:
                if not tried.take_garbled(error) and attempt < self.max_attempts:
                    continue
                if not isinstance(error, CallGarbled):
                    raise
                return tried.with_cost(Reply())  # as if it had said nothing
            except ModelError as error:
                error.unused = tried.unused and error.unused
                raise
        raise AssertionError("every attempt returns, raises or waits")

    def _wait_s(self, attempt: int, retry_after: float | None) -> float:
        # Between half and all of the backoff, at random: agents that were refused together must not
        # come back together.
        backoff_s = min(self.first_wait_s * 2 ** (attempt - 1), self.max_wait_s)
        return max(retry_after or 0.0, backoff_s * (0.5 + self.jitter() / 2))
