"""OpenAI: the wire of the chat completions API, which many vendors and local servers offer too."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, cast

import orjson

from agiraph.domain.chat import Attachment, ToolCall, ToolSpec, Turn
from agiraph.domain.errors import ModelRefused, ModelUnavailable
from agiraph.domain.work import Usage
from agiraph.providers.base import OnDelta, Reply, Request
from agiraph.providers.http.client import HttpClient
from agiraph.providers.http.connection import Body
from agiraph.providers.wires.request_buffer import (
    IMAGES,
    PDF,
    Part,
    RequestBuffer,
    arguments,
    attachment_text,
    buffer_of,
    call_id,
    is_failed,
    suffix,
    to_json,
    tool_name,
    vendor_parts,
)
from agiraph.providers.wires.usage import UsageReader
from agiraph.providers.wires.wire import CallBuilder, ReplyBuilder, request_reply, text_of

WIRE = "openai"
_IDS = re.compile(r".{1,40}", re.DOTALL)
"""OpenAI refuses a call id of more than 40 characters."""
_ADJUSTMENTS = {
    "max_completion_tokens": "Use 'max_completion_tokens' instead",
    "reasoning_effort": "set reasoning_effort to 'none'",
}
"""Settings that some models of OpenAI want otherwise, by the error text that asks for each:
reasoning models refuse `max_tokens`, and some refuse tools unless reasoning is off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAIModel:
    name: str
    model: str
    base_url: str
    key: str = field(repr=False)
    http: HttpClient
    is_router: bool = False
    """Whether the provider passes requests on to models of many vendors, as OpenRouter does."""
    adjustments: set[str] = field(default_factory=set[str], repr=False, compare=False)
    """The keys of `_ADJUSTMENTS` that this model's server has asked for."""

    @property
    def vendor(self) -> str:
        """The vendor whose reasoning this model accepts back. A router's models are of many."""
        return self.name if self.is_router else self.name.partition("/")[0]

    async def reply(self, request: Request, on_delta: OnDelta | None = None) -> Reply:
        try:
            return await self._request(request, on_delta)
        except ModelRefused as error:
            wanted = {name for name, text in _ADJUSTMENTS.items() if text in str(error)}
            # Also true if nothing is wanted. Each adjustment is tried once and then kept for the
            # life of the process, so that only the first request is refused.
            if wanted <= self.adjustments:
                raise
            self.adjustments.update(wanted)
        return await self._request(request, on_delta)

    async def _request(self, request: Request, on_delta: OnDelta | None) -> Reply:
        return await request_reply(
            self.http,
            f"{self.base_url.rstrip('/')}/chat/completions",
            name=self.name,
            headers={"authorization": f"Bearer {self.key}"} if self.key else {},
            key=self.key,
            body=encode(self.model, request, vendor=self.vendor, adjustments=self.adjustments),
            reader=_Reader(self.vendor),
            request=request,
            on_delta=on_delta,
        )


def encode(
    model: str, request: Request, *, vendor: str = WIRE, adjustments: Collection[str] = ()
) -> Body:
    """Return the request body. The bytes of earlier turns are those of the last request."""
    system = request.transcript.system
    # OpenAI now calls this role `developer` and still accepts `system`, the only name that others
    # know.
    first = {"role": "system", "content": system} if system else None
    buffer = buffer_of(
        request.transcript, vendor, lambda: RequestBuffer(_TurnEncoder(vendor), first)
    )
    prefix = buffer.prefix((model, request.tools), lambda: _prefix(model, request.tools))
    settings: Part = {}
    if request.max_output_tokens is not None:
        # Many compatible servers know only the older name, so it is tried first.
        newer = "max_completion_tokens"
        settings[newer if newer in adjustments else "max_tokens"] = request.max_output_tokens
    if request.tools and not request.may_call:
        settings["tool_choice"] = "none"
    if request.tools and "reasoning_effort" in adjustments:
        settings["reasoning_effort"] = "none"
    if (schema := request.schema) is not None:
        form = {"name": "answer", "schema": schema, "strict": _is_strict(schema)}
        settings["response_format"] = {"type": "json_schema", "json_schema": form}
    return (prefix, buffer.extend(request.transcript), suffix(settings))


