"""Catalogue: from names to models with circuit breaker, retries, prices and fallbacks."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from difflib import get_close_matches

from agiraph.domain.errors import Misconfigured, ModelMissing
from agiraph.domain.time import Clock
from agiraph.providers.base import Model, OnDelta, Reply, Request
from agiraph.providers.circuit import CircuitBreaker, Guarded
from agiraph.providers.facts.prices import Priced, Prices, listed_models
from agiraph.providers.fallback import Fallback
from agiraph.providers.registry import ModelFactory, Registry
from agiraph.providers.retry import Retrying
from agiraph.providers.wires.text import TextToolModel

SHORT_WAIT_S = 5.0
"""The longest backoff of a model when another model, or a person, waits for the call's end."""
MISSING_FOR = timedelta(minutes=10)
"""How long a name is refused after its provider said that it has no such model. Somebody may
install the model meanwhile."""
MOST_NAMED = 12
"""Models that a refusal names as those that exist."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """A model that writes down when its provider says that it does not exist."""

    model: Model
    missing: dict[str, datetime]
    clock: Clock

    @property
    def name(self) -> str:
        return self.model.name

    async def reply(self, request: Request, on_delta: OnDelta | None = None) -> Reply:
        try:
            reply = await self.model.reply(request, on_delta)
        except ModelMissing:
            self.missing[self.name] = self.clock.now()
            raise
        self.missing.pop(self.name, None)
        return reply


class Catalogue:
    """Models by name. Several names, separated by commas, are a chain of fallbacks."""

    def __init__(self, registry: Registry, prices: Prices, clock: Clock) -> None:
        self.registry = registry
        self.prices = prices
        self._clock = clock
        self._own: dict[str, ModelFactory] = {}
        self._circuits: dict[str, CircuitBreaker] = {}
        self._models: dict[tuple[str, bool], Model] = {}
        self._price_names: dict[str, list[str]] = {}
        self._missing: dict[str, datetime] = {}
        """When a provider last said that it has no model of this name."""

    def add(self, provider: str, factory: ModelFactory) -> None:
        """Serve `provider/…` by a model of your own, without retries, prices or circuit breaker."""
        self._own[provider] = factory
        self._price_names.clear()

    def resolve(self, names: str, *, patient: bool = True) -> Model:
        """Return the model or chain, or raise `Misconfigured` with what to write instead.

        With `patient=False` the model gives up after a few seconds: a person waits for its reply.
        """
        if (names, patient) not in self._models:
            chain = split_chain(names)
            # Only the last model of a chain is patient: before it, the next model is faster.
            models = [self._one(n, patient=patient and n == chain[-1]) for n in chain]
            model = models[0] if len(models) == 1 else Fallback(tuple(models))
            self._models[names, patient] = model
        return self._models[names, patient]

    def check(self, names: str) -> None:
        """Raise `Misconfigured` with the models that exist if one of the chain cannot be used: its
        provider is unknown or has no key, or said lately that it has no such model."""
        try:
            self.resolve(names)
        except Misconfigured as error:
            raise Misconfigured(f"{error} {self.alternatives(names)}".strip()) from error
        for name in split_chain(names):
            said = self._missing.get(name)
            if said is not None and self._clock.now() - said < MISSING_FOR:
                raise Misconfigured(
                    f"{name!r} does not exist: its provider has no model of this name. "
                    f"{self.alternatives(name)}".strip()
                )

    def alternatives(self, names: str) -> str:
        """Return a sentence that names the models which are known to exist, those with a similar
        name first; empty if none is known."""
        wanted = names.partition(",")[0].strip()
        known = [name for name in self._known(wanted) if name not in self._missing]
        near = get_close_matches(wanted, known, n=MOST_NAMED, cutoff=0.4)
        named = list(dict.fromkeys([*near, *known]))[:MOST_NAMED]
        return f"Models that exist: {', '.join(named)}." if named else ""

    def _known(self, name: str) -> Iterable[str]:
        """Yield the names in the settings, the vendors' defaults, and the price list's models of
        this name's provider, as far as their providers can be used."""
        provider = name.removeprefix("text/").partition("/")[0]
        yield from self.prices.terms
        yield from self.registry.default_models()
        if self.registry.is_usable(provider):
            yield from (f"{provider}/{model}" for model in listed_models(provider))

    def window(self, names: str) -> int:
        """Return the smallest context window of the chain, in tokens."""
        return min(self.prices.window(name) for name in self._names_for_prices(names))

    def usd(self, names: str, tokens: int) -> float:
        """Return the highest price of this many input tokens in the chain; 0 if not known."""
        return max(
            self.prices.price_of_input(name, tokens) for name in self._names_for_prices(names)
        )

    def is_priced(self, names: str) -> bool:
        """Whether calls of this model cost money that is known."""
        return self.usd(names, 1_000_000) > 0

    def _names_for_prices(self, names: str) -> list[str]:
        """Return the chain's names for the price list.

        A model of one's own is called `own`: the list must not price it like a vendor's model
        that has the same name.
        """
        if names not in self._price_names:
            chain = split_chain(names)
            free = {*self._own, "demo"}
            providers = [name.removeprefix("text/").partition("/")[0] for name in chain]
            self._price_names[names] = [
                "own" if provider in free else name
                for name, provider in zip(chain, providers, strict=True)
            ]
        return self._price_names[names]

    async def close(self) -> None:
        await self.registry.close()

    def _one(self, name: str, *, patient: bool) -> Model:
        bare = name.removeprefix("text/")
        provider, _, model = bare.partition("/")
        if provider in self._own:
            try:
                own = self._own[provider](model)
            except LookupError as error:
                raise Misconfigured(f"{provider!r} has no model {model!r}.") from error
            return own if name == bare else TextToolModel(own)
        wire = self._wire(name)
        # One per provider, not per model: an outage hits all models of a vendor.
        circuit = self._circuits.setdefault(provider, CircuitBreaker(provider, self._clock))
        noted = Noted(model=wire, missing=self._missing, clock=self._clock)
        guarded = Guarded(model=noted, circuit=circuit)
        if patient:
            retrying = Retrying(model=guarded, clock=self._clock)
        else:
            retrying = Retrying(
                model=guarded, clock=self._clock, max_attempts=2, max_wait_s=SHORT_WAIT_S
            )
        return Priced(model=retrying, prices=self.prices)

    def _wire(self, name: str) -> Model:
        if name.startswith("text/"):
            return TextToolModel(self.registry.resolve(name.removeprefix("text/")))
        return self.registry.resolve(name)


def split_chain(names: str) -> list[str]:
    """Return the names of a chain, or raise `Misconfigured` if there are none."""
    chain = [name.strip() for name in names.split(",") if name.strip()]
    if not chain:
        raise Misconfigured("No model is named; write `provider/model`, or `demo`.")
    return chain
