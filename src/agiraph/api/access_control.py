"""Access control: checks every request and WebSocket before it is routed.

Any web page in a person's browser can reach a port of their machine. So a request must name this
server in its Host header (against DNS rebinding), must not come from another site, and must carry a
secret that no other page can send.
"""

import contextlib
import hmac
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import field
from http.cookies import CookieError, SimpleCookie
from typing import Any, NamedTuple

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agiraph.api import problems
from agiraph.core.domain.errors import StoreUnavailable
from agiraph.core.domain.features import error_form, open_page
from agiraph.core.domain.persons import Person
from agiraph.core.domain.provenance import access as rights
from agiraph.core.domain.provenance.access import covers
from agiraph.core.domain.value import dataclass
from agiraph.core.services import access
from agiraph.core.store import teams
from agiraph.core.store.database import Store

COOKIE = "agiraph_session"
KEY_HEADER = "X-Agiraph-Key"
KEY_PARAMETER = "key"
"""The query parameter with the key in requests of links and images, which have no header."""
SUBPROTOCOL = "agiraph.bearer."
"""Prefix of the subprotocol by which a client that cannot set headers sends its token."""
KEY_SUBPROTOCOL = "agiraph.key."
"""Prefix of the subprotocol by which a page sends the key of its session."""
# Room for one attachment of 10 MiB, which takes 13.4 MiB in base64, and for its message.
BODY_LIMIT = 16 * 2**20
OPEN = ("/api/healthz", "/api/readyz", "/api/metrics", "/api/hooks/", "/signin")
"""Paths that need no token; a webhook carries its own secret."""
OWNER_CALLER = "admin"
"""The name of the bearer of the admin token, which is no row of the database."""
_SAFE = frozenset({"GET", "HEAD"})
_TALK = re.compile(
    r"(POST|PUT) /api/(agents/[^/]+/(send|read|research)|teams/[^/]+/broadcast"
    r"|inbox/[^/]+/(read|answer|rate)|messages/[^/]+/acts/[^/]+/undo)"
    r"|POST /v1/(chat/completions|responses)"
)
_ADMIN = ("/api/tokens", "/api/audit", "/api/backup", "/api/operations")
_GRANTS = re.compile(
    r"(?!GET |HEAD )\w+ /api/(teams/[^/]+/grants|channels/[^/]+|nodes/[^/]+/shares)(/.*)?"
)
"""Requests that change what persons have allowed for good, who may speak in their name, or what
strangers may read: only the owner's token may."""
_SINGLE = frozenset(
    {
        *("host", "authorization", "cookie", "origin", "sec-fetch-site", "sec-fetch-mode"),
        *("content-length", "transfer-encoding", "content-type", "content-encoding"),
        *("idempotency-key", KEY_HEADER.lower()),
    }
)
"""Headers that may occur once. With two, this check could read one and a route the other."""
IS_AUDITED = "is_audited"
"""Set in a request's state by a route whose own transaction has written the audit's entry."""
_UNAUTHORIZED = 4401
_FORBIDDEN = 4403


@dataclass(frozen=True, slots=True)
class Caller:
    """The bearer of a request's token: its scope, and the person it acts for."""

    scope: rights.Scope
    person: Person
    token: rights.Token | None = None
    """None: the owner's token, which is a file."""

    @property
    def name(self) -> str:
        """What the audit log and events call it."""
        return OWNER_CALLER if self.token is None else f"{self.token.name} ({self.token.id})"

    @property
    def token_id(self) -> str | None:
        return None if self.token is None else self.token.id

    def client(self, otherwise: str) -> str:
        """Return the name of the program that sends a request in a person's name: that of its
        token, or `otherwise` if it has the owner's."""
        return otherwise if self.token is None else self.token.name


class Refusal(NamedTuple):
    status: int
    title: str
    detail: str
    headers: Mapping[str, str] = {}