@lru_cache(64)
def _prefix(model: str, tools: tuple[ToolSpec, ...]) -> bytes:
    """Return the bytes before the messages, cached for all agents with the same tools."""
    # Without `include_usage` OpenAI leaves token counts out of a stream.
    settings: Part = {"model": model, "stream": True, "stream_options": {"include_usage": True}}
    if tools:
        settings["tools"] = [_tool(t) for t in tools]
    return to_json(settings)[:-1] + b',"messages":['


def _tool(spec: ToolSpec) -> Part:
    function = {"name": spec.name, "description": spec.description, "parameters": spec.schema}
    return {"type": "function", "function": function}


def _is_strict(schema: Any) -> bool:
    """Whether OpenAI accepts the schema in strict mode: every object is closed, and requires all
    of its properties."""
    # In strict mode OpenAI refuses a schema outside of this subset; without it the schema is only a
    # hint to the model, and the runtime's own check of the answer decides.
    if isinstance(schema, list):
        return all(_is_strict(part) for part in cast(list[Any], schema))
    if not isinstance(schema, dict):
        return True
    known = cast(Part, schema)
    if known.get("type") == "object":
        named = set(known.get("properties") or {})
        if (
            known.get("additionalProperties") is not False
            or set(known.get("required", ())) != named
        ):
            return False
    return all(_is_strict(part) for part in known.values())


class _TurnEncoder:
    """Encodes turns as chat messages."""

    def __init__(self, vendor: str) -> None:
        self._vendor = vendor
        self.has_reasoning = False

    def message(self, turn: Turn) -> Part | None:
        if turn.role == "user":
            content = _content(turn)
            return {"role": "user", "content": content} if content else None
        if not turn.text and not turn.calls:
            return None
        message: Part = {"role": "assistant", "content": turn.text or None}
        if turn.calls:
            message["tool_calls"] = [
                {"id": call_id(c.id, _IDS), "type": "function", "function": _function(c)}
                for c in turn.calls
            ]
        for part in vendor_parts(turn, self._vendor):
            self.has_reasoning = True
            message |= part
        return message

    def results(self, turns: Sequence[Turn]) -> list[Part]:
        messages: list[Part] = []
        for turn in turns:
            text = f"Error: {turn.text}" if is_failed(turn) else turn.text
            identity = call_id(turn.ref or "", _IDS)
            messages.append({"role": "tool", "tool_call_id": identity, "content": text})
        # A tool message holds only text. Attachments follow in a user message, which OpenAI refuses
        # before all calls are answered.
        if attached := [_attachment(a) for turn in turns for a in turn.attachments]:
            messages.append({"role": "user", "content": attached})
        return messages


def _content(turn: Turn) -> str | list[Part]:
    if not turn.attachments:
        return turn.text
    text = [{"type": "text", "text": turn.text}] if turn.text else []
    return [*map(_attachment, turn.attachments), *text]


def _attachment(attachment: Attachment) -> Part:
    url = f"data:{attachment.media_type};base64,{attachment.data}"
    if attachment.media_type in IMAGES:
        return {"type": "image_url", "image_url": {"url": url}}
    if attachment.media_type == PDF:
        return {"type": "file", "file": {"filename": attachment.name, "file_data": url}}
    return {"type": "text", "text": attachment_text(attachment)}


def _function(call: ToolCall) -> dict[str, str]:
    return {"name": tool_name(call.name), "arguments": to_json(arguments(call)).decode()}


