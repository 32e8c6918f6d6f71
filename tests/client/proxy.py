"""Proxy: TCP connections to a server that a test can cut."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

from tests.api.serving import Served


@dataclass(slots=True)
class Proxy:
    upstream: int
    swallows: int = 0
    """How many more responses it drops after the server has sent them."""
    is_open: bool = True
    port: int = 0
    made: int = 0
    """How many connections were opened so far."""
    _connections: set[asyncio.StreamWriter] = field(default_factory=set[asyncio.StreamWriter])

    def cut(self) -> None:
        """Abort every open connection."""
        for writer in self._connections:
            writer.transport.abort()
        self._connections.clear()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.made += 1
        if not self.is_open:
            return writer.transport.abort()
        to_reader, to_writer = await asyncio.open_connection("127.0.0.1", self.upstream)
        self._connections |= {writer, to_writer}
        with contextlib.suppress(OSError):
            await asyncio.gather(
                self._carry(reader, to_writer), self._carry(to_reader, writer, is_answer=True)
            )

    async def _carry(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        is_answer: bool = False,
    ) -> None:
        while data := await reader.read(65536):
            if is_answer and self.swallows:
                self.swallows -= 1
                writer.transport.abort()
                return
            writer.write(data)
            await writer.drain()
        writer.close()


@contextlib.asynccontextmanager
async def proxied(served: Served) -> AsyncGenerator[Proxy]:
    proxy = Proxy(served.port)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    served.api.access.hosts |= {f"127.0.0.1:{proxy.port}"}
    try:
        yield proxy
    finally:
        proxy.cut()
        server.close()
