"""Sites: small scripted web servers on loopback that record their requests."""

import asyncio
import contextlib
import gzip
import socket
import sys
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from agiraph.web.addresses import AddressPolicy
from agiraph.web.fetch import Fetcher, Limits

Handler = Callable[[asyncio.StreamWriter], Awaitable[None]]

connected: list[Any] = []
"""The addresses that sockets of this process were connected to during a recording."""
_is_recording = False


def _record_connection(event: str, arguments: tuple[Any, ...]) -> None:
    if _is_recording and event == "socket.connect":
        connected.append(arguments[1])


sys.addaudithook(_record_connection)


@contextlib.contextmanager
def recording_connections() -> Iterator[list[Any]]:
    """Record the addresses that sockets are connected to in the block, with an audit hook."""
    global _is_recording
    connected.clear()
    _is_recording = True
    try:
        yield connected
    finally:
        _is_recording = False


def response(
    body: bytes = b"", *, kind: str = "text/html", status: str = "200 OK", **headers: str
) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}"]
    if kind:
        lines.append(f"Content-Type: {kind}")
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def html(text: str, title: str = "A page", **headers: str) -> bytes:
    page = f"<html><head><title>{title}</title></head><body>{text}</body></html>"
    return response(page.encode(), **headers)


def redirect_to(location: str, status: str = "302 Found") -> bytes:
    return response(status=status, Location=location)


@dataclass
class Site:
    """Pages by path; a page is the bytes of a response, or a handler that writes one."""

    pages: dict[str, bytes | Handler] = field(default_factory=dict[str, bytes | Handler])
    requests: list[str] = field(default_factory=list[str])
    """The first line of each request, and its headers."""
    port: int = 0
    visits: set[asyncio.Task[None]] = field(default_factory=set["asyncio.Task[None]"])

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        visit = asyncio.current_task()
        assert visit is not None
        self.visits.add(visit)
        with contextlib.suppress(
            ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError
        ):
            raw = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            self.requests.append(raw)
            path = raw.split(" ")[1].partition("?")[0]
            page = self.pages.get(path, response(b"nothing", status="404 Not Found"))
            if callable(page):
                await page(writer)
            else:
                writer.write(page)
                await writer.drain()
        self.visits.discard(visit)
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


@contextlib.asynccontextmanager
async def site(**pages: bytes | Handler) -> AsyncIterator[Site]:
    """Serve a site on a free loopback port during the block."""
    opened = Site({f"/{name}": page for name, page in pages.items()})
    server = await asyncio.start_server(opened.serve, "127.0.0.1", 0)
    opened.port = server.sockets[0].getsockname()[1]
    try:
        yield opened
    finally:
        server.close()
        for visit in opened.visits:
            visit.cancel()
        await asyncio.gather(*opened.visits, return_exceptions=True)
        await server.wait_closed()


def fetcher(*, also: tuple[str, ...] = ("127.0.0.1",), **limits: Any) -> Fetcher:
    """Return a fetcher that may connect to loopback."""
    return Fetcher(policy=AddressPolicy(also_allowed=frozenset(also)), limits=Limits(**limits))


def zipped(text: bytes) -> bytes:
    return response(gzip.compress(text), Content_Encoding="gzip")


def bomb(megabytes: int) -> bytes:
    """Return a response with this many megabytes of zeros, compressed to about a thousandth."""
    packer = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    packed = b"".join(packer.compress(bytes(2**20)) for _ in range(megabytes)) + packer.flush()
    return response(packed, kind="text/plain", Content_Encoding="gzip")


def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
