"""Pinned sessions: HTTP clients that connect to the checked addresses of one host and no others."""

import socket
import ssl
from collections.abc import Callable, Mapping
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from agiraph.web.addresses import Target

MayConnect = Callable[[str, int], bool]
"""Whether a socket may be connected to this IP address and port."""


def open_session(
    target: Target,
    may_connect: MayConnect,
    *,
    headers: Mapping[str, str],
    timeout: aiohttp.ClientTimeout,
    keeps_connections: bool = False,
    certificates: ssl.SSLContext | None = None,
) -> aiohttp.ClientSession:
    """Return a session without cookies, proxies and passwords of the environment.

    Its resolver knows the target's addresses alone, and every address is checked once more before
    a socket is opened: an HTTP library that looks a host up again would be open to DNS rebinding.
    """

    def open_socket(info: tuple[Any, ...]) -> socket.socket:
        family, kind, protocol, _, address = info
        if not may_connect(str(address[0]), int(address[1])):
            raise OSError(f"{address[0]} is not in the public internet")
        opened = socket.socket(family=family, type=kind, proto=protocol)
        opened.setblocking(False)
        return opened

    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(
            resolver=_PinnedResolver(target),
            use_dns_cache=False,
            force_close=not keeps_connections,
            socket_factory=open_socket,
            limit=0,
            ssl=True if certificates is None else certificates,
        ),
        cookie_jar=aiohttp.DummyCookieJar(),
        trust_env=False,
        auto_decompress=False,
        headers=headers,
        timeout=timeout,
    )


class _PinnedResolver(AbstractResolver):
    """Returns the checked addresses of one host, and refuses every other host."""

    def __init__(self, target: Target) -> None:
        self._target = target

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        if host != self._target.host:
            raise OSError(f"{host} was not checked")
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=self._target.connect_port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for address in self._target.addresses
        ]

    async def close(self) -> None:
        pass
