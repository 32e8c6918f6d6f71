"""Diagnosis: each error of a model says what to do, and a server that drops a part is noticed."""

from collections.abc import Mapping
from datetime import UTC, datetime

import pytest

from agiraph.core.domain.chat import Transcript, Turn
from agiraph.core.domain.errors import (
    ContextExceeded,
    KeyRefused,
    ModelError,
    ModelMissing,
    ModelRefused,
    ModelUnavailable,
)
from agiraph.core.domain.ids import ThreadId
from agiraph.models.base import Request
from agiraph.models.catalogue import Catalogue
from agiraph.models.facts.prices import Prices
from agiraph.models.http.errors import error_for_status
from agiraph.models.probe import Check, probe
from agiraph.models.registry import Account, Keys, Registry
from agiraph.models.servers import Server
from agiraph.testing import ManualClock, ModelServer, call, says
from tests.providers.local_server import LLAMACPP, LOADED, VLLM, LocalServer
from tests.wording import Wording


def catalogue(servers: Mapping[str, Server], accounts: Mapping[str, Account] | None = None):
    clock = ManualClock()
    return Catalogue(Registry(Keys(accounts or {}, servers=servers), clock), Prices(), clock)


def request(text: str = "Hello.") -> Request:
    turn = Turn(
        thread_id=ThreadId("t"),
        seq=1,
        node_id=None,
        role="user",
        text=text,
        at=datetime(2026, 1, 1, tzinfo=UTC),
    )
    return Request(transcript=Transcript([turn]))


async def refusal(models: Catalogue, name: str, asked: Request | None = None) -> ModelError:
    await models.learn(name)
    with pytest.raises(ModelError) as raised:
        await models.resolve(name, patient=False).reply(asked or request())
    await models.close()
    return raised.value


ERRORS = [
    (401, "bad key", KeyRefused),
    (404, "no such model", ModelMissing),
    (400, "m does not support tools", ModelRefused),
    (400, "tools param requires --jinja flag", ModelRefused),
    (400, "Unsupported parameter: 'tools' is not supported with this model.", ModelRefused),
    (400, "Function calling is not enabled for models/gemma-3-27b-it", ModelRefused),
    (400, "`tool calling` is not supported with this model", ModelRefused),
    (404, "No endpoints found that support tool use.", ModelRefused),
    (400, "API key not valid. Please pass a valid API key.", KeyRefused),
    (400, "Incorrect API key provided: x***y.", KeyRefused),
    (403, "Project `p` does not have access to model `gpt-9`", ModelMissing),
    (
        400,
        "request (9 tokens) exceeds the available context size (8 tokens), try increasing it",
        ContextExceeded,
    ),
    (500, "Context size has been exceeded.", ContextExceeded),
]


async def test_the_errors_of_a_server_say_what_to_do(wording: Wording) -> None:
    told: dict[str, str] = {}
    for status, message, kind in ERRORS:
        async with LocalServer(VLLM, refuses=(status, message)) as server:
            house = Server(base_url=server.base_url, key="canary-4711", key_env="HOUSE_KEY")
            error = await refusal(catalogue({"house": house}), "house/m")
            host = server.url.removeprefix("http://")
        assert type(error) is kind
        told[f"{status}: {message}"] = str(error).replace(host, "HOST")
    wording(told)


async def test_a_server_that_is_down_says_how_it_is_started() -> None:
    models = catalogue({"ollama": Server(base_url="http://127.0.0.1:9/v1")})
    error = await refusal(models, "ollama/x")
    assert isinstance(error, ModelUnavailable)
    assert "correct base_url of [servers.ollama] in agiraph.toml." in str(error)
    diagnosis = catalogue({}).diagnosis("ollama/x")
    assert diagnosis.unreached() == (
        "Start it with `ollama serve`, or name its address in agiraph.toml as base_url of "
        "[servers.ollama]."
    )


