"""Wire: sends a request to a model and builds the reply, in the way that all vendors share.

A vendor's module encodes the request and brings a `ResponseReader` for its response format.
"""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, cast

import orjson

from agiraph.domain.chat import ProviderData, ToolCall, VendorParts
from agiraph.domain.errors import ModelError, ModelGarbled, ModelRefused, ModelUnavailable
from agiraph.domain.work import Usage
from agiraph.faultpoints import fault
from agiraph.providers.base import OnDelta, Reply, Request
from agiraph.providers.http.client import HttpClient, Response
from agiraph.providers.http.connection import Body
from agiraph.providers.http.errors import error_for_status, error_text
from agiraph.providers.http.events import CUT_OFF, EventStreamParser, parse_object, read_object
from agiraph.providers.wires import usage as usages
from agiraph.providers.wires.thoughts import ThoughtFilter, apart

UNREADABLE = (KeyError, IndexError, TypeError, AttributeError, ValueError)
"""The exceptions of code that reads a field which is missing or has another type."""

_STATUS_OF_ERROR_TYPE = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
}
"""Anthropic's error types that a retry does not help. Any other type counts as 503."""


@dataclass(slots=True)
class CallBuilder:
    """A tool call whose arguments arrive in pieces of JSON text."""

    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list[str])

    def build(self, *, is_cut: bool = False) -> ToolCall:
        """Return the call; one that broke off before its arguments is malformed, not a call
        without arguments."""
        given = "".join(self.arguments)
        if is_cut and not given:
            return ToolCall(id=self.id, name=self.name, malformed="")
        return build_call(self.id, self.name, given)


@dataclass(slots=True)
class ReplyBuilder:
    """The part of a reply that has arrived so far."""

    vendor: str
    text: list[str] = field(default_factory=list[str])
    thinking: list[str] = field(default_factory=list[str])
    calls: list[ToolCall] = field(default_factory=list[ToolCall])
    parts: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """The parts that the vendor wants back unchanged in the next request; empty if there are
    none."""
    usage: Usage = Usage()
    doubts: list[str] = field(default_factory=list[str])
    """The token counts that cannot be true, each with its value."""
    refusal: str = ""
    """The vendor's reason for withholding the reply."""
    is_truncated: bool = False
    """The reply reached the limit of output tokens."""
    has_begun: bool = False
    """A first part of the reply has arrived."""
    is_ended: bool = False
    """The vendor has said that the reply is complete; usage may still follow."""
    is_closed: bool = False
    """Nothing that matters follows, even if the stream stays open."""

    def build(self) -> Reply:
        """Return the reply; an empty one is a reply, too. Raise if the vendor withheld it all."""
        text, thoughts = apart("".join(self.text))
        if not text and not self.calls:
            if self.refusal:
                raise ModelRefused(f"The model refuses to answer: {self.refusal}")
            if not self.has_begun:
                raise ModelGarbled("The response ended before a reply began.")
        parts = VendorParts(vendor=self.vendor, parts=self.parts) if self.parts else None
        thinking = "\n".join(filter(None, ("".join(self.thinking), thoughts)))
        return Reply(
            text=text,
            # No call of a reply is made whose rest the vendor withheld.
            calls=() if self.refusal else tuple(self.calls),
            usage=self.usage,
            provider_data=ProviderData(thinking=thinking, vendor=parts),
            is_cut=self.is_truncated or bool(self.refusal),
        )


class ResponseReader(Protocol):
    """Reads the response format of one vendor into a `ReplyBuilder`."""

    reply: ReplyBuilder
    kind: str
    """The vendor's name for a response, for error messages."""

    def take(self, event: dict[str, Any]) -> Iterator[str]:
        """Read one event of a stream and yield the reply's text in it."""
        ...

    def read(self, body: dict[str, Any]) -> None:
        """Read a response that arrived as one JSON object."""
        ...

    def finish(self) -> None:
        """Complete the reply with what only the whole response shows."""
        ...


async def request_reply(
    http: HttpClient,
    url: str,
    *,
    name: str,
    headers: dict[str, str],
    key: str,
    body: Body,
    reader: ResponseReader,
    request: Request,
    on_delta: OnDelta | None,
) -> Reply:
    """Send the request and return the whole reply, or raise a `ModelError`.

    A response that breaks off is an error: a reply is never returned in part.
    """
    headers = {"content-type": "application/json", **headers}
    shown = None if on_delta is None else ThoughtFilter(on_delta)
    try:
        await http.post(
            url,
            headers=headers,
            body=body,
            handle=lambda response: _read_response(response, reader, shown and shown.feed),
        )
        if shown is not None:
            shown.end()
        reply = _checked(reader.reply.build(), request)
        sent_bytes = sum(map(len, body))
        reply = usages.checked(reply, reader.reply.doubts, model=name, sent_bytes=sent_bytes)
    except ModelError as error:
        # Some servers repeat the key that they refuse. Error texts are stored and shown.
        error.args = (str(error).replace(key or "\0", "[key]"),)
        raise
    fault("fx:after:llm")
    return reply


