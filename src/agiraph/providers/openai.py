"""OpenAI's chat-completions, the wire that every compatible server speaks."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast

import aiohttp
import orjson

from agiraph.domain.chat import ToolCall, ToolSpec, Transcript, Turn
from agiraph.domain.errors import ModelGarbled, ModelUnavailable
from agiraph.domain.work import Usage
from agiraph.faultpoints import fault
from agiraph.providers.base import OnDelta, Reply, Request
from agiraph.providers.http import Http, error_text, events, json_object, whole

WIRE = "openai"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAIModel:
    name: str
    model: str
    base_url: str
    key: str = field(repr=False)
    http: Http

    async def reply(self, request: Request, on_delta: OnDelta | None = None) -> Reply:
        headers = {"content-type": "application/json"}
        if self.key:
            headers["authorization"] = f"Bearer {self.key}"
        url = f"{self.base_url.rstrip('/')}/chat/completions"
        body = encode(self.model, request)
        async with self.http.post(url, headers=headers, body=body) as response:
            if response.content_type == "text/event-stream":
                reply = await _gather(response, on_delta)
            else:
                reply = _read(await whole(response))
        fault("fx:after:llm")
        if not reply.text and not reply.calls:
            raise ModelGarbled("The model answered nothing at all.")
        return reply


def encode(model: str, request: Request) -> bytes:
    """The request's bytes: what was said before stays to the byte, new turns come behind it."""
    kept = request.transcript.wire.setdefault(WIRE, _Encoded())
    kept.extend(request.transcript)
    settings: dict[str, Any] = {"model": model, "stream": True}
    settings["stream_options"] = {"include_usage": True}
    if request.max_output_tokens is not None:
        settings["max_tokens"] = request.max_output_tokens
    if request.tools:
        settings["tools"] = [_tool(t) for t in request.tools]
    opening = orjson.dumps(settings)[:-1]
    return b"".join((opening, b',"messages":[', b",".join(kept.messages), b"]}"))


class _Encoded:
    """The messages of a thread as bytes, each made once."""

    def __init__(self) -> None:
        self.messages: list[bytes] = []
        self._entries = 0

    def extend(self, transcript: Transcript) -> None:
        if not self.messages and transcript.system:
            self.messages.append(orjson.dumps({"role": "system", "content": transcript.system}))
        self.messages += [orjson.dumps(_message(t)) for t in transcript.spoken(self._entries)]
        self._entries = len(transcript.turns)


def _tool(spec: ToolSpec) -> dict[str, Any]:
    function = {"name": spec.name, "description": spec.description, "parameters": spec.schema}
    return {"type": "function", "function": function}


def _message(turn: Turn) -> dict[str, Any]:
    if turn.role == "tool":
        return {"role": "tool", "tool_call_id": turn.ref, "content": turn.text}
    if turn.role == "user":
        return {"role": "user", "content": turn.text}
    message: dict[str, Any] = {"role": "assistant", "content": turn.text or None}
    if turn.calls:
        message["tool_calls"] = [
            {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": _written(c)}}
            for c in turn.calls
        ]
    return message


def _written(call: ToolCall) -> str:
    # A server may reject a history with broken JSON in it, even the model's own.
    return "{}" if call.malformed is not None else orjson.dumps(call.arguments).decode()


def _read(body: dict[str, Any]) -> Reply:
    """A reply that came in one piece."""
    if "error" in body:
        raise ModelUnavailable(error_text(orjson.dumps(body)))
    try:
        message = body["choices"][0]["message"]
        calls = [
            _call(c.get("id") or "", c["function"]["name"], c["function"].get("arguments") or "")
            for c in message.get("tool_calls") or ()
        ]
        return Reply(
            text=message.get("content") or "",
            calls=tuple(calls),
            usage=_usage(body.get("usage")),
        )
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise ModelGarbled(f"The answer lacks what a chat completion has: {error!r}") from error


@dataclass(slots=True)
class _Partial:
    """What has come of a streamed reply so far."""

    text: list[str] = field(default_factory=list[str])
    calls: dict[int, list[str]] = field(default_factory=dict[int, list[str]])
    usage: Any = None
    ended: bool = False

    def take(self, chunk: dict[str, Any]) -> Iterator[str]:
        """Add one chunk; the words in it."""
        if chunk.get("usage"):
            self.usage = chunk["usage"]
        for choice in chunk.get("choices") or ():
            delta: Any = choice.get("delta") or {}
            if words := delta.get("content"):
                self.text.append(words)
                yield words
            for part in delta.get("tool_calls") or ():
                identity, name, arguments = self.calls.setdefault(
                    part.get("index", 0), ["", "", ""]
                )
                function: Any = part.get("function") or {}
                self.calls[part.get("index", 0)] = [
                    identity or part.get("id") or "",
                    name or function.get("name") or "",
                    arguments + (function.get("arguments") or ""),
                ]
            self.ended = self.ended or choice.get("finish_reason") is not None


async def _gather(response: aiohttp.ClientResponse, on_delta: OnDelta | None) -> Reply:
    partial = _Partial()
    try:
        async for data in events(response):
            if data == b"[DONE]":
                partial.ended = True
                break
            chunk = json_object(data)
            if "error" in chunk:
                raise ModelUnavailable(f"The answer broke off: {error_text(data)}")
            for words in partial.take(chunk):
                if on_delta is not None:
                    on_delta(words)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ModelGarbled(f"A piece of the stream cannot be read: {error!r}") from error
    if not partial.ended:
        raise ModelUnavailable("The answer was cut off before its end.")
    return Reply(
        text="".join(partial.text),
        calls=tuple(_call(*partial.calls[i]) for i in sorted(partial.calls)),
        usage=_usage(partial.usage),
    )


def _call(identity: str, name: str, arguments: str) -> ToolCall:
    try:
        parsed = orjson.loads(arguments or "{}")
    except orjson.JSONDecodeError:
        parsed = None
    if isinstance(parsed, dict):
        return ToolCall(id=identity, name=name, arguments=parsed)  # pyright: ignore
    return ToolCall(id=identity, name=name, malformed=arguments)


def _usage(usage: Any) -> Usage:
    if not isinstance(usage, dict):
        return Usage()
    known = cast(dict[str, Any], usage)
    details: Any = known.get("prompt_tokens_details") or {}
    return Usage(
        input_tokens=int(known.get("prompt_tokens") or 0),
        output_tokens=int(known.get("completion_tokens") or 0),
        cached_tokens=int(details.get("cached_tokens") or 0),
    )
