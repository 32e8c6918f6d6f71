"""Upstream: the connections that the gate opens for a command, to checked addresses only.

A host is looked up once per command and stays pinned to the addresses that were found, so that a
name cannot lead somewhere else later (DNS rebinding). The policy is the one of `web_fetch`, except
for endpoints that the settings name: these may be inside your network.
"""

import asyncio
import base64
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from yarl import URL

from agiraph.core.domain.errors import Refused
from agiraph.sandbox.gate.rules import Denied, Endpoint, endpoint_of
from agiraph.web.addresses import AddressPolicy, Target

if TYPE_CHECKING:  # it takes long to import, and few processes use it
    import aiohttp

CONNECT_S = 20.0
IDLE_S = 120.0
"""The longest silence of a host during an answer."""
MAX_REDIRECTS = 5
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_AGENT = {"User-Agent": "agiraph"}
_NOT_ADDED = ("Accept", "Accept-Encoding", "Content-Type")
"""Headers that the HTTP library would add: a program that reads no gzip must not get it."""

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Upstream:
    """Opens connections for one command."""

    def __init__(
        self,
        policy: AddressPolicy,
        endpoints: frozenset[Endpoint] = frozenset(),
        *,
        certificates: ssl.SSLContext | None = None,
    ) -> None:
        self._policy = policy
        self._endpoints = endpoints
        self._certificates = certificates
        self._targets: dict[Endpoint, Target] = {}
        self._sessions: dict[tuple[str, Endpoint], aiohttp.ClientSession] = {}
        self._passwords: dict[Endpoint, dict[str, str]] = {}

    def trust(self, url: str) -> str:
        """Let the address of a configured index be opened, wherever it is; return it without its
        user name and password, which go into a header of requests to this endpoint."""
        endpoint = endpoint_of(url)
        if endpoint is None:
            return url
        self._endpoints |= {endpoint}
        parts = urlsplit(url)
        if parts.username:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            encoded = base64.b64encode(pair.encode()).decode()
            self._passwords[endpoint] = {"Authorization": f"Basic {encoded}"}
        return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()

    @asynccontextmanager
    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] = {},
        body: AsyncIterator[bytes] | None = None,
    ) -> "AsyncGenerator[aiohttp.ClientResponse]":
        """Send a request and yield its answer, whose body is not decompressed.

        Redirects are not followed. Raises `Denied` if the address may not be opened or does not
        answer.
        """
        import aiohttp

        target = await self._target(url)
        endpoint = Endpoint(target.host, target.port)
        exact = URL(url, encoded=True)
        if exact.raw_host != target.host:
            raise Denied("The address can be read in two ways, so it is not opened.", status=400)
        try:
            async with self._session(exact.scheme, endpoint, target).request(
                method,
                exact,
                headers={**headers, **self._passwords.get(endpoint, {})},
                data=body,
                allow_redirects=False,
                skip_auto_headers=_NOT_ADDED,
            ) as response:
                yield response
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise _unanswered(target.host, error) from error

    @asynccontextmanager
    async def get(
        self, url: str, *, accept: str = "*/*", method: str = "GET"
    ) -> "AsyncGenerator[aiohttp.ClientResponse]":
        """Send a request with no header of the client's, and follow redirects: each address on the
        way is checked like the first."""
        headers = {"Accept": accept, "Accept-Encoding": "identity"}
        for _ in range(MAX_REDIRECTS + 1):
            async with self.request(method, url, headers=headers) as response:
                location = response.headers.get("Location")
                if response.status not in _REDIRECTS or location is None:
                    yield response
                    return
                try:
                    url = str(URL(url).join(URL(location)))
                except ValueError as error:
                    raise Denied("The index leads to no valid address.", status=502) from error
        raise Denied(f"The index redirects more than {MAX_REDIRECTS} times.", status=502)

    async def check(self, endpoint: Endpoint) -> Target:
        """Look a host up, once for the command; raise `Denied` if it may not be connected to."""
        host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
        return await self._target(f"https://{host}:{endpoint.port}/")

    async def connect(self, host: str, port: int) -> Streams:
        """Open a TCP connection to one of the checked addresses of a host."""
        target = await self.check(Endpoint(host, port))
        last: Exception = OSError("it has no address")
        for address in target.addresses:
            try:
                async with asyncio.timeout(CONNECT_S):
                    return await asyncio.open_connection(address, target.connect_port)
            except (OSError, TimeoutError) as error:
                last = error
        raise _unanswered(host, last)

    async def close(self) -> None:
        for session in self._sessions.values():
            await session.close()

    async def _target(self, url: str) -> Target:
        endpoint = endpoint_of(url)
        if endpoint is None:
            raise Denied("That is not a web address, which begins with https:// or http://.")
        if (known := self._targets.get(endpoint)) is None:
            known = self._targets[endpoint] = await self._checked(endpoint, url)
        return known

    async def _checked(self, endpoint: Endpoint, url: str) -> Target:
        host, port = endpoint.host, endpoint.port
        if endpoint not in self._endpoints:
            try:
                return await self._policy.check(url)
            except Refused as refusal:
                raise Denied(str(refusal), host=host) from refusal
        try:
            found = tuple(await self._policy.resolve(host, port))
        except OSError as error:
            raise _unanswered(host, error) from error
        return Target(url=URL(url), host=host, port=port, addresses=found, connect_port=port)

    def _session(self, scheme: str, endpoint: Endpoint, target: Target) -> "aiohttp.ClientSession":
        import aiohttp

        from agiraph.web.pinned import open_session

        if (known := self._sessions.get((scheme, endpoint))) is not None:
            return known

        def may_connect(address: str, port: int) -> bool:
            is_named = endpoint in self._endpoints and address in target.addresses
            return is_named or self._policy.allows_connection(address, port)

        made = open_session(
            target,
            may_connect,
            headers=_AGENT,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S, sock_read=IDLE_S),
            keeps_connections=True,
            certificates=self._certificates,
        )
        self._sessions[scheme, endpoint] = made
        return made


def _unanswered(host: str, error: Exception) -> Denied:
    from agiraph.web.pinned import reason_of

    return Denied(f"{host} does not answer: {reason_of(error)}.", status=502, host=host)
