"""Gate: who may pass, before anything is routed. One for requests and WebSockets alike.

Any web page in a person's browser can reach a port of their machine. So a request must name this
very server (against rebound names), must not come from another site, and must carry a secret that
no other page can send.
"""

import contextlib
import hmac
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import Any, NamedTuple

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agiraph.api import problems
from agiraph.domain import access as rights
from agiraph.domain.access import covers
from agiraph.domain.errors import StoreUnavailable
from agiraph.services import access
from agiraph.store.database import Store

COOKIE = "agiraph_session"
SUBPROTOCOL = "agiraph.bearer."
"""How a WebSocket's client that cannot set headers hands over its token."""
BODY_LIMIT = 16 * 2**20
OPEN = ("/api/healthz", "/api/readyz", "/api/metrics", "/api/hooks/", "/signin")
"""What anybody who reaches this server may ask; a hook has a secret of its own."""
_SAFE = frozenset({"GET", "HEAD"})
_TALK = re.compile(
    r"(POST|PUT) /api/(agents/[^/]+/(send|read|research)|teams/[^/]+/broadcast"
    r"|inbox/[^/]+/(read|answer|rate))"
)
_ADMIN = ("/api/tokens", "/api/audit", "/api/backup")
_SINGLE = frozenset(
    {
        *("host", "authorization", "cookie", "origin", "sec-fetch-site", "sec-fetch-mode"),
        *("content-length", "transfer-encoding", "content-type", "content-encoding"),
        "idempotency-key",
    }
)
"""Headers of which two would let the gate judge by one and a route act by the other."""
_UNAUTHORIZED = 4401
_FORBIDDEN = 4403


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, and how far they may go."""

    name: str
    scope: rights.Scope


class Refusal(NamedTuple):
    status: int
    title: str
    detail: str
    headers: Mapping[str, str] = {}


@dataclass(slots=True)
class Bucket:
    """Requests one caller may still make at once; it fills up again with time."""

    left: float
    at: float

    def take(self, now: float, *, rate: float, most: float) -> float:
        """Seconds to wait, or 0 if this one may pass."""
        self.left = min(most, self.left + (now - self.at) * rate)
        self.at = now
        if self.left < 1:
            return (1 - self.left) / rate
        self.left -= 1
        return 0.0


@dataclass(slots=True, kw_only=True)
class Door:
    """What the gate goes by."""

    store: Store
    token: Callable[[], str]
    """The admin's token as it is now: it may be changed while the server runs."""
    hosts: frozenset[str]
    """Host headers that name this server, port included."""
    origins: frozenset[str] = frozenset()
    is_secure: bool = False
    """Whether clients come by https only: then so does the cookie."""
    rate: float = 200.0
    burst: float = 1000.0
    buckets: dict[str, Bucket] = field(default_factory=dict[str, Bucket])

    async def caller(self, secret: str) -> Caller | None:
        """Whose secret this is, if anybody's. Compared in constant time, or by digest."""
        if hmac.compare_digest(secret.encode(), self.token().encode()):
            return Caller("admin", "admin")
        found = await self.store.read(access.authenticate, secret)
        return None if found is None else Caller(f"{found.name} ({found.id})", found.scope)


