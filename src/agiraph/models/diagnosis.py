"""Diagnosis: from a model's error to what happened and what a person can do about it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from agiraph.core.domain.errors import (
    ContextExceeded,
    KeyRefused,
    ModelError,
    ModelMissing,
    ModelRefused,
    ModelUnavailable,
    PromptCut,
)
from agiraph.models.base import parts_of
from agiraph.models.http.errors import NO_TOOLS, sentence
from agiraph.models.inventory import Answer, Inventory
from agiraph.models.registry import Registry
from agiraph.models.vendors import VENDOR_BY_NAME

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
