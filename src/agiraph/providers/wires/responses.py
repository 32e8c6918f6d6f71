"""Responses: the wire of OpenAI's Responses API, which keeps a model's reasoning between calls.

OpenAI stores nothing (`store: false`). It sends reasoning encrypted, and gets it back with the
calls and words that followed from it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agiraph.domain.chat import Attachment, ToolCall, ToolSpec, Turn
from agiraph.domain.errors import ModelRefused
from agiraph.providers.base import OnDelta, Reply, Request
from agiraph.providers.http.connection import Body
from agiraph.providers.options import merged
from agiraph.providers.wires import effort
from agiraph.providers.wires.chat_completions import is_strict
from agiraph.providers.wires.remote_model import BEARER, RemoteModel
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
from agiraph.providers.wires.responses_reader import ResponsesReader

_IDS = re.compile(r".{1,64}", re.DOTALL)
"""OpenAI refuses a call id of more than 64 characters."""
PLAIN = "plain reasoning"
"""Learned of a server: it cannot send encrypted reasoning."""
_NO_ENCRYPTED = "ncrypted content is not supported"
"""The error of models that do not reason, such as gpt-4.1, to a request for encrypted reasoning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponsesModel(RemoteModel):
    @property
    def vendor(self) -> str:
        """The owner of reasoning that this model accepts back: no other model can decrypt it."""
        return f"responses:{self.name}"

    async def reply(self, request: Request, on_delta: OnDelta | None = None) -> Reply:
        def drop_reasoning() -> bool:
            plain_buffer = RequestBuffer(_TurnEncoder(self.vendor, keeps_reasoning=False))
            return replace_buffer(request.transcript, self.vendor, plain_buffer)

        return await self.ask_with_reasoning(
            lambda settings: self._encrypted(request, settings, on_delta),
            request,
            effort.responses,
            drop_reasoning,
        )

    async def _encrypted(
        self, request: Request, settings: Settings, on_delta: OnDelta | None
    ) -> Reply:
        """Ask for encrypted reasoning, unless the server cannot send it."""
        try:
            return await self._send(request, settings, on_delta)
        except ModelRefused as error:
            if PLAIN in self.learned or _NO_ENCRYPTED not in str(error):
                raise
            self.learned.add(PLAIN)
        return await self._send(request, settings, on_delta)

    async def _send(self, request: Request, settings: Settings, on_delta: OnDelta | None) -> Reply:
        encrypts = PLAIN not in self.learned
        return await self.post(
            "/responses",
            encode(self.model, request, vendor=self.vendor, settings=settings, encrypts=encrypts),
            ResponsesReader(self.vendor),
            key_header=BEARER,
            request=request,
            on_delta=on_delta,
        )


def encode(
    model: str,
    request: Request,
    *,
    vendor: str,
    settings: Settings | None = None,
    encrypts: bool = True,
) -> Body:
    """Return the request body. The bytes of earlier turns are those of the last request.

    `encrypts`: the server can send encrypted reasoning.
    """
    settings = plain(request) if settings is None else settings
    buffer = buffer_of(request.transcript, vendor, lambda: RequestBuffer(_TurnEncoder(vendor)))
    prefix = buffer.prefix(
        (model, request.tools, encrypts), lambda: _prefix(model, request, vendor, encrypts)
    )
    fields: Part = {}
    if settings.max_output_tokens is not None:
        fields["max_output_tokens"] = settings.max_output_tokens
    if settings.temperature is not None:
        fields["temperature"] = settings.temperature
    if settings.effort:
        fields["reasoning"] = settings.effort
    if request.tools and not request.may_call:
        fields["tool_choice"] = "none"
    if (schema := request.schema) is not None:
        form = {"name": "answer", "schema": schema, "strict": is_strict(schema)}
        fields["text"] = {"format": {"type": "json_schema", **form}}
    messages = buffer.extend(request.transcript)
    hint = {"role": "user", "content": request.hint} if request.hint else None
    return (prefix, messages, buffer.last(hint) + suffix(merged(fields, settings.body)))


