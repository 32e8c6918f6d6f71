"""Gemini: the wire of Google's streamGenerateContent API."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast
from urllib.parse import quote

from agiraph.core.domain.chat import Attachment, ToolCall, ToolSpec, Turn
from agiraph.core.domain.errors import CallGarbled, ModelGarbled
from agiraph.core.domain.value import dataclass
from agiraph.core.domain.work import Usage
from agiraph.models.base import OnDelta, Reply, Request
from agiraph.models.http.connection import Body
from agiraph.models.options import merged
from agiraph.models.wires import effort
from agiraph.models.wires.call_pieces import BROKEN_CALL, build_calls
from agiraph.models.wires.pieces import text_of
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
    call_of,
    replace_buffer,
    suffix,
    to_json,
    tool_name,
    unchanged_parts,
)
from agiraph.models.wires.usage import UsageReader

WIRE = "gemini"
UNSIGNED_WIRE = "gemini:unsealed"
"""The name of the request buffer for models that accept calls without a signature."""

SIGNATURE = "thoughtSignature"
_FOREIGN_SIGNATURE = "skip_thought_signature_validator"
"""The value that Google documents for calls that its model did not make. Gemini 3 and later refuse
calls without a signature."""
_ACCEPTS_UNSIGNED = re.compile(r"gemini-[12]\b|gemma")


@dataclass(frozen=True, slots=True, kw_only=True)
class GeminiModel(RemoteModel):
    async def reply(self, request: Request, on_delta: OnDelta | None = None) -> Reply:
        def drop_reasoning() -> bool:
            wire, signs = _wire(self.model)
            plain_buffer = RequestBuffer(_TurnEncoder(signs=signs, keeps_reasoning=False))
            return replace_buffer(request.transcript, wire, plain_buffer)

        async def send(settings: Settings) -> Reply:
            # The name is a part of the path: a "/" or "?" in it must not choose another method of
            # the API.
            model = quote(self.model, safe="")
            return await self.post(
                # Without `alt=sse` Google streams one long JSON array. The key goes into a header:
                # addresses end up in the logs of gateways and proxies.
                f"/v1beta/models/{model}:streamGenerateContent?alt=sse",
                encode(self.model, request, settings),
                GeminiReader(),
                key_header=("x-goog-api-key", KEY),
                request=request,
                on_delta=on_delta,
            )

        ladder = partial(effort.gemini, self.model)
        return await self.ask(send, request, ladder, drop_reasoning)


def encode(model: str, request: Request, settings: Settings | None = None) -> Body:
    """Return the request body. The bytes of earlier turns are those of the last request."""
    asked = plain(request) if settings is None else settings
    wire, signs = _wire(model)
    buffer = buffer_of(request.transcript, wire, lambda: RequestBuffer(_TurnEncoder(signs=signs)))
    prefix = buffer.prefix((request.tools,), lambda: _prefix(request))
    config: Part = {}
    if asked.max_output_tokens is not None:
        config["maxOutputTokens"] = asked.max_output_tokens
    if asked.temperature is not None:
        config["temperature"] = asked.temperature
    if asked.effort:
        config["thinkingConfig"] = asked.effort
    if request.schema is not None:
        config |= {"responseMimeType": "application/json", "responseJsonSchema": request.schema}
    fields: Part = {"generationConfig": config} if config else {}
    if request.tools and not request.may_call:
        fields["toolConfig"] = {"functionCallingConfig": {"mode": "NONE"}}
    messages = buffer.extend(request.transcript)
    hint = {"role": "user", "parts": _text(request.hint)} if request.hint else None
    return (prefix, messages, buffer.last(hint) + suffix(merged(fields, asked.body)))


def _wire(model: str) -> tuple[str, bool]:
    """Return which request format a model takes, and whether each tool call that is sent back
    to it needs the signature it came with."""
    return (UNSIGNED_WIRE, False) if _ACCEPTS_UNSIGNED.match(model) else (WIRE, True)


def _prefix(request: Request) -> bytes:
    settings: Part = {}
    if request.tools:
        settings["tools"] = [{"functionDeclarations": [_tool(t) for t in request.tools]}]
    if system := request.transcript.system:
        settings["systemInstruction"] = {"parts": [{"text": system}]}
    return (to_json(settings)[:-1] + b"," if settings else b"{") + b'"contents":['


def _tool(spec: ToolSpec) -> Part:
    # The older field `parameters` accepts only a part of JSON schema and refuses the rest.
    schema = {"parametersJsonSchema": spec.schema}
    return {"name": spec.name, "description": spec.description, **schema}


class _TurnEncoder:
    """Encodes turns as contents with a list of parts."""

    def __init__(self, *, signs: bool, keeps_reasoning: bool = True) -> None:
        self._signs = signs
        self._keeps_reasoning = keeps_reasoning
        self.has_reasoning = False
        self._names: dict[str, str] = {}
        """The tool names of the last reply's calls by id: Gemini wants the name in a result too."""

    def message(self, turn: Turn) -> Part | None:
        if turn.role == "assistant":
            self._names = {call.id: tool_name(call.name) for call in turn.calls}
            parts, role = self._assistant_parts(turn), "model"
        else:
            parts, role = [*map(_attachment, turn.attachments), *_text(turn.text)], "user"
        return {"role": role, "parts": parts} if parts else None

    def results(self, turns: Sequence[Turn]) -> list[Part]:
        parts = [self._result(turn) for turn in turns]
        parts += [_attachment(attachment) for turn in turns for attachment in turn.attachments]
        return [{"role": "user", "parts": parts}]

    def _result(self, turn: Turn) -> Part:
        identity = turn.ref or ""
        response = {"error" if turn.failed else "output": turn.text}
        name = self._names.get(identity, "unknown")
        return {"functionResponse": {"id": identity, "name": name, "response": response}}

    def _assistant_parts(self, turn: Turn) -> list[Part]:
        if not turn.text.strip() and not turn.calls:  # nothing but thoughts
            return []
        own = unchanged_parts(turn, WIRE) if self._keeps_reasoning else []
        self.has_reasoning = self.has_reasoning or bool(own)
        unsigned = [*_text(turn.text), *({"call": n} for n in range(len(turn.calls)))]
        parts = [_encoded(part, turn) for part in own or unsigned]
        # Of parallel calls Google signs only the first, and checks only that one.
        first = next((part for part in parts if "functionCall" in part), None)
        if first is not None and self._signs:
            first.setdefault(SIGNATURE, _FOREIGN_SIGNATURE)
        return parts


