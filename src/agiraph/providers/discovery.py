"""Discovery: finds the local model servers that run on this machine at their usual ports."""

import asyncio
from dataclasses import dataclass

from agiraph.providers.catalogue import Catalogue
from agiraph.providers.vendors import VENDORS

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