@pytest.mark.parametrize(
    ("key", "is_stored", "advice"),
    [
        ("k", False,
         "Check OPENAI_API_KEY: {host} does not accept the key. Set the right one in the "
         "environment and start agiraph again."),
        ("k", True,
         "{host} does not accept the key that was entered in the web UI. Enter the right one "
         "there, under Models."),
        ("", False,
         "{host} wants a key: enter it in the web UI, under Models, or set OPENAI_API_KEY in the "
         "environment and start agiraph again."),
    ],
)  # fmt: skip
async def test_what_to_do_about_a_vendors_wrong_key_depends_on_where_the_key_is(
    key: str, is_stored: bool, advice: str
) -> None:
    async with LocalServer({}, refuses=(401, "invalid x-api-key")) as server:
        account = Account(key=key, base_url=server.base_url, is_stored=is_stored)
        error = await refusal(catalogue({}, {"openai": account}), "openai/gpt-6-sol")
        host = server.base_url.removeprefix("http://").partition("/")[0]
    assert str(error).endswith(advice.format(host=host))


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "request (5000 tokens) exceeds the available context size (4096 tokens)"),
        (400, "the request exceeds the available context size, try increasing it"),
        (500, "Context size has been exceeded."),
        (500, "input is larger than the max context size. skipped"),
        (400, "This model's maximum context length is 8192 tokens."),
        (400, "the input length exceeds the context length"),
    ],
)
def test_the_words_of_local_servers_for_a_full_window_are_known(status: int, message: str) -> None:
    assert type(error_for_status(status, message, message)) is ContextExceeded


async def test_a_prompt_whose_beginning_was_dropped_says_how_the_window_is_made_larger() -> None:
    async with LocalServer(LOADED, prompt_tokens=1_000) as server:
        models = catalogue({"house": Server(base_url=server.base_url)})
        error = await refusal(models, "house/qwen3:8b", request("word " * 20_000))
    assert "the server dropped a part of it and did not say so." in str(error)
    assert str(error).endswith(
        "For this server: set OLLAMA_CONTEXT_LENGTH=32768 and start Ollama again."
    )


async def test_a_prompt_that_was_counted_as_a_whole_passes() -> None:
    async with LocalServer(LOADED, prompt_tokens=20_000) as server:
        models = catalogue({"house": Server(base_url=server.base_url)})
        await models.learn("house/qwen3:8b")
        reply = await models.resolve("house/qwen3:8b").reply(request("word " * 20_000))
        await models.close()
    assert reply.text == "Hello."


async def test_the_probe_of_a_model_that_makes_no_call_advises_the_servers_option() -> None:
    async with LocalServer(LLAMACPP, prompt_tokens=49) as server:
        models = catalogue({"house": Server(base_url=server.base_url)})
        words, tool_call, schema, cache = await probe(models, "house/smollm2")
        await models.close()
    assert words == Check(name="words", verdict="passed", what="It answers (49 tokens in, 5 out).")
    assert (tool_call.verdict, tool_call.what) == (
        "failed",
        "It was shown a tool and asked to use it, and answered in words.",
    )
    assert "llama-server needs --jinja for tools" in tool_call.advice
    assert (schema.verdict, cache.verdict) == ("failed", "unknown")


async def test_the_probe_of_a_model_that_writes_no_calls_as_text_does_not_advise_text() -> None:
    async with LocalServer(LLAMACPP, prompt_tokens=49) as server:
        models = catalogue({"house": Server(base_url=server.base_url)})
        _, tool_call, *_ = await probe(models, "text/house/smollm2")
        await models.close()
    assert (tool_call.verdict, tool_call.advice) == (
        "failed",
        "It makes no calls even when they are written as text: choose a larger model.",
    )


async def test_the_probe_of_a_good_model_passes_everything() -> None:
    steps = [
        says("It is sunny."),
        says(call("get_weather", city="Paris")),
        says('{"city": "Paris", "people": 2000000}'),
        says("Sunny."),
        says("Sunny.", input_tokens=4_000, cached_tokens=3_900),
    ]
    async with ModelServer(steps) as server:
        models = catalogue({"house": Server(base_url=server.openai_url)})
        checks = await probe(models, "house/m")
        await models.close()
    assert [(check.name, check.verdict) for check in checks] == [
        ("words", "passed"),
        ("tool_call", "passed"),
        ("schema", "passed"),
        ("cache", "passed"),
    ]


async def test_the_probe_of_a_server_that_is_down_says_so_once() -> None:
    models = catalogue({"house": Server(base_url="http://127.0.0.1:9/v1")})
    [only] = await probe(models, "house/m")
    await models.close()
    assert (only.name, only.verdict) == ("words", "failed")
    assert only.advice == (
        "Start the server, or correct base_url of [servers.house] in agiraph.toml."
    )
