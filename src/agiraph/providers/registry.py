"""Registry: from a name such as `openai/gpt-5` to the wire that leads to the model."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from agiraph.domain.errors import Misconfigured
from agiraph.domain.time import Clock
from agiraph.providers.anthropic import AnthropicModel
from agiraph.providers.base import Model
from agiraph.providers.demo import DemoModel
from agiraph.providers.gemini import GeminiModel
from agiraph.providers.http import Http
from agiraph.providers.openai import OpenAIModel

ANTHROPIC_URL = "https://api.anthropic.com"
OPENAI_URL = "https://api.openai.com/v1"
GEMINI_URL = "https://generativelanguage.googleapis.com"
OPENROUTER_URL = "https://openrouter.ai/api/v1"

ANTHROPIC_MODEL = "anthropic/claude-sonnet-5-5"
OPENAI_MODEL = "openai/gpt-6-sol"
GEMINI_MODEL = "gemini/gemini-3.8-flash"
OPENROUTER_MODEL = "openrouter/anthropic/claude-sonnet-5.5"

VENDORS = frozenset(("anthropic", "openai", "gemini", "google", "openrouter"))
Maker = Callable[[str], Model]


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A server of one's own that speaks chat-completions."""

    base_url: str
    key: str = field(default="", repr=False)
    key_env: str = ""
    """The variable that should hold the key, if there is one."""


LOCAL: Mapping[str, Server] = {
    "ollama": Server(base_url="http://127.0.0.1:11434/v1"),
    "lmstudio": Server(base_url="http://127.0.0.1:1234/v1"),
    "vllm": Server(base_url="http://127.0.0.1:8000/v1"),
}
"""Servers that are known by name, where they listen unless told otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """Where providers are and what opens them; keys are never printed."""

    anthropic_key: str = field(default="", repr=False)
    anthropic_url: str = ""
    openai_key: str = field(default="", repr=False)
    openai_url: str = ""
    gemini_key: str = field(default="", repr=False)
    gemini_url: str = ""
    openrouter_key: str = field(default="", repr=False)
    openrouter_url: str = ""
    servers: Mapping[str, Server] = field(default_factory=dict[str, Server])

    @property
    def first_model(self) -> str:
        """A good model of the first provider there is a key for; else `demo`, which needs none."""
        if self.anthropic_key:
            return ANTHROPIC_MODEL
        if self.openai_key:
            return OPENAI_MODEL
        if self.gemini_key:
            return GEMINI_MODEL
        return OPENROUTER_MODEL if self.openrouter_key else "demo"


class Registry:
    def __init__(self, keys: Keys, clock: Clock) -> None:
        self._keys = keys
        self._http = Http(clock)
        self._servers = {**LOCAL, **keys.servers}
        self._made: dict[str, Model] = {}

    def resolve(self, name: str) -> Model:
        """The model of that name, or `Misconfigured` with what to write instead."""
        if name == "demo":
            return DemoModel()
        if name not in self._made:
            provider, _, model = name.partition("/")
            if not model or provider not in VENDORS | set(self._servers):
                raise Misconfigured(
                    f"{name!r} is not a model agiraph can reach. Write `provider/model` with one "
                    f"of {', '.join(sorted(VENDORS | set(self._servers)))}, or `demo`, which needs "
                    "no key. Servers of your own are named in agiraph.toml."
                )
            self._made[name] = self._make(name, provider, model)
        return self._made[name]

    async def close(self) -> None:
        await self._http.close()

    def _make(self, name: str, provider: str, model: str) -> Model:
        keys, http = self._keys, self._http
        match provider:
            case "anthropic":
                url = _address(keys.anthropic_url, ANTHROPIC_URL, "ANTHROPIC_BASE_URL")
                key = _key(name, keys.anthropic_key, keys.anthropic_url, "ANTHROPIC")
                return AnthropicModel(name=name, model=model, base_url=url, key=key, http=http)
            case "gemini" | "google":
                url = _address(keys.gemini_url, GEMINI_URL, "GOOGLE_GEMINI_BASE_URL")
                key = _key(name, keys.gemini_key, keys.gemini_url, "GEMINI", "GOOGLE_GEMINI")
                return GeminiModel(name=name, model=model, base_url=url, key=key, http=http)
            case "openai":
                url = _address(keys.openai_url, OPENAI_URL, "OPENAI_BASE_URL")
                key = _key(name, keys.openai_key, keys.openai_url, "OPENAI")
            case "openrouter":
                url = _address(keys.openrouter_url, OPENROUTER_URL, "OPENROUTER_BASE_URL")
                key = _key(name, keys.openrouter_key, keys.openrouter_url, "OPENROUTER")
            case _:
                server = self._servers[provider]
                if server.key_env and not server.key:
                    raise Misconfigured(
                        f"{name} needs a key in {server.key_env}, as [servers.{provider}] in "
                        "agiraph.toml says; set it, or take key_env out."
                    )
                url = _address(server.base_url, "", f"base_url of [servers.{provider}]")
                key = server.key
        return OpenAIModel(name=name, model=model, base_url=url, key=key, http=http)


def _address(url: str, default: str, setting: str) -> str:
    url = url or default
    if not url.startswith(("https://", "http://")):
        raise Misconfigured(f"{setting} {url!r} must begin with https:// or http://.")
    return url


def _key(name: str, key: str, url: str, setting: str, address: str = "") -> str:
    """The key, which a server of one's own may not need."""
    if not key and not url:
        raise Misconfigured(
            f"{name} needs {setting}_API_KEY, or {address or setting}_BASE_URL for a server of "
            "your own."
        )
    return key
