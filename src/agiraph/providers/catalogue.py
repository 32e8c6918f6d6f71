"""Catalogue: from the names a person writes to models guarded, retried, priced and backed up."""

from agiraph.domain.errors import Misconfigured
from agiraph.domain.time import Clock
from agiraph.providers.base import Model
from agiraph.providers.circuit import Circuit, Guarded
from agiraph.providers.fallback import Fallback
from agiraph.providers.prices import Priced, Prices
from agiraph.providers.registry import Maker, Registry
from agiraph.providers.retry import Retrying
from agiraph.providers.text import TextModel

PATIENCE = 5.0
"""How long a model is waited for that another one, or a person, stands behind."""


class Catalogue:
    """Models by name; several names, divided by commas, are a chain of fallbacks."""

    def __init__(self, registry: Registry, prices: Prices, clock: Clock) -> None:
        self.registry = registry
        self.prices = prices
        self._clock = clock
        self._own: dict[str, Maker] = {}
        self._circuits: dict[str, Circuit] = {}
        self._made: dict[tuple[str, bool], Model] = {}
        self._priced: dict[str, list[str]] = {}

    def add(self, provider: str, maker: Maker) -> None:
        """Serve `provider/…` by a model of your own, taken as it is."""
        self._own[provider] = maker
        self._priced.clear()

    def resolve(self, names: str, *, patient: bool = True) -> Model:
        """The model or chain of that name, or `Misconfigured` with what to write instead.

        One that is not patient gives up soon: somebody waits for its answer.
        """
        if (names, patient) not in self._made:
            chain = split(names)
            models = [self._one(n, patient=patient and n == chain[-1]) for n in chain]
            made = models[0] if len(models) == 1 else Fallback(tuple(models))
            self._made[names, patient] = made
        return self._made[names, patient]

    def window(self, names: str) -> int:
        """How much all models of the chain can be shown."""
        return min(self.prices.window(name) for name in self._sold(names))

    def usd(self, names: str, tokens: int) -> float:
        """What so many tokens of input cost at most in this chain; 0 where nobody knows."""
        return max(self.prices.price_of_input(name, tokens) for name in self._sold(names))

    def _sold(self, names: str) -> list[str]:
        """The chain as a price list may know it; an own model is called `own`."""
        if names not in self._priced:
            chain = split(names)
            free = {*self._own, "demo"}
            providers = [name.removeprefix("text/").partition("/")[0] for name in chain]
            self._priced[names] = [
                "own" if provider in free else name
                for name, provider in zip(chain, providers, strict=True)
            ]
        return self._priced[names]

    async def close(self) -> None:
        await self.registry.close()

    def _one(self, name: str, *, patient: bool) -> Model:
        bare = name.removeprefix("text/")
        provider, _, model = bare.partition("/")
        if provider in self._own:
            own = self._own[provider](model)
            return own if name == bare else TextModel(own)
        wire = self._wire(name)
        circuit = self._circuits.setdefault(provider, Circuit(provider, self._clock))
        guarded = Guarded(model=wire, circuit=circuit)
        if patient:
            retrying = Retrying(model=guarded, clock=self._clock)
        else:
            retrying = Retrying(model=guarded, clock=self._clock, tries=2, longest_wait=PATIENCE)
        return Priced(model=retrying, prices=self.prices)

    def _wire(self, name: str) -> Model:
        if name.startswith("text/"):
            return TextModel(self.registry.resolve(name.removeprefix("text/")))
        return self.registry.resolve(name)


def split(names: str) -> list[str]:
    chain = [name.strip() for name in names.split(",") if name.strip()]
    if not chain:
        raise Misconfigured("No model is named; write `provider/model`, or `demo`.")
    return chain