def _text(text: str) -> list[Part]:
    return [{"text": text}] if text.strip() else []


def _encoded(part: Part, turn: Turn) -> Part:
    """Return a stored part unchanged, or the call that it refers to, with its signature."""
    call = call_of(part, turn)
    if call is None:
        return part
    encoded = {"id": call.id, "name": tool_name(call.name), "args": arguments(call)}
    signature = {SIGNATURE: part[SIGNATURE]} if SIGNATURE in part else {}
    return {"functionCall": encoded, **signature}


def _attachment(attachment: Attachment) -> Part:
    if attachment.media_type in IMAGES or attachment.media_type == PDF:
        data = {"mimeType": attachment.media_type, "data": attachment.data}
        return {"inlineData": data}
    return {"text": attachment_text(attachment)}


_WITHHELD = frozenset(
    ("SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR",
     "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "OTHER")
)  # fmt: skip
"""Finish reasons with which Google withholds a reply, or the rest of it."""
_BROKEN_CALL = frozenset(("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE",
                          "TOO_MANY_TOOL_CALLS"))  # fmt: skip
"""Finish reasons of a reply with a broken tool call. No part of such a reply may be used."""
_PAYS_ONCE = re.compile(r"gemini-[12]\b")
"""Models for which Google charges web searches once for each reply that made some. For later ones
it charges each different query that is not empty (Gemini API, pricing)."""


class GeminiReader:
    kind = "a GenerateContentResponse"

    def __init__(self) -> None:
        self.reply: ReplyBuilder = ReplyBuilder(WIRE)
        self._parts: list[Part] = []
        self._open_text: list[str] = []
        """Text since the last part that must not be joined with another."""
        self._has_signature = False
        self._has_nameless_call = False
        self._usage: Any = {}
        self._queries: set[str] = set()
        """The web searches that Google made."""

    def take(self, event: Part) -> Iterator[str]:
        self.reply.name_model(event.get("modelVersion"))
        # Each event has the counts up to now, so the last one is the total.
        self._usage = event.get("usageMetadata") or self._usage
        feedback: Part = event.get("promptFeedback") or {}
        # A blocked prompt has no candidates, and so no finish reason.
        if blocked := feedback.get("blockReason"):
            self._withhold(blocked, feedback.get("blockReasonMessage"))
        for candidate in (event.get("candidates") or ())[:1]:
            content: Part = candidate.get("content") or {}
            for part in content.get("parts") or ():
                if text := self._take_part(part):
                    yield text
            self._search(candidate.get("groundingMetadata"))
            self._end(candidate)

    def _search(self, grounding: Any) -> None:
        known = cast(Part, grounding) if isinstance(grounding, dict) else {}
        queries: Any = known.get("webSearchQueries")
        if isinstance(queries, list):
            self._queries |= {q for q in cast(list[Any], queries) if isinstance(q, str) and q}

    def read(self, body: Part) -> None:
        for _ in self.take(body):
            pass
        if not self.reply.is_ended and not body["candidates"][0]:
            raise ValueError("an empty candidate")

    def finish(self) -> None:
        reply = self.reply
        self._close_text()
        counts = UsageReader(self._usage)
        searches = len(self._queries)
        if _PAYS_ONCE.match(reply.served_model):
            searches = min(searches, 1)
        reply.usage, reply.doubts = replace(gemini_usage(counts), searches=searches), counts.doubts
        if self._has_signature:
            reply.parts = self._parts
        if self._has_nameless_call and not reply.calls and not reply.text:
            raise ValueError("a call without a name")
        if reply.refusal.startswith("OTHER") and not reply.text:
            raise ModelGarbled("The model's reply broke off before its first word (OTHER).")

    def _take_part(self, part: Part) -> str:
        """Store a part. Return its text if it belongs to the reply and not to its reasoning."""
        signature = {SIGNATURE: text_of(part[SIGNATURE])} if part.get(SIGNATURE) else {}
        self._has_signature = self._has_signature or bool(signature)
        if call := part.get("functionCall"):
            self._close_text()
            for stored in self.reply.add_calls(self._calls(call)):
                self._parts.append({**stored, **signature})
                signature = {}
            return ""
        text = text_of(part.get("text"))
        is_thought = bool(part.get("thought"))
        new = (self.reply.thinking if is_thought else self.reply.text).append(text)
        if signature:  # Google refuses signed text that was joined with other text
            self._close_text()
            thought = {"thought": True} if is_thought else {}
            self._parts.append({"text": text, **thought, **signature})
        elif not is_thought:
            self._open_text.append(text)
        return "" if is_thought else new

    def _calls(self, call: Part) -> list[ToolCall]:
        """Return the calls of a part; none if it has no name or repeats a call."""
        name, identity = text_of(call.get("name")), text_of(call.get("id"))
        if not name:
            self._has_nameless_call = True
            return []
        # `willContinue`: the rest of the arguments follows, in a form that we never ask for.
        arguments = call.get("args")
        made = build_calls(identity, name, arguments, is_cut=False)
        if call.get("willContinue"):
            made = [ToolCall(id=identity, name=name, malformed="")]
        return [each for each in made if not identity or each not in self.reply.calls]

    def _close_text(self) -> None:
        text = "".join(self._open_text)
        if text.strip():
            self._parts.append({"text": text})
        self._open_text.clear()

    def _end(self, candidate: Part) -> None:
        reason: Any = candidate.get("finishReason")
        if not reason:
            return
        self.reply.is_ended = True
        self.reply.is_truncated = self.reply.is_truncated or reason == "MAX_TOKENS"
        if reason in _BROKEN_CALL:
            detail = text_of(candidate.get("finishMessage"))[:200]
            message = f"The model's reply contains a broken tool call ({reason}). {detail}"
            told = f" The server says: {detail}" if detail else ""
            raise CallGarbled(message.rstrip(), hint=BROKEN_CALL.format(reason=reason, detail=told))
        if reason in _WITHHELD:
            self._withhold(reason, candidate.get("finishMessage"))

    def _withhold(self, reason: Any, message: Any) -> None:
        self.reply.is_ended = True
        detail = text_of(message)
        self.reply.refusal = f"{text_of(reason)}: {detail}" if detail else text_of(reason)


def gemini_usage(counts: UsageReader) -> Usage:
    """Return the counts of a response."""
    # Google counts thoughts apart from the reply's tokens, and charges both as output.
    thoughts = counts.tokens("thoughtsTokenCount")
    return Usage(
        input_tokens=counts.tokens("promptTokenCount") + counts.tokens("toolUsePromptTokenCount"),
        output_tokens=counts.tokens("candidatesTokenCount") + thoughts,
        thinking_tokens=thoughts,
        cached_tokens=counts.tokens("cachedContentTokenCount"),
    )