@dataclass(slots=True)
class TokenBucket:
    """The rate limit of one caller: requests it may make now. It refills with time."""

    left: float
    at: float
    """When `left` was computed."""

    def take(self, now: float, *, rate: float, most: float) -> float:
        """Use one request of the caller's allowance; return 0, or the seconds until it has one."""
        self.left = min(most, self.left + (now - self.at) * rate)
        self.at = now
        if self.left < 1:
            return (1 - self.left) / rate
        self.left -= 1
        return 0.0


@dataclass(slots=True, kw_only=True)
class AccessControl:
    """The settings and state that access is decided by."""

    store: Store
    token: Callable[[], str]
    """Returns the current admin token, which may change while the server runs."""
    hosts: frozenset[str]
    """Accepted Host headers, port included."""
    origins: frozenset[str] = frozenset()
    is_secure: bool = False
    """Whether clients use https only: then the cookie is marked Secure."""
    proxy: str = ""
    """The https address under which a reverse proxy serves this server; empty: there is none."""
    rate: float = 200.0
    """Requests per second and caller."""
    burst: float = 1000.0
    """Requests a caller may make at once."""
    buckets: dict[str, TokenBucket] = field(default_factory=dict[str, TokenBucket])
    _owner: Person | None = field(default=None, init=False)
    """The holder of the admin token. Read once, so that its requests cost no query each."""

    async def caller(self, secret: str) -> Caller | None:
        """Return the bearer of a secret, or None.

        The admin token is compared in constant time, others by their digest: the time of a failed
        comparison must not tell how much of a guess was right.
        """
        # As bytes: for text that is not ASCII `compare_digest` raises TypeError, and a header may
        # contain any.
        if hmac.compare_digest(secret.encode(), self.token().encode()):
            self._owner = self._owner or await self.store.read(teams.owner)
            return Caller("admin", self._owner)
        found = await self.store.read(access.authenticate, secret)
        if found is None:
            return None
        token = found.token
        if access.is_use_due(token, self.store.clock.now()):
            # A full disk must not keep people out.
            with contextlib.suppress(StoreUnavailable):
                await self.store.write_first(access.note_use, token.id)
        return Caller(token.scope, found.person, token)


