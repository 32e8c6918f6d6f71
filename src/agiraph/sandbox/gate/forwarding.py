"""Forwarding: a proxy for the hosts that a command may talk to, with and without TLS."""

import asyncio
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

from agiraph.late_patterns import late
from agiraph.sandbox.gate.exchange import Exchange, pieces_of
from agiraph.sandbox.gate.http_messages import CHUNK_BYTES
from agiraph.sandbox.gate.rules import Denied, Endpoint
from agiraph.sandbox.gate.upstream import Upstream

_AUTHORITY = late(r"\[([0-9a-fA-F:.]+)\]:(\d{1,5})|([^\[\]:/@\s]+):(\d{1,5})")
_HOP_BY_HOP = frozenset(
    {
        "connection", "keep-alive", "proxy-authenticate", "proxy-authorization",
        "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade", "expect", "host",
        "content-length",
    }
)  # fmt: skip
TO = "to"
ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"


def authority(target: str) -> Endpoint:
    """Return the host and port of a CONNECT request; raise `Denied` if it names none."""
    found = _AUTHORITY.fullmatch(target)
    host, port = ("", "0") if found is None else (found[1] or found[3], found[2] or found[4])
    if found is None or not 0 < int(port) < 65536:
        raise Denied("CONNECT names a host and a port.", status=400)
    return Endpoint(host.lower().rstrip("."), int(port))


def proxied(target: str) -> Endpoint:
    """Return the host and port of a whole http address; raise `Denied` if it names none."""
    try:
        parts = urlsplit(target)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, None
    if parts is None or parts.scheme != "http" or not host or parts.username:
        raise Denied("A proxied address begins with http:// and names a host.", status=400)
    return Endpoint(host.rstrip("."), port or 80)


def below_gate(url: str, base: str) -> str:
    """Return the address below the gate's own that stands for an endpoint of the settings.

    A program that is told an address on loopback looks for it in its own network namespace, and
    asks no proxy.
    """
    scheme, _, rest = url.partition("://")
    return f"{base}/{TO}/{scheme}/{rest}"


def url_below(path: str) -> str:
    """Return the address for which a path below the gate stands; the other way round."""
    scheme, _, rest = path.partition("/")
    return f"{scheme}://{rest}"


async def forward(exchange: Exchange, upstream: Upstream, url: str) -> None:
    """Send a proxied request to its host, and the answer back."""
    request = exchange.request
    headers = {n: value for n, value in request.headers.items() if n not in _HOP_BY_HOP}
    if request.has_body and not request.is_chunked:
        headers["Content-Length"] = request.headers["content-length"]
    body = exchange.body() if request.has_body else None
    async with upstream.request(request.method, url, headers=headers, body=body) as response:
        kept = {
            name: value
            for name, value in response.headers.items()
            if name.lower() not in _HOP_BY_HOP or name.lower() == "content-length"
        }
        await exchange.stream(response.status, kept, pieces_of(response))


async def tunnel(exchange: Exchange, endpoint: Endpoint, upstream: Upstream) -> None:
    """Connect the program with a host and carry bytes both ways until one side has ended."""
    reader, writer = await upstream.connect(endpoint.host, endpoint.port)
    try:
        await exchange.write(ESTABLISHED)
        last = _Moment()
        carried = [
            asyncio.ensure_future(_carry(exchange.reader, writer, exchange.meter.count, last)),
            asyncio.ensure_future(_carry(reader, exchange.writer, exchange.meter.count, last)),
        ]
        try:
            await _watch(carried, last, exchange.limits.idle_s)
        finally:
            for carrying in carried:
                carrying.cancel()
            await asyncio.gather(*carried, return_exceptions=True)
    finally:
        writer.transport.abort()


class _Moment:
    """When a tunnel last carried a byte, on the event loop's clock."""

    def __init__(self) -> None:
        self.at = asyncio.get_running_loop().time()

    def pass_(self) -> None:
        self.at = asyncio.get_running_loop().time()


async def _carry(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    count: Callable[[bytes], bytes],
    last: _Moment,
) -> None:
    while piece := await reader.read(CHUNK_BYTES):
        last.pass_()
        writer.write(count(piece))
        await writer.drain()
        last.pass_()
    if writer.can_write_eof():
        writer.write_eof()


async def _watch(carried: Sequence[asyncio.Future[None]], last: _Moment, idle_s: float) -> None:
    """Wait until both directions have ended, one has failed, or nothing moved for too long."""
    loop = asyncio.get_running_loop()
    waiting = set(carried)
    while waiting:
        left = last.at + idle_s - loop.time()
        if left <= 0:
            return
        done, waiting = await asyncio.wait(
            waiting, timeout=left, return_when=asyncio.FIRST_COMPLETED
        )
        for ended in done:
            ended.result()  # raises what broke the tunnel
