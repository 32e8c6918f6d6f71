"""Streams: recorded replies of each wire, read from bytes without a server.

`Recorded` holds the events of one whole stream. `read` returns the reply of any bytes, and
`violations` says what is wrong with that reply, given the stream that it was made from.
"""

import random
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

import orjson

from agiraph.core.domain.chat import ToolCall
from agiraph.core.domain.errors import ModelError
from agiraph.core.domain.work import MOST_TOKENS
from agiraph.models.base import Reply
from agiraph.models.wires import remote_model, text_calls
from agiraph.models.wires.anthropic import AnthropicReader
from agiraph.models.wires.chat_completions import ChatReader
from agiraph.models.wires.gemini import GeminiReader
from agiraph.models.wires.reply_builder import ResponseReader
from agiraph.models.wires.responses import ResponsesReader
from agiraph.testing import Call, Says, says
from agiraph.testing.model_server.anthropic import Anthropic
from agiraph.testing.model_server.form import Format
from agiraph.testing.model_server.gemini import Gemini
from agiraph.testing.model_server.openai import OpenAI
from agiraph.testing.model_server.responses import Responses
from agiraph.testing.script import Seen, Wire
from tests.providers.transcripts import request

ASKED = request()
KEY = "k4tz9wqb"
"""The key of the calls in the text of the wire `text`."""
LONG = {"path": "notes/ä.md", "content": 'Line "one"\nLine two\n\tEnd: {"a": [1, 2]}.', "mode": "w"}
CALLS = (
    Call("write_file", LONG, id="toolu_1"),
    Call("bash", {"command": "rm -rf build && make", "timeout": 60}, id="toolu_2"),
    Call("check_messages", {}, id="toolu_3"),
)
SAID: tuple[Says, ...] = (
    says("Grüße aus Köln.", chunk=8),
    says("I do both.", *CALLS[:2], thinking="Größe? Two files.", chunk=16),
    says(*CALLS, chunk=100),
    says("Now:", *CALLS, chunk=30),
    says(Call("write_file", {"path": "a.md", "content": "x" * 60}, id="a"), chunk=24),
    says("This breaks o", finish="length", chunk=4),
    says(Call("write_file", id="a", raw='{"path": "a.md", "content": "Once up'), finish="length"),
    says("Hm.", thinking="Let me think about that.", chunk=12),
)


@dataclass(frozen=True, slots=True)
class Recorded:
    """The stream of one whole reply."""

    wire: str
    events: tuple[bytes, ...]
    """The payloads of its events, without `data:`."""
    calls: tuple[ToolCall, ...]
    text: str


@dataclass(slots=True)
class _Exchange:
    """A response whose body arrives in these pieces."""

    pieces: list[bytes]
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: {"content-type": "text/event-stream"})

    async def read_chunk(self) -> bytes:
        return self.pieces.pop(0) if self.pieces else b""

    def begin(self) -> None:
        pass


@dataclass(frozen=True, slots=True)
class StreamWire:
    """One wire: how its replies are recorded and read."""

    format: Format
    reader: Callable[[], ResponseReader]
    spelled: Callable[[list[Any]], list[Any]]
    """Returns the arguments that the events spell, put together without any check."""


def read(name: str, body: bytes, pieces: list[bytes] | None = None) -> Reply:
    """Return the reply in these bytes, as the wire `name` reads it, or raise a `ModelError`."""
    reader = WIRES[name].reader()
    response = _Exchange([body] if pieces is None else pieces)
    _run(remote_model.read_response(response, reader, None))
    reply = remote_model.finished(reader, ASKED, name="house/m", sent_bytes=1000)
    if name != "text":
        return reply
    return Reply(text=reply.text, calls=text_calls.parse(reply.text, KEY).calls, usage=reply.usage)


