"""Prices: the price of a model call, from the settings or the genai-prices table."""

import re
import time
from collections.abc import Mapping
from dataclasses import field, fields
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache, lru_cache
from importlib.metadata import version
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import orjson

from agiraph.core.domain.sections import entry
from agiraph.core.domain.value import dataclass
from agiraph.core.domain.work import Usage
from agiraph.late_patterns import late
from agiraph.models.base import Model, OnDelta, Reply, Request, parts_of
from agiraph.models.vendors import VENDOR_BY_NAME, price_list_id

if TYPE_CHECKING:
    from genai_prices.types import ModelPrice


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """What a call costs: dollars for a million of each count."""

    input: float = 0.0
    output: float = 0.0
    cached: float = 0.0
    cache_write: float = 0.0
    thinking: float = 0.0
    search: float = 0.0
    call: float = 0.0
    """For the call itself, in millionths of a dollar."""

    def usd(self, usage: Usage) -> float:
        """Return the price of a call."""
        plain = usage.input_tokens - usage.cached_tokens - usage.cache_write_tokens
        millionths = plain * self.input + usage.cached_tokens * self.cached
        millionths += usage.cache_write_tokens * self.cache_write
        millionths += (usage.output_tokens - usage.thinking_tokens) * self.output
        millionths += usage.thinking_tokens * self.thinking + usage.searches * self.search
        return (millionths + self.call) / 1_000_000


_FREE = Rates()


@dataclass(frozen=True, slots=True)
class Prices:
    """Looks in the settings first, then in the genai-prices table, which is read offline."""

    terms: Mapping[str, Terms] = field(default_factory=dict[str, Terms])
    _rates: dict[str, Rates | None] = field(
        default_factory=dict[str, Rates | None], init=False, repr=False, compare=False
    )
    """By model: what its settings say of its price; None: the table says it."""

    def terms_of(self, name: str) -> Terms:
        """Return what the settings say of a model; `text/…` is the model behind it, unless it has
        settings of its own."""
        return self.terms.get(name) or self.terms.get(name.removeprefix("text/"), NO_TERMS)

    def rates(self, name: str, input_tokens: int) -> Rates | None:
        """Return what a call of `provider/model` with so much input costs; None if not known."""
        if name not in self._rates:
            self._rates[name] = _set_rates(self.terms_of(name)) or (
                _FREE if is_free(name) else None
            )
        return self._rates[name] or _listed_rates(name, input_tokens)

    def usd(self, name: str, usage: Usage) -> float | None:
        """Return the price of a call to `provider/model`; None if it is not known."""
        rates = self.rates(name, usage.input_tokens)
        return None if rates is None else rates.usd(usage)

    def price_of_input(self, name: str, tokens: int) -> float:
        """Return the price of this many input tokens; 0 if it is not known."""
        rates = self.rates(name, tokens)
        return 0.0 if rates is None else (tokens * rates.input + rates.call) / 1_000_000


def _set_rates(terms: Terms) -> Rates | None:
    """Return the rates of a model whose price is in the settings."""
    if terms.input_usd is None or terms.output_usd is None:
        return None
    return Rates(
        input=terms.input_usd,
        output=terms.output_usd,
        cached=terms.input_usd if terms.cached_usd is None else terms.cached_usd,
        cache_write=terms.input_usd if terms.cache_write_usd is None else terms.cache_write_usd,
        thinking=terms.output_usd,
        search=(terms.search_usd or 0.0) * 1_000,
    )


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


