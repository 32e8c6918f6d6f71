"""Text tools: calling tools by writing, for models that know no other way.

The tools stand in the system prompt, and a call is a few lines of the reply:

    <call k4tz9wqb write_file>
    {"path": "a.md", "content": "Hello."}
    </call>

Anyone can write that: a web page, a file, a teammate. What makes it a call is its **key**. Every
request ends with a key of its own, drawn when everything else in it is already written, and only
the reply to that very request is read, for that key, at the beginning of a line, outside of code
fences and thoughts. So no text that came from a tool can hold the key it would need, and a model
that repeats all it ever saw calls nothing: the keys it saw are spent. Beyond that, results are
fenced with the fresh key, so that nothing in them can end them early, and a call that was copied
out of a thread into a file or a message is shown with a backslash in it.

A key stays where it was announced, at the end of its request, and goes into the journal with the
reply (`ProviderData.text`). What was sent once is therefore sent again to the byte, also after a
restart: a key per request and a prompt that caches are no contradiction.

What has the right key and makes no sense is a call all the same, with `malformed` set, so that the
runtime answers with what is wrong. What only looks like a call is told in the next message.
"""

import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from string import Template
from typing import Any, Literal, NamedTuple, cast

import orjson

from agiraph.domain.chat import ProviderData, Role, TextMark, ToolSpec, Transcript, Turn
from agiraph.domain.errors import ModelGarbled
from agiraph.domain.ids import ThreadId
from agiraph.prompts import prompt
from agiraph.providers.base import Model, OnDelta, Reply, Request
from agiraph.providers.text_calls import Reader, first_object, label, parse, written

WIRE = "text"
KEY_LETTERS = "bcdfghjkmnpqrstvwxz23456789"
"""No vowels, so that a key is never a word; nothing that is easily taken for something else."""
KEY_LENGTH = 8
"""38 bits: an attacker has one guess, and it has to be in the conversation before the draw."""

_COPIED_CALL = re.compile(rf"<(?=call [{KEY_LETTERS}]{{{KEY_LENGTH}}}[ >])")
_NOTHING = "(nothing)"
"""Stands for an empty reply, which some servers do not take back."""
_BLANK = Turn(
    thread_id=ThreadId(WIRE),
    seq=0,
    node_id=None,
    role="user",
    text="",
    at=datetime.min.replace(tzinfo=UTC),
)

Kind = Literal["calls", "words", "json"]
"""What a reply is asked for."""


def draw_key() -> str:
    return "".join(secrets.choice(KEY_LETTERS) for _ in range(KEY_LENGTH))


@dataclass(frozen=True, slots=True)
class TextModel:
    """Any model, told of its tools in words and read for calls in its words."""

    inner: Model
    draw: Callable[[], str] = field(default=draw_key, kw_only=True)

    @property
    def name(self) -> str:
        return f"{WIRE}/{self.inner.name}"

    async def reply(self, request: Request, on_delta: OnDelta | None = None) -> Reply:
        kept = _rendering(request)
        asked = kept.ask(request, self.draw)
        answer = await self._answer(request, kept.inner, asked.valid_key, on_delta)
        parsed = parse(answer.text, asked.valid_key)
        # A call that a server read out of the words by itself is none: it knows of no key.
        missed = parsed.missed or bool(answer.calls)
        if not parsed.text and not parsed.calls and not missed:
            raise ModelGarbled("The model answered nothing at all.")
        # Nothing of the vendor's own goes along: its parts know nothing of these calls.
        data = ProviderData(
            thinking=parsed.thought or answer.provider_data.thinking,
            text=TextMark(key=asked.key, kind=asked.kind, missed=missed),
        )
        return replace(
            answer,
            text=first_object(parsed.text) if asked.kind == "json" else parsed.text,
            calls=request.transcript.with_unique_ids(parsed.calls),
            provider_data=data,
            model=answer.model and f"{WIRE}/{answer.model}",
        )

    async def _answer(
        self, request: Request, shown: Transcript, key: str, on_delta: OnDelta | None
    ) -> Reply:
        plain = Request(transcript=shown, max_output_tokens=request.max_output_tokens)
        if on_delta is None:
            return await self.inner.reply(plain)
        reader = Reader(key)

        def show(words: str) -> None:
            if words:
                on_delta(words)

        answer = await self.inner.reply(plain, lambda words: show(reader.feed(words)))
        show(reader.end())
        return answer


class _Asked(NamedTuple):
    """How a request ends: what it asks for, and how many turns it brings since the last reply."""

    key: str
    kind: Kind
    turns: int

    @property
    def valid_key(self) -> str:
        return self.key if self.kind == "calls" else ""


def _rendering(request: Request) -> "_Rendering":
    """The thread in plain words, grown by what is new; without tools it is asked as it was."""
    wire = request.transcript.wire
    kept: _Rendering | None = wire.get(WIRE)
    if kept is None or (request.tools and request.tools != kept.tools):
        kept = wire[WIRE] = _Rendering(request.transcript.system, request.tools)
    kept.extend(request.transcript)
    return kept