class _Reader:
    kind = "a chat completion"

    def __init__(self, vendor: str) -> None:
        self.reply = ReplyBuilder(vendor)
        self._calls: list[CallBuilder] = []
        self._latest: dict[Any, CallBuilder] = {}
        """The newest call with each index."""
        self._reasoning: list[str] = []
        self._details: dict[Any, Part] = {}
        self._refusal: list[str] = []

    def take(self, event: Part) -> Iterator[str]:
        if event.get("usage"):
            self._count(event["usage"])
        # Empty in the last event, which has the token counts, and in Azure's first, which has its
        # filters.
        for choice in event.get("choices") or ():
            if text := self._take_delta(choice.get("delta") or {}):
                yield text
            self._end(choice.get("finish_reason"))

    def read(self, body: Part) -> None:
        choice = body["choices"][0]
        message: Part = choice["message"]
        given: list[Part] = message.get("tool_calls") or []
        calls = [{**call, "index": index} for index, call in enumerate(given)]
        self._take_delta({**message, "tool_calls": calls})
        self._end(choice.get("finish_reason"))
        if body.get("usage"):
            self._count(body["usage"])

    def finish(self) -> None:
        last = self._calls[-1] if self.reply.is_truncated and self._calls else None
        self.reply.calls = [call.build(is_cut=call is last) for call in self._calls]
        self.reply.refusal = "".join(self._refusal) or self.reply.refusal
        if self._details:
            # OpenRouter wants `reasoning_details` back unchanged.
            self.reply.parts = [{"reasoning_details": [*self._details.values()]}]
        elif self._reasoning and self._calls:
            # DeepSeek and others that send `reasoning_content` refuse a tool call that comes back
            # without it.
            self.reply.parts = [{"reasoning_content": "".join(self._reasoning)}]

    def _count(self, usage: Any) -> None:
        counts = UsageReader(usage)
        read = counts.part("prompt_tokens_details")
        self.reply.usage = Usage(
            input_tokens=counts.tokens("prompt_tokens"),
            output_tokens=counts.tokens("completion_tokens"),
            cached_tokens=read.tokens("cached_tokens"),
            # Anthropic's models behind OpenRouter; other servers leave it out.
            cache_write_tokens=read.tokens("cache_write_tokens"),
            thinking_tokens=counts.part("completion_tokens_details").tokens("reasoning_tokens"),
            usd=counts.usd("cost"),
        )
        self.reply.doubts = counts.doubts

    def _take_delta(self, delta: Part) -> str:
        """Add a delta and return its text."""
        if text := text_of(delta.get("content")):
            self.reply.text.append(text)
        if refusal := delta.get("refusal"):
            self._refusal.append(text_of(refusal))
        reasoning = delta.get("reasoning_content")
        if isinstance(reasoning, str) and reasoning:
            self._reasoning.append(reasoning)
        # OpenRouter and vLLM call the field `reasoning`, DeepSeek `reasoning_content`.
        thought = reasoning or delta.get("reasoning")
        if isinstance(thought, str) and thought:
            self.reply.thinking.append(text_of(thought))
        for detail in delta.get("reasoning_details") or ():
            self._take_detail(detail)
        for part in delta.get("tool_calls") or ():
            self._take_call(part)
        return text

    def _take_call(self, part: Part) -> None:
        index, identity = part.get("index"), text_of(part.get("id"))
        call = self._latest.get(index)
        # Some compatible servers give every call index 0 and tell calls apart only by id.
        if call is None or (identity and call.id and identity != call.id):
            call = self._latest[index] = CallBuilder()
            self._calls.append(call)
        function: Part = part.get("function") or {}
        call.id = call.id or identity
        call.name = call.name or text_of(function.get("name"))
        # Some compatible servers send arguments as an object instead of JSON text.
        given = function.get("arguments")
        is_object = isinstance(given, dict)
        call.arguments.append(orjson.dumps(given).decode() if is_object else text_of(given))

    def _take_detail(self, detail: Part) -> None:
        """Add a piece of OpenRouter's `reasoning_details` to the detail it belongs to."""
        key = (detail.get("type"), detail.get("index"), detail.get("id"))
        known = self._details.setdefault(key, {})
        for name, value in detail.items():
            grows = name in ("text", "summary", "data") and isinstance(known.get(name), str)
            known[name] = known[name] + text_of(value) if grows else known.get(name) or value

    def _end(self, reason: Any) -> None:
        if reason is None:
            return
        # Not `is_closed`: the token counts follow in an event of their own, after the finish
        # reason.
        self.reply.is_ended = True
        self.reply.is_truncated = reason == "length"
        # OpenRouter's reason when the vendor behind it failed in the middle of a reply.
        if reason == "error":
            raise ModelUnavailable("The response broke off, and the server gives no reason.")
        if reason in ("content_filter", "refusal"):
            self.reply.refusal = text_of(reason)
