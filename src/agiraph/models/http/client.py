"""HTTP client: POST requests to model servers, and the `ModelError` that each failure means."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from functools import lru_cache, partial
from typing import Protocol, TypeVar

from agiraph.core.domain.errors import (
    Misconfigured,
    ModelError,
    ModelRefused,
    ModelSilent,
    ModelUnavailable,
)
from agiraph.core.domain.times.time import Clock, SystemClock
from agiraph.faultpoints import fault
from agiraph.models.http.connection import (
    Body,
    CertificateUntrusted,
    ConnectionFailed,
    ConnectionPool,
    HttpConnection,
    ServerSilent,
    Target,
    parse_url,
)
from agiraph.models.http.errors import delay_in_body, error_for_status, error_text
from agiraph.models.http.patience import Patience, PatienceSettings, default_patience
from agiraph.models.http.proxy import ProxiedClient, Proxies, ProxyRefused
from agiraph.models.http.rate_limits import Rate, RateLimits, Slot

T = TypeVar("T")

MAX_RETRY_AFTER_S = 24 * 3600.0
"""The longest wait that a server may ask for; a longer Retry-After is shortened to it."""
# Enough for every vendor's error object. A gateway may answer with a whole HTML page instead, of
# which `error_text` shows the first 300 bytes.
MAX_ERROR_BYTES = 64 * 1024


class Response(Protocol):
    """The response to a request, of which the headers have arrived."""

    @property
    def status(self) -> int: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    async def read_chunk(self) -> bytes:
        """Return the body bytes that arrived since the last call; b"" at the end of the body."""
        ...

    def begin(self) -> None:
        """Note that the first event of the reply is here; see `Patience`."""
        ...


ResponseHandler = Callable[[Response], Awaitable[T]]
"""Reads a response with status 200 and returns what is in it."""


class HttpClient:
    """The process's connections to model servers, direct and through proxies."""

    def __init__(
        self,
        clock: Clock | None = None,
        *,
        proxies: Proxies | None = None,
        stall_timeout_s: float | None = None,
        patience: Mapping[str, PatienceSettings] | None = None,
        rates: Mapping[str, Rate] | None = None,
    ) -> None:
        self._clock = clock or SystemClock()
        self._proxies = proxies or Proxies()
        self.rate_limits: RateLimits = RateLimits(self._clock, rates)
        self._pool = ConnectionPool()
        self._proxied = ProxiedClient()
        self._patience_settings = patience or {}
        self._patience: Patience | None = None
        """Replaces the default patience with every server; None: by the server's address."""
        if stall_timeout_s is not None:
            self._patience = Patience(first_byte_s=stall_timeout_s, between_bytes_s=stall_timeout_s)

    async def close(self) -> None:
        self.rate_limits.close()
        await self._pool.close()
        await self._proxied.close()

    def patience_with(self, url: str, model: str = "") -> Patience:
        """Return the patience with the server of this URL, as the settings have it for the model
        `provider/model` or its provider."""
        found, settings = self._patience or default_patience(url), self._patience_settings
        if not settings:
            return found
        found = found.changed(settings.get(model.partition("/")[0], {}))
        return found.changed(settings.get(model, {}))

    async def post(
        self,
        url: str,
        *,
        headers: dict[str, str],
        body: Body,
        handle: ResponseHandler[T],
        patience: Patience | None = None,
        slot: Slot | None = None,
    ) -> T:
        """Send a request and return what `handle` reads from a response with status 200.

        Any other response, and every failure of the connection, is raised as a `ModelError`.
        `slot` learns what the response says of rate limits.
        """
        fault("fx:before:llm")
        target = parse_url(url)
        host = target.host_header.decode()
        patience = patience or self.patience_with(url)
        try:
            handled = partial(self._handled, host=host, handle=handle, slot=slot)
            if (proxy := self._proxies.for_url(url)) is not None:
                # Direct requests are checked in `_fixed_head`, which this path does not use.
                _refuse_line_breaks(target.path, headers.values())
                headers = {**headers, "accept-encoding": "identity"}
                async with self._proxied.post(proxy, url, headers, body, patience) as exchange:
                    return await handled(exchange)
            return await self._directly(target, headers, body, patience, handled)
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
            if isinstance(error, ServerSilent) and not error.has_begun:
                raise ModelSilent(message) from error
            raise ModelUnavailable(message, unused=error.is_unsent) from error

    async def _directly(
        self,
        target: Target,
        headers: dict[str, str],
        body: Body,
        patience: Patience,
        handled: ResponseHandler[T],
    ) -> T:
        head = _request_head(target, headers, body)
        connection: HttpConnection = await self._pool.acquire(target.origin)
        is_answered = False
        try:
            await connection.send_request(head, body, patience)
            found = await handled(connection)
            is_answered = True
            return found
        finally:
            # Cancellation passes here too. The connection is then closed, so that the vendor can
            # stop computing a reply that nobody reads.
            self._pool.release(target.origin, connection, is_answered=is_answered)

    async def _handled(
        self, response: Response, host: str, handle: ResponseHandler[T], slot: Slot | None
    ) -> T:
        if slot is not None:
            slot.answer(response.headers)
        # A redirect is an error too: following it would send the API key to another host.
        if response.status != 200:
            error = await self._error_of(response, host)
            # Not for a spent quota, which is another error: waiting would not help.
            if slot is not None and response.status == 429 and isinstance(error, ModelUnavailable):
                slot.pace.model.block(error.retry_after or 0.0)
            raise error
        return await handle(response)

    async def _error_of(self, response: Response, host: str) -> ModelError:
        status, raw = response.status, await read_up_to(response, MAX_ERROR_BYTES)
        reason = error_text(raw)
        message = f"{host} answered {status}: {reason}"
        header = response.headers.get("retry-after")
        return error_for_status(
            status,
            reason,
            message,
            retry_after=self._seconds_of(header or delay_in_body(raw)),
            body=raw,
            has_retry_header=header is not None,
        )

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


def lookup_head(target: Target, headers: dict[str, str], body: bytes | None) -> bytes:
    """Return the head of a GET, or of a POST if there is a body."""
    if body is not None:
        return _request_head(target, headers, [body])
    fixed = _fixed_head(target.path, target.host_header, *headers.items(), method="GET")
    return fixed + b"\r\n"


@lru_cache(256)
def _fixed_head(
    path: str, host_header: bytes, *headers: tuple[str, str], method: str = "POST"
) -> bytes:
    """Return the part of a request head that is the same for every turn of a thread."""
    _refuse_line_breaks(path, dict(headers).values())
    lines = "".join(f"{key}: {value}\r\n" for key, value in headers)
    # Without "identity" a gateway may compress the stream. `HttpConnection` cannot decompress it,
    # and a compressor holds events back until it has a full block.
    start = f"{method} {path} HTTP/1.1\r\nhost: {host_header.decode()}\r\n{lines}"
    return f"{start}accept-encoding: identity\r\n".encode()


def _refuse_line_breaks(path: str, values: Iterable[str]) -> None:
    """Refuse a key or path with which a request would carry headers of somebody else's choice."""
    if any(sign in part for part in (path, *values) for sign in "\r\n\0"):
        raise Misconfigured(
            "The API key or base URL of this provider contains a line break or a NUL character. "
            "Check the variable that holds it."
        )


async def read_up_to(response: Response, limit_bytes: int) -> bytes:
    """Return the body of a response, at most that many bytes of it."""
    raw = bytearray()
    while len(raw) < limit_bytes and (chunk := await response.read_chunk()):
        raw += chunk
    return bytes(raw[:limit_bytes])
