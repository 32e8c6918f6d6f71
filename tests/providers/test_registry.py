"""From a name to a model: what is known, what is missing, and what to write instead."""

import re
from collections.abc import AsyncIterator

import pytest

from agiraph.domain.errors import Misconfigured
from agiraph.providers.demo import DemoModel
from agiraph.providers.openai import OpenAIModel
from agiraph.providers.registry import Keys, Registry
from agiraph.providers.retry import Retrying
from agiraph.testing import ManualClock, ModelServer, ScriptedModel, says
from tests.providers.said import request

KEYS = Keys(openai_key="sk-canary-4711", openai_url="http://127.0.0.1:9/v1")


@pytest.fixture
async def registry() -> AsyncIterator[Registry]:
    opened = Registry(KEYS, ManualClock())
    yield opened
    await opened.close()


def wire(registry: Registry, name: str) -> OpenAIModel:
    model = registry.resolve(name)
    assert isinstance(model, Retrying)
    assert isinstance(model.model, OpenAIModel)
    return model.model


def test_the_demo_needs_nothing() -> None:
    assert Registry(Keys(), ManualClock()).resolve("demo") == DemoModel()


async def test_a_name_is_split_at_the_first_slash(registry: Registry) -> None:
    model = wire(registry, "openai/vendor/name-1")

    assert (model.name, model.model) == ("openai/vendor/name-1", "vendor/name-1")
    assert (model.base_url, model.key) == (KEYS.openai_url, KEYS.openai_key)


async def test_without_an_address_the_vendor_is_asked() -> None:
    registry = Registry(Keys(openai_key="sk"), ManualClock())

    assert wire(registry, "openai/m").base_url == "https://api.openai.com/v1"


async def test_the_same_name_gives_the_same_model(registry: Registry) -> None:
    assert registry.resolve("openai/a") is registry.resolve("openai/a")
    assert registry.resolve("openai/a") is not registry.resolve("openai/b")


@pytest.mark.parametrize("name", ["", "nope", "nope/m", "openai", "openai/", "/m", "Demo"])
async def test_an_unknown_name_is_refused_with_the_known_ones(
    registry: Registry, name: str
) -> None:
    said = (
        f"{name!r} is not a model agiraph can reach. Write `provider/model` with one of openai, "
        "or `demo`, which needs no key."
    )
    with pytest.raises(Misconfigured, match=f"^{re.escape(said)}$"):
        registry.resolve(name)


def test_a_provider_without_a_key_says_which_setting_is_missing() -> None:
    said = "openai/m needs OPENAI_API_KEY, or OPENAI_BASE_URL for a server of your own."
    with pytest.raises(Misconfigured, match=f"^{re.escape(said)}$"):
        Registry(Keys(), ManualClock()).resolve("openai/m")


def test_an_address_that_is_none_is_refused() -> None:
    registry = Registry(Keys(openai_url="localhost:8080/v1"), ManualClock())

    said = "OPENAI_BASE_URL 'localhost:8080/v1' must begin with https:// or http://."
    with pytest.raises(Misconfigured, match=f"^{re.escape(said)}$"):
        registry.resolve("openai/m")


async def test_a_provider_can_be_added(registry: Registry) -> None:
    registry.add("scripted", lambda name: ScriptedModel(f"scripted/{name}", []))

    assert registry.resolve("scripted/ada") == ScriptedModel("scripted/ada", [])


async def test_what_is_resolved_can_be_asked() -> None:
    async with ModelServer([says("Hello.")]) as server:
        registry = Registry(Keys(openai_url=server.openai_url), ManualClock())
        reply = await registry.resolve("openai/m").reply(request())
        await registry.close()

    assert (reply.text, server.requests[0].model) == ("Hello.", "m")


async def test_keys_are_not_shown(registry: Registry) -> None:
    model = registry.resolve("openai/m")

    assert repr(KEYS) == "Keys(openai_url='http://127.0.0.1:9/v1')"
    assert "canary" not in repr(model) + repr(registry) + str(vars(registry))
