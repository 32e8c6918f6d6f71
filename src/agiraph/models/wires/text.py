"""Text tools: tool calls in a model's text, for models without an API for tool calls.

The system prompt describes the tools, and a call is a few lines of the reply:

    <call k4tz9wqb write_file>
    {"path": "a.md", "content": "Hello."}
    </call>

Anyone can write such lines: a web page, a file, a teammate. Only a **key** makes them a call. Each
request ends with a random key, drawn after all the rest of the request is fixed. The parser accepts
that key only in the reply to that request, at the beginning of a line, outside of code fences and
thinking. So text from a tool cannot contain the key it would need, and a model that repeats old
text calls nothing, because the keys in it are no longer valid. In addition, tool results are
enclosed in marks with the fresh key, so that nothing inside can end them early, and a call that
somebody copied from a thread into a file or message is shown with a backslash in it.

A key stays at the end of its request, and is stored with the reply (`ProviderData.text`). The same
turns therefore give the same bytes, also after a restart, so that vendors can cache the prompt.

A call with the right key and broken content becomes a call with `malformed` set, and the runtime
answers it with the error. If the text only looks like a call, the next message says so.
"""

import secrets
from collections.abc import Callable
from dataclasses import field, replace
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from string import Template
from typing import Any, Literal, NamedTuple, cast

import orjson

from agiraph.core.domain.chat import (
    ProviderData,
    Role,
    TextMark,
    ToolCall,
    ToolSpec,
    Transcript,
    Turn,
)
from agiraph.core.domain.ids import ThreadId
from agiraph.core.domain.value import dataclass
from agiraph.core.prompts import prompt
from agiraph.late_patterns import late
from agiraph.models.base import Model, OnDelta, Reply, Request
from agiraph.models.wires.text_calls import (
    ReplyParser,
    first_object,
    format_call,
    parse,
    tag_name,
)

WIRE = "text"
KEY_LETTERS = "bcdfghjkmnpqrstvwxz23456789"
"""No vowels, so that a key is never a word, and no letters that look alike."""
KEY_LENGTH = 8
"""38 bits. An attacker has one guess, which must be in the thread before the key is drawn."""

_COPIED_CALL = late(rf"<(?=call [{KEY_LETTERS}]{{{KEY_LENGTH}}}[ >])")
_EMPTY_REPLY = "(nothing)"
"""Sent for an empty reply, because some servers refuse an empty message."""
_BLANK = Turn(
    thread_id=ThreadId(WIRE),
    seq=0,
    node_id=None,
    role="user",
    text="",
    at=datetime.min.replace(tzinfo=UTC),
)

ReplyKind = Literal["calls", "words", "json"]
"""What the reply may contain: tool calls, only text, or one JSON object. Stored in the journal."""


def draw_key() -> str:
    return "".join(secrets.choice(KEY_LETTERS) for _ in range(KEY_LENGTH))


@dataclass(frozen=True, slots=True)
class TextToolModel:
    """A model whose prompt describes the tools, and whose text is parsed for calls."""

    inner: Model
    draw: Callable[[], str] = field(default=draw_key, kw_only=True)

    @property
    def name(self) -> str:
        return f"{WIRE}/{self.inner.name}"

    async def reply(self, request: Request, on_delta: OnDelta | None = None) -> Reply:
        rendered = _rendered_thread(request)
        ending = rendered.end_request(request, self.draw)
        answer = await self._inner_reply(request, rendered.inner, ending.valid_key, on_delta)
        parsed = parse(answer.text, ending.valid_key)
        # Some servers parse calls out of the text by themselves. They check no key, so such a
        # call does not count.
        has_missed_call = parsed.has_missed_call or bool(answer.calls)
        # The vendor's own parts are dropped: they contain the text before the calls were parsed.
        data = ProviderData(
            thinking=parsed.thinking or answer.provider_data.thinking,
            text=TextMark(key=ending.key, kind=ending.kind, missed=has_missed_call),
        )
        return replace(
            answer,
            text=first_object(parsed.text) if ending.kind == "json" else parsed.text,
            calls=request.transcript.with_unique_ids(_calls(parsed.calls, is_cut=answer.is_cut)),
            provider_data=data,
            model=answer.model and f"{WIRE}/{answer.model}",
        )

    async def _inner_reply(
        self, request: Request, rendered: Transcript, key: str, on_delta: OnDelta | None
    ) -> Reply:
        """Return the inner model's reply. Only its text, without calls, reaches `on_delta`."""
        # Neither tools nor schema: this wire is for servers that refuse such fields or ignore them.
        plain = Request(
            transcript=rendered,
            max_output_tokens=request.max_output_tokens,
            effort=request.effort,
            temperature=request.temperature,
        )
        if on_delta is None:
            return await self.inner.reply(plain)
        parser = ReplyParser(key)

        def show(text: str) -> None:
            if text:
                on_delta(text)

        answer = await self.inner.reply(plain, lambda piece: show(parser.feed(piece)))
        show(parser.end())
        return answer


