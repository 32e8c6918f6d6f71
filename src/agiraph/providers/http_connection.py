"""Lines: connections to model servers, as lean as HTTP/1.1 allows.

A turn should cost what it says, not what its client does around it: a general HTTP library spends
three times the CPU of the request itself, and more when hundreds are under way.
"""

import asyncio
import ssl
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple, cast
from urllib.parse import urlsplit

import httptools

Body = Sequence[bytes | bytearray]
"""A request in pieces, so that a long thread is not copied together for every turn."""

CONNECT_SECONDS = 20.0
SLICE = 64 * 1024
"""A body is sent in slices of this size, so that other agents get their turn in between."""
BUFFERED = 1024 * 1024
"""How much of an answer may wait to be read before the server is made to wait."""
HEADER_BYTES = 64 * 1024


class LineError(Exception):
    """The connection failed: it could not be made, broke, or said nothing for too long."""


class Untrusted(LineError):
    """The server's certificate is not to be trusted; trying again will not change that."""


class Host(NamedTuple):
    name: str
    port: int
    secure: bool


@cache
def _trust() -> ssl.SSLContext:
    return ssl.create_default_context()


@cache
def split(url: str) -> tuple[Host, str, bytes]:
    """Where a URL leads, what to ask for there, and how the server is called."""
    parts = urlsplit(url)
    secure = parts.scheme == "https"
    port = parts.port or (443 if secure else 80)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    name = parts.hostname or ""
    shown = f"[{name}]" if ":" in name else name
    standard = port == (443 if secure else 80)
    host = shown if standard else f"{shown}:{port}"
    return Host(name, port, secure), path, host.encode("idna" if not name.isascii() else "ascii")


