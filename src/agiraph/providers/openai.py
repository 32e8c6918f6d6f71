"""OpenAI's chat-completions, the wire that every compatible server speaks."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, cast

import orjson

from agiraph.domain.chat import Attachment, ToolCall, ToolSpec, Turn
from agiraph.domain.errors import ModelRefused, ModelUnavailable
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
    dumped,
    ending,
    is_failed,
    kept,
    tool_name,
    vendor_parts,
)
from agiraph.providers.wire import Draft, DraftCall, ask, words

WIRE = "openai"
_IDS = re.compile(r".{1,40}", re.DOTALL)
_LESSONS = {
    "max_completion_tokens": "Use 'max_completion_tokens' instead",
    "reasoning_effort": "set reasoning_effort to 'none'",
}
"""Settings that some models want otherwise, and how their servers say so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAIModel:
    name: str
    model: str
    base_url: str
    key: str = field(repr=False)
    http: Http
    learnt: set[str] = field(default_factory=set[str], repr=False, compare=False)
    """What this model's server has asked to be told otherwise."""

    @property
    def vendor(self) -> str:
        """Whose thinking may be shown to this model: the wire is spoken by many."""
        provider = self.name.partition("/")[0]
        return self.name if provider == "openrouter" else provider  # behind a router are many

    async def reply(self, request: Request, on_delta: OnDelta | None = None) -> Reply:
        try:
            return await self._ask(request, on_delta)
        except ModelRefused as error:
            lessons = {lesson for lesson, said in _LESSONS.items() if said in str(error)}
            if lessons <= self.learnt:
                raise
            self.learnt.update(lessons)
        return await self._ask(request, on_delta)

    async def _ask(self, request: Request, on_delta: OnDelta | None) -> Reply:
        return await ask(
            self.http,
            f"{self.base_url.rstrip('/')}/chat/completions",
            name=self.name,
            headers={"authorization": f"Bearer {self.key}"} if self.key else {},
            key=self.key,
            body=encode(self.model, request, vendor=self.vendor, learnt=self.learnt),
            reader=_Reader(self.vendor),
            request=request,
            on_delta=on_delta,
        )


def encode(
    model: str, request: Request, *, vendor: str = WIRE, learnt: Collection[str] = ()
) -> Body:
    """The request's bytes: what was said before stays to the byte, new turns come behind it."""
    system = request.transcript.system
    first = {"role": "system", "content": system} if system else None
    written = kept(request.transcript, vendor, lambda: Encoded(_Form(vendor), first))
    opening = written.opening((model, request.tools), lambda: _opening(model, request.tools))
    settings: Part = {}
    if request.max_output_tokens is not None:
        name = "max_completion_tokens" if "max_completion_tokens" in learnt else "max_tokens"
        settings[name] = request.max_output_tokens
    if request.tools and not request.may_call:
        settings["tool_choice"] = "none"
    if request.tools and "reasoning_effort" in learnt:
        settings["reasoning_effort"] = "none"
    if (schema := request.schema) is not None:
        form = {"name": "answer", "schema": schema, "strict": _is_strict(schema)}
        settings["response_format"] = {"type": "json_schema", "json_schema": form}
    return (opening, written.extend(request.transcript), ending(settings))


@lru_cache(64)
def _opening(model: str, tools: tuple[ToolSpec, ...]) -> bytes:
    """What comes before the messages, once for all agents who have the same tools."""
    settings: Part = {"model": model, "stream": True, "stream_options": {"include_usage": True}}
    if tools:
        settings["tools"] = [_tool(t) for t in tools]
    return dumped(settings)[:-1] + b',"messages":['


def _tool(spec: ToolSpec) -> Part:
    function = {"name": spec.name, "description": spec.description, "parameters": spec.schema}
    return {"type": "function", "function": function}


def _is_strict(schema: Any) -> bool:
    """Whether every object in it names all it has, as the API wants of what it enforces."""
    if isinstance(schema, list):
        return all(_is_strict(part) for part in cast(list[Any], schema))
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
    return all(_is_strict(part) for part in known.values())


class _Form:
    """Turns as messages."""

    def __init__(self, vendor: str) -> None:
        self._vendor = vendor
        self.replayed = False

    def message(self, turn: Turn) -> Part | None:
        if turn.role == "user":
            content = _content(turn)
            return {"role": "user", "content": content} if content else None
        if not turn.text and not turn.calls:
            return None
        message: Part = {"role": "assistant", "content": turn.text or None}
        if turn.calls:
            message["tool_calls"] = [
                {"id": call_id(c.id, _IDS), "type": "function", "function": _written(c)}
                for c in turn.calls
            ]
        for part in vendor_parts(turn, self._vendor):
            self.replayed = True
            message |= part
        return message

    def answers(self, turns: Sequence[Turn]) -> list[Part]:
        messages: list[Part] = []
        for turn in turns:
            said = f"Error: {turn.text}" if is_failed(turn) else turn.text
            identity = call_id(turn.ref or "", _IDS)
            messages.append({"role": "tool", "tool_call_id": identity, "content": said})
        # An answer can only be words here; what else there is comes when all calls are answered.
        if attached := [_attached(a) for turn in turns for a in turn.attachments]:
            messages.append({"role": "user", "content": attached})
        return messages


