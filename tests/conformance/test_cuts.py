"""A stream that is cut at any byte gives the whole reply or an error."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from agiraph.core.domain.errors import ModelUnavailable
from agiraph.models.base import Reply
from agiraph.models.http.client import HttpClient, Response
from agiraph.testing import Call, ModelServer, Says, says
from tests.conformance.conftest import PROVIDERS, ModelOn, Provider, WireModel
from tests.providers.streams import outcome
from tests.providers.transcripts import request

ANTHROPIC, OPENAI, GEMINI, OPENROUTER, _, DIRECT = PROVIDERS
TWO = (Call("bash", {"command": "ls"}, id="a"), Call("read_file", {"path": "ä.md"}, id="b"))
STREAMS: dict[str, tuple[Provider, Says]] = {
    "anthropic, everything": (ANTHROPIC, says("Grüße", *TWO, thinking="Größe?", chunk=30)),
    "anthropic, text": (ANTHROPIC, says("Grüße aus Köln.", chunk=6)),
    "openai, calls": (OPENAI, says("Grüße", *TWO, chunk=30)),
    "openrouter, thinking": (OPENROUTER, says("Grüße", thinking="Größe?", chunk=30)),
    "gemini, everything": (GEMINI, says("Grüße", *TWO, thinking="Größe?", chunk=30)),
}
FINAL = {"anthropic": b"message_stop", "openai": b'"finish_reason":"', "gemini": b'"finishReason"',
         "responses": b"response.completed"}  # fmt: skip
"""What a complete stream contains."""
STEP = 23
"""Every which byte is the last over a connection; `make faults` cuts at each."""
WIRES: dict[str, str] = {"openai": "chat", "anthropic": "anthropic", "gemini": "gemini"}
"""The name of a wire in `tests.providers.streams`."""
CUT_OFF = "The response was cut off before its end."
BROKEN = "Cannot reach host: the connection was closed before the end of the response."


class Recording:
    """A server that sends the first `limit` bytes of a recorded stream and then closes."""

    def __init__(self, stream: bytes, *, chunked: bool) -> None:
        self._stream = stream
        self._chunked = chunked
        self.limit = 0
        self.url = ""

    @asynccontextmanager
    async def open(self) -> AsyncGenerator["Recording"]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with server:
            yield self

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        await reader.readexactly(length)
        said = self._stream[: self.limit]
        encoding = b"transfer-encoding: chunked\r\n" if self._chunked else b""
        body = b"%x\r\n%b\r\n" % (len(said), said) if self._chunked and said else said
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n" + encoding)
        writer.write(b"\r\n" + body)
        writer.close()


async def record(http: HttpClient, server: ModelServer, model: WireModel) -> tuple[bytes, Reply]:
    """Return the bytes of a stream, and the reply that they mean."""
    reply = await model.reply(request())
    [seen] = server.requests
    path = {
        "anthropic": "/v1/messages",
        "openai": "/v1/chat/completions",
        "responses": "/v1/responses",
        "gemini": f"/v1beta/models/{model.model}:streamGenerateContent?alt=sse",
    }[seen.wire]
    stream = await http.post(server.url + path, headers={}, body=(seen.raw,), handle=_read_all)
    return stream, reply


async def _read_all(response: Response) -> bytes:
    said = b""
    while chunk := await response.read_chunk():
        said += chunk
    return said


async def outcomes_of_cuts(
    model: WireModel, stream: bytes, *, chunked: bool, step: int
) -> list[Reply | str]:
    """Return the replies or errors when only the first 0, 1, 2 and so on bytes arrive."""
    outcomes: list[Reply | str] = []
    async with Recording(stream, chunked=chunked).open() as recording:
        model = replace(model, base_url=recording.url)
        for recording.limit in range(0, len(stream) + step, step):
            try:
                outcomes.append(await model.reply(request()))
            except ModelUnavailable as error:
                outcomes.append(str(error).replace(recording.url.removeprefix("http://"), "host"))
    return outcomes


@pytest.mark.slow
@pytest.mark.parametrize(("provider", "said"), STREAMS.values(), ids=STREAMS.keys())
async def test_a_stream_that_ends_at_any_byte_gives_the_whole_reply_or_an_error(
    model_on: ModelOn, http: HttpClient, provider: Provider, said: Says
) -> None:
    async with ModelServer([said, said]) as server:
        model = model_on(provider, server)
        stream, whole = await record(http, server, model)
    outcomes = await outcomes_of_cuts(model, stream, chunked=False, step=STEP)

    check_cuts(provider, stream, outcomes, whole, step=STEP)
    # Every single byte without a connection: there a cut costs a hundredth.
    read = [outcome(WIRES[provider.wire], stream[:size]) for size in range(len(stream) + 1)]
    directly = [o if isinstance(o, Reply) else str(o) for o in read]
    assert isinstance(directly[-1], Reply)
    check_cuts(provider, stream, directly, directly[-1], step=1)
    assert list(map(told, directly[::STEP])) == list(map(told, outcomes))[: len(directly[::STEP])]


@pytest.mark.long
@pytest.mark.parametrize(("provider", "said"), STREAMS.values(), ids=STREAMS.keys())
async def test_a_connection_that_ends_at_any_byte_gives_the_whole_reply_or_an_error(
    model_on: ModelOn, http: HttpClient, provider: Provider, said: Says
) -> None:
    async with ModelServer([said, said]) as server:
        model = model_on(provider, server)
        stream, whole = await record(http, server, model)
    outcomes = await outcomes_of_cuts(model, stream, chunked=False, step=1)

    check_cuts(provider, stream, outcomes, whole, step=1)


def check_cuts(
    provider: Provider, stream: bytes, outcomes: list[Any], whole: Reply, *, step: int
) -> None:
    # A reply that lacks only its usage is accepted: some servers send no usage.
    with_usage: list[Any] = [
        o if isinstance(o, str) else replace(o, usage=whole.usage) for o in outcomes
    ]
    ends = with_usage.index(whole)
    assert all(outcome in (CUT_OFF, whole) for outcome in with_usage)
    assert (outcomes[-1], with_usage[ends - 1]) == (whole, CUT_OFF)
    assert FINAL[provider.wire] in stream[: ends * step + 1]


def told(end: Reply | str) -> object:
    return end if isinstance(end, str) else (end.text, [(c.name, c.arguments) for c in end.calls])


@pytest.mark.parametrize(("provider", "said"), STREAMS.values(), ids=STREAMS.keys())
async def test_a_connection_that_breaks_at_any_byte_gives_the_whole_reply_or_an_error(
    model_on: ModelOn, http: HttpClient, provider: Provider, said: Says
) -> None:
    async with ModelServer([said, said]) as server:
        model = model_on(provider, server)
        stream, whole = await record(http, server, model)
    outcomes = await outcomes_of_cuts(model, stream, chunked=True, step=STEP)

    ends = outcomes.index(whole) if whole in outcomes else len(outcomes)
    assert outcomes == [BROKEN] * ends + [whole] * (len(outcomes) - ends)
    # Gemini marks no end of the stream: there the connection has to last to the end.
    assert (ends == len(outcomes)) == (provider.wire == "gemini")
