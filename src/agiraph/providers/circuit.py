"""Circuit: a provider that keeps failing is left alone for a while, then tried with one call."""

from dataclasses import dataclass, field

from agiraph.domain.errors import ModelUnavailable
from agiraph.domain.time import Clock
from agiraph.providers.base import Model, OnDelta, Reply, Request

FAILURES = 5
REST_SECONDS = 30.0


@dataclass(slots=True)
class Circuit:
    """Shared by all models of one provider, so that a hundred agents do not storm a broken one."""

    provider: str
    clock: Clock
    failures: int = 0
    open_until: float = field(default=0.0)
    probing: bool = False

    def admit(self) -> None:
        """Let a call through, or say when it is worth trying again."""
        if self.failures < FAILURES:
            return
        left = self.open_until - self.clock.monotonic()
        if left > 0 or self.probing:
            wait = max(left, 1.0)
            raise ModelUnavailable(
                f"{self.provider} has failed {self.failures} times running and is left alone "
                f"for {wait:.0f} s.",
                retry_after=wait,
                unused=True,
            )
        self.probing = True

    def succeed(self) -> None:
        self.failures, self.probing = 0, False

    def fail(self) -> None:
        self.failures, self.probing = self.failures + 1, False
        self.open_until = self.clock.monotonic() + REST_SECONDS

    def abandon(self) -> None:
        """The call was cancelled; it says nothing about the provider."""
        self.probing = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarded:
    """A model behind its provider's circuit."""

    model: Model
    circuit: Circuit

    @property
    def name(self) -> str:
        return self.model.name

    async def reply(self, request: Request, on_delta: OnDelta | None = None) -> Reply:
        self.circuit.admit()
        try:
            reply = await self.model.reply(request, on_delta)
        except ModelUnavailable:
            self.circuit.fail()
            raise
        except BaseException:
            self.circuit.abandon()
            raise
        self.circuit.succeed()
        return reply
