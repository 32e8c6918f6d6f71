"""Model server, rules: it refuses what vendors refuse, and reports mistakes of a script."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from copy import deepcopy
from typing import Any

import aiohttp
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agiraph.testing.model_server import ModelServer, Says, Seen, says
from agiraph.testing.model_server.anthropic import Anthropic
from agiraph.testing.model_server.form import BadRequest, Format, check_results
from agiraph.testing.model_server.gemini import Gemini
from agiraph.testing.model_server.openai import OpenAI
from agiraph.testing.model_server.server import MALFORMED

WIRES = ("openai", "anthropic", "gemini")
FORMS: dict[str, Format] = {"openai": OpenAI(), "anthropic": Anthropic(), "gemini": Gemini()}
PATHS = {
    "openai": "/v1/chat/completions",
    "anthropic": "/v1/messages",
    "gemini": "/v1/models/m-1:generateContent",
}

CALLS: dict[str, list[dict[str, Any]]] = {
    "openai": [
        {"role": "user", "content": "Look."},
        {
            "role": "assistant",
            "tool_calls": [
                {"id": "c1", "function": {"name": "read", "arguments": "{}"}},
                {"id": "c2", "function": {"name": "read", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "A"},
        {"role": "tool", "tool_call_id": "c2", "content": "B"},
        {"role": "user", "content": "And?"},
    ],
    "anthropic": [
        {"role": "user", "content": "Look."},
        {
            "role": "assistant",
            "content": [
                {"type": "tool_use", "id": "c1", "name": "read", "input": {}},
                {"type": "tool_use", "id": "c2", "name": "read", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "A"}],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c2", "content": "B", "is_error": True}
            ],
        },
        {"role": "user", "content": "And?"},
    ],
    "gemini": [
        {"role": "user", "parts": [{"text": "Look."}]},
        {
            "role": "model",
            "parts": [{"functionCall": {"name": "read"}}, {"functionCall": {"name": "read"}}],
        },
        {"parts": [{"functionResponse": {"name": "read", "response": {"output": "A"}}}]},
        {"parts": [{"functionResponse": {"name": "read", "response": {"error": "B"}}}]},
        {"role": "user", "parts": [{"text": "And?"}]},
    ],
}


def body(wire: str, messages: list[dict[str, Any]]) -> dict[str, Any]:
    if wire == "gemini":
        return {"contents": messages}
    return {"model": "m-1", "max_tokens": 9, "messages": messages}


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


async def post(
    http: aiohttp.ClientSession, server: ModelServer, wire: str, data: bytes
) -> tuple[int, dict[str, Any]]:
    async with http.post(server.url + PATHS[wire], data=data) as response:
        return response.status, await response.json()


async def post_messages(
    http: aiohttp.ClientSession, server: ModelServer, wire: str, messages: list[dict[str, Any]]
) -> tuple[int, dict[str, Any]]:
    return await post(http, server, wire, orjson.dumps(body(wire, messages)))


@pytest.mark.parametrize("wire", WIRES)
async def test_calls_and_results_must_match(http: aiohttp.ClientSession, wire: str) -> None:
    look, calls, first, second, on = CALLS[wire]
    wrong = {
        "nothing is said": [],
        "a result is missing": [look, calls, first, on],
        "the last result is missing": [look, calls, first],
        "the results are late": [look, calls, on, first, second],
        "a result is given twice": [look, calls, first, first, second, second],
        "a result was never asked for": [look, first],
    }
    async with ModelServer([says("Fine.")]) as server:
        answers = {
            why: await post_messages(http, server, wire, said) for why, said in wrong.items()
        }
        right, _ = await post_messages(http, server, wire, CALLS[wire])
    errors = [FORMS[wire].error(400, message) for message in server.refused]
    assert answers == {why: (400, error) for why, error in zip(wrong, errors, strict=True)}
    assert right == 200
    assert [m.text for m in server.requests[-1].messages if m.role == "tool"] == ["A", "B"]


async def test_failed_results_are_parsed_as_failed(http: aiohttp.ClientSession) -> None:
    async with ModelServer(lambda _: says("Fine.")) as server:
        for wire in WIRES:
            await post_messages(http, server, wire, CALLS[wire])
    failed = [[m.failed for m in seen.messages if m.role == "tool"] for seen in server.requests]
    assert failed == [[False, False], [False, True], [False, True]]


async def test_openai_names_the_calls_without_results(http: aiohttp.ClientSession) -> None:
    async with ModelServer([]) as server:
        _, answer = await post_messages(http, server, "openai", CALLS["openai"][:3])
    assert answer["error"]["message"].endswith("did not have response messages: c2")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"max_tokens": None}, "max_tokens: Field required"),
        ({"messages": [{"role": "user", "content": ""}]}, "must be non-empty"),
        ({"messages": [{"role": "user", "content": []}]}, "must have non-empty content"),
        ({"messages": [{"role": "system", "content": "Be."}]}, "should be 'user' or 'assistant'"),
        ({"messages": CALLS["anthropic"] + CALLS["anthropic"]}, "ids must be unique"),
    ],
)
async def test_anthropic_refuses_messages_that_others_accept(
    http: aiohttp.ClientSession, change: dict[str, Any], words: str
) -> None:
    request = body("anthropic", CALLS["anthropic"]) | change
    async with ModelServer([]) as server:
        status, answer = await post(http, server, "anthropic", orjson.dumps(request))
    assert (status, answer["error"]["type"]) == (400, "invalid_request_error")
    assert words in answer["error"]["message"]


async def test_anthropic_requires_results_before_text(http: aiohttp.ClientSession) -> None:
    look, calls, first, second, _ = CALLS["anthropic"]
    results = first["content"] + second["content"]
    words = [{"type": "text", "text": "Here:"}]
    async with ModelServer([says("Fine.")]) as server:
        late = {"role": "user", "content": words + results}
        early = {"role": "user", "content": results + words}
        assert (await post_messages(http, server, "anthropic", [look, calls, late]))[0] == 400
        assert (await post_messages(http, server, "anthropic", [look, calls, early]))[0] == 200


async def test_gemini_streams_only_with_alt_sse(http: aiohttp.ClientSession) -> None:
    async with ModelServer([]) as server:
        url = f"{server.gemini_url}/v1beta/models/m-1:streamGenerateContent"
        async with http.post(url, json=body("gemini", CALLS["gemini"])) as response:
            assert (response.status, server.exhausted) == (400, [])
            assert "?alt=sse" in (await response.json())["error"]["message"]


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    "data",
    [b"", b"\xff\x00", b"{", b"[]", b"null", b'"text"', b"{}", b"[" * 5000]
    + [orjson.dumps({"messages": odd, "contents": odd}) for odd in (5, {}, "x", [5], [{}], None)],
)
async def test_a_malformed_body_gets_the_vendors_400(
    http: aiohttp.ClientSession, wire: str, data: bytes
) -> None:
    async with ModelServer([]) as server:
        status, answer = await post(http, server, wire, data)
    assert (status, answer) == (400, FORMS[wire].error(400, server.refused[0]))
    assert server.requests == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)


@pytest.mark.slow
@given(data=st.data(), wire=st.sampled_from(WIRES))
def test_no_json_value_in_any_place_crashes_the_parser(data: st.DataObject, wire: str) -> None:
    request: Any = deepcopy(body(wire, CALLS[wire]))
    place, key = request, data.draw(st.sampled_from(sorted(request)))
    while isinstance(place[key], dict | list) and place[key] and data.draw(st.booleans()):
        place = place[key]
        keys = sorted(place) if isinstance(place, dict) else range(len(place))
        key = data.draw(st.sampled_from(keys))
    place[key] = data.draw(JSON)
    with suppress(BadRequest, *MALFORMED):
        check_results(FORMS[wire], FORMS[wire].read(request).messages)


@pytest.mark.parametrize("wire", WIRES)
async def test_a_script_without_further_steps_is_reported(
    http: aiohttp.ClientSession, wire: str
) -> None:
    async with ModelServer([says("Once.")]) as server:
        first, _ = await post_messages(http, server, wire, CALLS[wire])
        second, answer = await post_messages(http, server, wire, CALLS[wire])
    assert (first, second) == (200, 500)
    assert answer["error"]["message"].startswith("script exhausted")
    assert [seen.index for seen in server.exhausted] == [1]


async def test_a_mistake_in_a_script_is_raised_when_the_server_closes(
    http: aiohttp.ClientSession,
) -> None:
    def script(seen: Seen) -> Says:
        raise AssertionError(f"not {seen.model!r} again")

    async def run() -> None:
        async with ModelServer(script) as server:
            status, answer = await post_messages(http, server, "openai", CALLS["openai"])
            assert (status, answer["error"]["type"]) == (500, "server_error")

    with pytest.raises(AssertionError, match="not 'm-1' again"):
        await run()


async def test_a_script_may_be_a_function_of_the_request(http: aiohttp.ClientSession) -> None:
    async def script(seen: Seen) -> Says:
        return says(f"{seen.index}: {seen.messages[-1].text}")

    async with ModelServer(script) as server:
        _, first = await post_messages(http, server, "openai", CALLS["openai"])
        _, second = await post_messages(http, server, "anthropic", CALLS["anthropic"])
    assert first["choices"][0]["message"]["content"] == "0: And?"
    assert second["content"] == [{"type": "text", "text": "1: And?"}]


async def test_requests_are_counted_while_they_are_in_flight(http: aiohttp.ClientSession) -> None:
    gate = asyncio.Event()

    async def script(_: Seen) -> Says:
        await gate.wait()
        return says("At last.")

    async with ModelServer(script) as server, asyncio.TaskGroup() as group:
        for wire in WIRES:
            group.create_task(post_messages(http, server, wire, CALLS[wire]))
        await server.until(lambda: len(server.requests) == 3)
        assert server.in_flight == 3
        gate.set()
        await server.until(lambda: server.in_flight == 0)
    assert server.most_at_once == 3


async def test_the_models_can_be_listed(http: aiohttp.ClientSession) -> None:
    async with ModelServer([]) as server, http.get(f"{server.openai_url}/models") as response:
        assert [model["id"] for model in (await response.json())["data"]] == ["scripted"]


@pytest.mark.slow
async def test_the_command_serves_a_single_reply(http: aiohttp.ClientSession) -> None:
    command = ("-m", "agiraph.testing.model_server", "--port", "0", "--reply", "Hello, you.")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-W", "error", *command, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    server = ModelServer([])
    server.url = (await process.stdout.readline()).split()[0].decode()
    _, answer = await post_messages(http, server, "anthropic", CALLS["anthropic"])
    process.send_signal(signal.SIGINT)
    await process.communicate()
    assert (answer["content"][0]["text"], process.returncode) == ("Hello, you.", 0)
