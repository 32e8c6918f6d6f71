"""Gemini's generateContent, streamed."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from agiraph.domain.chat import Attachment, ToolSpec, Turn
from agiraph.domain.errors import ModelGarbled
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

WIRE = "gemini"
UNSEALED = "gemini:unsealed"

_SEAL = "thoughtSignature"
_FOREIGN_SEAL = "skip_thought_signature_validator"
"""What Google documents for calls its model did not make: unsealed ones are rejected."""
_TAKES_UNSEALED = re.compile(r"gemini-[12]\b|gemma")

_WITHHELD = frozenset(
    ("SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR",
     "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION")
)  # fmt: skip
_BUNGLED = frozenset(("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE"))
"""The model broke off in a call it could not write; what came of it is not to be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GeminiModel:
    name: str
    model: str
    base_url: str
    key: str = field(repr=False)
    http: Http

    async def reply(self, request: Request, on_delta: OnDelta | None = None) -> Reply:
        model = quote(self.model, safe="")
        base = self.base_url.rstrip("/")

        async def attempt() -> Reply:
            return await ask(
                self.http,
                f"{base}/v1beta/models/{model}:streamGenerateContent?alt=sse",
                name=self.name,
                headers={"x-goog-api-key": self.key} if self.key else {},
                key=self.key,
                body=encode(self.model, request),
                reader=_Reader(),
                request=request,
                on_delta=on_delta,
            )

        def forget() -> bool:
            wire, seals = _wire(self.model)
            plain = Encoded(_Form(seals=seals, replays=False))
            return forget_thinking(request.transcript, wire, plain)

        return await or_plainly(attempt, forget)


def encode(model: str, request: Request) -> Body:
    """The request's bytes: what was said before stays to the byte, new turns come behind it."""
    wire, seals = _wire(model)
    written = kept(request.transcript, wire, lambda: Encoded(_Form(seals=seals)))
    opening = written.opening((request.tools,), lambda: _opening(request))
    config: Part = {}
    if request.max_output_tokens is not None:
        config["maxOutputTokens"] = request.max_output_tokens
    if request.schema is not None:
        config |= {"responseMimeType": "application/json", "responseJsonSchema": request.schema}
    settings: Part = {"generationConfig": config} if config else {}
    if request.tools and not request.may_call:
        settings["toolConfig"] = {"functionCallingConfig": {"mode": "NONE"}}
    return (opening, written.extend(request.transcript), ending(settings))


def _wire(model: str) -> tuple[str, bool]:
    """Under what name a thread is kept for this model, and whether it wants all calls sealed."""
    return (UNSEALED, False) if _TAKES_UNSEALED.match(model) else (WIRE, True)


def _opening(request: Request) -> bytes:
    settings: Part = {}
    if request.tools:
        settings["tools"] = [{"functionDeclarations": [_tool(t) for t in request.tools]}]
    if system := request.transcript.system:
        settings["systemInstruction"] = {"parts": [{"text": system}]}
    return (dumped(settings)[:-1] + b"," if settings else b"{") + b'"contents":['


def _tool(spec: ToolSpec) -> Part:
    schema = {"parametersJsonSchema": spec.schema}
    return {"name": spec.name, "description": spec.description, **schema}


class _Form:
    """Turns as contents of parts."""

    def __init__(self, *, seals: bool, replays: bool = True) -> None:
        self._seals = seals
        self._replays = replays
        self.replayed = False
        self._names: dict[str, str] = {}
        """Of the last reply's calls, by id: an answer repeats the name."""

    def message(self, turn: Turn) -> Part | None:
        if turn.role == "assistant":
            self._names = {call.id: tool_name(call.name) for call in turn.calls}
            parts, role = self._said(turn), "model"
        else:
            parts, role = [*map(_attached, turn.attachments), *_text(turn.text)], "user"
        return {"role": role, "parts": parts} if parts else None

    def answers(self, turns: Sequence[Turn]) -> list[Part]:
        parts = [self._answer(turn) for turn in turns]
        parts += [_attached(attachment) for turn in turns for attachment in turn.attachments]
        return [{"role": "user", "parts": parts}]

    def _answer(self, turn: Turn) -> Part:
        identity = turn.ref or ""
        said = {"error" if is_failed(turn) else "output": turn.text}
        name = self._names.get(identity, "unknown")
        return {"functionResponse": {"id": identity, "name": name, "response": said}}

    def _said(self, turn: Turn) -> list[Part]:
        own = own_parts(turn, WIRE) if self._replays else []
        self.replayed = self.replayed or bool(own)
        unsealed = [*_text(turn.text), *({"call": n} for n in range(len(turn.calls)))]
        parts = [_written(part, turn) for part in own or unsealed]
        first = next((part for part in parts if "functionCall" in part), None)
        if first is not None and self._seals:
            first.setdefault(_SEAL, _FOREIGN_SEAL)
        return parts


