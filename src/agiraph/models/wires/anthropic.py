"""Anthropic: the wire of the Messages API."""

import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, cast

from agiraph.core.domain.chat import Attachment, ToolCall, ToolSpec, Turn
from agiraph.core.domain.errors import ContextExceeded
from agiraph.core.domain.value import dataclass
from agiraph.core.domain.work import Usage
from agiraph.models.base import OnDelta, Reply, Request
from agiraph.models.http.connection import Body
from agiraph.models.options import merged
from agiraph.models.wires import effort
from agiraph.models.wires.call_pieces import build_calls
from agiraph.models.wires.pieces import Pieces, text_of
from agiraph.models.wires.remote_model import KEY, RemoteModel, Settings, plain
from agiraph.models.wires.reply_builder import ReplyBuilder
from agiraph.models.wires.request_buffer import (
    IMAGES,
    PDF,
    Part,
    RequestBuffer,
    arguments,
    attachment_text,
    buffer_of,
    call_id,
    call_of,
    replace_buffer,
    suffix,
    to_json,
    tool_name,
    unchanged_parts,
)
from agiraph.models.wires.usage import UsageReader

WIRE = "anthropic"
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
        return await self.ask(send, request, ladder, drop_reasoning)


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
    if turn.failed:
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


_THINKING = ("thinking", "redacted_thinking")
_DELTAS = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "input_json_delta": ("tool_use", "partial_json"),
}
"""The types of deltas: of which block each is a piece, and the field with the piece."""


class _Block:
    """A content block of a reply that arrives in deltas."""

    def __init__(self, start: Part) -> None:
        self.start = start
        self.kind: Any = start["type"]
        self.text = Pieces(self.kind == "tool_use")
        self.signature: list[str] = []

    def take(self, delta: Part) -> str:
        """Add a delta. Return its text if it belongs to the reply and not to its reasoning."""
        kind = text_of(delta["type"])
        if not kind:
            raise ValueError("a delta without a type")
        if kind == "signature_delta":
            self.signature.append(text_of(delta["signature"]))
        # Other types are citations, and those that Anthropic adds later.
        if kind not in _DELTAS:
            return ""
        block, name = _DELTAS[kind]
        if block != self.kind:
            # Server-side tools, which we never request, have arguments as well.
            if kind == "input_json_delta" and self.kind not in ("text", *_THINKING):
                return ""
            raise ValueError(f"a {kind} in a block of type {self.kind!r:.40}")
        new = self.text.append(text_of(delta[name]))
        return new if kind == "text_delta" else ""

    def whole(self) -> Part:
        """Return the block as it stands in a response that is not a stream."""
        text, block = str(self.text), dict(self.start)
        match block["type"]:
            case "text":
                block["text"] = text_of(block.get("text")) + text
            case "thinking":
                block["thinking"] = text_of(block.get("thinking")) + text
                block["signature"] = text_of(block.get("signature")) + "".join(self.signature)
            # A call without arguments sends no delta; the `input` of its first event is then the
            # whole of it.
            case "tool_use" if text:
                block["input"] = text
            case _:
                pass
        return block


