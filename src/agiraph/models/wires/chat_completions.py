"""OpenAI: the wire of the chat completions API, which many vendors and local servers offer too."""

import re
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache, partial
from hashlib import sha256
from typing import Any, cast

from agiraph.core.domain.chat import Attachment, ToolCall, ToolSpec, Turn
from agiraph.core.domain.errors import CallGarbled, ModelError, ModelRefused, ModelUnavailable
from agiraph.core.domain.value import dataclass
from agiraph.core.domain.work import Effort
from agiraph.late_patterns import late
from agiraph.models.base import OnDelta, Reply, Request
from agiraph.models.http.connection import Body
from agiraph.models.options import merged
from agiraph.models.wires import effort
from agiraph.models.wires.call_pieces import BROKEN_CALL, CallPieces
from agiraph.models.wires.pieces import Pieces, content_of, text_of
from agiraph.models.wires.remote_model import BEARER, RemoteModel, Settings, plain
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
    suffix,
    to_json,
    tool_name,
    vendor_parts,
)
from agiraph.models.wires.usage import UsageReader, openai_usage

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
        return await self.ask(
            lambda settings: self._adjusted(request, settings, on_delta), request, self._forms
        )

    def _forms(self, wanted: Effort) -> Sequence[Part]:
        dialect = effort.dialect_of(self.name.partition("/")[0], self.base_url)
        return effort.chat(dialect, wanted)

    async def _adjusted(
        self, request: Request, settings: Settings, on_delta: OnDelta | None
    ) -> Reply:
        vendor = self.vendor
        while True:
            body = encode(
                self.model,
                request,
                vendor=vendor,
                adjustments=self.learned,
                default_limit=self.max_output_tokens,
                settings=settings,
            )
            try:
                return await self.post(
                    "/chat/completions",
                    body,
                    ChatReader(vendor),
                    key_header=BEARER,
                    request=request,
                    on_delta=on_delta,
                )
            # llama.cpp answers 500 to messages that its template refuses.
            except (ModelRefused, ModelUnavailable) as error:
                # Each form is tried once and then kept for the life of the process, so that only
                # the first request is refused.
                wanted = wanted_forms(error, self.learned)
                if not wanted:
                    raise
                self.learned.update(wanted)


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
    forms = MESSAGE_FORMS.intersection(adjustments)
    wire = "+".join((vendor, *sorted(forms))) if forms else vendor
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
    return RequestBuffer(encoder, first, partial(filler, forms) if forms else None)


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


_FORMS: dict[str, re.Pattern[str]] = {
    name: late(pattern, re.IGNORECASE | re.DOTALL)
    for name, pattern in {
        # Settings that some models of OpenAI want otherwise: reasoning models refuse `max_tokens`,
        # and some refuse tools unless reasoning is off.
        "max_completion_tokens": r"use 'max_completion_tokens' instead",
        "reasoning_effort": r"set reasoning_effort to 'none'",
        # Old servers know no `stream_options`, and each model has its own highest limit.
        "no_stream_options": r"\bstream_options\b",
        "no_default_limit": r"max_(?:completion_)?tokens\b.{0,120}(?:too large|exceed|at most|less"
        r" than or equal|must be <=|invalid)|at most \d+ completion tokens",
        # Mistral, and templates of llama.cpp, vLLM and LM Studio.
        "assistant_after_tool": r"role '?user'? after (?:role )?'?tool'?",
        "alternate": r"roles must alternate|must alternate (?:between )?user",
        "no_system": r"system (?:role|messages?) (?:is |are )?not supported"
        r"|not support (?:the )?system (?:role|messages?)",
        "nine_letter_ids": r"a-z, ?A-Z, ?0-9,? with a length of 9",
        # DeepSeek and others that think.
        "reasoning_required": r"reasoning_content.{0,80}(?:must be passed|required|missing|must be"
        r" provided)|missing.{0,40}reasoning_content",
        "reasoning_refused": r"reasoning(?:_content|_details)?\b.{0,80}(?:not permitted|unsupported"
        r"|not supported|not allowed)|(?:unknown|unsupported|unexpected|extra)\b.{0,60}"
        r"\breasoning_(?:content|details)",
    }.items()
}
"""By name, the error texts with which servers ask for each form."""
MESSAGE_FORMS = frozenset(
    ("assistant_after_tool", "alternate", "no_system", "nine_letter_ids", "reasoning_required",
     "reasoning_refused", "foreign_as_text")
)  # fmt: skip
"""The forms that change the messages of a thread."""
_UNDERSTOOD: Part = {"role": "assistant", "content": "Understood."}
_GO_ON: Part = {"role": "user", "content": "Go on."}


