"""HTTP connections: a pool of keep-alive HTTP/1.1 connections to model servers.

They are written by hand on `httptools`, because a general HTTP client used three times the CPU of
the request itself in our benchmark (`bench/wires.py`), and more with hundreds of requests at once.
"""

import asyncio
import socket
import ssl
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple, cast
from urllib.parse import urlsplit

import httptools

from agiraph.models.http.patience import Patience

Body = Sequence[bytes | bytearray]
"""A request body in pieces, so that the bytes of a long thread are not joined for every request."""

# Linux repeats a lost SYN after 1, 3, 7 and 15 s, so a connection survives four lost packets. A
# host that is down is given up early enough for the next model of a chain to answer.
CONNECT_TIMEOUT_S = 20.0
SEND_CHUNK_BYTES = 256 * 1024
"""A body is written in chunks of this size. Other tasks of the event loop run in between."""
MAX_BUFFERED_BYTES = 1024 * 1024
"""Unread response bytes at which the connection stops reading from its socket."""
# httptools sets no limit of its own: a broken or hostile server could fill the memory with headers.
MAX_HEADER_BYTES = 64 * 1024


class ConnectionFailed(Exception):
    """A connection could not be opened, broke, or was silent for too long."""

    def __init__(self, reason: str, *, is_unsent: bool = False) -> None:
        super().__init__(reason)
        self.is_unsent = is_unsent
        """Whether no byte of the request can have reached the server, so nothing is charged."""


class ServerSilent(ConnectionFailed):
    """The server sent nothing for longer than the patience with it."""

    def __init__(self, limit_s: float, *, has_begun: bool) -> None:
        setting = "between_bytes_s" if has_begun else "first_byte_s"
        super().__init__(
            f"no data arrived for {limit_s:g} s. If this server needs longer, set {setting} for it "
            "in agiraph.toml"
        )
        self.has_begun = has_begun


class CertificateUntrusted(ConnectionFailed):
    """The server's TLS certificate is not trusted. A retry would fail in the same way."""


class Origin(NamedTuple):
    """The part of a URL that decides which connections may be shared."""

    host: str
    port: int
    is_tls: bool


class Target(NamedTuple):
    """A URL, split into what a connection and a request line need."""

    origin: Origin
    path: str
    host_header: bytes


@cache
def trusted_certificates() -> ssl.SSLContext:
    """Return the TLS context with the system's certificates, or those of SSL_CERT_FILE."""
    # Cached, because reading the system's certificates blocks the event loop for tens of
    # milliseconds.
    return ssl.create_default_context()


@cache
def parse_url(url: str) -> Target:
    """Split an http or https URL. User name and password in it are dropped."""
    parts = urlsplit(url)
    is_tls = parts.scheme == "https"
    default_port = 443 if is_tls else 80
    port = parts.port or default_port
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    name = parts.hostname or ""
    bracketed = f"[{name}]" if ":" in name else name  # an IPv6 address
    header = bracketed if port == default_port else f"{bracketed}:{port}"
    encoded = header.encode("ascii" if name.isascii() else "idna")
    return Target(Origin(name, port, is_tls), path, encoded)


