"""Tracing: gives each request an id, which its response and its log lines carry."""

import logging
import re
import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agiraph import logs
from agiraph.domain.ids import new_id

log: logging.Logger = logging.getLogger("agiraph.api")

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
            # Without the query string, which may contain a sign-in code.
            "path": scope["path"],
            "status": status,
            "ms": round(seconds * 1000, 1),
            "caller": None if caller is None else caller.name,
        }
        log.info("request", extra={"facts": facts})