def wanted_forms(error: ModelError, known: Collection[str]) -> set[str]:
    """Return the forms that a server asks for with this error and that are not in use yet."""
    text = str(error)
    wanted = {name for name, pattern in _FORMS.items() if pattern.search(text)}
    if "reasoning_required" in wanted:
        wanted.discard("reasoning_refused")
        if "reasoning_required" in known:  # an empty one was not enough
            wanted.add("foreign_as_text")
    return wanted - set(known)


def filler(forms: Collection[str], before: str, role: str) -> Part | None:
    """Return the message that a strict template needs between two messages of these roles."""
    if role == "user" and before == "tool":
        return _UNDERSTOOD if {"assistant_after_tool", "alternate"} & {*forms} else None
    if "alternate" not in forms:
        return None
    if role == "user" and before == "user":
        return _UNDERSTOOD
    return _GO_ON if role == "assistant" and before in ("", "system", "assistant") else None


_IDS = late(r".{1,40}", re.DOTALL)
"""OpenAI refuses a call id of more than 40 characters."""
_NINE_LETTERS = late(r"[a-zA-Z0-9]{9}")


class ChatEncoder:
    """Encodes turns as chat messages, in the forms that the server wants (`chat_forms`)."""

    def __init__(self, vendor: str, forms: Collection[str] = ()) -> None:
        self._vendor = vendor
        self._forms = frozenset(forms)
        self.has_reasoning: bool = False
        self._told: dict[str, str] = {}
        """The names of the calls that were told as text, by their ids."""

    def message(self, turn: Turn) -> Part | None:
        if turn.role == "user":
            content = _content(turn)
            return {"role": "user", "content": content} if content else None
        if not turn.text and not turn.calls:
            return None
        own = vendor_parts(turn, self._vendor)
        if turn.calls and not own and "foreign_as_text" in self._forms:
            return self._told_reply(turn)
        message: Part = {"role": "assistant", "content": turn.text or None}
        if turn.calls:
            message["tool_calls"] = [
                {"id": self._id(c.id), "type": "function", "function": _function(c)}
                for c in turn.calls
            ]
        if "reasoning_refused" not in self._forms:
            for part in own:
                self.has_reasoning = True
                message |= part
        if "reasoning_required" in self._forms:
            message.setdefault("reasoning_content", "")
        return message

    def results(self, turns: Sequence[Turn]) -> list[Part]:
        messages: list[Part] = []
        told = [turn for turn in turns if turn.ref in self._told]
        for turn in turns:
            if turn not in told:
                identity = self._id(turn.ref or "")
                messages.append(
                    {"role": "tool", "tool_call_id": identity, "content": _result(turn)}
                )
        # A tool message holds only text. Attachments follow in a user message, which OpenAI refuses
        # before all calls are answered.
        parts = [_text(f"[{self._told[turn.ref or '']}] {_result(turn)}") for turn in told]
        parts += [_attachment(a) for turn in turns for a in turn.attachments]
        if parts:
            messages.append({"role": "user", "content": parts})
        return messages

    def _told_reply(self, turn: Turn) -> Part:
        """Return a reply of another model with its calls as words."""
        lines = [turn.text] if turn.text else []
        for call in turn.calls:
            self._told[call.id] = tool_name(call.name)
            lines.append(
                f"[Called {tool_name(call.name)} with {to_json(arguments(call)).decode()}]"
            )
        return {"role": "assistant", "content": "\n".join(lines), "reasoning_content": ""}

    def _id(self, identity: str) -> str:
        if "nine_letter_ids" not in self._forms:
            return call_id(identity, _IDS)
        if _NINE_LETTERS.fullmatch(identity):
            return identity
        return sha256(identity.encode()).hexdigest()[:9]


def _result(turn: Turn) -> str:
    return f"Error: {turn.text}" if turn.failed else turn.text


def _text(text: str) -> Part:
    return {"type": "text", "text": text}


def _content(turn: Turn) -> str | list[Part]:
    if not turn.attachments:
        return turn.text
    return [*map(_attachment, turn.attachments), *([_text(turn.text)] if turn.text else [])]


def _attachment(attachment: Attachment) -> Part:
    url = f"data:{attachment.media_type};base64,{attachment.data}"
    if attachment.media_type in IMAGES:
        return {"type": "image_url", "image_url": {"url": url}}
    if attachment.media_type == PDF:
        return {"type": "file", "file": {"filename": attachment.name, "file_data": url}}
    return _text(attachment_text(attachment))


def _function(call: ToolCall) -> dict[str, str]:
    return {"name": tool_name(call.name), "arguments": to_json(arguments(call)).decode()}


