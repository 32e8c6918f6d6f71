"""Attempts: how a model is asked until it answers: circuit breaker, retries, fallbacks."""

import random
from collections.abc import Awaitable, Callable
from dataclasses import field, replace
from datetime import datetime

from agiraph.core.domain.errors import (
    CallGarbled,
    ModelDeclined,
    ModelError,
    ModelGarbled,
    ModelMissing,
    ModelSilent,
    ModelUnavailable,
    QuotaSpent,
)
from agiraph.core.domain.times.time import Clock
from agiraph.core.domain.value import dataclass
from agiraph.core.domain.work import Usage
from agiraph.models.base import Model, OnDelta, Reply, Request, lost_usage

MAX_FAILURES = 5
"""The circuit opens at this many failures in a row."""
OPEN_SECONDS = 30.0
"""How long an open circuit refuses calls before it lets one through."""
NO_USAGE = Usage()
PASSED_ON = (ModelUnavailable, ModelGarbled, ModelDeclined, QuotaSpent)
"""Errors that another model may not have. A request that is wrong in itself is not passed on."""


@dataclass(slots=True)
class CircuitBreaker:
    """Stops calls to a provider that keeps failing, then tries it with one call. Shared by all
    models of one provider, so that many agents do not all call a broken one."""

    provider: str
    clock: Clock
    failures: int = 0
    open_until: float = field(default=0.0)
    """When the circuit lets a probe through, in the clock's monotonic seconds."""
    is_probing: bool = False
    succeeded_at: datetime | None = None
    failed_at: datetime | None = None
    error: str = ""
    """What the last failed call said, for people."""
    missing: dict[str, datetime] = field(default_factory=dict[str, datetime])
    """The models that the provider said it does not have, and when."""

    @property
    def open_s(self) -> float:
        """Return for how many seconds calls are refused now; 0 if they are let through."""
        if self.failures < MAX_FAILURES:
            return 0.0
        return max(self.open_until - self.clock.monotonic(), 0.0)

    def admit(self) -> None:
        """Let a call through, or raise `ModelUnavailable` with the time to wait."""
        # Needs no lock: all calls run on one event loop, and nothing is awaited between test and
        # change.
        if self.failures < MAX_FAILURES:
            return
        if self.open_s > 0 or self.is_probing:
            wait_s = max(self.open_s, 1.0)
            raise ModelUnavailable(
                f"{self.provider} has failed {self.failures} times in a row and is not called for "
                f"{wait_s:.0f} s.",
                retry_after=wait_s,
                unused=True,
            )
        self.is_probing = True

    def succeed(self, model: str) -> None:
        self.failures, self.is_probing = 0, False
        self.succeeded_at = self.clock.now()
        self.missing.pop(model, None)

    def note(self, model: str, error: ModelError) -> None:
        """Remember what a failed call said. Failures in a row open the circuit."""
        self.failed_at, self.error = self.clock.now(), str(error)
        if isinstance(error, ModelMissing):
            self.missing[model] = self.failed_at
        if isinstance(error, ModelUnavailable):
            self.failures += 1
            self.open_until = self.clock.monotonic() + OPEN_SECONDS


async def _as_it_is(error: ModelError) -> str:
    return str(error)


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarded:
    """A model behind its provider's circuit breaker."""

    model: Model
    circuit: CircuitBreaker
    explained: Callable[[ModelError], Awaitable[str]] = field(default=_as_it_is)
    """Returns an error's message with what to do."""

    @property
    def name(self) -> str:
        return self.model.name

    async def reply(self, request: Request, on_delta: OnDelta | None = None) -> Reply:
        self.circuit.admit()
        try:
            reply = await self.model.reply(request, on_delta)
        except ModelError as error:
            error.args = (await self.explained(error),)
            self.circuit.note(self.name, error)
            raise
        else:
            self.circuit.succeed(self.name)
            return reply
        finally:
            # Cancelled too: a probe that is never ended blocks all others.
            self.circuit.is_probing = False


