"""Model server, faults: it fails as vendors do, and leaves no request behind."""

import asyncio
from collections.abc import AsyncIterator
from itertools import product
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import orjson
import pytest

from agiraph.testing.model_server import (
    Call,
    Cut,
    Delay,
    Empty,
    Garbage,
    ModelServer,
    Oversize,
    Stall,
    Status,
    Step,
    StreamError,
    context_overflow,
    says,
)
from agiraph.testing.model_server.anthropic import Anthropic
from agiraph.testing.model_server.form import Format
from agiraph.testing.model_server.gemini import Gemini
from agiraph.testing.model_server.openai import OpenAI

WIRES = ("openai", "anthropic", "gemini")
WAYS = tuple(product(WIRES, (False, True)))
FORMS: dict[str, Format] = {"openai": OpenAI(), "anthropic": Anthropic(), "gemini": Gemini()}
CODES = (400, 401, 403, 404, 413, 429, 500, 502, 503, 529)


def path(wire: str, stream: bool = False) -> str:
    verb = "streamGenerateContent?alt=sse" if stream else "generateContent"
    paths = {"openai": "/v1/chat/completions", "anthropic": "/v1/messages"}
    return paths.get(wire, f"/v1beta/models/m-1:{verb}")


def body(wire: str, stream: bool = False) -> dict[str, Any]:
    if wire == "gemini":
        return {"contents": [{"role": "user", "parts": [{"text": "Hello."}]}]}
    messages = [{"role": "user", "content": "Hello."}]
    return {"model": "m-1", "max_tokens": 9, "stream": stream, "messages": messages}


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


async def post(
    http: aiohttp.ClientSession, server: ModelServer, wire: str, stream: bool = False
) -> tuple[int, bytes]:
    url = server.url + path(wire, stream)
    async with http.post(url, json=body(wire, stream)) as response:
        return response.status, await response.read()


