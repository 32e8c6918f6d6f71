"""HTTP proxies: which proxy a provider's URL needs, and requests through it with aiohttp.

Requests without a proxy use the faster `http_connection`. aiohttp knows forward proxies, CONNECT
tunnels and TLS inside of them.
"""

import asyncio
import base64
import io
import ipaddress
import os
import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import field
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from agiraph.core.domain.errors import Misconfigured
from agiraph.core.domain.value import dataclass
from agiraph.models.http.connection import (
    CONNECT_TIMEOUT_S,
    MAX_HEADER_BYTES,
    Body,
    CertificateUntrusted,
    ConnectionFailed,
    ServerSilent,
    parse_url,
    trusted_certificates,
)
from agiraph.models.http.patience import Patience
from agiraph.redaction import keep

if TYPE_CHECKING:  # it takes long to import, and few processes use it
    import aiohttp


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxy:
    variable: str
    """The environment variable that names this proxy, for error messages."""
    url: str
    """The proxy's address without user name and password."""
    authorization: str = field(default="", repr=False)
    """The value of the Proxy-Authorization header; empty if the proxy needs none."""


class ProxyRefused(ConnectionFailed):
    """The proxy itself answered with an error, before the request reached the provider."""

    def __init__(self, proxy: Proxy, status: int, reason: str) -> None:
        super().__init__(
            f"the proxy {proxy.url} answered {status} {reason}".rstrip()
            + f". Check {proxy.variable}, the proxy's user name and password in it, and whether "
            "the proxy allows this address; or add the host to NO_PROXY",
            is_unsent=True,
        )
        self.status = status


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxies:
    """The proxy variables of the environment, lower case before upper case, as curl reads them."""

    http: str = field(default="", repr=False)
    https: str = field(default="", repr=False)
    bypass: tuple[str, ...] = ()
    """The entries of NO_PROXY: names, domains, addresses, networks, or `*` for every host."""

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> "Proxies":
        """Read HTTP_PROXY, HTTPS_PROXY and NO_PROXY. Passwords in them are kept out of all logs."""

        def value(name: str) -> str:
            # curl ignores HTTP_PROXY in upper case, because a CGI program gets it from a client's
            # `Proxy:` header. This process is no CGI program, and people set it in upper case.
            return (environ.get(name) or environ.get(name.upper()) or "").strip()

        proxies = cls(
            http=value("http_proxy"),
            https=value("https_proxy"),
            bypass=tuple(entry.lower() for entry in value("no_proxy").replace(",", " ").split()),
        )
        for name, url in (("HTTP_PROXY", proxies.http), ("HTTPS_PROXY", proxies.https)):
            if password := urlsplit(_with_scheme(url)).password:
                # Both forms, because an error text may quote the URL as it was written.
                keep({f"{name} password": password, f"{name} decoded": unquote(password)})
        return proxies

    def shown(self) -> dict[str, str]:
        """Return the proxy variables that are set, without user names and passwords."""
        values = {"HTTP_PROXY": _without_password(self.http)}
        values["HTTPS_PROXY"] = _without_password(self.https)
        if any(values.values()):
            values["NO_PROXY"] = ", ".join(self.bypass)
        return {name: value for name, value in values.items() if value}

    def for_url(self, url: str) -> Proxy | None:
        """Return the proxy for this URL, or None where the provider is asked directly."""
        return _proxy_for(self, url) if self.http or self.https else None