_TRUNCATED = frozenset(("length", "max_tokens", "model_length", "max_output_tokens"))
_WITHHELD = frozenset(("content_filter", "refusal", "safety", "sensitive", "recitation", "blocked"))
_BROKEN_OFF = frozenset(("error", "network_error", "insufficient_system_resource", "abort"))
"""Reasons when a server, or the vendor behind a router, failed in the middle of a reply."""


class ChatReader:
    kind = "a chat completion"

    def __init__(self, vendor: str) -> None:
        self.reply: ReplyBuilder = ReplyBuilder(vendor)
        self._calls = CallPieces()
        self._reasoning = Pieces(None)
        self._details: dict[Any, Part] = {}
        self._refusal: list[str] = []
        self._has_finish_reason = False

    def take(self, event: Part) -> Iterator[str]:
        if model := event.get("model"):
            self.reply.name_model(model)
        if usage := event.get("usage"):
            self._count(usage)
        # Empty in the last event, which has the token counts, and in Azure's first, which has its
        # filters.
        if choices := event.get("choices"):
            choice = self._own_choice(choices)
            if (delta := choice.get("delta")) and (text := self._take_delta(delta)):
                yield text
            self._end(choice.get("finish_reason"))

    def _own_choice(self, choices: Any) -> Part:
        """Return the choice that the reply is read from; raise if there are only others."""
        # We ask for one choice. A second one beside it is left out, but one that comes alone may
        # be a part of the reply, and nobody knows of which.
        for choice in choices:
            if not (index := choice.get("index")) and index is not False:
                return choice
        raise ValueError("a choice that nobody asked for")

    def read(self, body: Part) -> None:
        self.reply.name_model(body.get("model"))
        choice = body["choices"][0]
        message: Part = choice["message"]
        given: list[Part] = message.get("tool_calls") or []
        calls = [{**call, "index": index} for index, call in enumerate(given)]
        self._take_delta({**message, "tool_calls": calls})
        self._end(choice.get("finish_reason"))
        self._has_finish_reason = True  # one JSON object is whole
        if body.get("usage"):
            self._count(body["usage"])

    def finish(self) -> None:
        reply = self.reply
        is_open = reply.is_truncated or not self._has_finish_reason
        try:
            reply.calls = self._calls.build(is_truncated=is_open)
        except ValueError:
            if not reply.text:  # a nameless call beside words is dropped
                raise
        reply.refusal = "".join(self._refusal) or reply.refusal
        if self._details:
            # OpenRouter wants `reasoning_details` back unchanged.
            reply.parts = [{"reasoning_details": [*self._details.values()]}]
        elif self._reasoning and self._calls:
            # DeepSeek and others that send `reasoning_content` refuse a tool call that comes back
            # without it.
            reply.parts = [{"reasoning_content": str(self._reasoning)}]

    def _count(self, usage: Any) -> None:
        counts = UsageReader(usage)
        self.reply.usage = openai_usage(counts, "prompt", "completion")
        self.reply.doubts = counts.doubts

    def _take_delta(self, delta: Part) -> str:
        """Add a delta and return its text."""
        content = delta.get("content")
        text, thoughts = ("", "") if content is None else content_of(content)
        shown = self.reply.text.append(text) if text else ""
        if refusal := delta.get("refusal"):
            self._refusal.append(text_of(refusal))
        reasoning = delta.get("reasoning_content")
        if isinstance(reasoning, str) and reasoning:
            self._reasoning.append(reasoning)
        # OpenRouter and vLLM call the field `reasoning`, DeepSeek `reasoning_content`.
        thought = reasoning or delta.get("reasoning")
        if isinstance(thought, str):
            thoughts += text_of(thought)
        if thoughts:
            self.reply.thinking.append(thoughts)
        for detail in delta.get("reasoning_details") or ():
            self._take_detail(detail)
        for part in delta.get("tool_calls") or ():
            self._take_call(part)
        return shown

    def _take_call(self, part: Part) -> None:
        function: Part = part.get("function") or {}
        # Some compatible servers send arguments as an object instead of JSON text.
        self._calls.take(
            part.get("index"),
            text_of(part.get("id")),
            text_of(function.get("name")),
            function.get("arguments"),
        )

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
        self.reply.is_ended = self._has_finish_reason = True
        word = text_of(reason).lower()
        self.reply.is_truncated = self.reply.is_truncated or word in _TRUNCATED
        if word in _BROKEN_OFF:
            raise ModelUnavailable(f"The response broke off ({word}) without a reason.")
        # Google's own compatible API says `function_call_filter: MALFORMED_FUNCTION_CALL`.
        if "malformed_function_call" in word:
            raise CallGarbled(
                f"The model's reply contains a broken tool call ({reason}).",
                hint=BROKEN_CALL.format(reason=reason, detail=""),
            )
        if word in _WITHHELD:
            self.reply.refusal = text_of(reason)
