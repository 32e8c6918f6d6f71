"""Faults: everything that a model server can do wrong, in each format of its answers."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import orjson

from agiraph.testing import Call, Says, says
from agiraph.testing.model_server import (
    Cut,
    Delay,
    Empty,
    Garbage,
    Seen,
    Stall,
    Status,
    Step,
    StreamError,
    context_overflow,
)
from agiraph.testing.model_server.anthropic import Anthropic
from agiraph.testing.model_server.form import Format
from agiraph.testing.model_server.gemini import Gemini
from agiraph.testing.model_server.openai import OpenAI
from agiraph.testing.model_server.responses import Responses
from agiraph.testing.script import Reply
from tests.conformance.conftest import PROVIDERS, Provider

ANTHROPIC, OPENAI, GEMINI, _, HOUSE, DIRECT = PROVIDERS
GOOD = says("All is well.", Call("bash", {"command": "ls"}, id="a"), thinking="Hm.")
MEBIBYTE = 2**20

End = Literal[
    "unavailable", "silent", "garbled", "refused", "locked", "declined", "unpaid", "missing",
    "exceeded",
]  # fmt: skip
"""The error: temporary, unreadable, permanent, or the thread is too long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """One format of answers: a vendor's, as a stream or as one JSON object."""

    name: str
    provider: Provider
    format: Format
    streamed: bool = True
    shapes: dict[str, Any] = field(default_factory=dict[str, Any])
    """Answers with a wrong structure, in this vendor's format."""

    def answer(self, seen: Seen, said: Says = GOOD) -> Reply:
        return said if self.streamed else Status(200, self.format.whole(seen, said))

    def shaped(self, shape: str) -> Reply:
        wrong = self.shapes[shape]
        if not self.streamed:
            return Status(200, wrong)
        return Garbage(b"".join(b"data: " + orjson.dumps(event) + b"\n\n" for event in wrong))

    def error(self, **about: Any) -> Reply:
        """Return an error in place of an answer, with status 200."""
        body = {"type": "error", "error": about}
        if not self.streamed:
            return Status(200, body)
        return Garbage(b"event: error\ndata: " + orjson.dumps(body) + b"\n\n")


def _choice(**message: Any) -> dict[str, Any]:
    return {"index": 0, "finish_reason": "stop", **message}


def _candidate(**candidate: Any) -> dict[str, Any]:
    return {"candidates": [{"finishReason": "STOP", **candidate}]}


def _block(content: Any, **more: Any) -> list[dict[str, Any]]:
    start = {"type": "content_block_start", "index": 0, "content_block": content, **more}
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {}}
    return [
        {"type": "message_start", "message": {"usage": {}}},
        start,
        end,
        {"type": "message_stop"},
    ]


def _output(*items: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"type": "response.completed", "response": {"output": [*items]}}]