async def _read_response(
    response: Response, reader: ResponseReader, on_delta: OnDelta | None
) -> None:
    # We always ask for a stream, but some compatible servers and gateways answer with one JSON
    # object.
    is_stream = response.content_type == "text/event-stream"
    try:
        if is_stream:
            await _read_stream(response, reader, on_delta)
        else:
            body = await read_object(response)
            if body.get("error"):
                raise _error_in_response(body, "", is_unused=True)
            reader.read(body)
            reader.reply.has_begun = True
        reader.finish()
    except UNREADABLE as error:
        problem = f"The response is not {reader.kind}"
        if is_stream:
            problem = "An event of the stream cannot be read"
        raise ModelGarbled(f"{problem}: {error!r}") from error


async def _read_stream(
    response: Response, reader: ResponseReader, on_delta: OnDelta | None
) -> None:
    # The loop ends at the vendor's last event and not at the end of the body, for which some
    # servers take seconds.
    events, chunk = EventStreamParser(), b" "
    while chunk and not reader.reply.is_closed:
        chunk = await response.read_chunk()
        for payload in events.feed(chunk):
            response.begin()
            _take_event(payload, reader, on_delta)
            if reader.reply.is_closed:
                break
    if not reader.reply.is_ended:
        raise ModelUnavailable(CUT_OFF)


def _take_event(payload: bytes, reader: ResponseReader, on_delta: OnDelta | None) -> None:
    if payload == b"[DONE]":  # OpenAI's end of a stream, which compatible servers copy
        reader.reply.is_ended = reader.reply.is_closed = True
        return
    event = parse_object(payload)
    if event.get("error"):
        is_unused = not reader.reply.has_begun
        raise _error_in_response(event, "The response broke off: ", is_unused=is_unused)
    reader.reply.has_begun = True
    for text in reader.take(event):
        if on_delta is not None:
            on_delta(text)


def _error_in_response(body: dict[str, Any], prefix: str, *, is_unused: bool) -> ModelError:
    """Return the error for an error object in a response with status 200.

    OpenRouter sends such objects with a numeric `code`, Anthropic with a `type`. `is_unused`: no
    part of the reply arrived before the error.
    """
    # An unknown error counts as 503: retries are few, and a passing failure that is taken for a
    # lasting one would park the node until a person comes.
    reason = error_text(orjson.dumps(body))
    error: Any = body["error"]
    details = cast(dict[str, Any], error) if isinstance(error, dict) else {}
    code: Any = details.get("code")
    if not isinstance(code, int) or not 400 <= code < 600:
        code = _STATUS_OF_ERROR_TYPE.get(str(details.get("type")), 503)
    error = error_for_status(code, reason, f"{prefix}{reason}")
    error.unused = is_unused and error.unused
    return error


def _checked(reply: Reply, request: Request) -> Reply:
    """Return the reply with unique call ids; refuse text that is not the JSON asked for."""
    if request.schema is not None and not reply.calls:
        try:
            orjson.loads(reply.text)
        except orjson.JSONDecodeError as error:
            raise ModelGarbled(
                f"The model was asked for JSON and answered: {reply.text[:80]!r}"
            ) from error
    # Gemini may send calls without ids, and some OpenAI-compatible servers repeat theirs.
    calls = request.transcript.with_unique_ids(reply.calls)
    return reply if calls == reply.calls else replace(reply, calls=calls)


async def retry_without_reasoning(
    attempt: Callable[[], Awaitable[Reply]], drop_reasoning: Callable[[], bool]
) -> Reply:
    """Send the request; if the vendor refuses its own reasoning in it, send it without reasoning.

    Anthropic and Google sign reasoning. A signature is valid only for the model that reasoned and
    for the same messages before it: another model of the vendor, other tools or a compacted thread
    may invalidate it.
    """
    try:
        return await attempt()
    except ModelRefused as error:
        reason = str(error).lower()
        # Neither vendor has an error code for it; both name the field in the message.
        if "signature" not in reason and "`thinking`" not in reason:
            raise
        if not drop_reasoning():
            raise
    return await attempt()


def text_of(value: Any) -> str:
    """Return the text in a field, "" if the field is missing; raise TypeError for another type."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.80} is not text")
    return value.replace("\0", "\N{REPLACEMENT CHARACTER}")  # PostgreSQL stores no NUL in text


def build_call(call_id: str, name: str, arguments: Any) -> ToolCall:
    """Return a tool call. Arguments that are not a JSON object are kept as text in `malformed`."""
    if not name:
        raise ValueError("a call without a name")
    parsed: Any = arguments
    if isinstance(arguments, str):
        try:
            # For a tool without parameters some servers send no arguments at all.
            parsed = orjson.loads(arguments or "{}")
        except orjson.JSONDecodeError:
            parsed = None
    if isinstance(parsed, dict):
        return ToolCall(id=call_id, name=name, arguments=cast(dict[str, Any], parsed))
    text = arguments if isinstance(arguments, str) else orjson.dumps(arguments).decode()
    return ToolCall(id=call_id, name=name, malformed=text)
