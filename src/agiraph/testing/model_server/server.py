"""Server: listens on loopback, parses requests, and replies by its script."""

import asyncio
import inspect
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from types import TracebackType
from typing import Any, Self

import orjson
from aiohttp import web

from agiraph.testing import staging
from agiraph.testing.model_server.anthropic import Anthropic
from agiraph.testing.model_server.delivery import deliver
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
from agiraph.testing.script import Script, Seen, Status, Step

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