def _prefix(model: str, request: Request, vendor: str, encrypts: bool) -> bytes:
    settings: Part = {"model": model, "stream": True, "store": False}
    if encrypts:
        settings["include"] = ["reasoning.encrypted_content"]
    turns = request.transcript.turns
    if turns and vendor.startswith("responses:openai/"):
        # Requests with one key go to the same machine, where the beginning of the thread is cached.
        settings["prompt_cache_key"] = turns[0].thread_id
    if system := request.transcript.system:
        settings["instructions"] = system
    if request.tools:
        settings["tools"] = [_tool(t) for t in request.tools]
    return to_json(settings)[:-1] + b',"input":['


def _tool(spec: ToolSpec) -> Part:
    # OpenAI takes a tool without `strict` for a strict one here, and changes its schema.
    return {
        "type": "function",
        "name": spec.name,
        "description": spec.description,
        "parameters": spec.schema,
        "strict": False,
    }


class _TurnEncoder:
    """Encodes turns as input items: a reply is a list of reasoning, words and calls."""

    def __init__(self, vendor: str, *, keeps_reasoning: bool = True) -> None:
        self._vendor = vendor
        self._keeps_reasoning = keeps_reasoning
        self.has_reasoning = False

    def message(self, turn: Turn) -> list[Part]:
        if turn.role == "user":
            content = _content(turn.text, turn.attachments)
            return [{"role": "user", "content": content}] if content else []
        # OpenAI refuses reasoning that nothing follows.
        if not turn.text.strip() and not turn.calls:
            return []
        parts = unchanged_parts(turn, self._vendor) if self._keeps_reasoning else []
        if not parts:
            words = [{"role": "assistant", "content": turn.text}] if turn.text.strip() else []
            return [*words, *(_call(call) for call in turn.calls)]
        self.has_reasoning = True
        return [_item(part, turn) for part in parts]

    def results(self, turns: Sequence[Turn]) -> list[Part]:
        return [_result(turn) for turn in turns]


def _item(part: Part, turn: Turn) -> Part:
    """Return a stored part of a reply in the form in which OpenAI sent it."""
    call = call_of(part, turn)
    if call is not None:
        return _call(call, part.get("id"))
    if "reasoning" in part:
        return part["reasoning"]
    content = [{"type": "output_text", "text": part["text"], "annotations": list[Any]()}]
    message: Part = {"type": "message", "role": "assistant", "content": content}
    return message | {key: part[key] for key in ("id", "status", "phase") if key in part}


def _call(call: ToolCall, identity: str | None = None) -> Part:
    item: Part = {"type": "function_call", "call_id": call_id(call.id, _IDS)}
    if identity:
        item["id"] = identity
    given = to_json(arguments(call)).decode()
    return item | {"name": tool_name(call.name), "arguments": given}


def _result(turn: Turn) -> Part:
    text = f"Error: {turn.text}" if is_failed(turn) else turn.text
    output: str | list[Part] = text
    if turn.attachments:
        output = [*_words(text), *map(_attachment, turn.attachments)]
    identity = call_id(turn.ref or "", _IDS)
    return {"type": "function_call_output", "call_id": identity, "output": output}


def _content(text: str, attachments: Sequence[Attachment]) -> str | list[Part]:
    if not attachments:
        return text
    return [*map(_attachment, attachments), *_words(text)]


def _words(text: str) -> list[Part]:
    return [{"type": "input_text", "text": text}] if text else []


def _attachment(attachment: Attachment) -> Part:
    url = f"data:{attachment.media_type};base64,{attachment.data}"
    if attachment.media_type in IMAGES:
        return {"type": "input_image", "image_url": url, "detail": "auto"}
    if attachment.media_type == PDF:
        return {"type": "input_file", "filename": attachment.name, "file_data": url}
    return {"type": "input_text", "text": attachment_text(attachment)}
