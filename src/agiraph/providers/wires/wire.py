"""Wire: sends a request to a model and builds the reply, in the way that all vendors share.

A vendor's module encodes the request and brings a `ResponseReader` for its response format.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, NamedTuple, cast

import orjson

from agiraph.domain.errors import (
    ModelError,
    ModelGarbled,
    ModelRefused,
    ModelSilent,
    ModelUnavailable,
)
from agiraph.faultpoints import fault
from agiraph.providers.base import OnDelta, Reply, Request
from agiraph.providers.http.client import HttpClient, Response
from agiraph.providers.http.connection import Body
from agiraph.providers.http.errors import error_for_status, error_text
from agiraph.providers.http.events import CUT_OFF, EventStreamParser, parse_object, read_object
from agiraph.providers.wires import usage as usages
from agiraph.providers.wires.reply_builder import ResponseReader
from agiraph.providers.wires.thoughts import ThoughtFilter

CUMULATIVE = "cumulative"
"""Learned of a server: each piece of its text contains all the text so far."""
SLOW = "slow"
"""Learned of a server: it did not begin a reply in time, and is given longer the next time."""
SLOW_FACTOR = 2.0

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

_REASONING_WORDS = ("signature", "`thinking`", "encrypted content", "encrypted_content",
                    "of type 'reasoning'", "items are not persisted")  # fmt: skip
"""Words in the error of a vendor that refuses reasoning of its own."""


class Asked(NamedTuple):
    """The model that is asked, and what is known of its server."""

    name: str
    key: str
    headers: dict[str, str]
    learned: set[str]
    """What its server has shown of itself; it is added to."""


async def request_reply(
    http: HttpClient,
    url: str,
    asked: Asked,
    body: Body,
    reader: ResponseReader,
    *,
    request: Request,
    on_delta: OnDelta | None,
) -> Reply:
    """Send the request and return the whole reply, or raise a `ModelError`.

    A response that breaks off is an error: a reply is never returned in part.
    """
    name, key, known = asked.name, asked.key, asked.learned
    headers = {"content-type": "application/json", **asked.headers}
    patience = http.patience_with(url, name).longer(SLOW_FACTOR if SLOW in known else 1.0)
    if CUMULATIVE in known:
        reader.reply.expect_cumulative()
    shown = None if on_delta is None else ThoughtFilter(on_delta)
    estimated = sum(map(len, body)) // usages.BYTES_PER_TOKEN
    slot = await http.rate_limits.of(name, key).acquire(
        request.team, estimated, request.longest_wait_s
    )
    try:
        await http.post(
            url,
            headers=headers,
            body=body,
            handle=lambda response: read_response(response, reader, shown.feed if shown else None),
            patience=patience,
            slot=slot,
        )
        if shown is not None:
            shown.end()
        reply = finished(reader, request, name=name, sent_bytes=sum(map(len, body)))
        if reader.reply.is_cumulative:
            known.add(CUMULATIVE)
    except ModelError as error:
        if isinstance(error, ModelSilent):
            known.add(SLOW)
        if isinstance(error, ModelGarbled):
            spent = usages.estimate(reader.reply, request, sum(map(len, body)))
            error.input_tokens, error.output_tokens = spent.input_tokens, spent.output_tokens
        # Some servers repeat the key that they refuse. Error texts are stored and shown.
        error.args = (str(error).replace(key or "\0", "[key]"),)
        raise
    finally:
        slot.answer()  # if the connection failed before any response
    slot.settle(reply.usage)
    fault("fx:after:llm")
    return reply


def finished(reader: ResponseReader, request: Request, *, name: str, sent_bytes: int) -> Reply:
    """Return the reply that was read, with counts that can be true, or raise a `ModelError`."""
    reply = _checked(reader.reply.build(), request)
    data = reply.provider_data
    if data.served_model == name.partition("/")[2]:  # nothing but what was asked for
        reply = replace(reply, provider_data=replace(data, served_model=""))
    reply = usages.checked(
        reply, reader.reply.doubts, request=request, model=name, sent_bytes=sent_bytes
    )
    usages.check_prompt(reply.usage, request=request, model=name, sent_bytes=sent_bytes)
    return reply


async def read_response(
    response: Response, reader: ResponseReader, on_delta: OnDelta | None
) -> None:
    """Read a response with status 200 into the reader's reply."""
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
    if not payload:
        return
    event = parse_object(payload)
    if event.get("object") == "error":  # vLLM's form, without an object around it
        event = {"error": event}
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

    Anthropic and Google sign reasoning, OpenAI encrypts it. It is valid only for the model that
    reasoned and for the same messages before it: another model of the vendor, other tools or a
    compacted thread may invalidate it.
    """
    try:
        return await attempt()
    except ModelRefused as error:
        reason = str(error).lower()
        # Only OpenAI has an error code for it; all name the field in the message.
        if not any(words in reason for words in _REASONING_WORDS):
            raise
        if not drop_reasoning():
            raise
    return await attempt()
