"""Server: listens on loopback, parses requests, and replies by its script."""

import asyncio
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field, replace
from functools import partial
from http import HTTPStatus
from itertools import chain, count, islice
from types import TracebackType
from typing import Any, Self

import orjson
from aiohttp import web

from agiraph.core.domain.value import dataclass
from agiraph.testing import staging
from agiraph.testing.model_server.anthropic import Anthropic
from agiraph.testing.model_server.form import (
    CREATED,
    BadRequest,
    Format,
    check_results,
    mapping,
    string,
)
from agiraph.testing.model_server.gemini import Gemini
from agiraph.testing.model_server.openai import OpenAI
from agiraph.testing.model_server.responses import Responses
from agiraph.testing.script import (
    Cut,
    Delay,
    Empty,
    Garbage,
    Overflow,
    Oversize,
    Reply,
    Says,
    Script,
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


MALFORMED = (AttributeError, KeyError, TypeError, ValueError)
"""What parsing raises for a field that is missing or has the wrong type."""

GEMINI_PATH = "/{version:v1|v1beta}/models/{model}:{verb:generateContent|streamGenerateContent}"

SHUTDOWN_SECONDS = 1.0
WINDOW_TOKENS = 128_000
"""What the server says that its model accepts, as vLLM's server does."""


class ModelServer:
    """An HTTP server that replies to each request with the next step of its script.

    Use it as a context manager, and point an agent's base URL at `openai_url`, `anthropic_url` or
    `gemini_url`. The script is a list of steps, or a function of the request.
    """

    def __init__(self, script: Script | Sequence[Step], *, port: int = 0) -> None:
        self.url: str = ""
        self.requests: list[Seen] = []
        self.exhausted: list[Seen] = []
        """The requests that came after the last step of the script."""
        self.refused: list[str] = []
        """The errors of requests that the vendor would have rejected."""
        self.most_at_once: int = 0
        """The highest number of requests in flight."""
        self._script: Script = script if callable(script) else self._play(script)
        if (director := staging.director()) is not None:
            self._script = director.rewrite(self._script)
        self._port = port
        self._call_numbers = count(1)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._moved = asyncio.Event()
        self._failure: Exception | None = None
        self._runner: web.AppRunner | None = None

    @property
    def openai_url(self) -> str:
        return f"{self.url}/v1"

    @property
    def anthropic_url(self) -> str:
        return self.url

    @property
    def gemini_url(self) -> str:
        return self.url

    @property
    def in_flight(self) -> int:
        return len(self._tasks)

    async def until(self, claim: Callable[[], bool]) -> None:
        """Wait until the claim holds; it is checked whenever a request starts or ends."""
        while not claim():
            await self._moved.wait()

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=0)  # none: histories grow large
        app.router.add_post("/v1/chat/completions", partial(self._serve, OpenAI()))
        app.router.add_post("/chat/completions", partial(self._serve, OpenAI()))
        app.router.add_post("/v1/responses", partial(self._serve, Responses()))
        app.router.add_post("/v1/messages", partial(self._serve, Anthropic()))
        app.router.add_post(GEMINI_PATH, partial(self._serve, Gemini()))
        app.router.add_get("/v1/models", _list_models)
        app.on_shutdown.append(self._cancel)
        # A request is cancelled when its client disconnects, so a stalled one ends with it.
        self._runner = web.AppRunner(
            app, handler_cancellation=True, access_log=None, shutdown_timeout=SHUTDOWN_SECONDS
        )
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._port).start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._runner is not None
        await self._runner.cleanup()
        if self._failure is not None and error is None:
            raise self._failure

    async def _cancel(self, _: web.Application) -> None:
        for task in self._tasks:
            task.cancel()

    def _play(self, steps: Sequence[Step]) -> Script:
        left = iter(steps)

        def play(seen: Seen) -> Step:
            for step in left:
                return step
            self.exhausted.append(seen)
            return Status(500, f"script exhausted: it had {len(steps)} steps, this needs one more")

        return play

    async def _serve(self, form: Format, request: web.Request) -> web.StreamResponse:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.most_at_once = max(self.most_at_once, self.in_flight)
        try:
            return await self._answer(form, request)
        finally:
            self._tasks.discard(task)
            self._announce()

    def _announce(self) -> None:
        # Wakes everyone who waits now: waiters are released even if the event is cleared at once.
        self._moved.set()
        self._moved.clear()

    async def _answer(self, form: Format, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        try:
            seen = self._see(form, request, raw)
        except BadRequest as error:
            self.refused.append(str(error))
            return web.json_response(form.error(400, str(error)), status=400)
        self._announce()
        return await deliver(request, form, seen, await self._next(seen), self._call_numbers)

    def _see(self, form: Format, request: web.Request, raw: bytes) -> Seen:
        verb = request.match_info.get("verb")
        try:
            body = mapping(orjson.loads(raw))
            conversation = form.read(body)
            model = string(request.match_info.get("model") or body["model"])
        except MALFORMED as error:
            raise BadRequest(f"Malformed request: {error!r}") from error
        if verb == "streamGenerateContent" and request.query.get("alt") != "sse":
            raise BadRequest("This server streams only server-sent events; add ?alt=sse.")
        seen = Seen(
            wire=form.wire,
            model=model,
            system=conversation.system,
            messages=conversation.messages,
            tools=conversation.tools,
            stream=verb == "streamGenerateContent" if verb else body.get("stream") is True,
            headers={name.lower(): value for name, value in request.headers.items()},
            body=body,
            raw=raw,
            index=len(self.requests),
        )
        self.requests.append(seen)
        check_results(form, seen.messages)
        return seen

    async def _next(self, seen: Seen) -> Step:
        try:
            step = self._script(seen)
            return await step if inspect.isawaitable(step) else step
        except Exception as error:
            # Raised again when the server closes, so that an assertion in a script fails its test.
            self._failure = self._failure or error
            return Status(500, f"the script raised {error!r}")


async def _list_models(_: web.Request) -> web.Response:
    """Return a body that clients of both OpenAI and Anthropic accept: they share this path."""
    model = {
        "id": "scripted",
        "object": "model",
        "type": "model",
        "display_name": "Scripted",
        "owned_by": "agiraph",
        "created": CREATED,
        "created_at": "2023-11-14T22:13:20Z",
        "max_model_len": WINDOW_TOKENS,
    }
    return web.json_response({"object": "list", "data": [model], "has_more": False})
