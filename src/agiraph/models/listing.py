"""Listing: every provider with its state and models, for people who choose a model."""

import asyncio
from collections.abc import Iterable
from typing import Literal

from agiraph.core.domain.value import dataclass
from agiraph.models.catalogue import Catalogue
from agiraph.models.facts.model_facts import ModelFacts
from agiraph.models.vendors import VENDOR_BY_NAME, VENDORS

ProviderState = Literal["ready", "down", "no_key", "not_running"]
"""`down` is a server in the settings that does not answer, `not_running` a local server that
nobody has named and that was not found at its usual port."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedModel:
    name: str
    facts: ModelFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedProvider:
    name: str
    address: str
    is_local: bool
    """Whether it is a server that people run themselves."""
    state: ProviderState
    advice: str = ""
    """What to do to use it; empty if it is ready."""
    models: tuple[ListedModel, ...] = ()


async def listing(catalogue: Catalogue, also: Iterable[str] = ()) -> list[ListedProvider]:
    """Return all providers, those that are ready first. Servers are asked at the same time.

    `also` names models that their provider may have without saying so.
    """
    registry = catalogue.registry
    names = registry.providers()
    more = tuple(also)
    listed = await asyncio.gather(*(_listed(catalogue, name, more) for name in names))
    locked = [
        ListedProvider(
            name=vendor.name,
            address=vendor.base_url,
            is_local=False,
            state="no_key",
            advice=f"Set {vendor.key_variable} to use it.",
        )
        for vendor in VENDORS
        if not vendor.is_local and vendor.name not in names
    ]
    order: tuple[ProviderState, ...] = ("ready", "down", "not_running", "no_key")
    return sorted([*listed, *locked], key=lambda provider: order.index(provider.state))


async def _listed(catalogue: Catalogue, name: str, also: Iterable[str]) -> ListedProvider:
    registry, inventory = catalogue.registry, catalogue.inventory
    endpoint = registry.endpoint(name)
    assert endpoint is not None
    state: ProviderState = "ready"
    advice = ""
    is_own = registry.is_own_server(name)
    if is_own:
        answer = await inventory.ask(name)
        diagnosis = catalogue.diagnosis(f"{name}/…")
        if answer is not None and (advice := diagnosis.access_problem(answer)):
            is_named = registry.server(name) is not None or name not in _LOCAL
            state = "down" if is_named or answer.status else "not_running"
        for model in inventory.names(name):
            await inventory.learn(model)
    more = [model for model in also if model.startswith(f"{name}/")]
    known = dict.fromkeys([*catalogue.named_in_settings(name), *inventory.names(name), *more])
    return ListedProvider(
        name=name,
        address=endpoint.base_url,
        is_local=is_own,
        state=state,
        advice=advice,
        models=tuple(ListedModel(name=m, facts=inventory.facts(m)) for m in known),
    )


_LOCAL = frozenset(name for name, vendor in VENDOR_BY_NAME.items() if vendor.is_local)


PATIENCE_S = 2.0
"""A server on this machine answers at once; another program at the port may never do so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalModel:
    """A model on a local server."""

    name: str
    """As `provider/model`, with `text/` before it if the model cannot call tools."""
    address: str
    window: int


async def local_models(catalogue: Catalogue) -> list[LocalModel]:
    """Return the models of the local servers that answer, in the order of the vendors' table."""
    local = [vendor.name for vendor in VENDORS if vendor.is_local]
    found = await asyncio.gather(*(_at(catalogue, provider) for provider in local))
    return [model for models in found for model in models]


async def _at(catalogue: Catalogue, provider: str) -> list[LocalModel]:
    inventory, endpoint = catalogue.inventory, catalogue.registry.endpoint(provider)
    assert endpoint is not None
    models: list[LocalModel] = []
    try:
        async with asyncio.timeout(PATIENCE_S):
            await inventory.ask(provider)
            for name in inventory.names(provider):
                await inventory.learn(name)
    except TimeoutError:
        return []
    for name in inventory.names(provider):
        facts = inventory.facts(name)
        has_no_tools = facts.tools is not None and not facts.tools.value
        models.append(
            LocalModel(
                name=f"text/{name}" if has_no_tools else name,
                address=endpoint.host,
                window=facts.window.value,
            )
        )
    return models
