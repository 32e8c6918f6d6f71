"""Responses: the wire of OpenAI's Responses API, which keeps a model's reasoning between calls.

OpenAI stores nothing (`store: false`). It sends reasoning encrypted, and gets it back with the
calls and words that followed from it.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

import orjson

from agiraph.core.domain.chat import Attachment, ToolCall, ToolSpec, Turn
from agiraph.core.domain.errors import ModelError, ModelRefused, ModelUnavailable
from agiraph.core.domain.value import dataclass
from agiraph.models.base import OnDelta, Reply, Request
from agiraph.models.http.connection import Body
from agiraph.models.http.errors import error_for_status
from agiraph.models.http.events import CUT_OFF
from agiraph.models.options import merged
from agiraph.models.wires import effort
from agiraph.models.wires.call_pieces import build_calls
from agiraph.models.wires.chat_completions import is_strict
from agiraph.models.wires.pieces import Pieces, text_of
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
    call_of,
    replace_buffer,
    suffix,
    to_json,
    tool_name,
    unchanged_parts,
)
from agiraph.models.wires.usage import UsageReader, openai_usage

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

        return await self.ask(
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
    text = f"Error: {turn.text}" if turn.failed else turn.text
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


_ENDS = ("response.completed", "response.incomplete", "response.failed")
_STATUS_OF_CODE = {
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "invalid_prompt": 400,
    "context_length_exceeded": 400,
    "bio_policy": 400,
    "data_residency_mismatch": 400,
    "image_content_policy_violation": 400,
}
"""Codes of a failed response. Those about images are lasting too; any other one counts as 503."""


class ResponsesReader:
    kind = "a response of the Responses API"

    def __init__(self, vendor: str) -> None:
        self.reply: ReplyBuilder = ReplyBuilder(vendor)
        self._items: dict[int, Part] = {}
        """The items of the output that have begun, by their index."""
        self._open: set[int] = set()
        """Of these, the ones that are not whole yet."""
        self._is_over = False
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._has_nameless_call = False

    def take(self, event: Part) -> Iterator[str]:
        match event.get("type"):
            case "response.output_item.added":
                self._items[event["output_index"]] = event["item"]
                self._open.add(event["output_index"])
            case "response.output_text.delta":
                if text := self.reply.text.append(text_of(event["delta"])):
                    yield text
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                self.reply.thinking.append(text_of(event["delta"]))
            case "response.output_item.done":
                # The reasoning in `added` may be incomplete, so the whole item takes its place.
                self._items[event["output_index"]] = event["item"]
                self._open.discard(event["output_index"])
            case "error":
                code, message = event.get("code"), text_of(event.get("message"))
                raise _failure({"code": code, "message": message}, has_worked=bool(self._items))
            case str() as kind if kind in _ENDS:
                self._end(event["response"])
                self.reply.is_ended = self.reply.is_closed = True
            case _:
                pass  # other deltas, which the whole items repeat, and what OpenAI adds later

    def read(self, body: Part) -> None:
        self._end(body)
        if "output" not in body:
            raise ValueError("a response without output")

    def finish(self) -> None:
        reply, parts = self.reply, list[Part]()
        # A call that is not whole is never made.
        if not self._is_over or (self._open and not reply.is_truncated):
            raise ModelUnavailable(CUT_OFF)
        # The whole items count; the pieces before them were for display.
        reply.text, reply.thinking = Pieces(), Pieces()
        items = [item for index, item in sorted(self._items.items()) if index not in self._open]
        for item in items:
            match item.get("type"):
                case "message":
                    parts += self._take_message(item)
                case "function_call":
                    is_cut = reply.is_truncated and item is items[-1]
                    parts += self._take_call(item, is_cut=is_cut)
                case "reasoning":
                    parts += self._take_reasoning(item)
                case "web_search_call" if _is_search(item):
                    reply.usage = replace(reply.usage, searches=reply.usage.searches + 1)
                case str():
                    pass  # other tools that OpenAI runs itself, which we never request
                case other:
                    raise TypeError(f"{other!r:.40} is not the type of an item")
        reply.text.append("\n\n".join(self._texts))
        reply.thinking.append("\n\n".join(self._thoughts))
        if self._has_nameless_call and not reply.calls and not reply.text:
            raise ValueError("a call without a name")
        # An incomplete response may end in reasoning that nothing follows, which OpenAI refuses.
        wants_back = any("reasoning" in part or "phase" in part for part in parts)
        if wants_back and not reply.is_truncated:
            reply.parts = parts

    def _take_message(self, item: Part) -> Iterator[Part]:
        """Add the words of a message; yield the part to send back, unless it is blank."""
        texts: list[str] = []
        for content in item.get("content") or ():
            match content.get("type"):
                case "output_text":
                    texts.append(text_of(content.get("text")))
                case "refusal":
                    self.reply.refusal = text_of(content.get("refusal")) or "refusal"
                case str():
                    pass
                case other:
                    raise TypeError(f"{other!r:.40} is not the type of a content")
        if text := "".join(texts):
            self._texts.append(text)
        if text.strip():
            known = {key: item.get(key) for key in ("id", "status", "phase")}
            yield {"text": text, **_without_nothing(known)}

    def _take_call(self, item: Part, *, is_cut: bool) -> Iterator[Part]:
        """Add the calls of an item; yield the part that stands for each of them."""
        name = text_of(item.get("name"))
        if not name:
            self._has_nameless_call = True
            return
        calls = build_calls(
            text_of(item.get("call_id")), name, item.get("arguments"), is_cut=is_cut
        )
        own = _without_nothing({"id": item.get("id")}) if len(calls) == 1 else {}
        yield from ({**part, **own} for part in self.reply.add_calls(calls))

    def _take_reasoning(self, item: Part) -> Iterator[Part]:
        """Add the thoughts; yield the item to send back, if it can be understood there."""
        told = [*(item.get("summary") or ()), *(item.get("content") or ())]
        self._thoughts += filter(None, (text_of(part.get("text")) for part in told))
        # Nothing is stored at OpenAI, so reasoning that is not here whole would be looked for there
        # in vain.
        if item.get("encrypted_content") or item.get("content"):
            known = {key: value for key, value in item.items() if key != "status"}
            yield {"reasoning": _without_nothing({"summary": [], **known})}

    def _end(self, response: Part) -> None:
        self._is_over = True
        self.reply.name_model(response.get("model"))
        output: list[Part] = response.get("output") or []
        if output:
            self._items, self._open = dict(enumerate(output)), set()
        self._count(response.get("usage"))
        error = response.get("error")
        if response.get("status") == "failed" or error:
            raise _failure(error, has_worked=bool(output or response.get("usage")))
        if response.get("status") != "incomplete":
            return
        details: Part = response.get("incomplete_details") or {}
        reason = text_of(details.get("reason"))
        self.reply.is_truncated = reason != "content_filter"
        if reason == "content_filter":
            self.reply.refusal = reason

    def _count(self, usage: Any) -> None:
        if usage is None:
            return
        counts = UsageReader(usage)
        self.reply.usage = openai_usage(counts, "input", "output")
        self.reply.doubts = counts.doubts


def _is_search(item: Part) -> bool:
    """Whether OpenAI charges for this step of a web search: pages that it opens cost nothing."""
    action: Any = item.get("action")
    kind = cast(Part, action).get("type") if isinstance(action, dict) else "search"
    return kind == "search"


def _failure(error: Any, *, has_worked: bool) -> ModelError:
    details = cast(Part, error) if isinstance(error, dict) else {"message": str(error)}
    code = str(details.get("code"))
    status = 400 if "image" in code else _STATUS_OF_CODE.get(code, 503)
    reason = f"{text_of(details.get('message')) or 'no reason is given'} ({code})"
    failure = error_for_status(
        status, reason, f"The response failed: {reason}", body=orjson.dumps(details)
    )
    # It may have worked, and charged, before it failed. A limit that was met at once cost nothing.
    failure.unused = failure.unused and (status == 400 or (status == 429 and not has_worked))
    return failure


def _without_nothing(part: Part) -> Part:
    return {key: value for key, value in part.items() if value is not None}