NO_NAME: dict[str, Any] = {"id": "a", "function": {"arguments": "{}"}}
FORMS = (
    Form(
        name="openai",
        provider=OPENAI,
        format=OpenAI(),
        shapes={
            "nulls": [{"choices": None, "usage": None}, {"choices": [_choice(delta=None)]}],
            "no choices": [{"choices": []}, {"choices": [_choice(delta={})]}],
            "wrong choices": [{"choices": 5}],
            "null choice": [{"choices": [None]}],
            "wrong text": [{"choices": [_choice(delta={"content": 5})]}],
            "nameless call": [{"choices": [_choice(delta={"tool_calls": [NO_NAME]})]}],
        },
    ),
    Form(
        name="openai-json",
        provider=HOUSE,
        format=OpenAI(),
        streamed=False,
        shapes={
            "nulls": {"choices": [{"message": {"content": None, "tool_calls": None}}]},
            "no choices": {"choices": []},
            "wrong choices": {"choices": 5},
            "null choice": {"choices": [{"message": None}]},
            "wrong text": {"choices": [{"message": {"content": 5}}]},
            "nameless call": {"choices": [{"message": {"tool_calls": [NO_NAME]}}]},
        },
    ),
    Form(
        name="anthropic",
        provider=ANTHROPIC,
        format=Anthropic(),
        shapes={
            "nulls": [
                {"type": "message_start", "message": {"usage": None}},
                {"type": "message_delta", "delta": {"stop_reason": None}, "usage": None},
                {"type": "message_stop"},
            ],
            "no choices": [{"type": "message_stop"}],
            "wrong choices": [{"type": "content_block_start", "index": 0}],
            "null choice": _block(None),
            "wrong text": _block({"type": "text", "text": 5}),
            "nameless call": _block({"type": "tool_use", "id": "a", "input": {}}),
        },
    ),
    Form(
        name="gemini",
        provider=GEMINI,
        format=Gemini(),
        shapes={
            "nulls": [_candidate(content=None), {"candidates": None, "usageMetadata": None}],
            "no choices": [{"candidates": []}, _candidate(content={"parts": []})],
            "wrong choices": [{"candidates": 5}],
            "null choice": [{"candidates": [None]}],
            "wrong text": [_candidate(content={"parts": [{"text": 5}]})],
            "nameless call": [_candidate(content={"parts": [{"functionCall": {"args": {}}}]})],
        },
    ),
    Form(
        name="responses",
        provider=DIRECT,
        format=Responses(),
        shapes={
            "nulls": [{"type": "response.completed", "response": {"output": None, "usage": None}}],
            "no choices": [{"type": "response.completed", "response": {"output": []}}],
            "wrong choices": [{"type": "response.completed", "response": {"output": 5}}],
            "null choice": [{"type": "response.completed", "response": {"output": [None]}}],
            "wrong text": _output(
                {"type": "message", "content": [{"type": "output_text", "text": 5}]}
            ),
            "nameless call": _output({"type": "function_call", "call_id": "a", "arguments": "{}"}),
        },
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    end: End
    play: Callable[[Form, Seen], Step]
    waits: tuple[float, ...] = (1.0,)
    """The pauses before the second try, if there is one."""


def _status(code: int, end: End, **headers: str) -> Fault:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Fault(end=end, play=lambda form, seen: Status(code, "Not so.", named))


def _bytes(end: End, data: bytes) -> Fault:
    """Return a fault that sends these bytes as the stream or as the whole answer."""

    def play(form: Form, seen: Seen) -> Step:
        if form.streamed:
            return Garbage(data)
        return Status(200, data)  # with the content type text/html

    return Fault(end=end, play=play)


def _shape(end: End, shape: str) -> Fault:
    return Fault(end=end, play=lambda form, seen: form.shaped(shape))


def _cut(after: int | None) -> Fault:
    return Fault(end="unavailable", play=lambda form, seen: Cut(after, form.answer(seen)))


def _stall(after: int) -> Fault:
    return Fault(end="silent", play=lambda form, seen: Stall(after, form.answer(seen)))


def _error(end: End, **about: Any) -> Fault:
    return Fault(end=end, play=lambda form, seen: form.error(**about))


def _oversized(form: Form, seen: Seen) -> Step:
    if form.streamed:
        return Garbage(b": " + b"x" * 33 * MEBIBYTE + b"\n\n")
    return Status(200, form.format.whole(seen, replace(GOOD, text="Again. " * 5 * MEBIBYTE)))


def _broken_stream(after: int) -> Fault:
    def play(form: Form, seen: Seen) -> Step:
        return StreamError(after, GOOD) if form.streamed else form.error(message="Overloaded")

    return Fault(end="unavailable", play=play)


FAULTS: dict[str, Fault] = {
    "400": _status(400, "refused"),
    "401": _status(401, "locked"),
    "402": _status(402, "unpaid"),
    "403": _status(403, "locked"),
    "404": _status(404, "missing"),
    "408": _status(408, "unavailable"),
    "409": _status(409, "unavailable"),
    "413": _status(413, "exceeded"),
    "422": _status(422, "refused"),
    "429": _status(429, "unavailable"),
    "429 with retry-after": replace(_status(429, "unavailable", retry_after="9"), waits=(9.0,)),
    "429 with retry-after of a day": replace(
        _status(429, "unavailable", retry_after="86400"), waits=()
    ),
    "500": _status(500, "unavailable"),
    "502": _status(502, "unavailable"),
    "503": _status(503, "unavailable"),
    "504": _status(504, "unavailable"),
    "529": _status(529, "unavailable"),
    "307": _status(307, "refused", location="http://127.0.0.1:9/"),
    "204": _status(204, "refused"),
    "an HTML page of a gateway": Fault(
        end="unavailable", play=lambda form, seen: Status(502, b"<html>Bad gateway</html>")
    ),
    "429 with a delay in the body": Fault(
        end="unavailable",
        play=lambda form, seen: Status(
            429, {"error": {"code": 429, "message": "Slow.", "details": [{"retryDelay": "7.5s"}]}}
        ),
        waits=(7.5,),
    ),
    "too long": Fault(end="exceeded", play=lambda form, seen: context_overflow()),
    "too long, reported in the answer": _error(
        "exceeded", type="invalid_request_error", code=400, message="prompt is too long: 9 > 8"
    ),
    "closed at once": _cut(None),
    "closed after the headers": _cut(0),
    "closed after 1 byte": _cut(1),
    "closed after 100 bytes": _cut(100),
    "silent after the headers": _stall(0),
    "silent after 100 bytes": _stall(100),
    "silent from the beginning": Fault(
        end="silent", play=lambda form, seen: Delay(60, form.answer(seen))
    ),
    "overloaded at once": _broken_stream(0),
    "overloaded midway": _broken_stream(2),
    "a temporary error": _error("unavailable", type="overloaded_error", message="Busy."),
    "a permanent error": _error("refused", type="invalid_request_error", message="No such tool."),
    "a temporary error with a code": _error("unavailable", code=502, message="Upstream."),
    "a permanent error with a code": _error("unpaid", code=402, message="No credit."),
    "an HTML page instead of an answer": Fault(
        end="garbled", play=lambda form, seen: Status(200, b"<html>Log in first</html>")
    ),
    "an answer of another content type": Fault(
        end="garbled", play=lambda form, seen: Status(200, b"data: {}\n\n")
    ),
    "no JSON": _bytes("garbled", b"data: {nope}\n\n"),
    "no object": _bytes("garbled", b"data: [1]\n\n"),
    "no UTF-8": _bytes("garbled", b"data: \xff\xfe\x00\n\n"),
    "truncated JSON": Fault(
        end="garbled",
        play=lambda form, seen: Status(200, orjson.dumps(form.format.whole(seen, GOOD))[:-9]),
    ),
    "larger than memory": Fault(end="garbled", play=_oversized),
    "wrong choices": _shape("garbled", "wrong choices"),
    "null choice": _shape("garbled", "null choice"),
    "wrong text": _shape("garbled", "wrong text"),
    "nameless call": _shape("garbled", "nameless call"),
    "content filter": Fault(
        end="declined", play=lambda form, seen: form.answer(seen, says("", finish="content_filter"))
    ),
}


def _empty(form: Form, seen: Seen) -> Step:
    return Empty() if form.streamed else Status(200, b"")


def end_of_empty(form: Form) -> End:
    """Return the error of an empty response: a stream was cut off, a whole answer is unreadable."""
    return "unavailable" if form.streamed else "garbled"


EMPTY = Fault(end="unavailable", play=_empty)

EMPTY_REPLIES: dict[str, Fault] = {
    "nulls": _shape("garbled", "nulls"),
    "no choices": _shape("garbled", "no choices"),
    "thinking without text": Fault(
        end="garbled", play=lambda form, seen: form.answer(seen, says("", thinking="Hm."))
    ),
}
"""Answers in which the model said nothing. The loop nudges it; to ask again with the same bytes
brings the same again."""