class Gate:
    def __init__(self, app: ASGIApp, door: Door) -> None:
        self._app = app
        self._door = door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            return await self._app(scope, receive, send)
        refusal = await self._examine(scope)
        if refusal is not None:
            return await _refuse(scope, receive, send, refusal)
        if scope["type"] == "websocket":
            return await self._app(scope, receive, send)
        await self._pass(scope, receive, send)

    async def _pass(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through; what it changes is written into the audit."""
        status = 500
        size = 0

        async def counted() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > BODY_LIMIT:
                raise _TooLarge
            return message

        async def noted(message: Message) -> None:
            nonlocal status
            if size > BODY_LIMIT:
                return  # whatever the routes make of it, the answer is given below
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        with contextlib.suppress(_TooLarge):
            await self._app(scope, counted, noted)
        if size > BODY_LIMIT:
            await _refuse(scope, receive, send, _too_large())
            status = 413
        caller: Caller | None = scope["state"].get("caller")
        if scope["method"] not in _SAFE and caller is not None:
            deed = {"who": caller.name, "method": scope["method"], "path": scope["path"]}
            # Without a store the request itself has failed, and said so.
            with contextlib.suppress(StoreUnavailable):
                await self._door.store.write(access.record_action, status=status, **deed)

    async def _examine(self, scope: Scope) -> Refusal | None:
        headers = _headers(scope)
        if headers is None:
            return Refusal(400, "Bad request", "A header stands there twice.")
        host = headers.get("host", "")
        if host.lower() not in self._door.hosts:
            return Refusal(403, "Wrong host", f"This server is not called {host[:200]!r}.")
        if refusal := self._elsewhere(scope, headers):
            return refusal
        scope.setdefault("state", {})
        if not scope["path"].startswith("/api/") or scope["path"].startswith(OPEN):
            if scope["type"] == "websocket":
                return Refusal(403, "Nothing here", "There is no WebSocket at this path.")
            return _oversized(scope, headers)
        return _unreadable(scope, headers) or await self._identify(scope, headers)

    def _elsewhere(self, scope: Scope, headers: Mapping[str, str]) -> Refusal | None:
        """Whether a page of another site sent this."""
        site = headers.get("sec-fetch-site")
        is_visit = scope["path"] == "/signin" and headers.get("sec-fetch-mode") == "navigate"
        if site not in (None, "same-origin", "none") and not is_visit:
            return Refusal(403, "From elsewhere", "Requests of other sites are not answered.")
        origin = headers.get("origin")
        if origin is not None and origin.lower() not in self._origins:
            return Refusal(403, "From elsewhere", f"Pages of {origin[:200]!r} may not ask here.")
        return None

    @property
    def _origins(self) -> frozenset[str]:
        own = {f"{scheme}://{host}" for host in self._door.hosts for scheme in ("http", "https")}
        return self._door.origins | own

    async def _identify(self, scope: Scope, headers: Mapping[str, str]) -> Refusal | None:
        secret = _from_subprotocol(scope) or _from_cookie(headers)
        if "authorization" in headers:
            secret = _bearer(headers)  # whoever says who they are is nobody else besides
        challenge = {"WWW-Authenticate": "Bearer"}
        if not secret:
            detail = "Send `Authorization: Bearer TOKEN`; the token stands in the home's `token`."
            return Refusal(401, "Who are you?", detail, challenge)
        try:
            caller = await self._door.caller(secret)
        except StoreUnavailable as error:
            return Refusal(503, "The database cannot be reached", str(error), {"Retry-After": "2"})
        if caller is None:
            detail = "This token is not known, or no longer good."
            return Refusal(401, "Who are you?", detail, challenge)
        wanted = wanted_scope(scope.get("method", "GET"), scope["path"])
        if not covers(caller.scope, wanted):
            detail = f"This takes the scope {wanted!r}; the token has {caller.scope!r}."
            return Refusal(403, "Not with this token", detail)
        bucket = self._door.buckets.setdefault(
            caller.name, Bucket(self._door.burst, time.monotonic())
        )
        wait = bucket.take(time.monotonic(), rate=self._door.rate, most=self._door.burst)
        if wait:
            headers_ = {"Retry-After": str(max(1, round(wait)))}
            return Refusal(429, "Too many requests", "Slow down and try again.", headers_)
        scope["state"]["caller"] = caller
        scope["state"]["secret"] = secret
        return None


def wanted_scope(method: str, path: str) -> rights.Scope:
    """What it takes to ask for this."""
    if path.startswith(_ADMIN):
        return "admin"
    if method in _SAFE:
        return "read"
    return "talk" if _TALK.fullmatch(f"{method} {path}") else "operate"


def _headers(scope: Scope) -> dict[str, str] | None:
    """Headers by name; None if one that matters is ambiguous."""
    found: dict[str, str] = {}
    for raw, value in scope["headers"]:
        name = raw.decode("latin-1").lower()
        if name in found and name in _SINGLE:
            return None
        found[name] = value.decode("latin-1")
    return found


def _oversized(scope: Scope, headers: Mapping[str, str]) -> Refusal | None:
    if scope["type"] != "http":
        return None
    length = headers.get("content-length", "0")
    if not (length.isascii() and length.isdecimal()):
        return Refusal(400, "Bad request", "Content-Length is not a number.")
    return _too_large() if int(length[:20]) > BODY_LIMIT else None


def _unreadable(scope: Scope, headers: Mapping[str, str]) -> Refusal | None:
    if refusal := _oversized(scope, headers):
        return refusal
    if scope["type"] != "http" or scope["method"] in _SAFE:
        return None
    if headers.get("content-encoding", "identity").lower() != "identity":
        return Refusal(415, "Not as it is", "Send the body as it is, without Content-Encoding.")
    has_body = int(headers.get("content-length", "0")) > 0 or "transfer-encoding" in headers
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if has_body and kind != "application/json":
        return Refusal(415, "Not JSON", "Send `Content-Type: application/json`.")
    return None


def _too_large() -> Refusal:
    return Refusal(413, "Too large", f"A request holds {BODY_LIMIT // 2**20} MiB at most.")


def _bearer(headers: Mapping[str, str]) -> str:
    kind, _, secret = headers.get("authorization", "").partition(" ")
    return secret.strip() if kind.lower() == "bearer" else ""


def _from_subprotocol(scope: Scope) -> str:
    for offered in scope.get("subprotocols", ()):
        if offered.startswith(SUBPROTOCOL):
            return offered.removeprefix(SUBPROTOCOL)
    return ""


def _from_cookie(headers: Mapping[str, str]) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return "" if found is None else found.value


class _TooLarge(Exception):
    pass


async def _refuse(scope: Scope, receive: Receive, send: Send, refusal: Refusal) -> None:
    if scope["type"] == "websocket":
        # Before it is accepted, closing answers the handshake with 403.
        code = _UNAUTHORIZED if refusal.status == 401 else _FORBIDDEN
        closing: dict[str, Any] = {"type": "websocket.close", "code": code}
        await send({**closing, "reason": refusal.title})
        return
    response = problems.answer(
        refusal.status, refusal.title, refusal.detail, headers=dict(refusal.headers)
    )
    await response(scope, receive, send)
