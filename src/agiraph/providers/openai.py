"""OpenAI's chat-completions, the wire that every compatible server speaks."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast

import orjson

from agiraph.domain.chat import ToolCall, ToolSpec, Transcript, Turn
from agiraph.domain.errors import ModelError, ModelGarbled, ModelUnavailable
from agiraph.domain.work import Usage
from agiraph.faultpoints import fault
from agiraph.providers.base import OnDelta, Reply, Request
from agiraph.providers.http import Http, Response, error_text, events, json_object, whole
from agiraph.providers.line import Body

WIRE = "openai"
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")


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
        try:
            async with self.http.post(url, headers=headers, body=body) as response:
                if response.content_type == "text/event-stream":
                    reply = await _gather(response, on_delta)
                else:
                    reply = _read(await whole(response))
        except ModelError as error:
            # Some servers repeat the key they refuse; what is said here is written down and shown.
            error.args = (str(error).replace(self.key or "\0", "[key]"),)
            raise
        fault("fx:after:llm")
        if not reply.text and not reply.calls:
            raise ModelGarbled("The model answered nothing at all.")
        return reply


def encode(model: str, request: Request) -> Body:
    """The request's bytes: what was said before stays to the byte, new turns come behind it."""
    kept: _Encoded = request.transcript.wire.setdefault(WIRE, _Encoded())
    kept.extend(request.transcript)
    return (kept.opening(model, request), kept.messages, b"]}")


class _Encoded:
    """The messages of a thread as bytes, each made once."""

    def __init__(self) -> None:
        self.messages = bytearray()
        self._entries = 0
        self._opening: tuple[tuple[Any, ...], bytes] = ((), b"")

    def opening(self, model: str, request: Request) -> bytes:
        """What comes before the messages; the same tools are not written out twice."""
        key = (model, request.tools, request.max_output_tokens)
        if self._opening[0] == key:  # tuples of the same objects compare at once
            return self._opening[1]
        settings: dict[str, Any] = {"model": model, "stream": True}
        settings["stream_options"] = {"include_usage": True}
        if request.max_output_tokens is not None:
            settings["max_tokens"] = request.max_output_tokens
        if request.tools:
            settings["tools"] = [_tool(t) for t in request.tools]
        self._opening = (key, orjson.dumps(settings)[:-1] + b',"messages":[')
        return self._opening[1]

    def extend(self, transcript: Transcript) -> None:
        if not self.messages and transcript.system:
            self._add({"role": "system", "content": transcript.system})
        for turn in transcript.spoken(self._entries):
            self._add(_message(turn))
        self._entries = len(transcript.turns)

    def _add(self, message: dict[str, Any]) -> None:
        if self.messages:
            self.messages += b","
        self.messages += orjson.dumps(message)


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
            {"id": c.id, "type": "function", "function": _written(c)} for c in turn.calls
        ]
    return message


def _written(call: ToolCall) -> dict[str, str]:
    """A call as servers take it: they reject a broken name or broken JSON, even a model's own."""
    arguments = b"{}" if call.malformed is not None else orjson.dumps(call.arguments)
    return {"name": _NOT_IN_NAMES.sub("_", call.name)[:64], "arguments": arguments.decode()}


def _read(body: dict[str, Any]) -> Reply:
    """A reply that came in one piece."""
    if body.get("error"):
        raise ModelUnavailable(error_text(orjson.dumps(body)))
    try:
        message = body["choices"][0]["message"]
        partial = _Partial(usage=body.get("usage"))
        for index, call in enumerate(message.get("tool_calls") or ()):
            partial.take_call({**call, "index": index})
        partial.text.append(_words(message.get("content")))
        return partial.reply()
    except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
        raise ModelGarbled(f"The answer lacks what a chat completion has: {error!r}") from error


@dataclass(slots=True)
class _PartialCall:
    id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass(slots=True)
class _Partial:
    """What has come of a streamed reply so far."""

    text: list[str] = field(default_factory=list[str])
    calls: list[_PartialCall] = field(default_factory=list[_PartialCall])
    latest: dict[Any, _PartialCall] = field(default_factory=dict[Any, _PartialCall])
    """The call that each index stands for."""
    usage: Any = None
    ended: bool = False

    def take(self, chunk: dict[str, Any]) -> Iterator[str]:
        """Add one chunk; the words in it."""
        if chunk.get("usage"):
            self.usage = chunk["usage"]
        for choice in chunk.get("choices") or ():
            delta: Any = choice.get("delta") or {}
            if words := _words(delta.get("content")):
                self.text.append(words)
                yield words
            for part in delta.get("tool_calls") or ():
                self.take_call(part)
            self.ended = self.ended or choice.get("finish_reason") is not None

    def take_call(self, part: dict[str, Any]) -> None:
        index, identity = part.get("index"), _words(part.get("id"))
        call = self.latest.get(index)
        # Some servers number all calls alike and tell them apart by their ids alone.
        if call is None or (identity and call.id and identity != call.id):
            call = self.latest[index] = _PartialCall()
            self.calls.append(call)
        function: Any = part.get("function") or {}
        call.id = call.id or identity
        call.name = call.name or _words(function.get("name"))
        arguments = function.get("arguments")
        call.arguments += (
            orjson.dumps(arguments).decode() if isinstance(arguments, dict) else _words(arguments)
        )

    def reply(self) -> Reply:
        return Reply(
            text="".join(self.text),
            calls=tuple(_call(call) for call in self.calls),
            usage=_usage(self.usage),
        )


def _words(value: Any) -> str:
    """Text where text belongs, or nothing; a server that puts anything else there is garbled."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.80} is not text")
    return value.replace("\0", "\N{REPLACEMENT CHARACTER}")  # PostgreSQL keeps no NUL


async def _gather(response: Response, on_delta: OnDelta | None) -> Reply:
    partial = _Partial()
    try:
        async for data in events(response):
            if data == b"[DONE]":
                partial.ended = True
                break
            chunk = json_object(data)
            if chunk.get("error"):
                raise ModelUnavailable(f"The answer broke off: {error_text(data)}")
            for words in partial.take(chunk):
                if on_delta is not None:
                    on_delta(words)
        if not partial.ended:
            raise ModelUnavailable("The answer was cut off before its end.")
        return partial.reply()
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ModelGarbled(f"A piece of the stream cannot be read: {error!r}") from error


def _call(call: _PartialCall) -> ToolCall:
    if not call.name:
        raise ValueError("a call without a name")
    try:
        parsed = orjson.loads(call.arguments or "{}")
    except orjson.JSONDecodeError:
        parsed = None
    if isinstance(parsed, dict):
        return ToolCall(id=call.id, name=call.name, arguments=parsed)  # pyright: ignore
    return ToolCall(id=call.id, name=call.name, malformed=call.arguments)


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
