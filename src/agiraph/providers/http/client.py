"""HTTP client: POST requests to model servers, and the `ModelError` that each failure means."""

import json
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Any, Protocol, TypeVar, cast

import orjson

from agiraph.domain.errors import (
    ContextExceeded,
    Misconfigured,
    ModelError,
    ModelGarbled,
    ModelMissing,
    ModelRefused,
    ModelUnavailable,
)
from agiraph.domain.time import Clock, SystemClock
from agiraph.faultpoints import fault
from agiraph.providers.http.connection import (
    Body,
    CertificateUntrusted,
    ConnectionFailed,
    ConnectionPool,
    HttpConnection,
    Target,
    parse_url,
)
from agiraph.providers.http.proxy import ProxiedClient, Proxies, Proxy, ProxyRefused

T = TypeVar("T")

STALL_TIMEOUT_S = 120
"""A response without a byte for this long has failed: vendors send keep-alives far more often."""
MAX_RETRY_AFTER_S = 24 * 3600.0
"""The longest wait that a server may ask for; a longer Retry-After is shortened to it."""
# Enough for every vendor's error object. A gateway may answer with a whole HTML page instead, of
# which `error_text` shows the first 300 bytes.
MAX_ERROR_BYTES = 64 * 1024
# Far more than any model may write in one reply. An endless stream fails here instead of filling
# the memory of the process that runs all agents.
MAX_REPLY_BYTES = 32 * 2**20

_NOT_CHARGED = frozenset(range(400, 500)) - {408, 499} | {503, 529}
"""Statuses with which a server refuses a request before a model works on it. Other errors may come
later and cost money: a gateway that gave up (408, 499, 502, 504), a model that crashed (500)."""

_OVERFLOW = ("context_length", "context length", "context window", "maximum context", "too long",
             "exceed_context_size", "request too large", "input token count")  # fmt: skip
"""Parts of the messages with which vendors say that a thread exceeds the context window."""
_MISSING_MODEL = re.compile(
    r"model[_ ]not[_ ]found|invalid model|not a valid model|unknown model|no such model"
    r"|model\b.{0,200}\b(?:does not exist|not found|is not supported|not available)",
    re.IGNORECASE | re.DOTALL,
)
"""Messages with which servers that answer 400 say that they have no model of this name."""
_NOT_STRICT_JSON = re.compile(rb"NaN|Infinity|[eE]\+?\d{3}")
"""Numbers that orjson refuses and Python's own parser accepts."""
_RETRY_DELAY = re.compile(rb'"retryDelay"\s*:\s*"([0-9.]+)s"')


class Exchange(Protocol):
    """A request that was sent and whose response headers have arrived."""

    @property
    def status(self) -> int: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    async def read_chunk(self) -> bytes:
        """Return the body bytes that arrived since the last call; b"" at the end of the body."""
        ...


@dataclass(frozen=True, slots=True)
class Response:
    exchange: Exchange
    host: str
    """The server's host, for error messages."""

    @property
    def content_type(self) -> str:
        return self.exchange.headers.get("content-type", "").partition(";")[0].strip().lower()

    async def read_chunk(self) -> bytes:
        return await self.exchange.read_chunk()


ResponseHandler = Callable[[Response], Awaitable[T]]
"""Reads a response with status 200 and returns what is in it."""


