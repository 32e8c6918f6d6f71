"""Model presenters: what is known of models as the API returns it, and their tests, each model's
last one kept as a file in the home."""

import hashlib
import logging
from collections.abc import Container, Mapping, Sequence

from pydantic import ValidationError

from agiraph.api.server_views import (
    FlagFact,
    ModelCheck,
    ModelsView,
    ModelTestView,
    ModelView,
    ProviderView,
)
from agiraph.core.domain.errors import AgiraphError, Misconfigured
from agiraph.core.domain.times.time import Clock
from agiraph.core.home.layout import Home
from agiraph.models import searching
from agiraph.models.catalogue import Catalogue
from agiraph.models.listing import ListedModel, listing
from agiraph.models.probe import CheckName, probe
from agiraph.models.vendors import REMOTE_VENDOR_NAMES, VENDOR_BY_NAME

FOLDER = "model-tests"
LARGEST_BYTES = 100_000
log: logging.Logger = logging.getLogger("agiraph.api")


async def models_view(
    models: Catalogue,
    default: str,
    tests: Mapping[str, ModelTestView],
    stored: Container[str] = (),
) -> ModelsView:
    """Return all providers, what is known of their models, and the last test of
    each model. `stored` are the variables of the keys that a person entered in the web UI."""
    chain = [name.strip() for name in default.split(",")]
    providers = await listing(models, [*chain, *tests])
    return ModelsView(
        default=default,
        default_problem=await _problem(models, default),
        providers=[
            ProviderView.of(
                provider,
                takes_key=provider.name in REMOTE_VENDOR_NAMES,
                has_stored_key=_key_variable(provider.name) in stored,
                models=[
                    _model_view(models, model, default, tests.get(model.name))
                    for model in provider.models
                ],
            )
            for provider in providers
        ],
    )


def _key_variable(provider: str) -> str:
    vendor = VENDOR_BY_NAME.get(provider)
    return vendor.key_variable if vendor else ""


async def test_view(
    models: Catalogue, name: str, clock: Clock, calls: Sequence[CheckName]
) -> ModelTestView:
    """Return what one model does in one short call for words and in these calls."""
    checks = await probe(models, name, calls)
    return ModelTestView(model=name, at=clock.now(), checks=[ModelCheck.of(c) for c in checks])


def facts_view(models: Catalogue, name: str, default: str, test: ModelTestView) -> ModelView:
    """Return what is known of one model, with its last test."""
    return _model_view(models, ListedModel(name=name, facts=models.facts(name)), default, test)


async def _problem(models: Catalogue, name: str) -> str:
    try:
        await models.learn(name)
        models.check(name)
    except Misconfigured as error:
        return str(error)
    return models.access_problem(name)


def _model_view(
    models: Catalogue, model: ListedModel, default: str, last_test: ModelTestView | None
) -> ModelView:
    can_search = model.name.partition("/")[0] in searching.MODELS
    return ModelView.of(
        model.facts,
        name=model.name,
        is_default=model.name in (name.strip() for name in default.split(",")),
        search=FlagFact(value=True, origin="package") if can_search else None,
        advice=models.diagnosis(model.name).narrow_window(),
        last_test=last_test,
    )


def keep(home: Home, test: ModelTestView) -> None:
    """Replace the last test of a model. A file for each model: a server and a command may write at
    the same time."""
    name = hashlib.sha256(test.model.encode()).hexdigest()[:32]
    home.folder.write(f"{FOLDER}/{name}.json", test.model_dump_json(indent=2).encode())


def kept(home: Home) -> dict[str, ModelTestView]:
    """Return the last test of each model that was tested, by the model's name.

    A file that cannot be read is logged and left as it is; the model's next test replaces it.
    """
    if not home.folder.exists(FOLDER):
        return {}
    found: dict[str, ModelTestView] = {}
    for entry in home.folder.list(FOLDER):
        path = f"{FOLDER}/{entry.name}"
        try:
            data = home.folder.read(path, limit=LARGEST_BYTES)
            test = ModelTestView.model_validate_json(data)
        except (AgiraphError, ValidationError) as error:
            log.warning("%s does not hold a valid test of a model: %s", home.path / path, error)
        else:
            found[test.model] = test
    return found