class _RequestEnding(NamedTuple):
    """The end of a request: the key, the kind of reply, and the turns since the last reply."""

    key: str
    kind: ReplyKind
    turns: int

    @property
    def valid_key(self) -> str:
        return self.key if self.kind == "calls" else ""


def _rendered_thread(request: Request) -> "_RenderedThread":
    """Return the thread as plain text, with its new turns.

    A request without tools keeps the tools of the requests before it, so that the beginning of the
    prompt stays the same.
    """
    wire = request.transcript.wire
    rendered: _RenderedThread | None = wire.get(WIRE)
    if rendered is None or (request.tools and request.tools != rendered.tools):
        rendered = wire[WIRE] = _RenderedThread(request.transcript.system, request.tools)
    rendered.extend(request.transcript)
    return rendered


class _RenderedThread:
    """A thread as alternating user and assistant messages of plain text. Each is rendered once."""

    def __init__(self, system: str, tools: tuple[ToolSpec, ...]) -> None:
        self.tools = tools
        self.inner = Transcript()
        if system or tools:
            self._add("system", _system(system, tools))
        self._turn_count = 0
        self._new_turns: list[Turn] = []
        """The turns since the last reply."""
        self._ending: _RequestEnding | None = None
        """The end of the last request, while it has no reply."""
        self._names: dict[str, str] = {}
        self._has_missed_call = False

    def extend(self, transcript: Transcript) -> None:
        """Take in the turns that are new since the last call."""
        for turn in transcript.spoken(self._turn_count):
            if turn.role == "assistant":
                self._add_reply(turn)
            else:
                self._new_turns.append(turn)
        self._turn_count = len(transcript.turns)

    def end_request(self, request: Request, draw: Callable[[], str]) -> _RequestEnding:
        """Add the user message with the new turns and the key for the reply.

        A retried request keeps its key, so that its bytes stay the same.
        """
        has_calls = request.tools and request.may_call
        kind = "json" if request.schema is not None else "calls" if has_calls else "words"
        ending = self._ending
        # A structured question always gets a new ending: an ending does not say for which schema it
        # was made.
        if ending is None or ending[1:] != (kind, len(self._new_turns)) or kind == "json":
            ending = _RequestEnding(draw(), kind, len(self._new_turns))
        self._add_request(ending, request.schema)
        return ending

    def _add_reply(self, turn: Turn) -> None:
        turn = turn.as_sent
        stored = turn.provider_data.text or TextMark(key=_old_key(turn), kind="calls")
        kind = cast(ReplyKind, stored.kind)
        self._add_request(_RequestEnding(stored.key, kind, len(self._new_turns)))
        self._names.update((call.id, call.name) for call in turn.calls)
        parts = [turn.text] if turn.text else []
        parts += [format_call(call, stored.key) for call in turn.calls]
        self._add("assistant", "\n\n".join(parts) or _EMPTY_REPLY)
        self._new_turns, self._ending = [], None
        self._has_missed_call = stored.missed

    def _add_request(self, ending: _RequestEnding, schema: dict[str, Any] | None = None) -> None:
        if self._ending is not None:
            if (ending.key, ending.turns) == (self._ending.key, self._ending.turns):
                return
            # The last request got no reply and this one ends differently, which is rare. A new
            # Transcript drops the encoded bytes too.
            self.inner = Transcript(self.inner.turns[:-1])
        parts = [self._rendered(turn, ending.key) for turn in self._new_turns]
        if self._has_missed_call:
            parts.append(_templates().missed.template)
        if instruction := self._instruction(ending, schema):
            parts.append(instruction)
        attachments = tuple(a for turn in self._new_turns for a in turn.attachments)
        self._add("user", "\n\n".join(parts), attachments=attachments)
        self._ending = ending

    def _instruction(self, ending: _RequestEnding, schema: dict[str, Any] | None) -> str:
        templates = _templates()
        if ending.kind == "calls":
            return templates.key.substitute(key=ending.key)
        if ending.kind == "json" and schema is not None:
            return templates.json.substitute(schema=orjson.dumps(schema).decode())
        return templates.no_tools.template if self.tools or not self._new_turns else ""

    def _rendered(self, turn: Turn, key: str) -> str:
        text = _without_copies(turn.text)
        if turn.role != "tool":
            return text
        return _templates().data.substitute(
            key=key,
            name=tag_name(self._names.get(turn.ref or "", "tool")),
            call=turn.ref,
            failed=" failed" if turn.failed else "",
            text=text,
        )

    def _add(self, role: Role, text: str, **more: Any) -> None:
        self.inner.add(replace(_BLANK, seq=len(self.inner.turns), role=role, text=text, **more))


