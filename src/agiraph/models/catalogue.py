"""Catalogue: from names to models with circuit breaker, retries, prices and fallbacks."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from difflib import get_close_matches

from agiraph.core.domain.errors import (
    ContextExceeded,
    KeyRefused,
    Misconfigured,
    ModelError,
    ModelMissing,
    ModelRefused,
    ModelUnavailable,
    PromptCut,
)
from agiraph.core.domain.times.time import Clock
from agiraph.core.domain.value import dataclass
from agiraph.models.attempts import CircuitBreaker, Fallback, Guarded, Retrying
from agiraph.models.base import Model, parts_of
from agiraph.models.facts.model_facts import ModelFacts
from agiraph.models.facts.prices import Priced, Prices
from agiraph.models.http.errors import NO_TOOLS, sentence
from agiraph.models.inventory import OWN_WINDOW_TOKENS, Answer, Inventory
from agiraph.models.registry import Account, ModelFactory, Registry
from agiraph.models.vendors import VENDOR_BY_NAME
from agiraph.models.wires.text import TextToolModel
from agiraph.models.wires.trained_calls import TrainedCallsModel

MOST_NAMED = 12
"""Models that an advice names as those that exist."""
SMALL_WINDOW_TOKENS = 16_000
"""Below this, agents are shown less and threads are shortened often."""
_UNREACHED = re.compile(r"^Cannot reach ")
_GENERAL = (
    " Check the key of this provider.",
    " Check the model's name and the provider's address.",
)
"""What the HTTP client advises, which knows neither the variables nor the models."""
_START = {
    "ollama": "Start it with `ollama serve`",
    "lmstudio": "Start LM Studio's server (`lms server start`)",
    "llamacpp": "Start it with `llama-server -m MODEL.gguf --jinja`",
    "vllm": "Start it with `vllm serve MODEL`",
}
WIDEN = {
    "ollama": "set OLLAMA_CONTEXT_LENGTH=32768 and start Ollama again",
    "lmstudio": "load the model with a larger context length in LM Studio",
    "llamacpp": "start llama-server with a larger -c, such as -c 32768",
    "vllm": "start vLLM with a larger --max-model-len",
}
"""How the window of each local server is made larger."""


def nearest(name: str, known: Sequence[str]) -> list[str]:
    """Return some of the known models, those with a name similar to this one first."""
    near = get_close_matches(name, known, n=MOST_NAMED, cutoff=0.4)
    return list(dict.fromkeys([*near, *known]))[:MOST_NAMED]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Says what to do about the errors of one model."""

    name: str
    registry: Registry
    inventory: Inventory

    @property
    def provider(self) -> str:
        return parts_of(self.name)[0]

    def explained(self, error: ModelError) -> str:
        """Return the error's message with what to do; the message alone if nothing is known."""
        message = str(error)
        advice = self.advice(error)
        if advice in message:
            return message
        for general in _GENERAL:
            message = message.removesuffix(general)
        if not advice:
            return message
        return f"{sentence(message.rstrip())} {advice}"

    def advice(self, error: ModelError) -> str:
        """Return what a person can do about the error; empty if nothing is known."""
        message = str(error)
        match error:
            case ModelMissing():
                return self.unknown_model()
            case ContextExceeded():
                return self.small_window()
            case PromptCut() if self.kind in WIDEN:
                return f"For this server: {self.widen()}."
            case ModelUnavailable() if _UNREACHED.search(message):
                return self.unreached()
            case KeyRefused():
                return self.wrong_key()
            case ModelRefused() if NO_TOOLS.search(message):
                return self.no_tools()
            case _:
                return ""

    def wrong_key(self) -> str:
        server, vendor = self.registry.server(self.provider), VENDOR_BY_NAME.get(self.provider)
        if server is not None and server.key_env:
            return f"Check the key in {server.key_env}: {self.place} does not accept it."
        if server is not None:
            return (
                f"{self.place} wants a key: put it into an environment variable, and the "
                f"variable's name into key_env of [servers.{self.provider}] in agiraph.toml."
            )
        if vendor is None or not vendor.key_variable:
            return (
                f"{self.place} wants a key: name the server in agiraph.toml, "
                f"[servers.{self.provider}] with base_url and key_env."
            )
        account = self.registry.account(vendor)
        if account.is_stored:
            return (
                f"{self.place} does not accept the key that was entered in the web UI. Enter the "
                "right one there, under Models."
            )
        if not account.key:
            return (
                f"{self.place} wants a key: enter it in the web UI, under Models, or set "
                f"{vendor.key_variable} in the environment and start agiraph again."
            )
        return (
            f"Check {vendor.key_variable}: {self.place} does not accept the key. Set the right "
            "one in the environment and start agiraph again."
        )

    def unknown_model(self) -> str:
        """Return a sentence with the models that exist, those with a similar name first."""
        known = [n for n in self.inventory.every_name(self.provider) if n != self.name]
        there = f" It has: {', '.join(nearest(self.name, known))}." if known else ""
        if self.provider == "ollama":
            pulled = f"`ollama pull {parts_of(self.name)[1]}`"
            return f"Check the model's name, or load it with {pulled}.{there}"
        return f"Check the model's name.{there} `agiraph models` lists what there is."

    def no_tools(self) -> str:
        if self.name == self._as_text():
            return "It makes no calls even when they are written as text: choose a larger model."
        return (
            f"This model cannot call tools through its server. Use it as {self._as_text()!r}, "
            "where calls are written as text, or choose a model with tools"
            + {
                "llamacpp": "; llama-server needs --jinja for tools",
                "vllm": "; vLLM needs --enable-auto-tool-choice and --tool-call-parser for tools",
            }.get(self.kind, "")
            + "."
        )

    def small_window(self) -> str:
        return f"{self.known_window()}: {self.widen()}, or use a model with a larger window."

    def known_window(self) -> str:
        """Return a sentence with the size of the context window and where that figure is from."""
        window = self.inventory.window(self.name)
        said = {"server": "as its server says", "file": "as agiraph.toml says"}
        if window.origin == "assumed":
            return f"The window of {self.name} is not known; {window.value:,} tokens are assumed"
        origin = said.get(window.origin, "as far as is known")
        return f"The window of {self.name} is {window.value:,} tokens, {origin}"

    def narrow_window(self) -> str:
        """Return what to do about a window that is small for an agent; empty if it is not."""
        window = self.inventory.window(self.name)
        if window.value >= SMALL_WINDOW_TOKENS:
            return ""
        size = f"Its window of {window.value:,} tokens is"
        if window.origin == "assumed":
            size = f"Its window is not known; {window.value:,} tokens are assumed, which is"
        return f"{size} small for an agent's work: {self.widen()}."

    def widen(self) -> str:
        """Return how the server's window is made larger."""
        setting = f'set its real size as window of [models."{self._bare()}"] in agiraph.toml'
        return WIDEN.get(self.kind, setting)

    def access_problem(self, answer: Answer) -> str:
        """Return what the server's answer to a question about itself says against using it."""
        if answer.is_wrong_key:
            return f"{self.place} answered {answer.status}. {self.wrong_key()}"
        if answer.problem and not answer.status:
            return f"Nothing answers at {self.place} ({answer.problem}). {self.unreached()}"
        return ""

    def unreached(self) -> str:
        server, vendor = self.registry.server(self.provider), VENDOR_BY_NAME.get(self.provider)
        if server is not None:
            return (
                f"Start the server, or correct base_url of [servers.{self.provider}] in "
                "agiraph.toml."
            )
        if vendor is not None and vendor.is_local:
            return (
                f"{_START[vendor.name]}, or name its address in agiraph.toml as base_url of "
                f"[servers.{vendor.name}]."
            )
        setting = vendor.url_variable if vendor is not None else "the provider's address"
        return f"Check the network, the proxy variables and {setting}."

    @property
    def kind(self) -> str:
        """The kind of the server, as it said itself or as its name says."""
        answer = self.inventory.answer(self.provider)
        return (answer.said.kind if answer else "") or self.provider

    @property
    def place(self) -> str:
        """The server's host, or the provider's name."""
        endpoint = self.registry.endpoint(self.provider)
        return self.provider if endpoint is None else endpoint.host

    def _as_text(self) -> str:
        return f"text/{self._bare()}"

    def _bare(self) -> str:
        return self.name.removeprefix("text/")


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
