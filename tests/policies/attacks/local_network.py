"""Local network: addresses that lead to a server inside the machine, in every spelling."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from agiraph.web.access import Web
from agiraph.web.addresses import AddressPolicy
from agiraph.web.fetch import Fetcher

INSIDE = "127.0.0.2"
"""Where the inner server listens; the attacker's own page is at 127.0.0.1."""
HOSTS = {
    "as it is": INSIDE,
    "as one number": "2130706434",
    "as a hexadecimal number": "0x7f000002",
    "in octal digits": "0177.0.0.2",
    "in short": "127.2",
    "inside of IPv6": "[::ffff:127.0.0.2]",
    "inside of IPv6 in hexadecimal": "[::ffff:7f00:2]",
    "behind a name": "inner.test",
    "behind a public address": "both.test",
    "with a dot at the end": f"{INSIDE}.",
    "in circled digits": "①②⑦.⓪.⓪.②",
    "behind a user's name": f"page.test@{INSIDE}",
}
"""Hosts that lead to the inner server."""


async def _resolve(host: str, port: int) -> list[str]:
    if host.rstrip(".") in ("inner.test", INSIDE, "127.2", "2130706434", "0x7f000002"):
        return [INSIDE]
    return ["93.184.216.34", INSIDE] if host == "both.test" else ["127.0.0.1"]


def web_with(*allowed: str) -> Web:
    """Return a web access that may open these addresses though they are not public."""
    policy = AddressPolicy(resolve=_resolve, also_allowed=frozenset(allowed))
    return Web(fetcher=Fetcher(policy=policy))


@contextlib.asynccontextmanager
async def inner_server() -> AsyncIterator[tuple[int, bytearray]]:
    """Open a server inside the machine; yield its port and what reached it."""
    received = bytearray()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.extend(await reader.read(65536))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nhi")
        writer.close()

    server = await asyncio.start_server(serve, INSIDE, 0)
    async with server:
        yield server.sockets[0].getsockname()[1], received
