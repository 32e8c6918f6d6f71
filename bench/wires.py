"""Wires: the CPU cost of a request and of a streamed chunk, against a raw request."""

import asyncio
import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime
from multiprocessing import Process, Queue
from typing import Any

import uvloop

from agiraph.core.domain.chat import ToolCall, ToolSpec, Transcript, Turn
from agiraph.core.domain.ids import ThreadId
from agiraph.models.base import Model, Request
from agiraph.models.http.client import HttpClient
from agiraph.models.wires.anthropic import AnthropicModel
from agiraph.models.wires.chat_completions import OpenAIModel
from agiraph.models.wires.gemini import GeminiModel
from agiraph.testing import ModelServer, says
from agiraph.testing.script import Seen

SIZES = (1, 41, 401)
REPEATS = 60
CHUNKS = (50, 1050)


def thread(messages: int) -> Transcript:
    """Return a thread with that many messages: a task, then calls and their results."""
    at = datetime(2026, 1, 1, tzinfo=UTC)
    transcript = Transcript()

    def add(role: Any, text: str, **more: Any) -> None:
        seq = len(transcript.turns) + 1
        turn = Turn(
            thread_id=ThreadId("t_1"), seq=seq, node_id=None, role=role, text=text, at=at, **more
        )
        transcript.add(turn)

    add("system", "s" * 4000)
    add("user", "Take notes. " * 20)
    for number in range((messages - 1) // 2):
        call = ToolCall(id=f"call_{number}", name="note", arguments={"text": "x" * 100})
        add("assistant", "", calls=(call,))
        add("tool", "noted " + "y" * 200, ref=call.id)
    return transcript


TOOLS = tuple(
    ToolSpec(
        name=f"tool_{n}",
        description="Does something useful, in a sentence of some length.",
        schema={"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    )
    for n in range(14)
)


def _serve(ready: Any) -> None:
    async def main() -> None:
        def script(seen: Seen) -> Any:
            long = b"long answer" in seen.raw[-600:]
            short = b"short answer" in seen.raw[-600:]
            if long or short:
                return says("word " * (CHUNKS[1] if long else CHUNKS[0]), chunk=5)
            return says("Done.")

        async with ModelServer(script) as server:
            ready.put(server.url)
            await asyncio.Event().wait()

    uvloop.run(main())


def models(url: str, http: HttpClient) -> dict[str, Model]:
    return {
        "chat-completions": OpenAIModel(
            name="openai/x", model="x", base_url=f"{url}/v1", key="k", http=http
        ),
        "anthropic": AnthropicModel(
            name="anthropic/x", model="x", base_url=url, key="k", http=http
        ),
        "gemini": GeminiModel(name="gemini/x", model="x", base_url=url, key="k", http=http),
    }


async def _cost(act: Callable[[], Any], repeats: int) -> float:
    costs: list[float] = []
    for _ in range(repeats):
        began = time.process_time()
        await act()
        costs.append(time.process_time() - began)
    return statistics.median(costs) * 1e6


class Raw:
    """Sends requests with an encoded body over a bare socket."""

    def __init__(self, url: str) -> None:
        self._host, self._port = url.removeprefix("http://").split(":")

    async def open(self) -> None:
        self._reader, self._writer = await asyncio.open_connection(self._host, int(self._port))

    async def ask(self, path: str, headers: dict[str, str], body: bytes) -> None:
        lines = "".join(f"{k}: {v}\r\n" for k, v in headers.items())
        head = f"POST {path} HTTP/1.1\r\nhost: x\r\n{lines}content-length: {len(body)}\r\n\r\n"
        self._writer.write(head.encode())
        self._writer.write(body)
        await self._writer.drain()
        answer = await self._reader.readuntil(b"\r\n\r\n")
        if b"chunked" in answer.lower():
            while (size := int(await self._reader.readline(), 16)) > 0:
                await self._reader.readexactly(size + 2)
            await self._reader.readexactly(2)
        else:
            length = int(answer.lower().split(b"content-length:")[1].split(b"\r\n")[0])
            await self._reader.readexactly(length)

    def close(self) -> None:
        self._writer.close()


async def measure() -> dict[str, Any]:
    ready: Any = Queue()
    process = Process(target=_serve, args=(ready,), daemon=True)
    process.start()
    url = ready.get(timeout=30)
    http = HttpClient()
    raw = Raw(url)
    await raw.open()
    found: dict[str, Any] = {}
    for name, model in models(url, http).items():
        sizes: dict[int, tuple[float, float]] = {}
        for size in SIZES:
            transcript = thread(size)
            request = Request(transcript=transcript, tools=TOOLS)
            await model.reply(request)  # warm-up: in a real run, earlier turns are encoded already
            ours = await _cost(lambda m=model, r=request: m.reply(r), REPEATS)
            path, headers, body = _as_sent(model, request)
            floor = await _cost(lambda p=path, h=headers, b=body: raw.ask(p, h, b), REPEATS)
            sizes[size] = (ours, floor)
        chunk = await _per_chunk(model)
        found[name] = {"sizes": sizes, "chunk": chunk}
    raw.close()
    await http.close()
    process.kill()
    return found


def _as_sent(model: Any, request: Request) -> tuple[str, dict[str, str], bytes]:
    module = __import__(type(model).__module__, fromlist=["encode"])
    body = b"".join(module.encode(model.model, request))
    paths = {
        "OpenAIModel": "/v1/chat/completions",
        "AnthropicModel": "/v1/messages",
        "GeminiModel": f"/v1beta/models/{model.model}:streamGenerateContent?alt=sse",
    }
    return paths[type(model).__name__], {"content-type": "application/json"}, body


async def _per_chunk(model: Model) -> float:
    """Return the CPU cost of one chunk: the slope between a short and a long streamed answer."""

    async def ask(words: str) -> float:
        transcript = thread(1)
        turn = transcript.turns[-1]
        transcript.add(
            Turn(thread_id=turn.thread_id, seq=9, node_id=None, role="user", text=words, at=turn.at)
        )
        request = Request(transcript=transcript)
        return await _cost(lambda: model.reply(request, lambda _: None), 8)

    short, long = await ask("short answer"), await ask("long answer")
    return (long - short) / (CHUNKS[1] - CHUNKS[0])
