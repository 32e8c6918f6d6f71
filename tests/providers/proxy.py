"""A small HTTP proxy on loopback: CONNECT tunnels and forwarded requests, to one server."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field


@dataclass(slots=True)
class ProxyServer:
    upstream_port: int
    """The port on loopback to which every request goes, whatever host it names."""
    refusal: bytes = b""
    """A status line such as `407 Proxy Authentication Required`; empty: requests are passed on."""
    silent: bool = False
    port: int = 0
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    """The request line and headers of each request that the proxy could read."""
    _tasks: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
                while await self._serve_request(reader, writer):
                    pass
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def _serve_request(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        line, *lines = head.rstrip().split("\r\n")
        headers = {name.lower(): value for name, value in (x.split(": ", 1) for x in lines)}
        self.requests.append((line, headers))
        if self.silent:
            await asyncio.Event().wait()
        if self.refusal:
            writer.write(b"HTTP/1.1 %b\r\ncontent-length: 0\r\n\r\n" % self.refusal)
            await writer.drain()
            return not line.startswith("CONNECT")
        up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self.upstream_port)
        try:
            if line.startswith("CONNECT"):
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                method, url, version = line.split(" ")
                path = "/" + url.split("/", 3)[3]
                kept = [f"{k}: {v}" for k, v in headers.items() if not k.startswith("proxy-")]
                up_writer.write("\r\n".join([f"{method} {path} {version}", *kept, "\r\n"]).encode())
            await asyncio.gather(_copy(reader, up_writer), _copy(up_reader, writer))
        finally:
            up_writer.transport.abort()
        return False

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncGenerator["ProxyServer"]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            for task in [*self._tasks]:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()
