"""Catalogue: from names to models with circuit breaker, retries, prices and fallbacks."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import timedelta

from agiraph.core.domain.errors import Misconfigured, ModelError, ModelMissing
from agiraph.core.domain.times.time import Clock
from agiraph.models.attempts import CircuitBreaker, Fallback, Guarded, Retrying
from agiraph.models.base import Model, parts_of
from agiraph.models.diagnosis import Diagnosis, nearest
from agiraph.models.facts.model_facts import ModelFacts
from agiraph.models.facts.prices import Priced, Prices
from agiraph.models.inventory import OWN_WINDOW_TOKENS, Inventory
from agiraph.models.registry import Account, ModelFactory, Registry
from agiraph.models.wires.text import TextToolModel
from agiraph.models.wires.trained_calls import TrainedCallsModel

SHORT_WAIT_S = 5.0
"""The longest backoff of a model when another model, or a person, waits for the call's end."""
MISSING_FOR = timedelta(minutes=10)
"""How long a name is refused after its provider said that it has no such model. Somebody may
install the model meanwhile."""
OWN = "own"
"""Stands for a model of one's own, which no list may price like a vendor's of the same name."""


class Catalogue:
    """Models by name. Several names, separated by commas, are a chain of fallbacks."""

    def __init__(self, registry: Registry, prices: Prices, clock: Clock) -> None:
        self.registry = registry
        self.prices = prices
        self.inventory: Inventory = Inventory(registry, prices, clock)
        self._clock = clock
        self._own: dict[str, ModelFactory] = {}
        self.circuits: dict[str, CircuitBreaker] = {}
        """By provider; of those that this process has called."""
        self._models: dict[tuple[str, bool], Model] = {}
        self._price_names: dict[str, list[str]] = {}

    def add(self, provider: str, factory: ModelFactory) -> None:
        """Serve `provider/…` by a model of your own, without retries, prices or circuit breaker."""
        self._own[provider] = factory
        self._price_names.clear()

    def add_all(self, factories: Mapping[str, ModelFactory]) -> None:
        """Serve the models of each of these providers by models of your own."""
        for provider, factory in factories.items():
            self.add(provider, factory)

    def with_account(self, vendor: str, account: Account) -> "Catalogue":
        """Return a catalogue of its own in which a vendor has this account, to test it. The caller
        closes it."""
        return Catalogue(self.registry.with_account(vendor, account), self.prices, self._clock)

    def set_account(self, vendor: str, account: Account) -> None:
        """Use this account for a vendor from its next call on; a running call keeps the old key."""
        self.registry.set_account(vendor, account)
        self.inventory.forget(vendor)
        self.circuits.pop(vendor, None)
        self._models.clear()

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
            circuit = self.circuits.get(parts_of(name)[0])
            said = None if circuit is None else circuit.missing.get(name)
            if said is not None and self._clock.now() - said < MISSING_FOR:
                raise Misconfigured(
                    f"{name!r} does not exist: its provider has no model of this name. "
                    f"{self.alternatives(name)}".strip()
                )
            if not self.is_own(name) and (problem := self._unfit(name)):
                raise Misconfigured(problem)

    async def ask_servers(self, names: str) -> None:
        """Ask the server of each model of the chain for its list of models, which costs nothing,
        also the vendors that `learn` has no question for. Never raises."""
        for name in split_chain(names):
            if not self.is_own(name):
                await self.inventory.ask(self.diagnosis(name).provider)

    def access_problem(self, names: str) -> str:
        """Return why no model of the chain can be used, and what to do; else an empty string.

        It only knows servers that were asked: they did not answer, or do not accept the key.
        """
        problems: list[str] = []
        for name in split_chain(names):
            diagnosis = self.diagnosis(name)
            answer = None if self.is_own(name) else self.inventory.answer(diagnosis.provider)
            if answer is None or not (problem := diagnosis.access_problem(answer)):
                return ""
            problems.append(problem)
        return " ".join(problems)

    def served_instead(self, name: str) -> str:
        """Return the model that a server has in place of the one that is asked for; empty if it
        has that one, or nothing is known. llama.cpp's server answers to any name."""
        provider, model = parts_of(name)
        answer = self.inventory.answer(provider)
        if answer is None or answer.said.listed(model) or len(answer.said.models) != 1:
            return ""
        return next(iter(answer.said.models))

    def _unfit(self, name: str) -> str:
        """Return why this model cannot do the work as far as is known, and what to do; else ""."""
        facts, diagnosis = self.facts(name), self.diagnosis(name)
        provider, model = parts_of(name)
        answer = self.inventory.answer(provider)
        if answer is not None and answer.said.lists_all and not answer.said.listed(model):
            return f"{diagnosis.place} has no model {model!r}. {diagnosis.unknown_model()}"
        today = self._clock.now().date().isoformat()
        if facts.retires and facts.retires <= today and not self.registry.is_own_server(provider):
            instead = f"{provider}/{facts.use_instead}"
            return f"{name!r} was retired on {facts.retires}; use {instead!r}."
        is_native = not name.startswith("text/") and self.registry.call_form(name) == "native"
        if facts.tools is not None and not facts.tools.value and is_native:
            return f"{name}: {diagnosis.no_tools()}"
        return ""

    def is_own(self, name: str) -> bool:
        """Whether a program has added this model itself, or it is scripted."""
        return parts_of(name)[0] in {*self._own, "demo"}

    def alternatives(self, names: str) -> str:
        """Return a sentence that names the models which are known to exist, those with a similar
        name first; empty if none is known."""
        wanted = names.partition(",")[0].strip()
        missing = {name for circuit in self.circuits.values() for name in circuit.missing}
        known = [name for name in self._known(wanted) if name not in missing]
        return f"Models that exist: {', '.join(nearest(wanted, known))}." if known else ""

    def _known(self, name: str) -> Iterable[str]:
        """Yield the names in the settings, the vendors' defaults, and the price list's models of
        this name's provider, as far as their providers can be used."""
        provider = parts_of(name)[0]
        yield from self.prices.terms
        yield from self.inventory.names(provider)
        yield from self.registry.default_models()
        if self.registry.is_usable(provider):
            yield from self.inventory.every_name(provider)

    def named_in_settings(self, provider: str) -> list[str]:
        """Return the provider's models that agiraph.toml has a table for."""
        return [name for name in self.prices.terms if name.partition("/")[0] == provider]

    async def learn(self, names: str) -> None:
        """Ask the servers of the chain for the windows that nothing else says. Never raises."""
        for name in self._names_for_prices(names):
            if name != OWN:
                await self.inventory.learn(name)

    def window(self, names: str) -> int:
        """Return the smallest context window of the chain, in tokens, as far as it is known."""
        return min(
            (self.prices.terms_of(OWN).window or OWN_WINDOW_TOKENS)
            if name == OWN
            else self.inventory.window(name).value
            for name in self._names_for_prices(names)
        )

    def known_window(self, names: str) -> int | None:
        """Return the smallest context window of the chain; None if one of them is only assumed."""
        models = [name for name in self._names_for_prices(names) if name != OWN]
        if any(self.inventory.window(name).origin == "assumed" for name in models):
            return None
        return self.window(names)

    def wants_lean_prompt(self, names: str, *, below: int) -> bool:
        """Whether a model of the chain is to be shown the short prompt: its settings say so, or
        they leave it open and its window is smaller than this."""
        sizes = {name: self.registry.prompt_size(name) for name in split_chain(names)}
        left_open = [name for name, size in sizes.items() if size == "auto"]
        return "lean" in sizes.values() or any(self.window(name) < below for name in left_open)

    def diagnosis(self, name: str) -> Diagnosis:
        """Return the `Diagnosis` of one model, which adds advice to the messages of its errors."""
        return Diagnosis(name, self.registry, self.inventory)

    def facts(self, name: str) -> ModelFacts:
        """Return what is known of one model."""
        return self.inventory.facts(name)

    def usd(self, names: str, tokens: int) -> float:
        """Return the highest price of this many input tokens in the chain; 0 if not known."""
        chain = self._names_for_prices(names)
        return max([self.prices.price_of_input(name, tokens) for name in chain])

    def is_priced(self, names: str) -> bool:
        """Whether calls of this model cost money that is known."""
        return self.usd(names, 1_000_000) > 0

    def _names_for_prices(self, names: str) -> list[str]:
        """Return the names under which the price list knows the models of this chain. A model
        that the user runs is called `OWN`.
        """
        if names not in self._price_names:
            self._price_names[names] = [
                OWN if self.is_own(name) else name for name in split_chain(names)
            ]
        return self._price_names[names]

    async def close(self) -> None:
        await self.registry.close()

    def _one(self, name: str, *, patient: bool) -> Model:
        provider, model = parts_of(name)
        if provider in self._own:
            try:
                own = self._own[provider](model)
            except LookupError as error:
                raise Misconfigured(f"{provider!r} has no model {model!r}.") from error
            return TextToolModel(own) if name.startswith("text/") else own
        # One per provider, not per model: an outage hits all models of a vendor.
        circuit = self.circuits.setdefault(provider, CircuitBreaker(provider, self._clock))
        guarded = Guarded(
            model=self._wire(name),
            circuit=circuit,
            explained=lambda error: self._explained(name, error),
        )
        retrying = Retrying(model=guarded, clock=self._clock)
        if not patient:
            retrying = replace(retrying, max_attempts=2, max_wait_s=SHORT_WAIT_S)
        return Priced(model=retrying, prices=self.prices)

    async def _explained(self, name: str, error: ModelError) -> str:
        diagnosis = self.diagnosis(name)
        if isinstance(error, ModelMissing):
            # Asked only now: a server's list of models is of no use to those that exist.
            await self.inventory.ask(diagnosis.provider)
        return diagnosis.explained(error)

    def _wire(self, name: str) -> Model:
        if name.startswith("text/"):
            return TextToolModel(self.registry.resolve(name.removeprefix("text/")))
        model = self.registry.resolve(name)
        match self.registry.call_form(name):
            case "native":
                return model
            case "text":
                return TextToolModel(model)
            case form:
                return TrainedCallsModel(model, form)


def split_chain(names: str) -> list[str]:
    """Return the names of a chain, or raise `Misconfigured` if there are none."""
    chain = [name.strip() for name in names.split(",") if name.strip()]
    if not chain:
        raise Misconfigured("No model is named; write `provider/model`, or `demo`.")
    return chain
