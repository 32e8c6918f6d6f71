"""Inventory: what is known of each model, from the settings, its server and installed packages."""

import asyncio
from collections.abc import Iterable

from agiraph.core.domain.times.time import Clock
from agiraph.core.domain.value import dataclass
from agiraph.core.domain.work import Usage
from agiraph.models.base import parts_of
from agiraph.models.facts import packaged
from agiraph.models.facts.model_facts import (
    ASSUMED_WINDOW_TOKENS,
    NOTHING,
    Fact,
    Known,
    ModelFacts,
    first,
)
from agiraph.models.facts.prices import Prices, is_free, listed_models, listed_window
from agiraph.models.facts.server_facts import Said, ask, ask_for_model
from agiraph.models.http.lookup import LookupFailed
from agiraph.models.registry import Registry

SAID_FOR_S = 600.0
"""How long a server's answer counts; a person may load another model meanwhile."""
DOWN_FOR_S = 15.0
"""How long a server that did not answer is not asked again."""
OWN_WINDOW_TOKENS = 128_000
"""The window of the scripted models and of those that a program adds to the catalogue itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A server's answer, or why there is none."""

    at: float
    said: Said = Said()
    problem: str = ""
    status: int = 0
    """The HTTP status of an answer that was an error; 0 if the server was not reached."""
    is_wrong_key: bool = False

    def is_fresh(self, now: float) -> bool:
        return now - self.at < (DOWN_FOR_S if self.problem else SAID_FOR_S)


class Inventory:
    """The facts of models. Servers are asked once and their answers kept for some minutes."""

    def __init__(self, registry: Registry, prices: Prices, clock: Clock) -> None:
        self._registry = registry
        self._prices = prices
        self._clock = clock
        self._answers: dict[str, Answer] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._shown: set[str] = set()
        self._facts: dict[str, ModelFacts] = {}
        """What was gathered of a model since a server has answered."""

    async def learn(self, name: str) -> None:
        """Ask the model's server for what neither settings nor packages say. Never raises."""
        provider, model = parts_of(name)
        needs = self._registry.is_own_server(provider) or self._window_on_file(name) is None
        if not model or not needs:
            return
        answer = await self.ask(provider)
        if answer is None or answer.problem or name in self._shown:
            return
        endpoint = self._registry.endpoint(provider)
        assert endpoint is not None
        said = await ask_for_model(endpoint, answer.said, model)
        self._shown.add(name)
        self._answers[provider] = Answer(at=answer.at, said=said)
        self._facts.clear()

    async def ask(self, provider: str) -> Answer | None:
        """Return the answer of the provider's server; None if there is nobody to ask."""
        endpoint = self._registry.endpoint(provider)
        if endpoint is None:
            return None
        async with self._locks.setdefault(provider, asyncio.Lock()):
            known, now = self._answers.get(provider), self._clock.monotonic()
            if known is not None and known.is_fresh(now):
                return known
            try:
                answer = Answer(at=now, said=await ask(endpoint))
            except LookupFailed as error:
                answer = Answer(
                    at=now,
                    problem=str(error),
                    status=error.status,
                    is_wrong_key=error.is_wrong_key,
                )
            self._answers[provider] = answer
            self._facts.clear()
            self._shown = {n for n in self._shown if parts_of(n)[0] != provider}
            return answer

    def forget(self, provider: str) -> None:
        """Forget what a provider's server said: its address or its key has changed."""
        self._answers.pop(provider, None)
        self._facts.clear()
        self._shown = {name for name in self._shown if parts_of(name)[0] != provider}

    def answer(self, provider: str) -> Answer | None:
        """Return what the provider's server said when it was last asked."""
        return self._answers.get(provider)

    def facts(self, name: str) -> ModelFacts:
        """Return what is known of a model now; `learn` asks its server first."""
        if name not in self._facts:
            self._facts[name] = self._gather(name)
        return self._facts[name]

    def _gather(self, name: str) -> ModelFacts:
        terms, told = self._prices.terms_of(name), self._from_server(name)
        packed = packaged.known(name)
        input_usd, output_usd = self._usd(name)
        return ModelFacts(
            window=self._window(name),
            output_limit=first((terms.output, "file"), (packed.output, "package")),
            tools=first((terms.tools, "file"), (told.tools, "server"), (packed.tools, "package")),
            images=first(
                (terms.images, "file"), (told.images, "server"), (packed.images, "package")
            ),
            pdf=first((terms.pdf, "file"), (packed.pdf, "package")),
            thinking=first(
                (terms.thinking, "file"), (told.thinking, "server"), (packed.thinking, "package")
            ),
            input_usd=input_usd,
            output_usd=output_usd,
            retires=packed.retires,
            use_instead=packed.use,
        )

    def names(self, provider: str) -> list[str]:
        """Return the provider's models that are known to exist, as `provider/model`."""
        answer = self._answers.get(provider)
        if answer is not None and answer.said.models:
            return [f"{provider}/{model}" for model in answer.said.models]
        if self._registry.is_own_server(provider):
            return []
        return [f"{provider}/{model}" for model in packaged.names(provider)]

    def every_name(self, provider: str) -> Iterable[str]:
        """Yield the provider's known models, and those that only the price list knows."""
        yield from self.names(provider)
        if not self._registry.is_own_server(provider):
            yield from (f"{provider}/{model}" for model in listed_models(provider))

    def window(self, name: str) -> Fact[int]:
        """Return the tokens that a request to the model may hold, as far as it is known."""
        return self.facts(name).window

    def _window(self, name: str) -> Fact[int]:
        known = self._window_on_file(name)
        if (told := self._from_server(name).window) is not None and (
            known is None or known.origin == "package"
        ):
            return Fact(told, "server")
        return known or Fact(self._assumed_window(name), "assumed")

    def _window_on_file(self, name: str) -> Fact[int] | None:
        """Return the window as the settings or a package have it."""
        server = self._registry.server(parts_of(name)[0])
        return first(
            (self._prices.terms_of(name).window, "file"),
            (None if server is None else server.window, "file"),
            (packaged.known(name).window, "package"),
            (None if is_free(name) else listed_window(name), "package"),
        )

    def _assumed_window(self, name: str) -> int:
        """Return a cautious guess: for an unknown model of a vendor the smallest of its windows."""
        provider, _ = parts_of(name)
        if self._registry.is_own_server(provider):
            return ASSUMED_WINDOW_TOKENS
        rows = (packaged.known(f"{provider}/{model}") for model in packaged.names(provider))
        return min((row.window for row in rows if row.window), default=ASSUMED_WINDOW_TOKENS)

    def _from_server(self, name: str) -> Known:
        """Return what the model's server said of it."""
        provider, model = parts_of(name)
        answer = self._answers.get(provider)
        if answer is None:
            return NOTHING
        models = answer.said.models
        # A server with one model, such as llama.cpp's, may answer to any name.
        only = next(iter(models.values())) if len(models) == 1 else NOTHING
        return models.get(answer.said.listed(model), only)

    def _usd(self, name: str) -> tuple[Fact[float] | None, Fact[float] | None]:
        terms = self._prices.terms_of(name)
        # Of a thousand tokens, because some models cost more in long requests.
        for_input = self._prices.usd(name, Usage(input_tokens=1000))
        for_output = self._prices.usd(name, Usage(output_tokens=1000))
        return (
            first((terms.input_usd, "file"), (_per_million(for_input), "package")),
            first((terms.output_usd, "file"), (_per_million(for_output), "package")),
        )


def _per_million(usd: float | None) -> float | None:
    """Return the price of a million tokens from that of a thousand."""
    return None if usd is None else round(usd * 1000, 6)