async def connect(
    server: ModelServer, wire: str, stream: bool
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Send a request over a raw socket, where every received byte can be counted."""
    address = urlsplit(server.url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    data = orjson.dumps(body(wire, stream))
    head = f"POST {path(wire, stream)} HTTP/1.1\r\nHost: a\r\nContent-Length: {len(data)}\r\n\r\n"
    writer.write(head.encode() + data)
    return reader, writer


async def read_until_closed(server: ModelServer, wire: str, stream: bool) -> bytes:
    reader, writer = await connect(server, wire, stream)
    data = await reader.read()
    writer.close()
    await writer.wait_closed()
    return data


def unchunked(data: bytes) -> bytes:
    """Return the part of the body that arrived, without chunk sizes."""
    head, _, rest = data.partition(b"\r\n\r\n")
    if b"chunked" not in head:
        return rest
    found = b""
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        found += rest[: int(size, 16)]
        rest = rest[int(size, 16) + 2 :]
    return found


@pytest.mark.parametrize(("wire", "stream"), WAYS)
async def test_a_reply_is_cut_after_the_given_byte(
    http: aiohttp.ClientSession, wire: str, stream: bool
) -> None:
    said = says("Grüße", Call("read", {"path": "a"}, id="c1"), thinking="Hm.")
    async with ModelServer([said]) as server:
        _, whole = await post(http, server, wire, stream)
    for limit in range(0, len(whole) + 1, 7):
        async with ModelServer([Cut(limit, said)]) as server:
            data = await read_until_closed(server, wire, stream)
        assert unchunked(data) == whole[:limit]


@pytest.mark.parametrize(("wire", "stream"), WAYS)
async def test_a_cut_reply_is_an_error_for_the_client(
    http: aiohttp.ClientSession, wire: str, stream: bool
) -> None:
    async with ModelServer([Cut(30)]) as server:
        with pytest.raises(aiohttp.ClientPayloadError):
            await post(http, server, wire, stream)


async def test_a_connection_may_close_without_an_answer() -> None:
    async with ModelServer([Cut(None)]) as server:
        assert await read_until_closed(server, "openai", stream=False) == b""


@pytest.mark.parametrize(("wire", "stream"), WAYS)
async def test_a_stalled_reply_ends_with_its_client(wire: str, stream: bool) -> None:
    async with ModelServer([Stall(25)]) as server:
        reader, writer = await connect(server, wire, stream)
        await reader.readuntil(b"\r\n\r\n")
        if stream:
            assert await reader.readline() == b"19\r\n"
        await reader.readexactly(25)
        assert server.in_flight == 1
        writer.close()
        await writer.wait_closed()
        await server.until(lambda: server.in_flight == 0)


@pytest.mark.parametrize("step", [Stall(25), Delay(3600)])
async def test_no_request_outlives_the_server(http: aiohttp.ClientSession, step: Step) -> None:
    loop = asyncio.get_running_loop()
    async with ModelServer([step, step, step]) as server:
        asked = [asyncio.create_task(post(http, server, wire, stream=True)) for wire in WIRES]
        await server.until(lambda: len(server.requests) == 3)
        began = loop.time()
    ended = await asyncio.gather(*asked, return_exceptions=True)
    assert loop.time() - began < 0.5
    assert server.in_flight == 0
    assert all(isinstance(error, aiohttp.ClientError) for error in ended)


async def test_a_delayed_reply_ends_with_its_client(http: aiohttp.ClientSession) -> None:
    async with ModelServer([Delay(3600), Delay(0.001, says("Late."))]) as server:
        impatient = asyncio.create_task(post(http, server, "openai"))
        await server.until(lambda: len(server.requests) == 1)
        impatient.cancel()
        await server.until(lambda: server.in_flight == 0)
        assert b'"content":"Late."' in (await post(http, server, "openai"))[1]


@pytest.mark.parametrize("wire", WIRES)
async def test_an_error_status_has_the_body_of_its_vendor(
    http: aiohttp.ClientSession, wire: str
) -> None:
    async with ModelServer([Status(code) for code in CODES]) as server:
        replies = [await post(http, server, wire, stream=True) for _ in CODES]
    errors = [orjson.loads(data) for _, data in replies]
    assert [status for status, _ in replies] == list(CODES)
    assert [KIND[wire](error) for error in errors] == KINDS[wire]
    assert errors[-1] == FORMS[wire].error(529, "Overloaded")


KIND: dict[str, Any] = {
    "openai": lambda e: (e["error"]["type"], e["error"]["code"]),
    "anthropic": lambda e: (e["type"], e["error"]["type"]),
    "gemini": lambda e: (e["error"]["code"], e["error"]["status"]),
}
KINDS: dict[str, list[tuple[Any, ...]]] = {
    "openai": [
        ("invalid_request_error", None),
        ("invalid_request_error", "invalid_api_key"),
        ("permission_error", "permission_denied"),
        ("invalid_request_error", "model_not_found"),
        ("invalid_request_error", "request_too_large"),
        ("requests", "rate_limit_exceeded"),
        *[("server_error", None)] * 4,
    ],
    "anthropic": [
        ("error", "invalid_request_error"),
        ("error", "authentication_error"),
        ("error", "permission_error"),
        ("error", "not_found_error"),
        ("error", "request_too_large"),
        ("error", "rate_limit_error"),
        *[("error", "api_error")] * 3,
        ("error", "overloaded_error"),
    ],
    "gemini": [
        (400, "INVALID_ARGUMENT"),
        (401, "UNAUTHENTICATED"),
        (403, "PERMISSION_DENIED"),
        (404, "NOT_FOUND"),
        (413, "INVALID_ARGUMENT"),
        (429, "RESOURCE_EXHAUSTED"),
        (500, "INTERNAL"),
        *[(code, "UNAVAILABLE") for code in (502, 503, 529)],
    ],
}


async def test_a_status_may_have_its_own_headers_and_body(
    http: aiohttp.ClientSession,
) -> None:
    page = b"<html>Bad gateway</html>"
    steps = [Status(429, "Slow down.", {"retry-after": "7"}), Status(502, page), Status(418, {})]
    async with ModelServer(steps) as server:
        url = server.url + path("anthropic")
        async with http.post(url, json=body("anthropic")) as response:
            assert response.headers["retry-after"] == "7"
            assert (await response.json())["error"]["message"] == "Slow down."
        assert await post(http, server, "anthropic") == (502, page)
        assert await post(http, server, "anthropic") == (418, b"{}")


@pytest.mark.parametrize(
    ("wire", "kind", "words"),
    [
        ("openai", "context_length_exceeded", "maximum context length is 200 tokens"),
        ("anthropic", "invalid_request_error", "prompt is too long: 300 tokens > 200 maximum"),
        ("gemini", "INVALID_ARGUMENT", "input token count (300) exceeds the maximum"),
    ],
)
async def test_a_context_overflow_has_the_message_of_its_vendor(
    http: aiohttp.ClientSession, wire: str, kind: str, words: str
) -> None:
    async with ModelServer([context_overflow(tokens=300, window=200)]) as server:
        status, data = await post(http, server, wire)
    error = orjson.loads(data)["error"]
    assert status == 400
    assert kind in error.values()
    assert words in error["message"]


@pytest.mark.parametrize(
    ("wire", "end"),
    [
        ("openai", b'data: {"error":{"message":"Overloaded","type":"server_error",'),
        ("anthropic", b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error",'),
        ("gemini", b'data: {"error":{"code":503,"message":"Overloaded","status":"UNAVAILABLE"}}'),
    ],
)
async def test_an_error_may_be_sent_inside_the_stream(
    http: aiohttp.ClientSession, wire: str, end: bytes
) -> None:
    async with ModelServer([StreamError(3), StreamError(3)]) as server:
        status, data = await post(http, server, wire, stream=True)
        refusal, _ = await post(http, server, wire, stream=False)
    *before, last = data.replace(b"\r\n", b"\n").removesuffix(b"\n\n").split(b"\n\n")
    assert (status, refusal, len(before)) == (200, FORMS[wire].overload, 3)
    assert last.startswith(end)


@pytest.mark.parametrize(("wire", "stream"), WAYS)
async def test_a_body_may_be_garbage_or_empty(
    http: aiohttp.ClientSession, wire: str, stream: bool
) -> None:
    async with ModelServer([Garbage(), Empty()]) as server:
        assert await post(http, server, wire, stream) == (200, Garbage().data)
        assert await post(http, server, wire, stream) == (200, b"")


@pytest.mark.parametrize(("wire", "stream"), WAYS)
async def test_a_reply_may_be_too_large(
    http: aiohttp.ClientSession, wire: str, stream: bool
) -> None:
    async with ModelServer([Oversize(3_000_000)]) as server:
        _, data = await post(http, server, wire, stream)
    assert 3_000_000 < data.count(b"x") < 3_010_000
