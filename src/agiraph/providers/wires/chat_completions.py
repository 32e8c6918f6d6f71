"""OpenAI: the wire of the chat completions API, which many vendors and local servers offer too."""

from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, cast

from agiraph.domain.chat import ToolSpec
from agiraph.domain.errors import ModelRefused, ModelUnavailable
from agiraph.providers.base import OnDelta, Reply, Request
from agiraph.providers.http.connection import Body
from agiraph.providers.options import merged
from agiraph.providers.wires import effort
from agiraph.providers.wires.chat_forms import MESSAGE_FORMS, filler, wanted_forms
from agiraph.providers.wires.chat_messages import ChatEncoder
from agiraph.providers.wires.chat_reader import ChatReader
from agiraph.providers.wires.remote_model import BEARER, RemoteModel
from agiraph.providers.wires.request_buffer import (
    Part,
    RequestBuffer,
    buffer_of,
    suffix,
    to_json,
)
from agiraph.providers.wires.request_settings import Settings, plain

WIRE = "openai"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAIModel(RemoteModel):
    is_router: bool = False
    """Whether the provider passes requests on to models of many vendors, as OpenRouter does."""
    max_output_tokens: int | None = None
    """The model's own limit, sent where the request and the settings name none: without it, a model
    that repeats itself goes on until its window is full."""

    @property
    def vendor(self) -> str:
        """The vendor whose reasoning this model accepts back. A router's models are of many."""
        return self.name if self.is_router else self.name.partition("/")[0]

    async def reply(self, request: Request, on_delta: OnDelta | None = None) -> Reply:
        dialect = effort.dialect_of(self.name.partition("/")[0], self.base_url)
        return await self.ask(
            lambda settings: self._adjusted(request, settings, on_delta),
            request,
            partial(effort.chat, dialect),
        )

    async def _adjusted(
        self, request: Request, settings: Settings, on_delta: OnDelta | None
    ) -> Reply:
        while True:
            try:
                return await self._send(request, settings, on_delta)
            # llama.cpp answers 500 to messages that its template refuses.
            except (ModelRefused, ModelUnavailable) as error:
                # Each form is tried once and then kept for the life of the process, so that only
                # the first request is refused.
                wanted = wanted_forms(error, self.learned)
                if not wanted:
                    raise
                self.learned.update(wanted)

    async def _send(self, request: Request, settings: Settings, on_delta: OnDelta | None) -> Reply:
        return await self.post(
            "/chat/completions",
            encode(
                self.model,
                request,
                vendor=self.vendor,
                adjustments=self.learned,
                default_limit=self.max_output_tokens,
                settings=settings,
            ),
            ChatReader(self.vendor),
            key_header=BEARER,
            request=request,
            on_delta=on_delta,
        )


def encode(
    model: str,
    request: Request,
    *,
    vendor: str = WIRE,
    adjustments: Collection[str] = (),
    default_limit: int | None = None,
    settings: Settings | None = None,
) -> Body:
    """Return the request body. The bytes of earlier turns are those of the last request."""
    asked = plain(request) if settings is None else settings
    forms = MESSAGE_FORMS & {*adjustments}
    wire = "+".join((vendor, *sorted(forms)))
    buffer = buffer_of(request.transcript, wire, lambda: _buffer(request, vendor, forms))
    has_usage = "no_stream_options" not in adjustments
    prefix = buffer.prefix(
        (model, request.tools, has_usage), lambda: _prefix(model, request.tools, has_usage)
    )
    fields: Part = dict(asked.effort)
    limit = asked.max_output_tokens
    if limit is None and "no_default_limit" not in adjustments:
        limit = default_limit
    if limit is not None:
        # Many compatible servers know only the older name, so it is tried first.
        newer = "max_completion_tokens"
        fields[newer if newer in adjustments else "max_tokens"] = limit
    if asked.temperature is not None:
        fields["temperature"] = asked.temperature
    if request.tools and not request.may_call:
        fields["tool_choice"] = "none"
    if request.tools and "reasoning_effort" in adjustments:
        fields["reasoning_effort"] = "none"
    if (schema := request.schema) is not None:
        form = {"name": "answer", "schema": schema, "strict": is_strict(schema)}
        fields["response_format"] = {"type": "json_schema", "json_schema": form}
    messages = buffer.extend(request.transcript)
    hint = {"role": "user", "content": request.hint} if request.hint else None
    return (prefix, messages, buffer.last(hint) + suffix(merged(fields, asked.body)))


def _buffer(request: Request, vendor: str, forms: frozenset[str]) -> RequestBuffer:
    # OpenAI now calls this role `developer` and still accepts `system`, the only name that others
    # know.
    role = "user" if "no_system" in forms else "system"
    system = request.transcript.system
    first = {"role": role, "content": system} if system else None
    encoder = ChatEncoder(vendor, forms)
    return RequestBuffer(encoder, first, lambda before, after: filler(forms, before, after))


@lru_cache(64)
def _prefix(model: str, tools: tuple[ToolSpec, ...], has_usage: bool) -> bytes:
    """Return the bytes before the messages, cached for all agents with the same tools."""
    settings: Part = {"model": model, "stream": True}
    if has_usage:  # without it OpenAI leaves token counts out of a stream
        settings["stream_options"] = {"include_usage": True}
    if tools:
        settings["tools"] = [_tool(t) for t in tools]
    return to_json(settings)[:-1] + b',"messages":['


def _tool(spec: ToolSpec) -> Part:
    function = {"name": spec.name, "description": spec.description, "parameters": spec.schema}
    return {"type": "function", "function": function}


def is_strict(schema: Any) -> bool:
    """Whether OpenAI accepts the schema in strict mode: every object is closed, and requires all
    of its properties."""
    # In strict mode OpenAI refuses any other schema with an error. Without it OpenAI takes every
    # schema, but the answer may not match: `structured_question` validates the answer anyway.
    if isinstance(schema, list):
        return all(is_strict(part) for part in cast(list[Any], schema))
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
    return all(is_strict(part) for part in known.values())
