"""Registry: resolves a name to a model, or says what is missing."""

import re
from collections.abc import AsyncIterator

import orjson
import pytest

from agiraph.core.domain.errors import Misconfigured
from agiraph.models.demo import DemoModel
from agiraph.models.registry import Account, Keys, Registry
from agiraph.models.servers import Server
from agiraph.models.vendors import CHAT
from agiraph.models.wires.anthropic import AnthropicModel
from agiraph.models.wires.chat_completions import OpenAIModel
from agiraph.models.wires.gemini import GeminiModel
from agiraph.models.wires.responses import ResponsesModel
from agiraph.testing import ManualClock, ModelServer, says
from tests.providers.transcripts import request
from tests.wording import Wording, refusals

Wire = AnthropicModel | GeminiModel | OpenAIModel | ResponsesModel

KEYS = Keys(
    {
        "anthropic": Account(key="sk-ant-canary"),
        "openai": Account(key="sk-canary-4711", base_url="http://127.0.0.1:9/v1"),
        "gemini": Account(key="AIza-canary"),
        "openrouter": Account(key="sk-or-canary"),
    },
    servers={
        "house": Server(base_url="http://house:1/v1", key="sk-house-canary", key_env="HOUSE_KEY"),
        "locked": Server(base_url="http://locked:1/v1", key_env="LOCKED_KEY"),
        "vllm": Server(base_url="http://gpu:8000/v1"),
        "direct": Server(base_url="http://direct:1/v1", wire="responses"),
        "claude": Server(base_url="http://claude:1", wire="anthropic"),
    },
)


@pytest.fixture
async def registry() -> AsyncIterator[Registry]:
    opened = Registry(KEYS, ManualClock())
    yield opened
    await opened.close()


def wire(registry: Registry, name: str) -> Wire:
    model = registry.resolve(name)
    assert isinstance(model, Wire)
    return model


def test_the_demo_needs_no_key() -> None:
    assert Registry(Keys(), ManualClock()).resolve("demo") == DemoModel()


@pytest.mark.parametrize(
    ("name", "kind", "model", "address", "key"),
    [
        ("anthropic/m", AnthropicModel, "m", "https://api.anthropic.com", "sk-ant-canary"),
        ("openai/a/b", OpenAIModel, "a/b", "http://127.0.0.1:9/v1", "sk-canary-4711"),
        ("direct/m", ResponsesModel, "m", "http://direct:1/v1", ""),
        ("gemini/m", GeminiModel, "m", "https://generativelanguage.googleapis.com", "AIza-canary"),
        ("google/m", GeminiModel, "m", "https://generativelanguage.googleapis.com", "AIza-canary"),
        ("openrouter/a/b", OpenAIModel, "a/b", "https://openrouter.ai/api/v1", "sk-or-canary"),
        ("ollama/qwen3:8b", OpenAIModel, "qwen3:8b", "http://127.0.0.1:11434/v1", ""),
        ("llamacpp/m", OpenAIModel, "m", "http://127.0.0.1:8080/v1", ""),
        ("claude/m", AnthropicModel, "m", "http://claude:1", ""),
        ("lmstudio/m", OpenAIModel, "m", "http://127.0.0.1:1234/v1", ""),
        ("house/a/b", OpenAIModel, "a/b", "http://house:1/v1", "sk-house-canary"),
        ("vllm/m", OpenAIModel, "m", "http://gpu:8000/v1", ""),
    ],
)
async def test_a_model_name_is_resolved_to_wire_address_and_key(
    registry: Registry, name: str, kind: type[Wire], model: str, address: str, key: str
) -> None:
    found = wire(registry, name)

    assert (type(found), found.name, found.model) == (kind, name, model)
    assert (found.base_url, found.key) == (address, key)


async def test_without_an_address_the_vendors_own_is_used() -> None:
    registry = Registry(Keys({"openai": Account(key="sk")}), ManualClock())

    model = wire(registry, "openai/m")
    assert (type(model), model.base_url) == (ResponsesModel, "https://api.openai.com/v1")


async def test_the_same_name_gives_the_same_model(registry: Registry) -> None:
    assert registry.resolve("openai/a") is registry.resolve("openai/a")
    assert registry.resolve("openai/a") is not registry.resolve("openai/b")