def _run(reading: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine that never waits."""
    try:
        reading.send(None)
    except StopIteration:
        return
    raise AssertionError("the reader waits for something")


def outcome(name: str, body: bytes, pieces: list[bytes] | None = None) -> Reply | ModelError:
    try:
        return read(name, body, pieces)
    except ModelError as error:
        return error


def violations(recorded: Recorded, reply: Reply, events: list[Any] | None) -> list[str]:
    """Return what is wrong with the reply to a mutated stream.

    `events`: those of the mutated stream if pieces of it were taken away, doubled or moved. No
    reader can notice that; the call must then be what the stream spells.
    """
    wrong: list[str] = []
    if events is None and reply.text != recorded.text:
        wrong.append(f"other words: {reply.text!r}")
    whole = [call for call in reply.calls if call.malformed is None]
    left = Counter(_key(call.name, call.arguments) for call in recorded.calls)
    spelled = [] if events is None else WIRES[recorded.wire].spelled(_until_the_end(events))
    for call in whole:
        key = _key(call.name, call.arguments)
        if left[key] > 0:
            left[key] -= 1
        elif call.arguments not in spelled:
            wrong.append(f"a call that is not whole: {call}")
    if reply.provider_data.refusal and reply.calls:
        wrong.append("a call of a reply that was withheld")
    if any(not call.name for call in reply.calls):
        wrong.append("a call without a name")
    if len({call.id for call in reply.calls}) < len(reply.calls) and recorded.wire != "text":
        wrong.append("two calls with one id")
    counts = (reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.cached_tokens)
    if not all(isinstance(count, int) and 0 <= count <= MOST_TOKENS for count in counts):
        wrong.append(f"counts that cannot be true: {counts}")
    return wrong


def _until_the_end(events: list[Any]) -> list[Any]:
    """Return the events up to the vendor's last one: what follows is not read."""
    for number, event in enumerate(events):
        if event == b"[DONE]" or (isinstance(event, dict) and event.get("type") == "message_stop"):
            return events[:number]
    return events


def _key(name: str, arguments: dict[str, Any]) -> bytes:
    return name.encode() + orjson.dumps(arguments, option=orjson.OPT_SORT_KEYS)


def frames(events: list[bytes], end: bytes = b"\n") -> bytes:
    return b"".join(b"data: " + event + end + end for event in events)


def torn(body: bytes, rng: random.Random) -> list[bytes]:
    """Return the bytes in pieces of random length."""
    cuts = sorted(rng.randrange(len(body) + 1) for _ in range(rng.randrange(4)))
    return [
        piece for a, b in zip([0, *cuts], [*cuts, len(body)], strict=True) if (piece := body[a:b])
    ]


# ---- what the events of each wire spell ----------------------------------------------------


def _objects(text: str) -> list[Any]:
    """Return each JSON value of a text that is one or several of them."""
    found, rest = list[Any](), text.strip()
    decoder = orjson.loads
    for size in range(1, len(rest) + 1):
        if rest[size - 1] == "}":
            try:
                found.append(decoder(rest[:size]))
                return [*found, *_objects(rest[size:])]
            except orjson.JSONDecodeError:
                continue
    return [{}] if not rest else found


def _dicts(value: Any, key: str) -> list[Any]:
    """Return the values of a key anywhere in the JSON, in order."""
    if isinstance(value, list):
        return [found for part in value for found in _dicts(part, key)]
    if not isinstance(value, dict):
        return []
    own = [value[key]] if key in value else []
    return [*own, *(found for part in value.values() for found in _dicts(part, key))]


def _by_index(pieces: list[tuple[Any, Any]]) -> list[Any]:
    texts: dict[str, str] = {}
    for index, piece in pieces:
        text = piece if isinstance(piece, str) else ""
        texts[repr(index)] = texts.get(repr(index), "") + text
    return [made for text in texts.values() for made in _objects(text)]


def _chat_spelled(events: list[Any]) -> list[Any]:
    parts = [part for calls in _dicts(events, "tool_calls") for part in calls or ()]
    pieces = [
        (part.get("index"), (part.get("function") or {}).get("arguments"))
        for part in parts
        if isinstance(part, dict)
    ]
    return [{}, *(given for _, given in pieces if isinstance(given, dict)), *_by_index(pieces)]


def _anthropic_spelled(events: list[Any]) -> list[Any]:
    pieces = [
        (event.get("index"), piece)
        for event in events
        if isinstance(event, dict)
        for piece in _dicts(event, "partial_json")
    ]
    return [{}, *_dicts(events, "input"), *_by_index(pieces)]


def _gemini_spelled(events: list[Any]) -> list[Any]:
    return [{}, *_dicts(events, "args")]


def _responses_spelled(events: list[Any]) -> list[Any]:
    given = [text for text in _dicts(events, "arguments") if isinstance(text, str)]
    objects = [value for value in _dicts(events, "arguments") if isinstance(value, dict)]
    return [{}, *objects, *(made for text in given for made in _objects(text))]


def _text_spelled(events: list[Any]) -> list[Any]:
    text = "".join(c for c in _dicts(events, "content") if isinstance(c, str))
    return [call.arguments for call in text_calls.parse(text, KEY).calls]


WIRES: dict[str, StreamWire] = {
    "chat": StreamWire(OpenAI(), lambda: ChatReader("house"), _chat_spelled),
    "anthropic": StreamWire(Anthropic(), AnthropicReader, _anthropic_spelled),
    "gemini": StreamWire(Gemini(), GeminiReader, _gemini_spelled),
    "responses": StreamWire(Responses(), lambda: ResponsesReader("openai"), _responses_spelled),
    "text": StreamWire(OpenAI(), lambda: ChatReader("house"), _text_spelled),
}


def _seen(name: Wire) -> Seen:
    return Seen(
        wire=name, model="m", system="", messages=(), tools=(), stream=True, headers={}, raw=b"",
        body={"stream_options": {"include_usage": True}}, index=0,
    )  # fmt: skip


def _in_text(said: Says) -> Says:
    """Return a reply with its calls in the words, as the wire `text` asks for them."""
    parts = [said.text] if said.text else []
    for call in said.calls:
        given = call.raw if call.raw is not None else orjson.dumps(call.arguments).decode()
        close = "" if call.raw is not None else "\n</call>"
        parts.append(f"<call {KEY} {call.name}>\n{given}{close}")
    return Says(text="\n\n".join(parts), thinking=said.thinking, chunk=said.chunk + 20,
                finish=said.finish)  # fmt: skip


def recorded(name: str) -> list[Recorded]:
    """Return the recorded streams of a wire."""
    form = WIRES[name].format
    streams: list[Recorded] = []
    for said in SAID:
        spoken = _in_text(said) if name == "text" else said
        body = b"".join(form.events(_seen(form.wire), spoken))
        events = [line[5:].strip() for line in body.split(b"\n") if line.startswith(b"data:")]
        reply = read(name, frames(events))
        whole = tuple(call for call in reply.calls if call.malformed is None)
        streams.append(Recorded(name, tuple(events), whole, reply.text))
    return streams