@dataclass(slots=True)
class _Tried:
    """What the failed attempts leave for the next."""

    unused: bool = True
    """Whether no attempt can have cost money."""
    lost: bool = False
    """Whether an attempt got no answer and may have cost money."""
    usage: Usage = NO_USAGE

    def take(self, error: ModelError) -> None:
        """Note a failed attempt. `unused` of its error then means that no attempt can have cost
        money, not only the last one."""
        if isinstance(error, ModelGarbled):
            self.unused = False
            self.usage += lost_usage(error)
        elif isinstance(error, ModelUnavailable):
            self.lost = self.lost or not error.unused
        self.unused = error.unused = self.unused and error.unused

    def with_cost(self, reply: Reply) -> Reply:
        """Return the reply with the cost of the replies that could not be used or never came."""
        if not self.lost and self.usage is NO_USAGE:
            return reply
        lost = self.lost or reply.after_lost
        return replace(reply, usage=self.usage + reply.usage, after_lost=lost)


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrying:
    """Retries an unavailable model with exponential backoff, and a garbled reply once. Other errors
    are raised at once.

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
        tried, hint, garbled, silences = _Tried(), "", 0, 0
        for attempt in range(1, self.max_attempts + 1):
            asked = replace(request, hint=hint) if hint else request
            try:
                return tried.with_cost(await self.model.reply(asked, on_delta))
            except ModelUnavailable as error:
                tried.take(error)
                wait_s = self._wait_s(attempt, error.retry_after)
                # A server that was silent for its whole patience may still work on the request. It
                # is asked only once more, after that patience, and with more of it.
                silences += isinstance(error, ModelSilent)
                if attempt == self.max_attempts or wait_s > self.max_wait_s or silences > 1:
                    raise
                await self.clock.sleep(wait_s)
            except ModelGarbled as error:
                tried.take(error)
                hint, garbled = error.hint, garbled + 1
                if garbled <= error.retries and attempt < self.max_attempts:
                    continue
                if not isinstance(error, CallGarbled):
                    raise
                return tried.with_cost(Reply())  # as if it had said nothing
            except ModelError as error:
                tried.take(error)
                raise
        raise AssertionError("every attempt returns, raises or waits")

    def _wait_s(self, attempt: int, retry_after: float | None) -> float:
        # Between half and all of the backoff, at random: agents that were refused together must not
        # come back together.
        backoff_s = min(self.first_wait_s * 2 ** (attempt - 1), self.max_wait_s)
        return max(retry_after or 0.0, backoff_s * (0.5 + self.jitter() / 2))


@dataclass(frozen=True, slots=True)
class Fallback:
    """A chain of models. Each is called only when the ones before it failed, or withheld a part of
    its answer. Returns the first whole reply."""

    models: tuple[Model, ...]

    @property
    def name(self) -> str:
        return ", ".join(model.name for model in self.models)

    async def reply(self, request: Request, on_delta: OnDelta | None = None) -> Reply:
        tried, reasons = _Tried(), list[str]()
        for number, model in enumerate(self.models, 1):
            is_last = number == len(self.models)
            try:
                reply = await model.reply(request, on_delta)
            # `on_delta` may have shown a part of this reply. That is display only: the whole reply,
            # when it is stored, takes its place.
            except ModelError as error:
                tried.take(error)
                if not isinstance(error, PASSED_ON):
                    raise
                reasons.append(f"{model.name}: {error}")
                if is_last:
                    error.args = (" ".join(reasons) if len(reasons) > 1 else str(error),)
                    raise
                continue
            if is_last or not reply.provider_data.refusal:
                return tried.with_cost(reply)
            # Half an answer, which is paid for; the next model answers without it.
            tried.usage, tried.unused = tried.usage + reply.usage, False
        raise AssertionError("the last model answers or raises")
