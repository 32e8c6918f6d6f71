"""Raw server: sends HTTP responses as bytes, for responses that no correct server would send."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from agiraph.models.http.client import HttpClient, Response
from agiraph.models.http.connection import Body

Handler = Callable[["Caller"], Awaitable[None]]
"""Serves one connection."""


@dataclass(slots=True)
class Caller:
    """A connection of a client, on the side of the server."""

    number: int
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def read_request(self, *, chunk_bytes: int = 2**20) -> bytes:
        """Read the next request in pieces of this size and return its body; b"" at the end."""
        try:
            head = await self.reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            return b""
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        body = bytearray()
        while len(body) < length:
            body += await self.reader.readexactly(min(chunk_bytes, length - len(body)))
            await asyncio.sleep(0)
        return bytes(body)

    async def send(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.writer.write(piece)
            await self.writer.drain()

    async def wait_until_closed(self) -> None:
        """Return when the client has closed the connection."""
        try:
            while await self.reader.read(2**16):
                pass
        except ConnectionError:
            pass


@dataclass(slots=True)
class RawServer:
    talk: Handler
    url: str = ""
    connections: int = 0
    tasks: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self.tasks.add(task)
        try:
            await self.talk(Caller(self.connections, reader, writer))
        except (asyncio.CancelledError, ConnectionError):
            pass  # the test is over, or the client is gone
        finally:
            self.tasks.discard(task)
            writer.close()

    @asynccontextmanager
    async def open(self, tls: ssl.SSLContext | None = None) -> AsyncGenerator["RawServer"]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=tls, backlog=512)
        port = server.sockets[0].getsockname()[1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{port}/v1"
        try:
            yield self
        finally:
            server.close()
            for task in [*self.tasks]:
                task.cancel()
            await asyncio.gather(*self.tasks, return_exceptions=True)


def answer(body: bytes, *headers: bytes, status: bytes = b"200 OK") -> bytes:
    lines = b"".join(header + b"\r\n" for header in headers)
    return b"HTTP/1.1 %b\r\ncontent-length: %d\r\n%b\r\n%b" % (status, len(body), lines, body)


async def post(http: HttpClient, server: RawServer, body: Body = (b"{}",)) -> bytes:
    """Send a request and return the body of the response."""
    return await http.post(server.url, headers={}, body=body, handle=whole_body)


async def whole_body(response: Response) -> bytes:
    """Return the whole body of a response."""
    said = b""
    while chunk := await response.read_chunk():
        said += chunk
    return said


async def echo(caller: Caller) -> None:
    """Answer every request with its body and the number of its connection."""
    while body := await caller.read_request():
        await caller.send(answer(body + b" on %d" % caller.number))


async def until(holds: Callable[[], bool]) -> None:
    """Let other tasks run until the condition holds."""
    while not holds():  # noqa: ASYNC110 - the condition changes inside a socket
        await asyncio.sleep(0)
