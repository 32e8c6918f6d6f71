"""Raw servers: HTTP as bytes, for tests of what no decent server would send."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from agiraph.providers.http import HttpClient, Response
from agiraph.providers.http_connection import Body

Talk = Callable[["Caller"], Awaitable[None]]
"""What a server does with one connection."""


@dataclass(slots=True)
class Caller:
    """A connection, as the server sees it."""

    number: int
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def hear(self, *, at_once: int = 2**20) -> bytes:
        """The body of the next request, read in pieces of this size; b"" if nobody asks."""
        try:
            head = await self.reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            return b""
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        body = bytearray()
        while len(body) < length:
            body += await self.reader.readexactly(min(at_once, length - len(body)))
            await asyncio.sleep(0)
        return bytes(body)

    async def say(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.writer.write(piece)
            await self.writer.drain()

    async def until_gone(self) -> None:
        """Return when the client has hung up."""
        try:
            while await self.reader.read(2**16):
                pass
        except ConnectionError:
            pass


@dataclass(slots=True)
class RawServer:
    talk: Talk
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


async def ask(http: HttpClient, server: RawServer, body: Body = (b"{}",)) -> bytes:
    """What the server answers."""
    return await http.post(server.url, headers={}, body=body, handle=heard)


async def heard(response: Response) -> bytes:
    """The whole body of an answer."""
    said = b""
    while chunk := await response.read_chunk():
        said += chunk
    return said


async def echo(caller: Caller) -> None:
    """Answer every request with what it said and the number of its connection."""
    while body := await caller.hear():
        await caller.say(answer(body + b" on %d" % caller.number))


async def until(holds: Callable[[], bool]) -> None:
    """Let everything run until this holds."""
    while not holds():  # noqa: ASYNC110 - what is waited for happens inside a socket
        await asyncio.sleep(0)