class _Rendering:
    """A thread as a chat of plain words, user and assistant in turn; each turn is put once."""

    def __init__(self, system: str, tools: tuple[ToolSpec, ...]) -> None:
        self.tools = tools
        self.inner = Transcript()
        if system or tools:
            self._add("system", _system(system, tools))
        self._entries = 0
        self._tail: list[Turn] = []
        """What was said since the last reply."""
        self._asked: _Asked | None = None
        """How the request ends that the tail was sent with, until its reply is here."""
        self._names: dict[str, str] = {}
        self._missed = False

    def extend(self, transcript: Transcript) -> None:
        for turn in transcript.spoken(self._entries):
            if turn.role == "assistant":
                self._hear(turn)
            else:
                self._tail.append(turn)
        self._entries = len(transcript.turns)

    def ask(self, request: Request, draw: Callable[[], str]) -> _Asked:
        """End the chat with what is new and the key for the reply."""
        calls = request.tools and request.may_call
        kind = "json" if request.schema is not None else "calls" if calls else "words"
        again = self._asked
        if again is None or again[1:] != (kind, len(self._tail)) or kind == "json":
            again = _Asked(draw(), kind, len(self._tail))
        self._put(again, request.schema)
        return again

    def _hear(self, turn: Turn) -> None:
        noted = turn.provider_data.text or TextMark(key=_old_key(turn), kind="calls")
        self._put(_Asked(noted.key, cast(Kind, noted.kind), len(self._tail)))
        self._names.update((call.id, call.name) for call in turn.calls)
        said = [turn.text] if turn.text else []
        said += [written(call, noted.key) for call in turn.calls]
        self._add("assistant", "\n\n".join(said) or _NOTHING)
        self._tail, self._asked, self._missed = [], None, noted.missed

    def _put(self, asked: _Asked, schema: dict[str, Any] | None = None) -> None:
        if self._asked is not None:
            if (asked.key, asked.turns) == (self._asked.key, self._asked.turns):
                return
            # That request brought no reply and this one ends otherwise: rare, so encoded anew.
            self.inner = Transcript(self.inner.turns[:-1])
        said = [self._said(turn, asked.key) for turn in self._tail]
        if self._missed:
            said.append(_words().missed.template)
        if closing := self._closing(asked, schema):
            said.append(closing)
        attachments = tuple(a for turn in self._tail for a in turn.attachments)
        self._add("user", "\n\n".join(said), attachments=attachments)
        self._asked = asked

    def _closing(self, asked: _Asked, schema: dict[str, Any] | None) -> str:
        words = _words()
        if asked.kind == "calls":
            return words.key.substitute(key=asked.key)
        if asked.kind == "json" and schema is not None:
            return words.json.substitute(schema=orjson.dumps(schema).decode())
        return words.no_tools.template if self.tools or not self._tail else ""

    def _said(self, turn: Turn, key: str) -> str:
        text = _without_copies(turn.text)
        if turn.role != "tool":
            return text
        return _words().data.substitute(
            key=key,
            name=label(self._names.get(turn.ref or "", "tool")),
            call=turn.ref,
            failed=" failed" if turn.failed else "",
            text=text,
        )

    def _add(self, role: Role, text: str, **more: Any) -> None:
        self.inner.add(replace(_BLANK, seq=len(self.inner.turns), role=role, text=text, **more))


def _old_key(turn: Turn) -> str:
    """A spent key for a reply that had none, as it came over another wire; no secret."""
    digest = sha256(f"{turn.thread_id} {turn.seq}".encode()).digest()
    return "".join(KEY_LETTERS[byte % len(KEY_LETTERS)] for byte in digest[:KEY_LENGTH])


def _without_copies(text: str) -> str:
    """What others wrote, with a backslash in everything that has the form of a call."""
    return _COPIED_CALL.sub(r"<\\", text)


def _system(system: str, tools: tuple[ToolSpec, ...]) -> str:
    words = _words()
    sections = [_without_copies(system)] if system else []
    if tools:
        sections.append(words.form.template)
    for tool in tools:
        # The runtime's own prompts hold the guidance already.
        guidance = "" if tool.guidance in system else tool.guidance
        schema = orjson.dumps(tool.schema).decode()
        shown = words.tool.substitute(
            name=tool.name, description=tool.description, schema=schema, guidance=guidance
        )
        sections.append(shown.strip())
    return "\n\n".join(sections)


class _Words(NamedTuple):
    """The parts of prompts/text_tool_calls.md."""

    form: Template
    tool: Template
    data: Template
    key: Template
    missed: Template
    no_tools: Template
    json: Template


@cache
def _words() -> _Words:
    parts = prompt("text_tool_calls").split("\n---\n")
    return _Words(*(Template(part.strip()) for part in parts))