def _calls(calls: tuple[ToolCall, ...], *, is_cut: bool) -> tuple[ToolCall, ...]:
    """Return the calls of a reply; the last one of a reply that broke off is marked as cut off."""
    if not is_cut or not calls or calls[-1].malformed is None:
        return calls
    return (*calls[:-1], replace(calls[-1], malformed=""))


def _old_key(turn: Turn) -> str:
    """Return a key for a reply of another wire, which has none. It need not be secret: it is no
    longer valid."""
    digest = sha256(f"{turn.thread_id} {turn.seq}".encode()).digest()
    return "".join(KEY_LETTERS[byte % len(KEY_LETTERS)] for byte in digest[:KEY_LENGTH])


def _without_copies(text: str) -> str:
    """Return the text with a backslash in everything that has the form of a call."""
    return _COPIED_CALL.sub(r"<\\", text)


def _system(system: str, tools: tuple[ToolSpec, ...]) -> str:
    """Return the description of the tools, and the system prompt after it.

    The prompt names the goal. Before it stands what the threads of a role have in common, so that
    a local server reads it once for all of them.
    """
    templates = _templates()
    sections = [templates.form.template] if tools else []
    sections += [
        templates.tool.substitute(
            name=tool.name, description=tool.description, arguments=signature(tool.schema)
        )
        for tool in tools
    ]
    sections += [_without_copies(system)] if system else []
    return "\n\n".join(sections)


class _Templates(NamedTuple):
    """The sections of prompts/text_tool_calls.md."""

    form: Template
    tool: Template
    data: Template
    key: Template
    missed: Template
    no_tools: Template
    json: Template


@cache
def _templates() -> _Templates:
    sections = prompt("text_tool_calls").split("\n---\n")
    return _Templates(*(Template(section.strip()) for section in sections))


Schema = dict[str, Any]

_PLAIN = {
    "string": "text",
    "integer": "integer",
    "number": "number",
    "boolean": "true or false",
    "object": "object",
}
_KNOWN = frozenset({"type", "description", "default", "enum", "items"})


def signature(schema: Schema) -> str:
    """Return the arguments as one line; a schema with nested ones as JSON schema."""
    fields = cast(dict[str, Schema], schema.get("properties", {}))
    required = schema.get("required", [])
    shown: list[str] = []
    for name, about in fields.items():
        kind = _kind(about)
        if kind is None:
            return f"(arguments as a JSON schema: {orjson.dumps(schema).decode()})"
        optional = "" if name in required else "?"
        told = f" ({about['description']})" if about.get("description") else ""
        shown.append(f'"{name}"{optional}: {kind}{told}')
    return "{" + ", ".join(shown) + "}"


def _kind(about: Schema) -> str | None:
    """Return what a value is, in words; None for one that words are too short for."""
    if not about.keys() <= _KNOWN:
        return None
    if "enum" in about:
        return " or ".join(orjson.dumps(choice).decode() for choice in about["enum"])
    if about.get("type") == "array":
        inner = _kind(about.get("items", {}))
        return None if inner is None else f"[{inner}, …]"
    return _PLAIN.get(about.get("type", ""))
