"""Wire: reads a response into a reply, in the way that all vendors share.

A vendor's module brings a `ResponseReader` for its response format.
"""

from dataclasses import replace
from typing import Any, cast

import orjson

from agiraph.domain.errors import (
    ModelError,
    ModelGarbled,
    ModelUnavailable,
)
from agiraph.providers.base import OnDelta, Reply, Request
from agiraph.providers.http.client import Response
from agiraph.providers.http.errors import error_for_status, error_text
from agiraph.providers.http.events import CUT_OFF, EventStreamParser, parse_object, read_object
from agiraph.providers.wires import usage as usages
from agiraph.providers.wires.reply_builder import ResponseReader, ThoughtFilter

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
    """Read a response with status 200 into the reader's reply; show its text without thoughts."""
    # We always ask for a stream, but some compatible servers and gateways answer with one JSON
    # object.
    content_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    is_stream = content_type == "text/event-stream"
    shown = None if on_delta is None else ThoughtFilter(on_delta)
    try:
        if is_stream:
            await _read_stream(response, reader, shown.feed if shown else None)
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
    if shown is not None:
        shown.end()


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
