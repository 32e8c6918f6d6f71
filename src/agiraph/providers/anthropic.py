"""Anthropic's Messages API."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from agiraph.domain.chat import Attachment, ToolCall, ToolSpec, Turn
from agiraph.domain.errors import ContextExceeded
from agiraph.domain.work import Usage
from agiraph.providers.base import OnDelta, Reply, Request
from agiraph.providers.counts import Counts
from agiraph.providers.http import Http
from agiraph.providers.http_connection import Body
from agiraph.providers.request_buffer import (
    IMAGES,
    PDF,
    Encoded,
    Part,
    arguments,
    as_text,
    call_id,
    call_of,
    dumped,
    ending,
    forget_thinking,
    is_failed,
    kept,
    own_parts,
    tool_name,
)
from agiraph.providers.wire import Draft, ask, made_call, or_plainly, words

WIRE = "anthropic"
VERSION = "2023-06-01"
MAX_OUTPUT_TOKENS = 32_000
"""The API wants a limit; thinking counts towards it."""

_CACHED = {"type": "ephemeral"}
_IDS = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_THINKING = ("thinking", "redacted_thinking")
_UNSUPPORTED = frozenset(
    ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength",
     "maxLength", "minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties")
)  # fmt: skip
"""What may stand in a schema but not in one that an answer is held to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnthropicModel:
    name: str
    model: str
    base_url: str
    key: str = field(repr=False)
    http: Http
    max_output_tokens: int = MAX_OUTPUT_TOKENS

    async def reply(self, request: Request, on_delta: OnDelta | None = None) -> Reply:
        async def attempt() -> Reply:
            return await ask(
                self.http,
                f"{self.base_url.rstrip('/')}/v1/messages",
                name=self.name,
                headers={"anthropic-version": VERSION}
                | ({"x-api-key": self.key} if self.key else {}),
                key=self.key,
                body=encode(self.model, request, self.max_output_tokens),
                reader=_Reader(),
                request=request,
                on_delta=on_delta,
            )

        def forget() -> bool:
            return forget_thinking(request.transcript, WIRE, Encoded(_Form(replays=False)))

        return await or_plainly(attempt, forget)


def encode(model: str, request: Request, max_output_tokens: int = MAX_OUTPUT_TOKENS) -> Body:
    """The request's bytes: what was said before stays to the byte, new turns come behind it."""
    written = kept(request.transcript, WIRE, lambda: Encoded(_Form()))
    limit = request.max_output_tokens or max_output_tokens
    opening = written.opening(
        (model, request.tools, limit), lambda: _opening(model, request, limit)
    )
    settings: Part = {}
    if request.tools and not request.may_call:
        settings["tool_choice"] = {"type": "none"}
    if request.schema is not None:
        form = {"type": "json_schema", "schema": _closed(request.schema)}
        settings["output_config"] = {"format": form}
    return (opening, written.extend(request.transcript), ending(settings))


def _opening(model: str, request: Request, limit: int) -> bytes:
    # The mark at the top moves with the end of the thread; those on tools and system stay put,
    # for threads that share them and nothing more.
    settings: Part = {"model": model, "max_tokens": limit, "stream": True, "cache_control": _CACHED}
    if request.tools:
        settings["tools"] = [_tool(t) for t in request.tools]
        settings["tools"][-1]["cache_control"] = _CACHED
    if system := request.transcript.system:
        settings["system"] = [{"type": "text", "text": system, "cache_control": _CACHED}]
    return dumped(settings)[:-1] + b',"messages":['


def _tool(spec: ToolSpec) -> Part:
    return {"name": spec.name, "description": spec.description, "input_schema": spec.schema}


def _closed(schema: Any) -> Any:
    """A schema as answers can be held to: objects are closed, and sizes are not limited."""
    if not isinstance(schema, dict):
        return schema
    known = cast(Part, schema)
    closed: Part = {k: v for k, v in known.items() if k not in _UNSUPPORTED}
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


class _Form:
    """Turns as messages of blocks."""

    def __init__(self, *, replays: bool = True) -> None:
        self._replays = replays
        self.replayed = False

    def message(self, turn: Turn) -> Part | None:
        blocks = self._said(turn) if turn.role == "assistant" else _heard(turn)
        role = "assistant" if turn.role == "assistant" else "user"
        return {"role": role, "content": blocks} if blocks else None

    def answers(self, turns: Sequence[Turn]) -> list[Part]:
        return [{"role": "user", "content": [_result(turn) for turn in turns]}]

    def _said(self, turn: Turn) -> list[Part]:
        parts = own_parts(turn, WIRE) if self._replays else []
        if not parts:
            return [*_text(turn.text), *map(_use, turn.calls)]
        self.replayed = True
        calls = ((part, call_of(part, turn)) for part in parts)
        return [part if call is None else _use(call) for part, call in calls]


def _text(text: str) -> list[Part]:
    """Nothing for nothing: the API rejects an empty block."""
    return [{"type": "text", "text": text}] if text.strip() else []


def _heard(turn: Turn) -> list[Part]:
    return [*map(_attached, turn.attachments), *_text(turn.text)]