def _text(text: str) -> list[Part]:
    return [{"text": text}] if text.strip() else []


def _written(part: Part, turn: Turn) -> Part:
    """A part as it came; a call as it is known in the thread."""
    call = call_of(part, turn)
    if call is None:
        return part
    written = {"id": call.id, "name": tool_name(call.name), "args": arguments(call)}
    sealed = {_SEAL: part[_SEAL]} if _SEAL in part else {}
    return {"functionCall": written, **sealed}


def _attached(attachment: Attachment) -> Part:
    if attachment.media_type in IMAGES or attachment.media_type == PDF:
        data = {"mimeType": attachment.media_type, "data": attachment.data}
        return {"inlineData": data}
    return {"text": as_text(attachment)}


class _Reader:
    kind = "a generated content"

    def __init__(self) -> None:
        self.draft = Draft(WIRE)
        self._parts: list[Part] = []
        self._run: list[str] = []
        """Words since the last part that stands for itself."""
        self._sealed = False
        self._usage: Any = {}

    def take(self, event: Part) -> Iterator[str]:
        self._usage = event.get("usageMetadata") or self._usage
        feedback: Part = event.get("promptFeedback") or {}
        if blocked := feedback.get("blockReason"):
            self._withhold(blocked, feedback.get("blockReasonMessage"))
        for candidate in (event.get("candidates") or ())[:1]:
            content: Part = candidate.get("content") or {}
            for part in content.get("parts") or ():
                if said := self._take_part(part):
                    yield said
            self._end(candidate)

    def read(self, body: Part) -> None:
        for _ in self.take(body):
            pass
        if not self.draft.ended and not body["candidates"][0]:
            raise ValueError("an empty candidate")

    def finish(self) -> None:
        self._close_run()
        counts = Counts(self._usage)
        self.draft.usage, self.draft.doubts = _usage(counts), counts.doubts
        if self._sealed:
            self.draft.parts = self._parts

    def _take_part(self, part: Part) -> str:
        """Keep one part; the words in it, if they are said and not thought."""
        seal = {_SEAL: words(part[_SEAL])} if part.get(_SEAL) else {}
        said = ""
        if call := part.get("functionCall"):
            self._close_run()
            self._parts.append({"call": len(self.draft.calls), **seal})
            given = call.get("args")
            made = made_call(words(call.get("id")), words(call.get("name")), given or {})
            self.draft.calls.append(made)
        elif part.get("thought"):
            self.draft.thinking.append(words(part.get("text")))
            if seal:
                self._close_run()
                self._parts.append({"text": self.draft.thinking[-1], "thought": True, **seal})
        else:
            said = words(part.get("text"))
            self.draft.text.append(said)
            if seal:  # words that are sealed are not to be joined with others
                self._close_run()
                self._parts.append({"text": said, **seal})
            else:
                self._run.append(said)
        self._sealed = self._sealed or bool(seal)
        return said

    def _close_run(self) -> None:
        self._parts += _text("".join(self._run))
        self._run.clear()

    def _end(self, candidate: Part) -> None:
        reason: Any = candidate.get("finishReason")
        if not reason:
            return
        self.draft.ended = True
        self.draft.limited = reason == "MAX_TOKENS"
        if reason in _BUNGLED:
            told = words(candidate.get("finishMessage"))[:200]
            raise ModelGarbled(f"The model bungled its answer ({reason}). {told}".rstrip())
        if reason in _WITHHELD:
            self._withhold(reason, candidate.get("finishMessage"))

    def _withhold(self, reason: Any, message: Any) -> None:
        self.draft.ended = True
        told = words(message)
        self.draft.refusal = f"{words(reason)}: {told}" if told else words(reason)


def _usage(counts: Counts) -> Usage:
    return Usage(
        input_tokens=counts.tokens("promptTokenCount") + counts.tokens("toolUsePromptTokenCount"),
        output_tokens=counts.tokens("candidatesTokenCount") + counts.tokens("thoughtsTokenCount"),
        cached_tokens=counts.tokens("cachedContentTokenCount"),
    )