class HttpClient:
    """The process's connections to model servers, direct and through proxies."""

    def __init__(
        self,
        clock: Clock | None = None,
        *,
        proxies: Proxies | None = None,
        stall_timeout_s: float = STALL_TIMEOUT_S,
    ) -> None:
        self._clock = clock or SystemClock()
        self._proxies = proxies or Proxies()
        self._pool = ConnectionPool(stall_timeout_s)
        self._proxied = ProxiedClient(stall_timeout_s)

    async def close(self) -> None:
        await self._pool.close()
        await self._proxied.close()

    async def post(
        self, url: str, *, headers: dict[str, str], body: Body, handle: ResponseHandler[T]
    ) -> T:
        """Send a request and return what `handle` reads from a response with status 200.

        Any other response, and every failure of the connection, is raised as a `ModelError`.
        """
        fault("fx:before:llm")
        target = parse_url(url)
        host = target.host_header.decode()
        try:
            if (proxy := self._proxies.for_url(url)) is not None:
                return await self._post_by_proxy(proxy, url, target, headers, body, handle)
            return await self._post_directly(target, headers, body, handle)
        except CertificateUntrusted as error:
            raise ModelRefused(
                f"The certificate of {host} is not trusted ({error}). If the server is your own, "
                "set SSL_CERT_FILE to a file with its certificate.",
                unused=True,
            ) from error
        except ConnectionFailed as error:
            message = f"Cannot reach {host}: {error}."
            if isinstance(error, ProxyRefused) and error.status in _PERMANENT_PROXY_ERRORS:
                raise ModelRefused(message, unused=True) from error
            raise ModelUnavailable(message, unused=error.is_unsent) from error

    async def _post_directly(
        self, target: Target, headers: dict[str, str], body: Body, handle: ResponseHandler[T]
    ) -> T:
        head = _request_head(target, headers, body)
        connection: HttpConnection = await self._pool.acquire(target.origin)
        is_answered = False
        try:
            await connection.send_request(head, body)
            result = await self._handled(connection, target, handle)
            is_answered = True
            return result
        finally:
            # Cancellation passes here too. The connection is then closed, so that the vendor can
            # stop computing a reply that nobody reads.
            self._pool.release(target.origin, connection, is_answered=is_answered)

    async def _post_by_proxy(
        self,
        proxy: Proxy,
        url: str,
        target: Target,
        headers: dict[str, str],
        body: Body,
        handle: ResponseHandler[T],
    ) -> T:
        # Direct requests are checked in `_fixed_head`, which this path does not use.
        _refuse_line_breaks(target.path, headers.values())
        headers = {**headers, "accept-encoding": "identity"}
        async with self._proxied.post(proxy, url, headers, body) as exchange:
            return await self._handled(exchange, target, handle)

    async def _handled(self, exchange: Exchange, target: Target, handle: ResponseHandler[T]) -> T:
        response = Response(exchange, target.host_header.decode())
        # A redirect is an error too: following it would send the API key to another host.
        if exchange.status != 200:
            raise await self._error_of(response)
        return await handle(response)

    async def _error_of(self, response: Response) -> ModelError:
        status, raw = response.exchange.status, await _read_up_to(response, MAX_ERROR_BYTES)
        reason = error_text(raw)
        message = f"{response.host} answered {status}: {reason}"
        wait = response.exchange.headers.get("retry-after") or _delay_in_body(raw)
        return error_for_status(status, reason, message, retry_after=self._seconds_of(wait))

    def _seconds_of(self, retry_after: str) -> float | None:
        """Return a Retry-After value in seconds; None if it is neither a number nor a date."""
        try:
            seconds = float(retry_after)
        except ValueError:
            try:
                when = parsedate_to_datetime(retry_after)
            except (ValueError, OverflowError):
                return None
            # A date without a zone is in UTC, as all dates of HTTP are.
            seconds = (when.replace(tzinfo=when.tzinfo or UTC) - self._clock.now()).total_seconds()
        return min(max(0.0, seconds), MAX_RETRY_AFTER_S)


_PERMANENT_PROXY_ERRORS = frozenset(range(400, 500)) - {408, 425, 429}
"""Refusals of a proxy that only a person can change: a wrong password, a forbidden address."""


def _request_head(target: Target, headers: dict[str, str], body: Body) -> bytes:
    fixed = _fixed_head(target.path, target.host_header, *headers.items())
    return b"%scontent-length: %d\r\n\r\n" % (fixed, sum(map(len, body)))


@lru_cache(256)
def _fixed_head(path: str, host_header: bytes, *headers: tuple[str, str]) -> bytes:
    """Return the part of a request head that is the same for every turn of a thread."""
    _refuse_line_breaks(path, dict(headers).values())
    lines = "".join(f"{key}: {value}\r\n" for key, value in headers)
    # Without "identity" a gateway may compress the stream. `HttpConnection` cannot decompress it,
    # and a compressor holds events back until it has a full block.
    start = f"POST {path} HTTP/1.1\r\nhost: {host_header.decode()}\r\n{lines}"
    return f"{start}accept-encoding: identity\r\n".encode()


def _refuse_line_breaks(path: str, values: Iterable[str]) -> None:
    """Refuse a key or path with which a request would carry headers of somebody else's choice."""
    if any(sign in part for part in (path, *values) for sign in "\r\n\0"):
        raise Misconfigured(
            "The API key or base URL of this provider contains a line break or a NUL character. "
            "Check the variable that holds it."
        )


