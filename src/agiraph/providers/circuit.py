"""Circuit breaker: stops calls to a provider that keeps failing, then tries it with one call."""

from dataclasses import dataclass, field
from datetime import datetime

from agiraph.domain.errors import ModelError, ModelUnavailable
from agiraph.domain.time import Clock
from agiraph.providers.base import Model, OnDelta, Reply, Request

MAX_FAILURES = 5
"""The circuit opens at this many failures in a row."""
OPEN_SECONDS = 30.0
"""How long an open circuit refuses calls before it lets one through."""


@dataclass(slots=True)
class CircuitBreaker:
    """Shared by all models of one provider, so that many agents do not all call a broken one."""

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
        left_s = self.open_until - self.clock.monotonic()
        if left_s > 0 or self.is_probing:
            wait_s = max(left_s, 1.0)
            raise ModelUnavailable(
                f"{self.provider} has failed {self.failures} times in a row and is not called for "
                f"{wait_s:.0f} s.",
                retry_after=wait_s,
                unused=True,
            )
        self.is_probing = True

    def succeed(self) -> None:
        self.failures, self.is_probing = 0, False
        self.succeeded_at = self.clock.now()

    def note(self, error: ModelError) -> None:
        """Remember what a failed call said."""
        self.failed_at, self.error = self.clock.now(), str(error)

    def fail(self) -> None:
        self.failures, self.is_probing = self.failures + 1, False
        self.open_until = self.clock.monotonic() + OPEN_SECONDS

    def abandon(self) -> None:
        """End a call that says nothing about the provider: it was cancelled, or refused."""
        self.is_probing = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarded:
    """A model behind its provider's circuit breaker."""

    model: Model
    circuit: CircuitBreaker

    @property
    def name(self) -> str:
        return self.model.name

    async def reply(self, request: Request, on_delta: OnDelta | None = None) -> Reply:
        self.circuit.admit()
        try:
            reply = await self.model.reply(request, on_delta)
        except ModelUnavailable as error:
            self.circuit.note(error)
            self.circuit.fail()
            raise
        except (
            BaseException
        ) as error:  # CancelledError too: a probe that is never ended blocks all others
            if isinstance(error, ModelError):
                self.circuit.note(error)
            self.circuit.abandon()
            raise
        self.circuit.succeed()
        return reply