@lru_cache(256)
def _proxy_for(proxies: Proxies, url: str) -> Proxy | None:
    origin = parse_url(url).origin
    setting = proxies.https if origin.is_tls else proxies.http
    if not setting or _is_bypassed(origin.host, origin.port, proxies.bypass):
        return None
    variable = "HTTPS_PROXY" if origin.is_tls else "HTTP_PROXY"
    try:
        parts = urlsplit(_with_scheme(setting))
        host, port = parts.hostname, parts.port
    except ValueError:
        parts, host, port = None, None, None
    if parts is None or not host or parts.scheme not in ("http", "https"):
        # The setting itself stays out of this message: it may contain the proxy's password.
        raise Misconfigured(
            f"{variable} must be the address of an HTTP proxy, such as http://proxy.example:3128. "
            "Other proxies, such as SOCKS, are not supported."
        )
    shown = f"[{host}]" if ":" in host else host
    return Proxy(
        variable=variable,
        url=f"{parts.scheme}://{shown}" + (f":{port}" if port else ""),
        authorization=_basic_authorization(parts.username, parts.password),
    )


def _with_scheme(setting: str) -> str:
    """Return a proxy setting as a URL: `proxy.example:3128` means an http proxy, as for curl."""
    return setting if "://" in setting or not setting else f"http://{setting}"


def _without_password(setting: str) -> str:
    # Cut at the last "@" and not parsed: a setting that is no valid URL must not show its password
    # either.
    before, at, after = _with_scheme(setting).rpartition("@")
    return f"{before.partition('://')[0]}://…@{after}" if at else after


def _basic_authorization(user: str | None, password: str | None) -> str:
    if not user:
        return ""
    pair = f"{unquote(user)}:{unquote(password or '')}"
    return "Basic " + base64.b64encode(pair.encode()).decode()


def _is_bypassed(host: str, port: int, entries: tuple[str, ...]) -> bool:
    # A proxy cannot reach this machine's loopback, where model servers such as Ollama listen.
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return any(_names_host(entry, host, port) for entry in entries)
    if address.is_loopback:
        return True
    return any(_names_host(entry, host, port) or _holds(entry, address) for entry in entries)


def _names_host(entry: str, host: str, port: int) -> bool:
    """Whether a NO_PROXY entry is `*`, this host, or a domain above it; `:port` narrows it."""
    if entry == "*":
        return True
    name, _, wanted_port = entry.partition(":")
    name = name.removeprefix("*").removeprefix(".")
    is_port_right = wanted_port in ("", str(port))
    return bool(name) and is_port_right and (host == name or host.endswith(f".{name}"))