def _listed_rates(name: str, input_tokens: int) -> Rates | None:
    # Some prices change with the day or the minute of it.
    for start, rates in _listed_tiers(name, int(time.time() // 60)):
        if input_tokens > start:
            return rates
    return None


@lru_cache(256)
def _listed_tiers(name: str, minute: int) -> "_Tiers":
    """Return the tiers of a model's listed price in this minute, the highest first; none if it is
    not listed."""
    if "/" not in name or not _is_listed(name):
        return []
    provider, model = _price_list_ids(name)
    if (models := _read_beforehand(provider)) is not None:
        return _tiers_at(_model_in(models, model), datetime.fromtimestamp(60 * minute, UTC))
    from genai_prices import data_snapshot  # a large table, imported only where it is needed

    listed = data_snapshot.get_snapshot().find_provider_model(model, None, provider, None)[1]
    price = listed.get_prices(datetime.fromtimestamp(60 * minute, UTC))
    if id(price) not in _tiers:
        _tiers[id(price)] = price, _tiers_of(price)
    return _tiers[id(price)][1]


_RATES = tuple(one.name for one in fields(Rates))
_COMPACT_DATE = late(r"-(20\d{2})(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])(?=-|:|$)")
_Tiers = list[tuple[int, Rates]]
_tiers: dict[int, tuple["ModelPrice", _Tiers]] = {}
"""By the id of a listed price, which is kept beside them: its tiers."""


def _tiers_of(price: "ModelPrice") -> _Tiers:
    """Return the rates of a listed price, for calls with more input tokens than the number beside
    them; the highest number first."""
    from genai_prices.types import TieredPrices

    values = [value for value in vars(price).values() if isinstance(value, TieredPrices)]
    starts = sorted({tier.start for value in values for tier in value.tiers})
    first = (-1, _rates_at(price, starts[0] if starts else 1_000_000))
    return [*((start, _rates_at(price, start + 1)) for start in reversed(starts)), first]


def _rates_at(price: "ModelPrice", tokens: int) -> Rates:
    """Return the rates of calls with about so many input tokens, which decide the tier."""
    from genai_prices import Usage as Listed

    def usd(**counts: int) -> Decimal:
        return price.calc_price(Listed(**counts))["total_price"]

    # Nothing is added for images and PDFs: OpenAI, Anthropic and Google turn them into tokens,
    # count these among the input tokens that they report, and charge them as such. A model without
    # a price of its own for a kind of tokens pays them as input or output.
    call, plain = usd(input_tokens=0), usd(input_tokens=tokens)
    sums = {
        "input": plain - call,
        "cached": usd(input_tokens=tokens, cache_read_tokens=tokens) - call,
        "cache_write": usd(input_tokens=tokens, cache_write_tokens=tokens) - call,
        "output": usd(input_tokens=tokens, output_tokens=tokens) - plain,
        "thinking": usd(input_tokens=tokens, output_tokens=tokens, output_reasoning_tokens=tokens)
        - plain,
        "search": usd(input_tokens=tokens, web_searches=tokens) - plain,
    }
    rates = {name: float(total * 1_000_000 / tokens) for name, total in sums.items()}
    return Rates(**rates, call=float(call * 1_000_000))


@lru_cache(256)
def _is_listed(name: str) -> bool:
    # A listed model may have no window (None), so another value stands for "not listed".
    return _window_or(name, -1) != -1


@lru_cache(256)
def _listed_window(name: str) -> int | None:
    return _window_or(name, None)


def _window_or(name: str, unknown: int | None) -> int | None:
    provider, model = _price_list_ids(name)
    if (models := _read_beforehand(provider)) is not None:
        found = _model_in(models, model)
        return unknown if found is None else found["window"]
    from genai_prices import Usage as Listed
    from genai_prices import calc_price

    try:
        priced = calc_price(Listed(input_tokens=1), model_ref=model, provider_id=provider)
    except (LookupError, ValueError):
        return unknown
    return priced.model.context_window


@cache
def _read_beforehand(provider: str) -> list[dict[str, Any]] | None:
    """Return the models of a vendor in the order in which they are looked for, with their windows
    and prices, as `price_lists.jsonl` has them; None: the package must be asked.

    That file holds what one version of the package says of the vendors of agiraph: to import the
    package takes longer than most commands, and needs more memory than all else of the models.
    """
    lines = (files("agiraph.models.facts") / "price_lists.jsonl").read_bytes().splitlines()
    if orjson.loads(lines[0])["version"] != version("genai-prices"):
        return None
    begin = orjson.dumps({"provider": provider})[:-1]
    line = next((line for line in lines if line.startswith(begin + b",")), None)
    return None if line is None else orjson.loads(line)["models"]


def _model_in(models: list[dict[str, Any]], name: str) -> dict[str, Any] | None:
    """Return the model of this name; a date in it may be written without dashes."""
    name = name.lower()
    for written in (name, _COMPACT_DATE.sub(_dashed, name)):
        for model in models:
            if _fits(model["match"], written):
                return model
    return None


def _dashed(found: re.Match[str]) -> str:
    try:
        return f"-{date(int(found[1]), int(found[2]), int(found[3])).isoformat()}"
    except ValueError:
        return found[0]


def _fits(clause: Mapping[str, Any], name: str) -> bool:
    """Whether a name is one that the clause describes."""
    [(kind, what)] = clause.items()
    match kind:
        case "or":
            return any(_fits(each, name) for each in what)
        case "and":
            return all(_fits(each, name) for each in what)
        case "equals":
            return name == what
        case "starts_with":
            return name.startswith(what)
        case "ends_with":
            return name.endswith(what)
        case "regex":
            return re.search(what, name) is not None
        case _:
            return what in name


def _tiers_at(model: Mapping[str, Any] | None, moment: datetime) -> "_Tiers":
    """Return the tiers of a model's price at this moment. Of its prices the last one counts that is
    in force, and the first one if none is."""
    prices: list[dict[str, Any]] = [] if model is None else model["prices"]
    force = (price for price in reversed(prices) if _is_in_force(price, moment))
    price = next(force, prices[0] if prices else None)
    if price is None:
        return []
    return [(start, Rates(**dict(zip(_RATES, usd, strict=True)))) for start, usd in price["tiers"]]


def _is_in_force(price: Mapping[str, Any], moment: datetime) -> bool:
    if (day := price.get("from_day")) is not None:
        return moment.date().isoformat() >= day
    if (hours := price.get("hours")) is None:
        return True
    [start, end], now = hours, moment.time().isoformat()
    return start <= now < end if start <= end else now >= start or now < end


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
        name = self.name
        if usage.usd is None:
            usage = usage.priced(self.prices.usd(name, usage))
        return reply.by(name, usage)