@pytest.mark.parametrize("name", ["", "nope", "nope/m", "openai", "openai/", "/m", "Demo"])
async def test_an_unknown_model_name_is_refused_with_the_known_providers(
    registry: Registry, name: str
) -> None:
    said = (
        f"{name!r} is not a model agiraph can reach. Write `provider/model` with one of anthropic, "
        "claude, deepseek, direct, gemini, google, groq, house, llamacpp, lmstudio, locked, "
        "mistral, ollama, openai, openrouter, vllm, x-ai, xai, or `demo`, which needs no "
        "key. Servers of your own are named in agiraph.toml."
    )
    with pytest.raises(Misconfigured, match=f"^{re.escape(said)}$"):
        registry.resolve(name)


WITHOUT_KEY = [
    "anthropic/m",
    "openai/m",
    "gemini/m",
    "google/m",
    "openrouter/m",
]


def test_a_provider_without_a_key_is_refused_with_the_missing_variable(wording: Wording) -> None:
    wording(refusals(WITHOUT_KEY, Registry(Keys(), ManualClock()).resolve, Misconfigured))


async def test_a_server_without_its_key_is_refused_with_the_missing_variable(
    registry: Registry,
) -> None:
    said = (
        "locked/m needs a key in LOCKED_KEY, as [servers.locked] in agiraph.toml says. Set the "
        "variable, or remove key_env."
    )
    with pytest.raises(Misconfigured, match=f"^{re.escape(said)}$"):
        registry.resolve("locked/m")


@pytest.mark.parametrize(
    ("keys", "name", "setting"),
    [
        (Keys({"anthropic": Account(base_url="localhost:1")}), "anthropic/m", "ANTHROPIC_BASE_URL"),
        (Keys({"openai": Account(base_url="localhost:1")}), "openai/m", "OPENAI_BASE_URL"),
        (Keys({"gemini": Account(base_url="localhost:1")}), "gemini/m", "GOOGLE_GEMINI_BASE_URL"),
        (
            Keys({"openrouter": Account(base_url="localhost:1")}),
            "openrouter/m",
            "OPENROUTER_BASE_URL",
        ),
        (Keys(servers={"x": Server(base_url="localhost:1")}), "x/m", "base_url of [servers.x]"),
    ],
)
def test_an_address_without_http_is_refused(keys: Keys, name: str, setting: str) -> None:
    said = f"{setting} 'localhost:1' must begin with https:// or http://."
    with pytest.raises(Misconfigured, match=f"^{re.escape(said)}$"):
        Registry(keys, ManualClock()).resolve(name)


async def test_a_resolved_model_replies() -> None:
    async with ModelServer([says("Hello.")]) as server:
        registry = Registry(Keys({"openai": Account(base_url=server.openai_url)}), ManualClock())
        reply = await registry.resolve("openai/m").reply(request())
        await registry.close()

    assert (reply.text, server.requests[0].model) == ("Hello.", "m")


@pytest.mark.parametrize(
    ("keys", "model"),
    [
        (Keys(), "demo"),
        (Keys({"openai": Account(base_url="http://127.0.0.1:9/v1")}), "demo"),
        (Keys({"openrouter": Account(key="k")}), "openrouter/anthropic/claude-sonnet-5.5"),
        (
            Keys({"openrouter": Account(key="k"), "gemini": Account(key="k")}),
            "gemini/gemini-3.8-flash",
        ),
        (
            Keys(
                {
                    "openrouter": Account(key="k"),
                    "gemini": Account(key="k"),
                    "openai": Account(key="k"),
                }
            ),
            "openai/gpt-6-sol",
        ),
        (KEYS, "anthropic/claude-sonnet-5-5"),
    ],
)
def test_the_default_model_is_that_of_the_first_provider_with_a_key(keys: Keys, model: str) -> None:
    assert keys.default_model == model


@pytest.mark.parametrize("wire", [CHAT, "anthropic"])
async def test_the_output_limit_fits_the_window_of_the_server(wire: str) -> None:
    # A proxy passed 32,000 on to a server with 4,096, where a small model repeated itself.
    async with ModelServer(lambda _: says("Hello")) as server:
        base_url = server.url if wire == "anthropic" else f"{server.url}/v1"
        house = Server(base_url=base_url, wire=wire, window=4_096)
        models = Registry(Keys(servers={"house": house}), ManualClock())
        await models.resolve("house/m").reply(request())
        await models.close()
    [seen] = server.requests
    assert orjson.loads(seen.raw)["max_tokens"] == 1_024


async def test_keys_are_in_no_repr(registry: Registry) -> None:
    names = ("anthropic/m", "openai/m", "gemini/m", "openrouter/m", "house/m")
    models = [registry.resolve(name) for name in names]

    assert "canary" not in repr(KEYS) + repr(models) + repr(registry) + str(vars(registry))
    assert "http://127.0.0.1:9/v1" in repr(KEYS)
