"""Model presenters: turn what is known of models, and their tests, into views of the API."""

from collections.abc import Container, Mapping, Sequence

from agiraph.api.model_views import (
    FlagFact,
    ModelCheck,
    ModelsView,
    ModelTestView,
    ModelView,
    NumberFact,
    ProviderView,
)
from agiraph.domain.errors import Misconfigured
from agiraph.domain.time import Clock
from agiraph.providers import searching
from agiraph.providers.catalogue import Catalogue
from agiraph.providers.facts.model_facts import Fact
from agiraph.providers.listing import ListedModel, listing
from agiraph.providers.probe import CheckName, probe
from agiraph.providers.vendors import REMOTE_VENDOR_NAMES, VENDOR_BY_NAME


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
            ProviderView(
                name=provider.name,
                address=provider.address,
                is_local=provider.is_local,
                takes_key=provider.name in REMOTE_VENDOR_NAMES,
                has_stored_key=_key_variable(provider.name) in stored,
                state=provider.state,
                advice=provider.advice,
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
    return ModelTestView(
        model=name,
        at=clock.now(),
        checks=[
            ModelCheck(name=c.name, verdict=c.verdict, what=c.what, advice=c.advice) for c in checks
        ],
    )


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
    facts = model.facts
    return ModelView(
        name=model.name,
        is_default=model.name in (name.strip() for name in default.split(",")),
        window=NumberFact(value=facts.window.value, origin=facts.window.origin),
        output_limit=_number(facts.output_limit),
        tools=_flag(facts.tools),
        images=_flag(facts.images),
        pdf=_flag(facts.pdf),
        thinking=_flag(facts.thinking),
        search=_search(model.name),
        input_usd=_number(facts.input_usd),
        output_usd=_number(facts.output_usd),
        retires=facts.retires,
        use_instead=facts.use_instead,
        advice=models.diagnosis(model.name).narrow_window(),
        last_test=last_test,
    )


def _search(name: str) -> FlagFact | None:
    is_known = name.partition("/")[0] in searching.MODELS
    return FlagFact(value=True, origin="package") if is_known else None


def _number(fact: Fact[int] | Fact[float] | None) -> NumberFact | None:
    return None if fact is None else NumberFact(value=fact.value, origin=fact.origin)


def _flag(fact: Fact[bool] | None) -> FlagFact | None:
    return None if fact is None else FlagFact(value=fact.value, origin=fact.origin)
