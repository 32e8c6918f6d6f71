"""Own channels: sends and receives messages through a person's own code."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from agiraph.core.domain.errors import AgiraphError
from agiraph.core.domain.messages import MessageKind
from agiraph.core.domain.records.channels import (
    Channel,
    DeliveryFailed,
    Incoming,
    Receipt,
    Received,
    WantedChannel,
)
from agiraph.core.domain.records.deliveries import OutgoingMessage
from agiraph.core.tools.own_code import ChannelDeclaration, Secrets
from agiraph.features.extensions.own_threads import OwnThreads, Raised, TookTooLong
from agiraph.features.extensions.results import error_text
from agiraph.features.extensions.signatures import bound

RECEIVE_TIMEOUT_S = 120.0
"""The time limit of `receive`. The code should return after a minute at most."""
_TWO_WAY = ("receive", "edit", "acknowledge")


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnChannel:
    """A channel that a person's file declares. Each call of its code runs in a thread of its
    own."""

    declared: ChannelDeclaration
    kinds: frozenset[MessageKind]
    act: Callable[..., Any] = field(repr=False)
    threads: OwnThreads = field(repr=False)

    @property
    def description(self) -> str:
        return f"own:{self.declared.name}"

    async def send(self, outgoing: OutgoingMessage) -> Receipt | None:
        """Call the person's code; an error of it means that the message was not taken."""
        sent = await self.call(self.act, outgoing)
        return sent if isinstance(sent, Receipt) else None

    async def call(
        self, act: Callable[..., Any], *given: Any, timeout_s: float | None = None
    ) -> Any:
        """Call code of the file; raise `DeliveryFailed` if it fails or takes too long."""
        declared = self.declared
        try:
            return await self.threads.call(
                f"channel {declared.name}",
                partial(act, *given),
                timeout_s=timeout_s or declared.timeout_s,
            )
        except TookTooLong:
            raise DeliveryFailed(f"{self.description} did not return in time") from None
        except Raised as raised:
            error = raised.error
            if isinstance(error, DeliveryFailed):
                raise error from None
            said = str(error) if isinstance(error, AgiraphError) else error_text(error)
            raise DeliveryFailed(said) from error
        except AgiraphError as error:  # too many calls of it still run
            raise DeliveryFailed(str(error)) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnTwoWayChannel(OwnChannel):
    """A channel of a person's file that also receives."""

    inner: Any = field(repr=False)

    @property
    def pairing_hint(self) -> str:
        return str(getattr(self.inner, "pairing_hint", "Send {code} through the channel."))

    async def receive(self, cursor: str, paired: str | None) -> Received:
        """Return what the person's code received; anything but a `Received` is a failure."""
        found = await self.call(self.inner.receive, cursor, paired, timeout_s=RECEIVE_TIMEOUT_S)
        if not isinstance(found, Received):
            raise DeliveryFailed(
                f"{self.description} returned a {type(found).__name__}, not a Received"
            )
        return found

    async def edit(self, outgoing: OutgoingMessage, receipt: str) -> None:
        await self.call(self.inner.edit, outgoing, receipt)

    async def acknowledge(self, incoming: Incoming, notice: str) -> None:
        await self.call(self.inner.acknowledge, incoming, notice)


def make(
    wanted: WantedChannel, declared: ChannelDeclaration, secrets: Secrets, threads: OwnThreads
) -> Channel:
    """Return the channel of a declaration; one that only says why, if its code fails."""
    act = bound(declared, secrets)
    common: dict[str, Any] = {"declared": declared, "kinds": wanted.kinds, "threads": threads}
    if not isinstance(declared.act, type):
        return OwnChannel(act=act, **common)
    try:
        inner = act()
        send = inner.send
    except Exception as error:
        # One channel must not stop the others, nor the runtime: its messages wait.
        return replace(wanted, problem=error_text(error))
    if not all(callable(getattr(inner, name, None)) for name in _TWO_WAY):
        return OwnChannel(act=send, **common)
    return OwnTwoWayChannel(act=send, inner=inner, **common)
