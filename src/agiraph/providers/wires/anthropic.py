"""Anthropic: the wire of the Messages API."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from agiraph.domain.chat import Attachment, ToolCall, ToolSpec, Turn
from agiraph.providers.base import OnDelta, Reply, Request
from agiraph.providers.http.connection import Body
from agiraph.providers.options import merged
from agiraph.providers.wires import effort
from agiraph.providers.wires.anthropic_reader import WIRE, AnthropicReader
from agiraph.providers.wires.remote_model import KEY, RemoteModel
from agiraph.providers.wires.request_buffer import (
    IMAGES,
    PDF,
    Part,
    RequestBuffer,
    arguments,
    attachment_text,
    buffer_of,
    call_id,
    call_of,
    is_failed,
    replace_buffer,
    suffix,
    to_json,
    tool_name,
    unchanged_parts,
)
from agiraph.providers.wires.request_settings import Settings, plain

# Still the newest version of the API: later features are new fields under it.
VERSION = "2023-06-01"
INTERLEAVED = "interleaved-thinking-2025-05-14"
"""The beta header with which older models think between calls, too; newer ones do by themselves."""
# The lowest limit of the current Claude models: a higher number would be refused by some of them.
MAX_OUTPUT_TOKENS = 32_000
"""Anthropic requires a limit in every request. Thinking counts towards it."""

_CACHED = {"type": "ephemeral"}
_IDS = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""Anthropic refuses a request with a call id of another form, such as one from another vendor."""
_UNSUPPORTED_KEYWORDS = frozenset(
    ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength",
     "maxLength", "minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties")
)  # fmt: skip
"""JSON schema keywords that Anthropic refuses in the schema of a structured output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnthropicModel(RemoteModel):
    max_output_tokens: int = MAX_OUTPUT_TOKENS

    async def reply(self, request: Request, on_delta: OnDelta | None = None) -> Reply:
        def drop_reasoning() -> bool:
            plain_buffer = RequestBuffer(_TurnEncoder(keeps_reasoning=False))
            return replace_buffer(request.transcript, WIRE, plain_buffer)

        async def send(settings: Settings) -> Reply:
            headers = {"anthropic-version": VERSION}
            if request.tools and "budget_tokens" in settings.effort.get("thinking", {}):
                headers["anthropic-beta"] = INTERLEAVED
            return await self.post(
                "/v1/messages",
                encode(self.model, request, self.max_output_tokens, settings),
                AnthropicReader(),
                key_header=("x-api-key", KEY),
                headers=headers,
                request=request,
                on_delta=on_delta,
            )

        ladder = partial(effort.anthropic, self.model)
        return await self.ask_with_reasoning(send, request, ladder, drop_reasoning)


def encode(
    model: str,
    request: Request,
    max_output_tokens: int = MAX_OUTPUT_TOKENS,
    settings: Settings | None = None,
) -> Body:
    """Return the request body. The bytes of earlier turns are those of the last request."""
    asked = plain(request) if settings is None else settings
    buffer = buffer_of(request.transcript, WIRE, lambda: RequestBuffer(_TurnEncoder()))
    wanted = asked.max_output_tokens or max_output_tokens
    limit = effort.output_limit(asked.effort, wanted, max_output_tokens)
    prefix = buffer.prefix((model, request.tools, limit), lambda: _prefix(model, request, limit))
    fields: Part = dict(asked.effort)
    # Anthropic refuses a temperature beside thinking.
    if asked.temperature is not None and not effort.is_thinking(asked.effort):
        fields["temperature"] = asked.temperature
    if request.tools and not request.may_call:
        fields["tool_choice"] = {"type": "none"}
    if request.schema is not None:
        form = {"type": "json_schema", "schema": _closed(request.schema)}
        fields["output_config"] = {**fields.get("output_config", {}), "format": form}
    messages = buffer.extend(request.transcript)
    hint = {"role": "user", "content": _text(request.hint)} if request.hint else None
    return (prefix, messages, buffer.last(hint) + suffix(merged(fields, asked.body)))


def _prefix(model: str, request: Request, limit: int) -> bytes:
    # Anthropic caches a prompt up to a `cache_control` mark. The mark at the top level moves with
    # the end of the thread; those on tools and system prompt stay, for other threads that share
    # only these.
    settings: Part = {"model": model, "max_tokens": limit, "stream": True, "cache_control": _CACHED}
    if request.tools:
        settings["tools"] = [_tool(t) for t in request.tools]
        settings["tools"][-1]["cache_control"] = _CACHED
    if system := request.transcript.system:
        settings["system"] = [{"type": "text", "text": system, "cache_control": _CACHED}]
    return to_json(settings)[:-1] + b',"messages":['


def _tool(spec: ToolSpec) -> Part:
    return {"name": spec.name, "description": spec.description, "input_schema": spec.schema}


def _closed(schema: Any) -> Any:
    """Return the schema in the subset that Anthropic accepts for structured outputs.

    Every object forbids additional properties, and limits of size are left out.
    """
    if not isinstance(schema, dict):
        return schema
    known = cast(Part, schema)
    closed: Part = {k: v for k, v in known.items() if k not in _UNSUPPORTED_KEYWORDS}
    for key in ("properties", "$defs", "definitions"):
        if key in closed:
            closed[key] = {name: _closed(part) for name, part in closed[key].items()}
    for key in ("anyOf", "oneOf", "allOf"):
        if key in closed:
            closed[key] = [_closed(part) for part in closed[key]]
    if "items" in closed:
        closed["items"] = _closed(closed["items"])
    if closed.get("type") == "object":
        closed["additionalProperties"] = False
    return closed


class _TurnEncoder:
    """Encodes turns as messages with a list of content blocks."""

    def __init__(self, *, keeps_reasoning: bool = True) -> None:
        self._keeps_reasoning = keeps_reasoning
        self.has_reasoning = False

    def message(self, turn: Turn) -> Part | None:
        blocks = self._assistant_parts(turn) if turn.role == "assistant" else _user_blocks(turn)
        role = "assistant" if turn.role == "assistant" else "user"
        return {"role": role, "content": blocks} if blocks else None

    def results(self, turns: Sequence[Turn]) -> list[Part]:
        # A user message may follow this one: Anthropic joins neighbouring messages of one role.
        return [{"role": "user", "content": [_result(turn) for turn in turns]}]

    def _assistant_parts(self, turn: Turn) -> list[Part]:
        # Anthropic refuses a message with nothing but thinking in it.
        if not turn.text.strip() and not turn.calls:
            return []
        parts = unchanged_parts(turn, WIRE) if self._keeps_reasoning else []
        if not parts:
            return [*_text(turn.text), *map(_tool_use, turn.calls)]
        self.has_reasoning = True
        calls = ((part, call_of(part, turn)) for part in parts)
        return [part if call is None else _tool_use(call) for part, call in calls]


def _text(text: str) -> list[Part]:
    """Return a text block; none for blank text, because Anthropic refuses an empty block."""
    return [{"type": "text", "text": text}] if text.strip() else []


def _user_blocks(turn: Turn) -> list[Part]:
    return [*map(_attachment, turn.attachments), *_text(turn.text)]


def _tool_use(call: ToolCall) -> Part:
    name = tool_name(call.name)
    return {
        "type": "tool_use",
        "id": call_id(call.id, _IDS),
        "name": name,
        "input": arguments(call),
    }


def _result(turn: Turn) -> Part:
    result: Part = {"type": "tool_result", "tool_use_id": call_id(turn.ref or "", _IDS)}
    if content := [*_text(turn.text), *map(_attachment, turn.attachments)]:
        result["content"] = content
    if is_failed(turn):
        result["is_error"] = True
    return result


def _attachment(attachment: Attachment) -> Part:
    kind = attachment.media_type
    source = {"type": "base64", "media_type": kind, "data": attachment.data}
    if kind in IMAGES:
        return {"type": "image", "source": source}
    if kind == PDF:
        return {"type": "document", "title": attachment.name, "source": source}
    return {"type": "text", "text": attachment_text(attachment)}
