"""ETags: a client that polls gets 304 if nothing has changed."""

import hashlib

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LARGEST_BYTES = 4 * 2**20
"""Larger responses are streamed without an ETag: they would have to be buffered."""


class EtagMiddleware:
    """Adds an ETag to JSON responses to GET; answers 304 if the client has that version."""

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
                await _send_tagged(begun, body, known, send)
                return
            await send({**message, "body": body})

        await self._app(scope, receive, buffer)


def _is_json(start: Message) -> bool:
    kind = dict(start["headers"]).get(b"content-type", b"")
    return start["status"] == 200 and kind.startswith(b"application/json")


async def _send_tagged(start: Message, body: bytes, known: str, send: Send) -> None:
    tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    headers = MutableHeaders(raw=list(start["headers"]))
    headers["ETag"] = tag
    headers["Cache-Control"] = "no-cache"
    # Proxies that compress a response mark its tag as weak.
    if tag in (part.strip().removeprefix("W/") for part in known.split(",")):
        del headers["content-length"]
        await send({"type": "http.response.start", "status": 304, "headers": headers.raw})
        await send({"type": "http.response.body", "body": b""})
        return
    await send({**start, "headers": headers.raw})
    await send({"type": "http.response.body", "body": body})