class HttpConnection(asyncio.Protocol):
    """One connection. It carries one request at a time."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._patience: Patience
        self._sent_at = 0.0
        self._has_begun = False
        """Whether the first event of the reply has arrived; see `Patience`."""
        self._transport: asyncio.Transport
        self._parser: httptools.HttpResponseParser
        self._waiter: asyncio.Future[None] | None = None
        self._writable: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._due_at = 0.0
        """When the timer calls `_check_stall`."""
        self._is_resting = False
        """Whether no request is in progress."""
        self._last_read_at = 0.0
        self._error: Exception | None = None
        self._reset()

    def _reset(self) -> None:
        self.status: int = 0
        self.headers: dict[str, str] = {}
        self._header_bytes = 0
        self._unread: list[bytes] = []
        self._unread_bytes = 0
        self._is_sent = False
        self._has_headers = False
        self._is_complete = False
        self._keep_alive = False

    # ---- sending and reading ---------------------------------------------------------------

    async def send_request(self, head: bytes, body: Body, patience: Patience) -> None:
        """Send a request and return when the response's headers have arrived."""
        self._reset()
        self._patience, self._has_begun = patience, False
        self._parser = httptools.HttpResponseParser(self)
        self._last_read_at = self._sent_at = self._loop.time()
        # One timer for a connection's requests: `data_received` only notes the time, and the timer
        # sets itself again. A timer per read would cancel and create one for every event of a
        # stream.
        self._is_resting = False
        due_at = self._sent_at + min(patience.first_byte_s, patience.between_bytes_s)
        if self._timer is None or self._due_at > due_at:
            self.stop_timer()
            self._set_timer(due_at)
        # Head and body are written together, so that a short request leaves in one packet.
        # Joined, and so copied: a transport that keeps a view of a thread's bytearray would make
        # the next append to that bytearray fail with BufferError.
        if len(head) + sum(map(len, body)) <= SEND_CHUNK_BYTES:
            self._transport.write(b"".join((head, *body)))
            self._is_sent = True
        else:
            await self._write_in_chunks((head, *body))
        while not self._has_headers:
            await self._wait_for_data()

    async def _write_in_chunks(self, pieces: Body) -> None:
        chunk, size = list[bytes | bytearray | memoryview](), 0
        for piece in pieces:
            for start in range(0, len(piece), SEND_CHUNK_BYTES):
                # A server that refuses a request may answer before it has read all of it.
                if self._has_headers or self._error is not None:
                    return
                chunk.append(memoryview(piece)[start : start + SEND_CHUNK_BYTES])
                size += len(chunk[-1])
                if size >= SEND_CHUNK_BYTES:
                    joined = b"".join(chunk)
                    chunk.clear()  # no view of a bytearray is kept while others may append to it
                    await self._write_chunk(joined)
                    size = 0
        self._transport.write(b"".join(chunk))
        self._is_sent = True

    async def _write_chunk(self, chunk: bytes) -> None:
        self._transport.write(chunk)
        if self._writable is not None:
            await self._writable

    async def read_chunk(self) -> bytes:
        """Return the body bytes that arrived since the last call; b"" at the end of the body."""
        while not self._unread:
            if self._is_complete:
                return b""
            await self._wait_for_data()
        chunk = b"".join(self._unread)
        self._unread.clear()
        # Backpressure ends here; it began with `pause_reading` in `on_body`.
        if self._unread_bytes > MAX_BUFFERED_BYTES:
            self._transport.resume_reading()
        self._unread_bytes = 0
        return chunk

    def begin(self) -> None:
        """Note that the first event of the reply is here: from now on silence has to be short."""
        self._has_begun = True

    async def _wait_for_data(self) -> None:
        if self._error is not None:
            raise self._error
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None
        # Bytes that arrived before the failure are handed out first.
        if self._error is not None and not self._unread and not self._is_complete:
            raise self._error

    @property
    def is_reusable(self) -> bool:
        """Whether another request may be sent now: the last exchange is complete."""
        return self._is_sent and self._is_complete and not self.is_dead

    @property
    def is_dead(self) -> bool:
        """Whether no request can be sent on this connection any more."""
        is_closed = self._error is not None or self._transport.is_closing()
        return is_closed or (self._is_complete and not self._keep_alive)

    def rest(self) -> None:
        """Note that no request is in progress. The timer stays: the next request needs one, too."""
        self._is_resting = True

    def _set_timer(self, due_at: float) -> None:
        self._due_at = due_at
        self._timer = self._loop.call_later(due_at - self._loop.time(), self._check_stall)

    def stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def close(self) -> None:
        self.stop_timer()
        # Not the transport's `close()`, which would first send what is buffered: a request that was
        # cancelled must not reach the model, and be charged, after all.
        self._transport.abort()

    # ---- asyncio calls these ---------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._last_read_at = self._loop.time()
        try:
            self._parser.feed_data(data)
        # AttributeError: bytes arrive before the first request, when there is no parser yet.
        except (httptools.HttpParserError, AttributeError) as error:
            self._fail(ConnectionFailed(f"the response is not HTTP: {data[:60]!r} ({error})"))
            self._transport.abort()

    def eof_received(self) -> bool:
        # asyncio closes the transport and calls `connection_lost`, which knows whether the response
        # may end here.
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        has_length = "content-length" in self.headers or "chunked" in self.headers.get(
            "transfer-encoding", ""
        )
        if exc is None and self._has_headers and not self._is_complete and not has_length:
            self._is_complete = True  # HTTP/1.0 style: the body ends with the connection
        self._fail(ConnectionFailed("the connection was closed before the end of the response"))

    def pause_writing(self) -> None:
        self._writable = self._loop.create_future()

    def resume_writing(self) -> None:
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        self._writable = None

    # ---- httptools calls these -------------------------------------------------------------

    def on_message_begin(self) -> None:
        # A response that no request asked for must not become the answer to the next request.
        if self._is_complete:
            raise httptools.HttpParserError("a response without a request")

    def on_header(self, name: bytes, value: bytes) -> None:
        self._header_bytes += len(name) + len(value)
        if self._header_bytes > MAX_HEADER_BYTES:
            raise httptools.HttpParserError("too many headers")
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()
        if self.status >= 200:  # 1xx only announces the response
            self._has_headers = True
            self.resume_writing()  # `_write_in_chunks` stops and the response is read instead
            self._wake_reader()

    def on_body(self, body: bytes) -> None:
        self._unread.append(body)
        self._unread_bytes += len(body)
        # A server that sends faster than the reply is parsed must not fill the memory.
        if self._unread_bytes > MAX_BUFFERED_BYTES:
            self._transport.pause_reading()
        self._wake_reader()

    def on_message_complete(self) -> None:
        if self.status >= 200:
            self._is_complete = True
            self._keep_alive = bool(self._parser.should_keep_alive())
            self._wake_reader()

    # ---- failure ---------------------------------------------------------------------------

    def _check_stall(self) -> None:
        """Fail if the server was silent for too long; otherwise set the timer again.

        While reading is paused the silence is ours, not the server's, so it does not count.
        """
        if self._is_resting:
            self._timer = None
            return
        now, patience = self._loop.time(), self._patience
        limit_s = patience.between_bytes_s if self._has_begun else patience.first_byte_s
        next_s = left_s = limit_s - (now - self._last_read_at)
        if not self._has_begun:
            left_s = min(left_s, patience.first_event_s - (now - self._sent_at))
            # As soon as the reply begins, the shorter limit counts from its last byte.
            next_s = min(left_s, patience.between_bytes_s)
        if self._transport.is_reading() and left_s <= 0:
            self._fail(ServerSilent(limit_s, has_begun=self._has_begun))
            self._transport.abort()
        else:
            self._set_timer(now + max(next_s, 0.01))

    def _fail(self, error: Exception) -> None:
        self._error = self._error or error
        self.resume_writing()
        self.stop_timer()
        self._wake_reader()

    def _wake_reader(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class ConnectionPool:
    """Idle connections per origin. The one used last is taken first, in constant time."""

    def __init__(self) -> None:
        self._idle: defaultdict[Origin, list[HttpConnection]] = defaultdict(list)

    async def acquire(self, origin: Origin) -> HttpConnection:
        """Return an idle connection, or a new one. The caller gives it back with `release`."""
        # From the end: the connection used last is the one that the server is least likely to have
        # closed.
        idle = self._idle[origin]
        for index in range(len(idle) - 1, -1, -1):
            connection = idle[index]
            if connection.is_reusable:
                return idle.pop(index)
            # A connection that is neither reusable nor dead stays: the end of its last response has
            # not arrived yet, and would be taken for the beginning of the next one.
            if connection.is_dead:
                idle.pop(index).close()
        return await self._connect(origin)

    async def _connect(self, origin: Origin) -> HttpConnection:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                _, connection = await loop.create_connection(
                    HttpConnection,
                    origin.host,
                    origin.port,
                    ssl=trusted_certificates() if origin.is_tls else None,
                    server_hostname=origin.host if origin.is_tls else None,
                )
        # Subclasses of OSError, so they come first.
        except ssl.SSLCertVerificationError as error:
            raise CertificateUntrusted(error.verify_message, is_unsent=True) from error
        except TimeoutError as error:
            reason = f"no connection within {CONNECT_TIMEOUT_S:g} s"
            raise ConnectionFailed(reason, is_unsent=True) from error
        except ConnectionRefusedError as error:
            raise ConnectionFailed("the connection was refused", is_unsent=True) from error
        except socket.gaierror as error:
            raise ConnectionFailed(error.strerror or str(error), is_unsent=True) from error
        except OSError as error:
            raise ConnectionFailed(str(error) or type(error).__name__, is_unsent=True) from error
        return connection

    def release(self, origin: Origin, connection: HttpConnection, *, is_answered: bool) -> None:
        """Keep the connection for the next request if it can carry one; close it otherwise.

        `is_answered`: the caller has read all it wanted. The response's last bytes, such as the
        terminating chunk, may then arrive while the connection is idle.
        """
        connection.rest()
        if connection.is_reusable or (is_answered and not connection.is_dead):
            self._idle[origin].append(connection)
        else:
            connection.close()

    async def close(self) -> None:
        for connections in self._idle.values():
            for connection in connections:
                connection.close()
        self._idle.clear()
