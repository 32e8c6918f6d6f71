"""Exchange: one request of a command's program, and the answer that the gate gives to it."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING

from agiraph.core.domain.value import dataclass
from agiraph.sandbox.gate.http_messages import (
    CHUNK_BYTES,
    Request,
    answer,
    head,
    read_body,
)
from agiraph.sandbox.gate.rules import Denied

if TYPE_CHECKING:  # it takes long to import, and few processes use it
    import aiohttp

TEXT = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one command may use of the network."""

    connections: int = 128
    """At a time; a further one is refused."""
    head_s: float = 20.0
    """The longest time that a program may take to send the head of its request."""
    idle_s: float = 120.0
    """The longest time in which a connection carries nothing in either direction."""
    request_s: float = 1800.0
    bytes: int = 2**30
    """Of all requests and answers together."""
    page_bytes: int = 32 * 2**20
    """Of one page of an index, which the gate reads whole."""


class Meter:
    """Counts the bytes of a command, and raises `Denied` when they are too many."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.bytes: int = 0

    def count(self, piece: bytes) -> bytes:
        """Count a piece before it is passed on, and return it."""
        self.bytes += len(piece)
        if self.bytes > self.limit:
            raise Denied(
                f"This command has moved more than {self.limit // 2**20:,} MiB over the network, "
                "which is its limit. Do it in several commands.",
                status=413,
            )
        return piece


class Exchange:
    """A request whose head was read, and the connection on which it is answered."""

    def __init__(
        self,
        request: Request,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        limits: Limits,
        meter: Meter,
    ) -> None:
        self.request = request
        self.reader = reader
        self.writer = writer
        self.limits = limits
        self.meter = meter
        self.has_answered: bool = False
        """Whether a part of the answer was sent: then a failure can only cut the connection."""

    @property
    def is_head(self) -> bool:
        return self.request.method == "HEAD"

    async def send(self, status: int, body: bytes, media_type: str = TEXT) -> None:
        """Send a whole answer."""
        await self.write(answer(status, self.meter.count(body), media_type, is_head=self.is_head))

    async def stream(
        self, status: int, headers: Mapping[str, str], pieces: AsyncIterator[bytes]
    ) -> None:
        """Send an answer piece by piece. Without a length its end is the end of the connection."""
        await self.write(head(status, headers))
        if self.is_head:
            return
        async for piece in pieces:
            await self.write(self.meter.count(piece))

    async def write(self, data: bytes) -> None:
        """Send bytes, as fast as the program reads them."""
        self.has_answered = True
        self.writer.write(data)
        async with asyncio.timeout(self.limits.idle_s):
            await self.writer.drain()

    async def body(self) -> AsyncIterator[bytes]:
        """Yield the body of the request."""
        if self.request.headers.get("expect", "").lower() == "100-continue":
            self.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        pieces = read_body(self.reader, self.request)
        while True:
            async with asyncio.timeout(self.limits.idle_s):
                piece = await anext(pieces, None)
            if piece is None:
                return
            yield self.meter.count(piece)


async def pieces_of(response: "aiohttp.ClientResponse") -> AsyncIterator[bytes]:
    """Yield the body of an answer as it arrives."""
    async for piece in response.content.iter_chunked(CHUNK_BYTES):
        yield piece


async def whole_body(response: "aiohttp.ClientResponse", limit: int) -> bytes:
    """Return the body of an answer; raise `Denied` if it is longer than the limit."""
    body = bytearray()
    async for piece in response.content.iter_chunked(CHUNK_BYTES):
        body += piece
        if len(body) > limit:
            size = f"{limit // 2**20:,} MiB"
            raise Denied(f"The page of the index has more than {size}.", status=502)
    return bytes(body)