class Line(asyncio.Protocol):
    """One connection, carrying one request at a time."""

    def __init__(self, stall_seconds: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._stall = stall_seconds
        self._transport: asyncio.Transport
        self._parser: httptools.HttpResponseParser
        self._waiter: asyncio.Future[None] | None = None
        self._writable: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._heard_at = 0.0
        self._broken: Exception | None = None
        self._clear()

    def _clear(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self._header_bytes = 0
        self._pieces: list[bytes] = []
        self._buffered = 0
        self._sent = False
        self._headed = False
        self._ended = False
        self._keep_alive = False

    # ---- asking ----------------------------------------------------------------------------

    async def ask(self, head: bytes, body: Body) -> None:
        """Send a request and wait until its answer begins."""
        self._clear()
        self._parser = httptools.HttpResponseParser(self)
        self._hear()
        self._timer = self._loop.call_later(self._stall, self._check)
        await self._send((head, *body))
        while not self._headed:
            await self._more()

    async def _send(self, body: Body) -> None:
        # A copy: what is still on its way must not keep the thread from growing.
        slice_ = bytearray()
        for piece in body:
            for start in range(0, len(piece), SLICE):
                if self._headed or self._broken is not None:
                    return  # the server has heard enough, or is gone
                slice_ += memoryview(piece)[start : start + SLICE]
                if len(slice_) >= SLICE:
                    self._transport.write(slice_)
                    slice_ = bytearray()
                    if self._writable is not None:
                        await self._writable
        self._transport.write(slice_)
        self._sent = True

    async def chunk(self) -> bytes:
        """What has come of the answer's body since; nothing when all has."""
        while not self._pieces:
            if self._ended:
                return b""
            await self._more()
        piece = b"".join(self._pieces)
        self._pieces.clear()
        if self._buffered > BUFFERED:
            self._transport.resume_reading()
        self._buffered = 0
        return piece

    async def _more(self) -> None:
        if self._broken is not None:
            raise self._broken
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None
        if self._broken is not None and not self._pieces and not self._ended:
            raise self._broken

    @property
    def reusable(self) -> bool:
        """Whether another request may follow: this one is over and done, and nobody hung up."""
        return self._sent and self._ended and not self.is_useless

    @property
    def is_useless(self) -> bool:
        """Whether no request can follow any more, whatever still comes."""
        closed = self._broken is not None or self._transport.is_closing()
        return closed or (self._ended and not self._keep_alive)

    def rest(self) -> None:
        """No request is under way."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def close(self) -> None:
        self.rest()
        self._transport.abort()

    # ---- hearing ---------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._heard_at = self._loop.time()
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, AttributeError) as error:
            self._break(LineError(f"what came is not HTTP: {data[:60]!r} ({error})"))
            self._transport.abort()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        unbounded = "content-length" not in self.headers and "chunked" not in self.headers.get(
            "transfer-encoding", ""
        )
        if exc is None and self._headed and not self._ended and unbounded:
            self._ended = True  # an answer without a length ends with its connection
        self._break(LineError("the connection was closed before the answer's end"))

    def pause_writing(self) -> None:
        self._writable = self._loop.create_future()

    def resume_writing(self) -> None:
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        self._writable = None

    # ---- httptools calls these -------------------------------------------------------------

    def on_message_begin(self) -> None:
        if self._ended:
            raise httptools.HttpParserError("an answer that nobody asked for")

    def on_header(self, name: bytes, value: bytes) -> None:
        self._header_bytes += len(name) + len(value)
        if self._header_bytes > HEADER_BYTES:
            raise httptools.HttpParserError("too many headers")
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()
        if self.status >= 200:  # 1xx only announces the answer
            self._headed = True
            self.resume_writing()  # whoever still sends should rather listen now
            self._wake()

    def on_body(self, body: bytes) -> None:
        self._pieces.append(body)
        self._buffered += len(body)
        if self._buffered > BUFFERED:
            self._transport.pause_reading()
        self._wake()

    def on_message_complete(self) -> None:
        if self.status >= 200:
            self._ended = True
            self._keep_alive = bool(self._parser.should_keep_alive())
            self._wake()

    # ---- waiting ---------------------------------------------------------------------------

    def _hear(self) -> None:
        self._heard_at = self._loop.time()

    def _check(self) -> None:
        """Give up a line that has been silent for too long; look again later otherwise."""
        silent = self._loop.time() - self._heard_at
        if self._transport.is_reading() and silent >= self._stall:
            self._break(LineError(f"nothing was heard for {self._stall:g} s"))
            self._transport.abort()
        else:
            self._timer = self._loop.call_later(max(self._stall - silent, 0.01), self._check)

    def _break(self, error: Exception) -> None:
        self._broken = self._broken or error
        self.resume_writing()
        self.rest()
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Lines:
    """Idle connections, the last used first; taking one costs the same however many there are."""

    def __init__(self, stall_seconds: float) -> None:
        self._stall = stall_seconds
        self._idle: defaultdict[Host, list[Line]] = defaultdict(list)

    async def take(self, host: Host) -> Line:
        idle = self._idle[host]
        for place in range(len(idle) - 1, -1, -1):
            line = idle[place]
            if line.reusable:
                return idle.pop(place)
            if line.is_useless:
                idle.pop(place).close()
        return await self._connect(host)

    async def _connect(self, host: Host) -> Line:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                _, line = await loop.create_connection(
                    lambda: Line(self._stall),
                    host.name,
                    host.port,
                    ssl=_trust() if host.secure else None,
                    server_hostname=host.name if host.secure else None,
                )
        except ssl.SSLCertVerificationError as error:
            raise Untrusted(error.verify_message) from error
        except TimeoutError as error:
            raise LineError(f"no connection within {CONNECT_SECONDS:g} s") from error
        except OSError as error:
            raise LineError(str(error) or type(error).__name__) from error
        return line

    def give_back(self, host: Host, line: Line, *, heard: bool) -> None:
        """Keep a line whose answer was heard; its formal end may come while it is idle."""
        line.rest()
        if line.reusable or (heard and not line.is_useless):
            self._idle[host].append(line)
        else:
            line.close()

    async def close(self) -> None:
        for lines in self._idle.values():
            for line in lines:
                line.close()
        self._idle.clear()
