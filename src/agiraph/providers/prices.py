"""Prices: what a call costs and how much a model can take in, where that is known."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import ClassVar

from pydantic import ConfigDict

from agiraph.domain.work import Usage
from agiraph.providers.base import Model, OnDelta, Reply, Request

WINDOW = 128_000
"""Assumed of a model nobody knows; settings may say better."""

_VENDORS = {"gemini": "google"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a person says of a model: dollars per million tokens, and its window."""

    __pydantic_config__: ClassVar = ConfigDict(extra="forbid")

    input_usd: float | None = None
    output_usd: float | None = None
    cached_usd: float | None = None
    window: int | None = None


@dataclass(frozen=True, slots=True)
class Prices:
    """Settings first, then the price list that comes with the package."""

    terms: Mapping[str, Terms] = field(default_factory=dict[str, Terms])

    def usd(self, name: str, usage: Usage) -> float | None:
        """The price of a call to `provider/model`; None if nobody knows it."""
        said = self.terms.get(name)
        if said is not None and said.input_usd is not None and said.output_usd is not None:
            cached = said.input_usd if said.cached_usd is None else said.cached_usd
            fresh = usage.input_tokens - usage.cached_tokens
            millionths = fresh * said.input_usd + usage.cached_tokens * cached
            return (millionths + usage.output_tokens * said.output_usd) / 1_000_000
        return _listed(name, usage.input_tokens, usage.output_tokens, usage.cached_tokens)

    def price_of_input(self, name: str, tokens: int) -> float:
        """What it costs to show a model so many tokens; 0 where nobody knows."""
        return self.usd(name, Usage(input_tokens=tokens)) or 0.0

    def window(self, name: str) -> int:
        """How many tokens the model can be shown at once."""
        said = self.terms.get(name)
        if said is not None and said.window is not None:
            return said.window
        return ("/" in name and _listed_window(name)) or WINDOW


def _reference(name: str) -> tuple[str, str]:
    provider, _, model = name.removeprefix("text/").partition("/")
    return _VENDORS.get(provider, provider), model


def _listed(name: str, input_tokens: int, output_tokens: int, cached_tokens: int) -> float | None:
    if "/" not in name or not _is_listed(name):
        return None
    from genai_prices import Usage as Listed  # a large table, read only where it is asked for
    from genai_prices import calc_price

    provider, model = _reference(name)
    counted = Listed(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cache_read_tokens=cached_tokens or None,
    )
    return float(calc_price(counted, model_ref=model, provider_id=provider).total_price)


@lru_cache(256)
def _is_listed(name: str) -> bool:
    return _window_or(name, -1) != -1


@lru_cache(256)
def _listed_window(name: str) -> int | None:
    return _window_or(name, None)


def _window_or(name: str, unknown: int | None) -> int | None:
    from genai_prices import Usage as Listed
    from genai_prices import calc_price

    provider, model = _reference(name)
    try:
        found = calc_price(Listed(input_tokens=1), model_ref=model, provider_id=provider)
    except (LookupError, ValueError):
        return unknown
    return found.model.context_window


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """A model whose replies say what they cost and who gave them."""

    model: Model
    prices: Prices

    @property
    def name(self) -> str:
        return self.model.name

    async def reply(self, request: Request, on_delta: OnDelta | None = None) -> Reply:
        reply = await self.model.reply(request, on_delta)
        usage = reply.usage.bounded()
        usd = usage.usd if usage.usd is not None else self.prices.usd(self.name, usage)
        return replace(reply, usage=replace(usage, usd=usd), model=self.name)
