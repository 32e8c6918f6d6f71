"""Prices: the price of a model call, from the settings or the genai-prices table."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from agiraph.core.domain.sections import entry
from agiraph.core.domain.work import Usage
from agiraph.models.base import Model, OnDelta, Reply, Request, parts_of
from agiraph.models.vendors import VENDOR_BY_NAME, price_list_id


@entry
class Terms:
    """A model's prices in dollars per million tokens, and its context window, from the settings."""

    input_usd: float | None = None
    output_usd: float | None = None
    cached_usd: float | None = None
    """For input tokens that the vendor reads from its cache; None: as other input."""
    cache_write_usd: float | None = None
    """For input tokens that the vendor writes to its cache; None: as other input."""
    search_usd: float | None = None
    """For a thousand web searches that the vendor makes for replies; None: they cost nothing."""
    window: int | None = None
    output: int | None = None
    """Tokens of the longest reply."""
    tools: bool | None = None
    images: bool | None = None
    pdf: bool | None = None
    thinking: bool | None = None
    strength: str | None = None
    """What the model is good for, in a few words: coordinators are told it when they hire."""


NO_TERMS = Terms()


@dataclass(frozen=True, slots=True)
class Prices:
    """Looks in the settings first, then in the genai-prices table, which is read offline."""

    terms: Mapping[str, Terms] = field(default_factory=dict[str, Terms])

    def terms_of(self, name: str) -> Terms:
        """Return what the settings say of a model; `text/…` is the model behind it, unless it has
        settings of its own."""
        return self.terms.get(name) or self.terms.get(name.removeprefix("text/"), NO_TERMS)

    def usd(self, name: str, usage: Usage) -> float | None:
        """Return the price of a call to `provider/model`; None if it is not known."""
        terms = self.terms_of(name)
        if terms.input_usd is not None and terms.output_usd is not None:
            cached_usd = terms.input_usd if terms.cached_usd is None else terms.cached_usd
            write_usd = terms.input_usd if terms.cache_write_usd is None else terms.cache_write_usd
            plain = usage.input_tokens - usage.cached_tokens - usage.cache_write_tokens
            millionths = plain * terms.input_usd + usage.cached_tokens * cached_usd
            millionths += usage.cache_write_tokens * write_usd
            millionths += usage.searches * (terms.search_usd or 0.0) * 1_000
            return (millionths + usage.output_tokens * terms.output_usd) / 1_000_000
        if is_free(name):
            return 0.0
        return _listed_usd(name, usage)

    def price_of_input(self, name: str, tokens: int) -> float:
        """Return the price of this many input tokens; 0 if it is not known."""
        return self.usd(name, Usage(input_tokens=tokens)) or 0.0


def is_free(name: str) -> bool:
    """Whether this model runs on a server that people run themselves."""
    vendor = VENDOR_BY_NAME.get(parts_of(name)[0])
    return vendor is not None and vendor.is_local


def listed_window(name: str) -> int | None:
    """Return the context window in the genai-prices table; None if it has none."""
    return _listed_window(name) if "/" in name else None


def _price_list_ids(name: str) -> tuple[str, str]:
    """Return the ids of provider and model in the genai-prices table."""
    provider, model = parts_of(name)
    return price_list_id(provider), model


def _listed_usd(name: str, usage: Usage) -> float | None:
    if "/" not in name or not _is_listed(name):
        return None
    from genai_prices import Usage as Listed  # a large table, imported only where it is needed
    from genai_prices import calc_price

    provider, model = _price_list_ids(name)
    # Nothing is added for images and PDFs: OpenAI, Anthropic and Google turn them into tokens,
    # count these among the input tokens that they report, and charge them as such.
    counted = Listed(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cached_tokens or None,
        # A model without a price of its own for these pays them as input or output tokens.
        cache_write_tokens=usage.cache_write_tokens or None,
        output_reasoning_tokens=usage.thinking_tokens or None,
        web_searches=usage.searches or None,
    )
    return float(calc_price(counted, model_ref=model, provider_id=provider).total_price)


@lru_cache(256)
def _is_listed(name: str) -> bool:
    # A listed model may have no window (None), so another value stands for "not listed".
    return _window_or(name, -1) != -1


@lru_cache(256)
def _listed_window(name: str) -> int | None:
    return _window_or(name, None)


def _window_or(name: str, unknown: int | None) -> int | None:
    from genai_prices import Usage as Listed
    from genai_prices import calc_price

    provider, model = _price_list_ids(name)
    try:
        found = calc_price(Listed(input_tokens=1), model_ref=model, provider_id=provider)
    except (LookupError, ValueError):
        return unknown
    return found.model.context_window


def listed_models(provider: str) -> list[str]:
    """Return the models of a provider that the price list names, newest names last."""
    from genai_prices import data_snapshot

    wanted = price_list_id(provider)
    listed = data_snapshot.get_snapshot().providers
    return [model.id for found in listed if found.id == wanted for model in found.models]


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """A model that adds the price and its own name to each reply."""

    model: Model
    prices: Prices

    @property
    def name(self) -> str:
        return self.model.name

    async def reply(self, request: Request, on_delta: OnDelta | None = None) -> Reply:
        reply = await self.model.reply(request, on_delta)
        usage = reply.usage.bounded()
        # OpenRouter sends what the call really cost, which is better than any list.
        usd = usage.usd if usage.usd is not None else self.prices.usd(self.name, usage)
        return replace(reply, usage=replace(usage, usd=usd), model=self.name)