class AnthropicReader:
    kind = "a message"

    def __init__(self) -> None:
        self.reply: ReplyBuilder = ReplyBuilder(WIRE)
        self._blocks: dict[int, _Block] = {}
        self._usage: Part = {}
        self._doubts: list[str] = []
        self._content: list[Part] = []
        self._has_nameless_call = False
        self._has_stop_reason = False
        self._is_window_full = False
        """Thread and reply together fill the context window."""

    def take(self, event: Part) -> Iterator[str]:
        match event.get("type"):
            case "message_start":
                self.reply.name_model(event["message"].get("model"))
                self._count(event["message"].get("usage"))
            case "content_block_start":
                self._start(_position(event), event["content_block"])
            case "content_block_delta":
                if text := self._blocks[_position(event)].take(event["delta"]):
                    yield text
            case "message_delta":
                self._count(event.get("usage"))
                self._stop(event["delta"])
            # message_delta before it has the final counts, so nothing that matters can follow.
            case "message_stop":
                self.reply.is_ended = self.reply.is_closed = True
                self._content = [block.whole() for block in self._blocks.values()]
            case str():
                pass  # pings, and event types that Anthropic adds later
            case other:
                raise TypeError(f"{other!r:.40} is not the type of an event")

    def read(self, body: Part) -> None:
        self.reply.name_model(body.get("model"))
        self._content = body["content"]
        self._count(body.get("usage"))
        self._stop(body)
        self._has_stop_reason = True  # one JSON object is whole

    def finish(self) -> None:
        reply, parts = self.reply, list[Part]()
        for block in self._content:
            match block["type"]:
                case "text":
                    text = text_of(block["text"])
                    reply.text.append(text)
                    if text.strip():
                        parts.append({"type": "text", "text": text})
                case "tool_use":
                    parts += reply.add_calls(self._calls(block))
                # Redacted thinking is encrypted and has no text. It goes back unchanged like the
                # rest, or Anthropic refuses the tool results that follow.
                case "thinking" | "redacted_thinking":
                    reply.thinking.append(text_of(block.get("thinking")))
                    parts.append(block)
                case _:
                    pass  # server-side tools, which we never request
        if self._has_nameless_call and not reply.calls and not reply.text:
            raise ValueError("a call without a name")
        # Anthropic wants thinking blocks back with their signatures; other replies need not be
        # stored a second time.
        if any(part.get("type") in _THINKING for part in parts):
            reply.parts = parts
        counts = UsageReader(self._usage)
        reply.usage, reply.doubts = anthropic_usage(counts), [*self._doubts, *counts.doubts]
        if self._is_window_full and not reply.calls and not reply.text:
            raise ContextExceeded("The thread leaves no room for a reply in the context window.")
        reply.is_truncated = reply.is_truncated or self._is_window_full

    def _start(self, index: int, start: Part) -> None:
        known = self._blocks.get(index)
        if known is None:
            self._blocks[index] = _Block(start)
        elif known.start != start:  # its deltas so far would be lost
            raise ValueError(f"two blocks with index {index!r:.40}")

    def _calls(self, block: Part) -> list[ToolCall]:
        """Return the calls of a block; none if it has no name."""
        name = text_of(block.get("name"))
        if not name:
            self._has_nameless_call = True
            return []
        is_open = self.reply.is_truncated or not self._has_stop_reason
        is_cut = is_open and block is self._content[-1]
        return build_calls(text_of(block.get("id")), name, block.get("input"), is_cut=is_cut)

    def _count(self, usage: Any) -> None:
        # Input counts arrive with message_start, output counts with message_delta. Null means
        # that the earlier value still counts.
        if not isinstance(usage, dict):
            self._doubts = UsageReader(usage).doubts or self._doubts
            return
        known = cast(Part, usage)
        self._usage |= {name: value for name, value in known.items() if value is not None}

    def _stop(self, end: Part) -> None:
        reason = end.get("stop_reason")
        self._has_stop_reason = self._has_stop_reason or reason is not None
        match reason:
            case "refusal":
                details: Part = end.get("stop_details") or {}
                said = details.get("explanation") or details.get("category")
                self.reply.refusal = text_of(said) or "refusal"
            case "model_context_window_exceeded":
                self._is_window_full = True
            case "max_tokens":
                self.reply.is_truncated = True
            case _:
                pass


def _position(event: Part) -> int:
    """Return the index of an event's block; raise if it is none."""
    if type(index := event["index"]) is int:
        return index
    raise TypeError(f"{index!r:.40} is not the index of a block")


def anthropic_usage(counts: UsageReader) -> Usage:
    """Return the counts of a response."""
    # Anthropic's input_tokens leaves out cached tokens; ours, like the other vendors', counts all.
    cached = counts.tokens("cache_read_input_tokens")
    written = counts.tokens("cache_creation_input_tokens")
    return Usage(
        input_tokens=counts.tokens("input_tokens") + written + cached,
        output_tokens=counts.tokens("output_tokens"),
        cached_tokens=cached,
        cache_write_tokens=written,
        searches=counts.part("server_tool_use").tokens("web_search_requests"),
    )