def _content(turn: Turn) -> str | list[Part]:
    if not turn.attachments:
        return turn.text
    said = [{"type": "text", "text": turn.text}] if turn.text else []
    return [*map(_attached, turn.attachments), *said]


def _attached(attachment: Attachment) -> Part:
    url = f"data:{attachment.media_type};base64,{attachment.data}"
    if attachment.media_type in IMAGES:
        return {"type": "image_url", "image_url": {"url": url}}
    if attachment.media_type == PDF:
        return {"type": "file", "file": {"filename": attachment.name, "file_data": url}}
    return {"type": "text", "text": as_text(attachment)}


def _written(call: ToolCall) -> dict[str, str]:
    return {"name": tool_name(call.name), "arguments": dumped(arguments(call)).decode()}


class _Reader:
    kind = "a chat completion"

    def __init__(self, vendor: str) -> None:
        self.draft = Draft(vendor)
        self._calls: list[DraftCall] = []
        self._latest: dict[Any, DraftCall] = {}
        """The call that each index stands for."""
        self._reasoned: list[str] = []
        self._details: dict[Any, Part] = {}
        self._refused: list[str] = []

    def take(self, event: Part) -> Iterator[str]:
        if event.get("usage"):
            self._count(event["usage"])
        for choice in event.get("choices") or ():
            if said := self._hear(choice.get("delta") or {}):
                yield said
            self._end(choice.get("finish_reason"))

    def read(self, body: Part) -> None:
        choice = body["choices"][0]
        message: Part = choice["message"]
        given: list[Part] = message.get("tool_calls") or []
        calls = [{**call, "index": index} for index, call in enumerate(given)]
        self._hear({**message, "tool_calls": calls})
        self._end(choice.get("finish_reason"))
        if body.get("usage"):
            self._count(body["usage"])

    def finish(self) -> None:
        self.draft.calls = [call.call() for call in self._calls]
        self.draft.refusal = "".join(self._refused) or self.draft.refusal
        if self._details:
            self.draft.parts = [{"reasoning_details": [*self._details.values()]}]
        elif self._reasoned and self._calls:
            # Whoever calls it so rejects a call that comes back without the thoughts before it.
            self.draft.parts = [{"reasoning_content": "".join(self._reasoned)}]

    def _count(self, usage: Any) -> None:
        counts = Counts(usage)
        self.draft.usage = Usage(
            input_tokens=counts.tokens("prompt_tokens"),
            output_tokens=counts.tokens("completion_tokens"),
            cached_tokens=counts.part("prompt_tokens_details").tokens("cached_tokens"),
            usd=counts.usd("cost"),
        )
        self.draft.doubts = counts.doubts

    def _hear(self, delta: Part) -> str:
        """Add what came; the words in it."""
        if said := words(delta.get("content")):
            self.draft.text.append(said)
        if refused := delta.get("refusal"):
            self._refused.append(words(refused))
        reasoned = delta.get("reasoning_content")
        if isinstance(reasoned, str) and reasoned:
            self._reasoned.append(reasoned)
        thought = reasoned or delta.get("reasoning")
        if isinstance(thought, str) and thought:
            self.draft.thinking.append(words(thought))
        for detail in delta.get("reasoning_details") or ():
            self._take_detail(detail)
        for part in delta.get("tool_calls") or ():
            self._take_call(part)
        return said

    def _take_call(self, part: Part) -> None:
        index, identity = part.get("index"), words(part.get("id"))
        call = self._latest.get(index)
        # Some servers number all calls alike and tell them apart by their ids alone.
        if call is None or (identity and call.id and identity != call.id):
            call = self._latest[index] = DraftCall()
            self._calls.append(call)
        function: Part = part.get("function") or {}
        call.id = call.id or identity
        call.name = call.name or words(function.get("name"))
        given = function.get("arguments")
        call.arguments.append(
            orjson.dumps(given).decode() if isinstance(given, dict) else words(given)
        )

    def _take_detail(self, detail: Part) -> None:
        """Join what came in pieces; the whole goes back to where it came from."""
        key = (detail.get("type"), detail.get("index"), detail.get("id"))
        known = self._details.setdefault(key, {})
        for name, value in detail.items():
            grows = name in ("text", "summary", "data") and isinstance(known.get(name), str)
            known[name] = known[name] + words(value) if grows else known.get(name) or value

    def _end(self, reason: Any) -> None:
        if reason is None:
            return
        self.draft.ended = True
        self.draft.limited = reason == "length"
        if reason == "error":
            raise ModelUnavailable("The answer broke off: the server says no more than that.")
        if reason in ("content_filter", "refusal"):
            self.draft.refusal = words(reason)