class AccessMiddleware:
    def __init__(self, app: ASGIApp, access: AccessControl) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            return await self._app(scope, receive, send)
        refusal = await self._check(scope)
        if refusal is not None:
            return await _refuse(scope, receive, send, refusal)
        if scope["type"] == "websocket":
            return await self._app(scope, receive, send)
        await self._pass(scope, receive, send)

    async def _pass(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request to the routes. If it may change something, add it to the audit log."""
        size = 0
        is_answered = False

        # Counted here too, because a chunked body has no Content-Length that `_check_length` could
        # refuse.
        async def receive_limited() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > BODY_LIMIT:
                raise _TooLarge
            return message

        async def send_unless_too_large(message: Message) -> None:
            nonlocal is_answered
            if size > BODY_LIMIT:
                return  # the routes saw a cut-off body; the 413 below is the response
            if message["type"] == "http.response.start":
                is_answered = True
                await self._audit(scope, message["status"])
            await send(message)

        try:
            with contextlib.suppress(_TooLarge):
                await self._app(scope, receive_limited, send_unless_too_large)
        except Exception:
            # An outer layer of Starlette turns it into the 500: the response starts after this.
            if not is_answered:
                await self._audit(scope, 500)
            raise
        if size > BODY_LIMIT:
            await self._audit(scope, 413)
            await _refuse(scope, receive, send, _too_large())

    async def _audit(self, scope: Scope, status: int) -> None:
        """Add a request that may change something to the audit log.

        Written before the response starts, so that a caller who has the response finds the entry.
        It is a transaction of its own: a crash after the change loses the entry, but an audit that
        cannot be written never undoes what was done.
        """
        caller: Caller | None = scope["state"].get("caller")
        if scope["method"] in _SAFE or caller is None or scope["state"].get(IS_AUDITED):
            return
        # If the store is unreachable, the request has failed too and its response says so.
        with contextlib.suppress(StoreUnavailable):
            await self._access.store.write_first(
                access.record_action,
                who=caller.name,
                person_id=caller.person.id,
                method=scope["method"],
                path=scope["path"],
                status=status,
            )

    async def _check(self, scope: Scope) -> Refusal | None:
        headers = _headers(scope)
        if headers is None:
            return Refusal(400, "Bad request", "A header that may occur once occurs twice.")
        # Cheap checks come first: a stranger's request causes no database query before it has
        # passed them.
        host = headers.get("host", "")
        if host.lower() not in self._access.hosts:
            return Refusal(
                403,
                "Wrong host",
                f"This server does not answer to {host[:200]!r}; add it to `hosts` under [server].",
            )
        if refusal := self._check_origin(scope, headers):
            return refusal
        scope.setdefault("state", {})
        is_closed = scope["path"].startswith("/api/") or error_form(scope["path"]) is not None
        if not is_closed or scope["path"].startswith(OPEN):
            if scope["type"] == "websocket":
                return Refusal(403, "Nothing here", "There is no WebSocket at this path.")
            return _check_length(scope, headers)
        return _check_body(scope, headers) or await self._identify(scope, headers)

    def _check_origin(self, scope: Scope, headers: Mapping[str, str]) -> Refusal | None:
        """Refuse a request that a page of another site sent."""
        site = headers.get("sec-fetch-site")
        # People open such links from a mail or a chat, which the browser reports as cross-site.
        is_link = scope["path"] == "/signin" or bool(open_page(scope["path"]))
        is_visit = is_link and headers.get("sec-fetch-mode") == "navigate"
        if site not in (None, "same-origin", "none") and not is_visit:
            return Refusal(403, "Cross-site request", "Requests from other sites are refused.")
        # Browsers apply no same-origin policy to WebSockets: only this header tells that another
        # site's page opened one.
        origin = headers.get("origin")
        if origin is not None and origin.lower() not in self._origins:
            return Refusal(
                403, "Cross-site request", f"Pages of {origin[:200]!r} may not use this API."
            )
        return None

    @property
    def _origins(self) -> frozenset[str]:
        own = {f"{scheme}://{host}" for host in self._access.hosts for scheme in ("http", "https")}
        return self._access.origins | own

    async def _identify(self, scope: Scope, headers: Mapping[str, str]) -> Refusal | None:
        secret = _from_subprotocol(scope, SUBPROTOCOL) or _from_session(scope, headers)
        if "authorization" in headers:
            secret = _bearer(headers)  # an explicit token wins over the cookie the browser adds
        challenge = {"WWW-Authenticate": "Bearer"}
        if not secret:
            detail = "Send `Authorization: Bearer TOKEN`; the file `token` in the home has one."
            return Refusal(401, "Not authenticated", detail, challenge)
        try:
            caller = await self._access.caller(secret)
        except StoreUnavailable as error:
            return Refusal(503, "The database cannot be reached", str(error), {"Retry-After": "2"})
        if caller is None:
            detail = "This token is unknown or no longer valid."
            return Refusal(401, "Not authenticated", detail, challenge)
        wanted = wanted_scope(scope.get("method", "GET"), scope["path"])
        if not covers(caller.scope, wanted):
            detail = f"This needs the scope {wanted!r}; the token has {caller.scope!r}."
            return Refusal(403, "Scope too small", detail)
        # Only callers with a valid token get here, so strangers cannot fill the memory with
        # buckets.
        bucket = self._access.buckets.setdefault(
            caller.name, TokenBucket(self._access.burst, time.monotonic())
        )
        wait = bucket.take(time.monotonic(), rate=self._access.rate, most=self._access.burst)
        if wait:
            retry = {"Retry-After": str(max(1, round(wait)))}
            return Refusal(
                429, "Too many requests", "Wait for the time in Retry-After and try again.", retry
            )
        scope["state"]["caller"] = caller
        scope["state"]["secret"] = secret
        return None


def wanted_scope(method: str, path: str) -> rights.Scope:
    """Return the scope that a request needs."""
    if path.startswith(_ADMIN) or _GRANTS.fullmatch(f"{method} {path}"):
        return "admin"
    if method in _SAFE:
        return "read"
    return "talk" if _TALK.fullmatch(f"{method} {path}") else "operate"


def _headers(scope: Scope) -> dict[str, str] | None:
    """Return the headers by name, or None if a header of `_SINGLE` occurs twice."""
    found: dict[str, str] = {}
    for raw, value in scope["headers"]:
        name = raw.decode("latin-1").lower()
        if name in found and name in _SINGLE:
            return None
        found[name] = value.decode("latin-1")
    return found


def _check_length(scope: Scope, headers: Mapping[str, str]) -> Refusal | None:
    if scope["type"] != "http":
        return None
    length = headers.get("content-length", "0")
    if not (length.isascii() and length.isdecimal()):
        return Refusal(400, "Bad request", "Content-Length is not a number.")
    # int() raises for more than 4,300 digits; twenty are enough to see that a body is too large.
    return _too_large() if int(length[:20]) > BODY_LIMIT else None


def _check_body(scope: Scope, headers: Mapping[str, str]) -> Refusal | None:
    if refusal := _check_length(scope, headers):
        return refusal
    if scope["type"] != "http" or scope["method"] in _SAFE:
        return None
    if headers.get("content-encoding", "identity").lower() != "identity":
        return Refusal(415, "Encoded body", "Send the body without Content-Encoding.")
    has_body = int(headers.get("content-length", "0")) > 0 or "transfer-encoding" in headers
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    # A page of another site can send a form or plain text without asking, but for JSON the browser
    # first sends a preflight request, which is refused.
    if has_body and kind != "application/json":
        return Refusal(415, "Not JSON", "Send `Content-Type: application/json`.")
    return None


def _too_large() -> Refusal:
    return Refusal(413, "Too large", f"A request may have {BODY_LIMIT // 2**20} MiB at most.")


def _bearer(headers: Mapping[str, str]) -> str:
    kind, _, secret = headers.get("authorization", "").partition(" ")
    return secret.strip() if kind.lower() == "bearer" else ""


def _from_subprotocol(scope: Scope, prefix: str) -> str:
    for offered in scope.get("subprotocols", ()):
        if offered.startswith(prefix):
            return offered.removeprefix(prefix)
    return ""


def _from_session(scope: Scope, headers: Mapping[str, str]) -> str:
    """Return the secret of a browser's session, or "" if a part of it is missing.

    Browsers send a cookie to every port of its host, and so to any server that an agent starts
    there. So the cookie is one part of the secret, and the page keeps the other, the key, where
    only pages of its own port can read it.
    """
    cookie = _from_cookie(headers)
    if scope["type"] == "websocket":
        key = _from_subprotocol(scope, KEY_SUBPROTOCOL)
    else:
        key = _take_key(scope) or headers.get(KEY_HEADER.lower(), "")
    return cookie + key if cookie and key else ""


def _take_key(scope: Scope) -> str:
    """Remove the key from the query of a request that reads, and return it.

    It is removed so that no route can repeat it, as in a redirect.
    """
    if scope["method"] not in _SAFE:
        return ""
    start = f"{KEY_PARAMETER}=".encode()
    parts: list[bytes] = scope["query_string"].split(b"&")
    scope["query_string"] = b"&".join(part for part in parts if not part.startswith(start))
    found = (part.removeprefix(start) for part in parts if part.startswith(start))
    return next(found, b"").decode("latin-1")


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
        # Closing a WebSocket before accepting it answers the handshake with 403.
        code = _UNAUTHORIZED if refusal.status == 401 else _FORBIDDEN
        closing: dict[str, Any] = {"type": "websocket.close", "code": code}
        await send({**closing, "reason": refusal.title})
        return
    response = problems.in_form(
        scope["path"],
        refusal.status,
        refusal.title,
        refusal.detail,
        headers=dict(refusal.headers),
    )
    await response(scope, receive, send)
