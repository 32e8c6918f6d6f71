"""Hireable models: the few models that a coordinator is told of, with price, window and strength.

A vendor has dozens of models. A prompt that lists all of them costs money in every call and makes
the choice harder. Listed are the coordinator's own model, those that agiraph.toml names, and of
each vendor with a key its default, its strongest and its cheapest model.
"""

from collections.abc import Iterable
from dataclasses import replace

from agiraph.core.domain.errors import Misconfigured
from agiraph.core.domain.value import dataclass
from agiraph.models.catalogue import Catalogue, split_chain

MOST = 10
"""Models that are listed."""
NEWEST = 5
"""Models of one provider that are looked at, the newest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HireableModel:
    """A model that a worker can be hired with; None where nothing is known."""

    name: str
    window: int | None = None
    """Tokens that a request may hold."""
    input_usd: float | None = None
    """Dollars per million input tokens."""
    output_usd: float | None = None
    strength: str = ""
    """What it is good for, from agiraph.toml; else its rank by price among the listed models of its
    vendor."""


def hireable_models(models: Catalogue, own: str) -> list[HireableModel]:
    """Return the models that can be used, `own` (a name or a chain) first. Asks no server."""
    names = dict.fromkeys([split_chain(own)[0], *models.prices.terms, *_of_providers(models)])
    usable = [name for name in names if _is_usable(models, name)][:MOST]
    found = [_described(models, name) for name in usable]
    return [_ranked(model, found) for model in found]


def _of_providers(models: Catalogue) -> Iterable[str]:
    """Yield the models of each provider: of a server of one's own the first that it has told of,
    of a vendor its default, its strongest and its cheapest."""
    registry, inventory = models.registry, models.inventory
    defaults = registry.default_models()
    for provider in registry.providers():
        newest = inventory.names(provider)[:NEWEST]
        if registry.is_own_server(provider):  # also a vendor's gateway, which may have other models
            yield from newest
            continue
        yield from (name for name in defaults if name.partition("/")[0] == provider)
        prices = {name: models.facts(name).output_usd for name in newest}
        by_price = sorted((usd.value, name) for name, usd in prices.items() if usd is not None)
        yield from (name for _, name in (*by_price[-1:], *by_price[:1]))


def _is_usable(models: Catalogue, name: str) -> bool:
    try:
        models.check(name)
    except Misconfigured:
        return False
    return True


def _described(models: Catalogue, name: str) -> HireableModel:
    if models.is_own(name):
        return HireableModel(name=name)
    facts = models.facts(name)
    return HireableModel(
        name=name,
        window=None if facts.window.origin == "assumed" else facts.window.value,
        input_usd=None if facts.input_usd is None else facts.input_usd.value,
        output_usd=None if facts.output_usd is None else facts.output_usd.value,
        strength=models.prices.terms_of(name).strength or "",
    )


def _ranked(model: HireableModel, among: list[HireableModel]) -> HireableModel:
    """Return the model with its rank by price as its strength, unless the settings name one."""
    provider = model.name.partition("/")[0]
    prices = {m.output_usd for m in among if m.name.partition("/")[0] == provider and m.output_usd}
    if model.strength or not model.output_usd or len(prices) < 2:
        return model
    ranks = {max(prices): "strongest", min(prices): "cheapest"}
    return replace(model, strength=ranks.get(model.output_usd, ""))
