"""Delivery: sends one step of a script to the client, with the fault it asks for."""

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from itertools import chain, islice
from typing import Any

import orjson
from aiohttp import web

from agiraph.testing.model_server.form import Format
from agiraph.testing.script import (
    Cut,
    Delay,
    Empty,
    Garbage,
    Overflow,
    Oversize,
    Reply,
    Says,
    Seen,
    Stall,
    Status,
    Step,
    StreamError,
    Trickle,
)

BLOCK = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """A reply as bytes; a stream has no known length."""

    pieces: Iterable[bytes]
    length: int | None
    content_type: str
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict[str, str])


async def deliver(
    request: web.Request, form: Format, seen: Seen, step: Step, numbers: Iterator[int]
) -> web.StreamResponse:
    while isinstance(step, Delay):
        await asyncio.sleep(step.seconds)
        step = step.then
    match step:
        case Cut(after_bytes=None):
            return _hang_up(request, web.Response())
        case Cut(after_bytes=limit, then=then):
            rendered = _render(form, seen, then, numbers)
            return _hang_up(request, await _send(request, rendered, limit=limit))
        case Stall(after_bytes=limit, then=then):
            await _send(request, _render(form, seen, then, numbers), limit=limit)
            # Ends by cancellation, when the client disconnects or the server stops.
            never: asyncio.Future[web.StreamResponse] = asyncio.get_running_loop().create_future()
            return await never
        case Trickle(size=size, then=then, seconds=pause):
            rendered = _render(form, seen, then, numbers)
            return await _send(request, rendered, size=size, pause=pause)
        case reply:
            return await _send(request, _render(form, seen, reply, numbers))


def _render(form: Format, seen: Seen, reply: Reply, numbers: Iterator[int]) -> Rendered:
    kind = "text/event-stream" if seen.stream else "application/json"
    match reply:
        case Says() if seen.stream:
            events = form.events(seen, _numbered(reply, numbers))
            return Rendered(pieces=events, length=None, content_type=kind)
        case Says():
            return _json(form.whole(seen, _numbered(reply, numbers)))
        case Oversize(bytes_=size, then=then):
            big = replace(then, text="x" * size, chunk=BLOCK)
            return _render(form, seen, big, numbers)
        case StreamError(after_chunks=many, then=then) if seen.stream:
            events = islice(form.events(seen, _numbered(then, numbers)), many)
            error = form.frame(form.error(form.overload, "Overloaded"))
            return Rendered(pieces=chain(events, [error]), length=None, content_type=kind)
        case StreamError():
            return _json(form.error(form.overload, "Overloaded"), status=form.overload)
        case Overflow():
            return _json(form.overflow(reply), status=400)
        case Garbage(data=data):
            return Rendered(pieces=[data], length=len(data), content_type=kind)
        case Empty():
            return Rendered(pieces=[], length=0, content_type=kind)
        case Status():
            return _status(form, reply)


def _numbered(said: Says, numbers: Iterator[int]) -> Says:
    calls = (c if c.id else replace(c, id=f"call_{next(numbers)}") for c in said.calls)
    return replace(said, calls=tuple(calls)) if said.calls else said


def _status(form: Format, fault: Status) -> Rendered:
    match fault.body:
        case bytes(page):
            return Rendered(
                pieces=[page],
                length=len(page),
                content_type="text/html",
                status=fault.code,
                headers=fault.headers,
            )
        case dict(body):
            return _json(body, status=fault.code, headers=fault.headers)
        case message:
            body = form.error(fault.code, message or _phrase(fault.code))
            return _json(body, status=fault.code, headers=fault.headers)


def _phrase(code: int) -> str:
    # 529 is no standard code; every other that vendors use is.
    return next((status.phrase for status in HTTPStatus if status == code), "Overloaded")


def _json(
    body: dict[str, Any], *, status: int = 200, headers: dict[str, str] | None = None
) -> Rendered:
    data = orjson.dumps(body)
    return Rendered(
        pieces=[data],
        length=len(data),
        content_type="application/json",
        status=status,
        headers=headers or {},
    )


async def _send(
    request: web.Request,
    rendered: Rendered,
    *,
    limit: int | None = None,
    size: int = BLOCK,
    pause: float | None = None,
) -> web.StreamResponse:
    """Write the body in blocks, up to `limit` bytes; aiohttp ends it with the request."""
    response = web.StreamResponse(status=rendered.status, headers=rendered.headers)
    response.content_type = rendered.content_type
    response.content_length = rendered.length
    await response.prepare(request)
    pieces = rendered.pieces if limit is None else _first(rendered.pieces, limit)
    for block in _blocks(pieces, size):
        await response.write(block)
        if pause is not None:
            await asyncio.sleep(pause)
    return response


def _first(pieces: Iterable[bytes], limit: int) -> Iterator[bytes]:
    for piece in pieces:
        yield piece[:limit]
        limit -= len(piece)
        if limit <= 0:
            return


def _blocks(pieces: Iterable[bytes], size: int) -> Iterator[bytes]:
    """Yield the same bytes in blocks of one size."""
    held = bytearray()
    for piece in pieces:
        held += piece
        while len(held) >= size:
            yield bytes(held[:size])
            del held[:size]
    if held:
        yield bytes(held)


def _hang_up(request: web.Request, response: web.StreamResponse) -> web.StreamResponse:
    if request.transport is not None:
        request.transport.close()  # not abort(), which may drop what was written
    return response
