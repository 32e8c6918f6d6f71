"""Middleware: what every response gets: security headers, ETags, compression, and the id of its
request."""

import asyncio
import gzip
import hashlib
import logging
import re
import time

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agiraph import logs
from agiraph.core.domain.features import open_page
from agiraph.core.domain.ids import new_id

log: logging.Logger = logging.getLogger("agiraph.api")

CONTENT_POLICY = (
    "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; sandbox"
)
DEFAULT_HEADERS = {
    "Content-Security-Policy": CONTENT_POLICY,
    # Without it a browser may guess from the content that a file of an agent is HTML, and run it.
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    # No page of another site may embed a response, such as an image of a team.
    "Cross-Origin-Resource-Policy": "same-origin",
}


class SecurityHeadersMiddleware:
    """Adds `DEFAULT_HEADERS` to every HTTP response, refusals included; its own headers win.

    Agents write much of what the API returns. If a browser opens a response as a page, the page can
    load nothing, run nothing, and no other page can frame it.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=list(message.get("headers", ())))
                for name, value in DEFAULT_HEADERS.items():
                    headers.setdefault(name, value)
                message = {**message, "headers": headers.raw}
            await send(message)

        await self._app(scope, receive, send_with_headers)


LARGEST_BYTES = 4 * 2**20
"""Larger responses are streamed without an ETag: they would have to be buffered."""


SMALLEST_COMPRESSED = 1_400
"""Shorter JSON fits into one packet of a network as it is."""
LARGEST_IN_LOOP = 64 * 2**10
"""Longer JSON is compressed in a thread, so that the other requests need not wait for it."""
GZIP_LEVEL = 4


def accepts_gzip(scope: Scope) -> bool:
    return any(n == b"accept-encoding" and b"gzip" in v.lower() for n, v in scope["headers"])


class EtagMiddleware:
    """Adds an ETag to JSON responses to GET and compresses them for clients that accept it.

    A client that polls gets 304 if nothing changed.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET":
            return await self._app(scope, receive, send)
        known = next((v.decode() for n, v in scope["headers"] if n == b"if-none-match"), "")
        start: Message | None = None
        body = b""

        async def buffer(message: Message) -> None:
            nonlocal start, body
            if message["type"] == "http.response.start" and _is_json(message):
                start = message
                return
            if start is None:
                return await send(message)
            body += message.get("body", b"")
            if message.get("more_body") and len(body) < LARGEST_BYTES:
                return
            begun, start = start, None
            if message.get("more_body"):
                await send(begun)
            else:
                await _send_tagged(begun, body, known, send, gzipped=accepts_gzip(scope))
                return
            await send({**message, "body": body})

        await self._app(scope, receive, buffer)


def _is_json(start: Message) -> bool:
    kind = dict(start["headers"]).get(b"content-type", b"")
    return start["status"] == 200 and kind.startswith(b"application/json")


async def _send_tagged(
    start: Message, body: bytes, known: str, send: Send, *, gzipped: bool
) -> None:
    tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    headers = MutableHeaders(raw=list(start["headers"]))
    headers["ETag"] = tag
    headers["Cache-Control"] = "no-cache"
    headers["Vary"] = "Accept-Encoding"
    # The tag of a compressed response is weak: as proxies that compress it mark it, too.
    if tag in (part.strip().removeprefix("W/") for part in known.split(",")):
        del headers["content-length"]
        await send({"type": "http.response.start", "status": 304, "headers": headers.raw})
        await send({"type": "http.response.body", "body": b""})
        return
    if gzipped and len(body) >= SMALLEST_COMPRESSED:
        body = await _compressed(body)
        headers["ETag"] = f"W/{tag}"
        headers["Content-Encoding"] = "gzip"
        headers["Content-Length"] = str(len(body))
    await send({**start, "headers": headers.raw})
    await send({"type": "http.response.body", "body": body})


async def _compressed(body: bytes) -> bytes:
    if len(body) <= LARGEST_IN_LOOP:
        return gzip.compress(body, GZIP_LEVEL, mtime=0)
    return await asyncio.to_thread(gzip.compress, body, GZIP_LEVEL, mtime=0)


HEADER = b"x-request-id"
_VALID_ID = re.compile(rb"[A-Za-z0-9._:/+=-]{1,128}")


class TracingMiddleware:
    """Takes the id from `X-Request-Id` or creates one; logs each request.

    Runs behind access control: strangers neither choose ids nor fill the log.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            return await self._app(scope, receive, send)
        given = dict(scope["headers"]).get(HEADER, b"")
        request_id = given.decode() if _VALID_ID.fullmatch(given) else new_id("request")
        begun, status = time.monotonic(), 0

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] in ("http.response.start", "websocket.accept"):
                status = message.get("status", 101)
                headers = [*message.get("headers", ()), (HEADER, request_id.encode())]
                message = {**message, "headers": headers}
            await send(message)

        with logs.traced(request=request_id):
            try:
                await self._app(scope, receive, send_with_id)
            finally:
                self._log(scope, status, time.monotonic() - begun)

    def _log(self, scope: Scope, status: int, seconds: float) -> None:
        if not log.isEnabledFor(logging.INFO):
            return
        caller = scope.get("state", {}).get("caller")
        facts = {
            "method": scope.get("method", "WS"),
            # Without the query string, which may contain a sign-in code, and the secret of a page.
            "path": open_page(scope["path"]) or scope["path"],
            "status": status,
            "ms": round(seconds * 1000, 1),
            "caller": None if caller is None else caller.name,
        }
        log.info("request", extra={"facts": facts})
