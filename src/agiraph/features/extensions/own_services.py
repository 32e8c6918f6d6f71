"""Own services: makes search engines, channels and providers of models from a person's code."""

import re
from collections.abc import Callable
from dataclasses import field, replace
from functools import partial
from typing import Any, cast

from agiraph.core.domain.errors import (
    AgiraphError,
    Misconfigured,
    ModelGarbled,
    ModelUnavailable,
    Refused,
)
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
from agiraph.core.domain.records.search import Hit, Results, distinct, one_line
from agiraph.core.domain.value import dataclass
from agiraph.core.domain.work import Usage
from agiraph.core.tools.own_code import (
    ChannelDeclaration,
    EngineDeclaration,
    ProviderDeclaration,
    Secrets,
)
from agiraph.features.extensions.own_threads import OwnThreads, Raised, TookTooLong, error_text
from agiraph.features.extensions.own_tools import check_timeout
from agiraph.features.extensions.signatures import bound
from agiraph.models.base import Model, OnDelta, Reply, Request
from agiraph.models.vendors import VENDOR_BY_NAME

NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")
MOST_CHARACTERS = 2000
"""Of each part of a hit."""


def check_engine(declared: EngineDeclaration) -> None:
    """Raise `Refused` if a search engine of a person's code has a wrong name or value."""
    check_name("engine", declared.name)
    check_timeout(f"the engine {declared.name!r}", declared.timeout_s)


def check_name(kind: str, name: str) -> None:
    if not NAME.fullmatch(name):
        raise Refused(f"the {kind}'s name {name!r} is not made of small letters, digits, - and _ .")


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnEngine:
    """A search engine that a person's file declares."""

    declared: EngineDeclaration
    secrets: Secrets = field(repr=False)
    threads: OwnThreads = field(repr=False)

    @property
    def name(self) -> str:
        return f"own:{self.declared.name}"

    @property
    def usd_per_1000(self) -> float | None:
        return self.declared.usd_per_1000

    async def search(self, query: str, *, limit: int) -> Results:
        """Return the hits of the person's function, checked and cut to `limit`."""
        declared = self.declared
        act = bound(declared, self.secrets)
        try:
            hits = await self.threads.call(
                f"engine {declared.name}",
                partial(act, query, limit),
                timeout_s=declared.timeout_s,
                finish=lambda value: self._hits(value, limit),
            )
            return Results(hits=hits, usage=Usage(usd=declared.usd_per_1000 / 1000, searches=1))
        except TookTooLong:
            raise Refused(
                f"The search engine ({self.name}) did not answer in time. Try once more, or go on "
                "with what you have."
            ) from None
        except Raised as raised:
            error = raised.error
            if isinstance(error, Refused | Misconfigured):
                raise Refused(str(error)) from error
            failed = Refused(
                f"The search engine ({self.name}) failed. Go on with what you have, and say so."
            )
            # It may repeat what a server sent.
            failed.quoted = error_text(error)
            raise failed from error

    def _hits(self, value: Any, limit: int) -> tuple[Hit, ...]:
        if not isinstance(value, (list, tuple)):
            raise Refused(f"The search engine ({self.name}) returned no list of hits.")
        hits: list[Hit] = []
        for one in cast(list[Any], value)[:limit]:
            if not isinstance(one, Hit) or not one_line(one.url).startswith(
                ("https://", "http://")
            ):
                raise Refused(
                    f"The search engine ({self.name}) returned something that is not a Hit with a "
                    "complete address."
                )
            url, title, snippet = (
                one_line(text)[:MOST_CHARACTERS] for text in (one.url, one.title, one.snippet)
            )
            hits.append(Hit(title=title or url, url=url, snippet=snippet))
        return distinct(hits, limit)


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


def make_channel(
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


_TAKEN = frozenset({"demo", "text", "scripted", "cli", "new"})


def check_provider(declared: ProviderDeclaration) -> None:
    """Raise `Refused` if something in a provider's declaration is wrong."""
    check_name("provider", declared.name)
    if declared.name in VENDOR_BY_NAME or declared.name in _TAKEN:
        raise Refused(f"the provider {declared.name!r} is one of agiraph; choose another name.")


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnModel:
    """A model of a person's provider. Its code runs on the runtime's event loop."""

    name: str
    inner: Any = field(repr=False)

    async def reply(self, request: Request, on_delta: OnDelta | None = None) -> Reply:
        """Return the reply of the person's code; any error of it becomes a `ModelError`."""
        try:
            reply = await self.inner.reply(request, on_delta)
        except AgiraphError:
            raise
        except Exception as error:
            raise ModelUnavailable(f"{self.name} failed: {error_text(error)}.") from error
        if not isinstance(reply, Reply):
            raise ModelGarbled(f"{self.name} returned a {type(reply).__name__}, not a Reply.")
        return reply


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnProvider:
    """Makes the models of a provider that a person's file declares."""

    declared: ProviderDeclaration
    secrets: Secrets = field(repr=False)

    def __call__(self, model: str) -> Model:
        """Return the model of this name, or raise `Misconfigured` with what went wrong."""
        declared, name = self.declared, f"{self.declared.name}/{model}"
        try:
            inner = bound(declared, self.secrets)(model)
        except AgiraphError as error:
            raise Misconfigured(str(error)) from error
        except Exception as error:
            raise Misconfigured(f"{name} cannot be made: {error_text(error)}.") from error
        if not callable(getattr(inner, "reply", None)):
            raise Misconfigured(f"{name}: its provider returned an object without `reply`.")
        return OwnModel(name=name, inner=inner)