def _use(call: ToolCall) -> Part:
    name = tool_name(call.name)
    return {
        "type": "tool_use",
        "id": call_id(call.id, _IDS),
        "name": name,
        "input": arguments(call),
    }


def _result(turn: Turn) -> Part:
    result: Part = {"type": "tool_result", "tool_use_id": call_id(turn.ref or "", _IDS)}
    if content := [*_text(turn.text), *map(_attached, turn.attachments)]:
        result["content"] = content
    if is_failed(turn):
        result["is_error"] = True
    return result


def _attached(attachment: Attachment) -> Part:
    kind = attachment.media_type
    source = {"type": "base64", "media_type": kind, "data": attachment.data}
    if kind in IMAGES:
        return {"type": "image", "source": source}
    if kind == PDF:
        return {"type": "document", "title": attachment.name, "source": source}
    return {"type": "text", "text": as_text(attachment)}


@dataclass(slots=True)
class _Block:
    """One block of a reply while it is coming."""

    start: Part
    text: list[str] = field(default_factory=list[str])
    signature: list[str] = field(default_factory=list[str])

    def take(self, delta: Part) -> str:
        """Add a piece; the words in it, if it is said and not thought."""
        match delta["type"]:
            case "text_delta":
                self.text.append(said := words(delta["text"]))
                return said
            case "thinking_delta":
                self.text.append(words(delta["thinking"]))
            case "signature_delta":
                self.signature.append(words(delta["signature"]))
            case "input_json_delta":
                self.text.append(words(delta["partial_json"]))
            case _:
                pass  # citations, and what is still to be invented
        return ""

    def whole(self) -> Part:
        """The block as it would have come in one piece."""
        text, block = "".join(self.text), dict(self.start)
        match block["type"]:
            case "text":
                block["text"] = words(block.get("text")) + text
            case "thinking":
                block["thinking"] = words(block.get("thinking")) + text
                block["signature"] = words(block.get("signature")) + "".join(self.signature)
            case "tool_use" if text:
                block["input"] = text
            case _:
                pass
        return block


class _Reader:
    kind = "a message"

    def __init__(self) -> None:
        self.draft = Draft(WIRE)
        self._blocks: dict[int, _Block] = {}
        self._usage: Part = {}
        self._doubts: list[str] = []
        self._content: list[Part] = []
        self._filled = False
        """The thread and the reply together fill the window."""

    def take(self, event: Part) -> Iterator[str]:
        match event.get("type"):
            case "message_start":
                self._count(event["message"].get("usage"))
            case "content_block_start":
                self._blocks[event["index"]] = _Block(event["content_block"])
            case "content_block_delta":
                if said := self._blocks[event["index"]].take(event["delta"]):
                    yield said
            case "message_delta":
                self._count(event.get("usage"))
                self._stop(event["delta"])
            case "message_stop":
                self.draft.ended = self.draft.closed = True
                self._content = [block.whole() for block in self._blocks.values()]
            case _:
                pass  # pings, and what is still to be invented

    def read(self, body: Part) -> None:
        self._content = body["content"]
        self._count(body.get("usage"))
        self._stop(body)

    def finish(self) -> None:
        draft, parts = self.draft, list[Part]()
        for block in self._content:
            match block["type"]:
                case "text":
                    draft.text.append(words(block["text"]))
                    parts += _text(draft.text[-1])
                case "tool_use":
                    parts.append({"call": len(draft.calls)})
                    draft.calls.append(_made(block))
                case "thinking" | "redacted_thinking":
                    draft.thinking.append(words(block.get("thinking")))
                    parts.append(block)
                case _:
                    pass  # what a server does by itself, which nobody asked for
        if any(part.get("type") in _THINKING for part in parts):
            draft.parts = parts
        counts = Counts(self._usage)
        draft.usage, draft.doubts = _usage(counts), [*self._doubts, *counts.doubts]
        if self._filled and not draft.calls and not any(draft.text):
            raise ContextExceeded("The thread leaves no room for an answer in the model's window.")

    def _count(self, usage: Any) -> None:
        if not isinstance(usage, dict):
            self._doubts = Counts(usage).doubts or self._doubts
            return
        known = cast(Part, usage)
        self._usage |= {name: value for name, value in known.items() if value is not None}

    def _stop(self, end: Part) -> None:
        match end.get("stop_reason"):
            case "refusal":
                details: Part = end.get("stop_details") or {}
                said = details.get("explanation") or details.get("category")
                self.draft.refusal = words(said) or "refusal"
            case "model_context_window_exceeded":
                self._filled = True
            case "max_tokens":
                self.draft.limited = True
            case _:
                pass


def _made(block: Part) -> ToolCall:
    given = block.get("input")
    return made_call(
        words(block.get("id")), words(block.get("name")), {} if given is None else given
    )


def _usage(counts: Counts) -> Usage:
    cached = counts.tokens("cache_read_input_tokens")
    fresh = counts.tokens("input_tokens") + counts.tokens("cache_creation_input_tokens")
    return Usage(
        input_tokens=fresh + cached,
        output_tokens=counts.tokens("output_tokens"),
        cached_tokens=cached,
    )
