"""Pinned sessions: HTTP clients that connect to the checked addresses of one host and no others."""

import os
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


def is_unanswered(error: Exception) -> bool:
    """Whether a request failed before the host had sent anything."""
    is_connecting = isinstance(error, aiohttp.ClientConnectorError)
    return is_connecting and not isinstance(error, aiohttp.ClientSSLError)


def reason_of(error: Exception) -> str:
    """Return why a request failed, in words of our own: those of the HTTP library repeat what the
    server sent."""
    match error:
        case aiohttp.ClientConnectorDNSError():
            return "its name is not found"
        case aiohttp.ClientSSLError() | ssl.SSLError():
            return "its certificate or its encryption is not accepted"
        case aiohttp.ClientConnectorError(os_error=cause) if cause.errno:
            return os.strerror(cause.errno).lower()
        case aiohttp.ClientResponseError() | aiohttp.ClientPayloadError():
            return "its answer is not valid HTTP"
        case aiohttp.ServerDisconnectedError():
            return "it closed the connection without an answer"
        case OSError(errno=int() as number):
            return os.strerror(number).lower()
        case TimeoutError():
            return "it does not answer in time"
        case _:
            return "the connection failed"


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
