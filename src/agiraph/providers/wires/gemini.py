"""Gemini: the wire of Google's streamGenerateContent API."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from urllib.parse import quote

from agiraph.domain.chat import Attachment, ToolSpec, Turn
from agiraph.providers.base import OnDelta, Reply, Request
from agiraph.providers.http.connection import Body
from agiraph.providers.options import merged
from agiraph.providers.wires import effort
from agiraph.providers.wires.gemini_reader import SIGNATURE, WIRE, GeminiReader
from agiraph.providers.wires.remote_model import KEY, RemoteModel
from agiraph.providers.wires.request_buffer import (
    IMAGES,
    PDF,
    Part,
    RequestBuffer,
    arguments,
    attachment_text,
    buffer_of,
    call_of,
    is_failed,
    replace_buffer,
    suffix,
    to_json,
    tool_name,
    unchanged_parts,
)
from agiraph.providers.wires.request_settings import Settings, plain

UNSIGNED_WIRE = "gemini:unsealed"
"""The name of the request buffer for models that accept calls without a signature."""

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
        return await self.ask_with_reasoning(send, request, ladder, drop_reasoning)


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
    """Return the name of the model's request buffer, and whether every call needs a signature."""
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
        response = {"error" if is_failed(turn) else "output": turn.text}
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