def _holds(entry: str, address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Whether a NO_PROXY entry is a network with this address, such as `10.0.0.0/8`."""
    try:
        return address in ipaddress.ip_network(entry, strict=False)
    except ValueError:
        return False


@dataclass(slots=True)
class ProxiedExchange:
    """A response whose headers have arrived through a proxy."""

    response: "aiohttp.ClientResponse"
    patience: Patience
    has_begun: bool = False

    @property
    def status(self) -> int:
        return self.response.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self.response.headers

    async def read_chunk(self) -> bytes:
        """Return the body bytes that arrived since the last call; b"" at the end of the body."""
        limit_s = self.patience.between_bytes_s if self.has_begun else self.patience.first_byte_s
        try:
            async with asyncio.timeout(limit_s):
                return await self.response.content.readany()
        except TimeoutError as error:
            raise ServerSilent(limit_s, has_begun=self.has_begun) from error

    def begin(self) -> None:
        """Note that the first event of the reply is here: from now on silence has to be short."""
        self.has_begun = True


class ProxiedClient:
    """Sends requests through proxies, with the time limits and errors of `http_connection`."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    @asynccontextmanager
    async def post(
        self, proxy: Proxy, url: str, headers: Mapping[str, str], body: Body, patience: Patience
    ) -> AsyncGenerator[ProxiedExchange]:
        """Send a request; hold its connection until the caller has read the response."""
        import aiohttp

        is_tls = parse_url(url).origin.is_tls
        credentials: dict[str, str] = {}
        if proxy.authorization:
            credentials["Proxy-Authorization"] = proxy.authorization
        try:
            async with self._opened().post(
                url,
                # aiohttp writes a file object in chunks; it would write long bytes in one piece.
                data=io.BytesIO(b"".join(body)),
                # Through a tunnel only CONNECT may carry the proxy's password: the request itself
                # is the provider's. Without TLS the proxy reads the request itself.
                headers={**headers, **({} if is_tls else credentials)},
                proxy=proxy.url,
                proxy_headers=credentials if is_tls else None,
                # A redirect would send the API key to another host.
                allow_redirects=False,
                timeout=_timeout(patience),
            ) as response:
                # Without TLS the proxy's refusal looks like the provider's response. Through a
                # tunnel aiohttp raises ClientHttpProxyError instead.
                if response.status == 407:
                    raise ProxyRefused(proxy, 407, response.reason or "")
                yield ProxiedExchange(response, patience)
        except (aiohttp.ClientError, OSError) as error:
            raise self._failure(proxy, error, patience) from error

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _opened(self) -> "aiohttp.ClientSession":
        import aiohttp

        if self._session is None:
            self._session = aiohttp.ClientSession(
                # `limit=0`: a request that waits for a free connection would time out as if the
                # proxy did not answer.
                # `trust_env=False` below: `Proxies` has read the variables already, and aiohttp
                # would also take passwords for the provider's host from ~/.netrc.
                connector=aiohttp.TCPConnector(ssl=trusted_certificates(), limit=0),
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
                auto_decompress=False,
                skip_auto_headers=("User-Agent", "Accept"),
                max_line_size=MAX_HEADER_BYTES,
                max_field_size=MAX_HEADER_BYTES,
            )
        return self._session

    def _failure(self, proxy: Proxy, error: Exception, patience: Patience) -> ConnectionFailed:
        """Translate an aiohttp error. aiohttp's own texts are not used where they hold URLs."""
        import aiohttp

        through = f"through the proxy {proxy.url}"
        # Subclasses first: the proxy errors are also response or connector errors. `is_unsent` is
        # claimed only where the request cannot have left; else a call might be charged and not
        # counted.
        match error:
            case aiohttp.ClientHttpProxyError():
                return ProxyRefused(proxy, error.status, error.message)
            case aiohttp.ClientConnectorCertificateError():
                cause = error.certificate_error
                is_named = isinstance(cause, ssl.SSLCertVerificationError)
                reason = cause.verify_message if is_named else str(cause)
                return CertificateUntrusted(reason, is_unsent=True)
            case aiohttp.ConnectionTimeoutError():
                reason = f"no connection within {CONNECT_TIMEOUT_S:g} s {through}"
                return ConnectionFailed(reason, is_unsent=True)
            case aiohttp.SocketTimeoutError():
                return ServerSilent(patience.first_byte_s, has_begun=False)
            case aiohttp.ClientProxyConnectionError():
                reason = error.strerror or (error.errno and os.strerror(error.errno)) or "no answer"
                said = f"no connection to the proxy {proxy.url} ({reason}). Check {proxy.variable}"
                return ConnectionFailed(said, is_unsent=True)
            case aiohttp.ClientConnectorError():
                return ConnectionFailed(f"{error} {through}", is_unsent=True)
            case aiohttp.ClientResponseError():
                return ConnectionFailed(f"the response is not HTTP ({error.message}) {through}")
            case aiohttp.ServerDisconnectedError() | aiohttp.ClientPayloadError():
                said = "the connection was closed before the end of the response"
                return ConnectionFailed(f"{said} ({through})")
            case _:
                return ConnectionFailed(f"{error or type(error).__name__} {through}")


def _timeout(patience: Patience) -> "aiohttp.ClientTimeout":
    import aiohttp

    # A long reply may take many minutes, so only silence ends it. `read_chunk` ends a shorter one.
    return aiohttp.ClientTimeout(
        total=None,
        connect=CONNECT_TIMEOUT_S,
        sock_connect=CONNECT_TIMEOUT_S,
        sock_read=max(patience.first_byte_s, patience.between_bytes_s),
    )