def error_for_status(
    status: int, reason: str, message: str, *, retry_after: float | None = None
) -> ModelError:
    """Return the error for a status; its class says whether a retry may help."""
    error = _error_class(status, reason, message, retry_after)
    error.unused = status in _NOT_CHARGED
    return error


def _error_class(status: int, reason: str, message: str, retry_after: float | None) -> ModelError:
    if status == 413 or (status == 400 and any(text in reason.lower() for text in _OVERFLOW)):
        return ContextExceeded(message)
    # The vendors' own SDKs retry 408, 409 (a lock timed out on their side) and 429 as well.
    if status in (408, 409, 425, 429) or status >= 500:
        return ModelUnavailable(message, retry_after=retry_after)
    if status in (401, 403):
        return ModelRefused(f"{message} Check the key of this provider.")
    if status == 404 or (status == 400 and _MISSING_MODEL.search(reason)):
        return ModelMissing(f"{message} Check the model's name and the provider's address.")
    return ModelRefused(message)


def _delay_in_body(raw: bytes) -> str:
    """Return the seconds to wait that Google names in the error's body, not in a header."""
    found = _RETRY_DELAY.search(raw)
    return found[1].decode() if found else ""


def error_text(raw: bytes) -> str:
    """Return the message of an error response, whichever vendor's shape it has."""
    try:
        body: Any = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return raw[:300].decode(errors="replace").strip() or "nothing"
    # Gemini may send the error object inside a list.
    if isinstance(body, list) and body and isinstance(body[0], dict):
        body = cast(list[Any], body)[0]
    for key in ("error", "message"):
        if isinstance(body, dict) and key in body:
            body = cast(dict[str, Any], body)[key]
    return str(cast(object, body))[:500]


class EventStreamParser:
    """Splits a stream of server-sent events into the payloads of its `data:` lines."""

    def __init__(self) -> None:
        self._rest = b""
        self._total_bytes = 0

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the payloads that are complete now. An empty chunk is the end of the stream."""
        if not chunk:
            yield from self._last()
            return
        self._total_bytes += len(chunk)
        if self._total_bytes > MAX_REPLY_BYTES:
            raise ModelGarbled(f"The response is longer than {MAX_REPLY_BYTES // 2**20} MiB.")
        # Other lines contain nothing that the JSON does not: Anthropic's `event:` names are
        # repeated in it, and comments such as OpenRouter's ": OPENROUTER PROCESSING" only keep the
        # connection open. `strip` removes the "\r" of servers that end lines with "\r\n".
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                yield line[5:].strip()

    def _last(self) -> Iterator[bytes]:
        if self._rest.startswith(b"data:"):
            last = self._rest[5:].strip()
            # Some servers close the connection without the empty line that ends the last event.
            # Half an event means that the connection broke, which a retry may cure.
            if not _is_complete(last):
                raise ModelUnavailable(CUT_OFF)
            yield last


CUT_OFF = "The response was cut off before its end."


def _is_complete(payload: bytes) -> bool:
    """Whether a last event without a newline behind it has arrived as a whole."""
    try:
        orjson.loads(payload)
    except orjson.JSONDecodeError:
        return payload == b"[DONE]"
    return True


async def read_object(response: Response) -> dict[str, Any]:
    """Return the JSON object of a response that is not a stream."""
    raw = await _read_up_to(response, MAX_REPLY_BYTES + 1)
    if len(raw) > MAX_REPLY_BYTES:
        raise ModelGarbled(f"The response is longer than {MAX_REPLY_BYTES // 2**20} MiB.")
    return parse_object(raw)


async def _read_up_to(response: Response, limit_bytes: int) -> bytes:
    raw = bytearray()
    while len(raw) < limit_bytes and (chunk := await response.read_chunk()):
        raw += chunk
    return bytes(raw[:limit_bytes])


def parse_object(raw: bytes) -> dict[str, Any]:
    """Return the JSON object in these bytes, or raise `ModelGarbled`."""
    try:
        body = _parse_json(raw)
    except ValueError as error:
        raise ModelGarbled(f"The response is not JSON: {raw[:80]!r}") from error
    if not isinstance(body, dict):
        raise ModelGarbled(f"The response is not a JSON object: {raw[:80]!r}")
    return body  # pyright: ignore[reportUnknownVariableType]


def _parse_json(raw: bytes) -> Any:
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        if _NOT_STRICT_JSON.search(raw) is None:
            raise
    try:
        return json.loads(raw)  # servers written in Python send NaN; the reply is still good
    except RecursionError as error:
        raise ValueError("nested too deep") from error
