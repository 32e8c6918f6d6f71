"""Resolving: puts own engines and providers into the places that the settings name."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from agiraph.features.extensions.declarations import EngineDeclaration, ProviderDeclaration
from agiraph.features.extensions.loading import Extensions
from agiraph.features.extensions.own_engines import OwnEngine
from agiraph.features.extensions.own_models import OwnProvider
from agiraph.models.catalogue import Catalogue
from agiraph.models.registry import ModelFactory
from agiraph.models.searching import VendorEngine, vendor_engine
from agiraph.web.access import DefaultEngine, WantedEngine, Web
from agiraph.web.open_sources import OpenEngine


def web_with_keys(web: Web, models: Catalogue) -> Web:
    """Return the web access whose search follows the keys that the models use: an engine that
    nobody has chosen changes with them, and that of a vendor has no other key."""
    engine, registry = web.engine, models.registry
    if web.follows_keys:
        vendors = partial(_vendor_engine, models)
        kept = engine if isinstance(engine, OpenEngine) else OpenEngine()
        return replace(web, engine=DefaultEngine(vendor_engine=vendors, open_sources=kept))
    if isinstance(engine, VendorEngine):
        return replace(web, engine=replace(engine, account=registry.account))
    return web


def _vendor_engine(models: Catalogue) -> VendorEngine | None:
    return vendor_engine(models.registry.keys, models.prices, "", "")


def web_with_engine(web: Web, extensions: Extensions) -> Web:
    """Return the web access with the own engine that the settings name; without a search engine
    if no enabled file declares it."""
    if not isinstance(web.engine, WantedEngine):
        return web
    declared = extensions.declared.get(("engines", web.engine.own_name))
    if not isinstance(declared, EngineDeclaration):
        return replace(web, engine=None)
    own = OwnEngine(declared=declared, secrets=extensions.secrets.get, threads=extensions.threads)
    return replace(web, engine=own)


def providers(extensions: Extensions) -> Mapping[str, ModelFactory]:
    """Return the own providers of models by name."""
    return {
        declared.name: OwnProvider(declared=declared, secrets=extensions.secrets.get)
        for declared in extensions.declared.values()
        if isinstance(declared, ProviderDeclaration)
    }
