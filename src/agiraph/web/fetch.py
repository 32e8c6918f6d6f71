"""Fetch: one page of the open internet, from exactly the machine that was looked up, in bounds."""

import asyncio
import socket
import zlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from agiraph.domain.errors import Refused
from agiraph.faultpoints import fault
from agiraph.web.addresses import Gate, Target

AGENT = "agiraph"
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_HEADERS = {
    "User-Agent": AGENT,
    "Accept": "text/html,application/xhtml+xml,text/plain,text/markdown,application/json,*/*;q=0.5",
    "Accept-Encoding": "gzip, deflate",
}
_TEXTUAL = frozenset(
    {
        "application/csv",
        "application/json",
        "application/ld+json",
        "application/xhtml+xml",
        "application/xml",
        "application/yaml",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much of a page is taken, and how long it is waited for."""

    wire: int = 5 * 2**20
    decoded: int = 20 * 2**20
    ratio: int = 100
    """Bytes that one byte of the wire may become."""
    seconds: float = 30.0
    redirects: int = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """A body as it came, unpacked, with where it came from in the end."""

    url: str
    media_type: str
    charset: str | None
    body: bytes
    modified: str = ""
    is_cut: bool = False
    """Whether there was more than we take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetcher:
    """Opens web pages: no cookies, no proxy, no address that is not public."""

    gate: Gate = Gate()
    limits: Limits = field(default_factory=Limits)

    async def fetch(self, text: str) -> Fetched:
        try:
            async with asyncio.timeout(self.limits.seconds):
                fault("fx:before:fetch")
                fetched = await self._follow(text)
                fault("fx:after:fetch")
                return fetched
        except TimeoutError:
            raise Refused(
                f"{text[:200]} did not answer within {self.limits.seconds:.0f} seconds. Try "
                "another source."
            ) from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            said = str(error) or type(error).__name__
            raise Refused(f"{text[:200]} could not be opened: {said[:300]}.") from error

    async def _follow(self, text: str) -> Fetched:
        for _ in range(self.limits.redirects + 1):
            target = await self.gate.admit(text)
            answer = await self._get(target)
            if isinstance(answer, Fetched):
                return answer
            text = answer
        raise Refused(
            f"It leads from one address to the next, more than {self.limits.redirects} times."
        )

    async def _get(self, target: Target) -> Fetched | str:
        """A body; or the address that it points to instead."""
        async with (
            self._session(target) as session,
            session.get(target.url, allow_redirects=False) as response,
        ):
            if response.status in _REDIRECTS and (to := response.headers.get("Location")):
                return _joined(target.url, to)
            if response.status >= 400:
                raise Refused(_failure(target.url, response.status))
            _check_type(target.url, response.content_type, response.headers)
            return await self._take(target, response)

    def _session(self, target: Target) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                resolver=_Pinned(target),
                use_dns_cache=False,
                force_close=True,
                socket_factory=self._socket,
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
            auto_decompress=False,
            headers=_HEADERS,
            timeout=aiohttp.ClientTimeout(total=self.limits.seconds),
        )

    def _socket(self, info: tuple[Any, ...]) -> socket.socket:
        """The last look at an address, where nothing can come in between any more."""
        family, kind, protocol, _, address = info
        if not self.gate.admits(str(address[0])):
            raise OSError(f"{address[0]} is not in the public internet")
        made = socket.socket(family=family, type=kind, proto=protocol)
        made.setblocking(False)
        return made

    async def _take(self, target: Target, response: aiohttp.ClientResponse) -> Fetched:
        body = bytearray()
        is_cut = False
        unpacked = _unpacked(response, self.limits)
        async for piece in unpacked:
            body += piece[: self.limits.decoded - len(body)]
            if len(body) >= self.limits.decoded:
                is_cut = True
                break
        return Fetched(
            url=str(target.url),
            media_type=response.content_type,
            charset=response.charset,
            body=bytes(body),
            modified=response.headers.get("Last-Modified", ""),
            is_cut=is_cut,
        )


class _Pinned(AbstractResolver):
    """Says of one host what was found out before, and nothing of any other."""

    def __init__(self, target: Target) -> None:
        self._target = target

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        if host != self._target.host:
            raise OSError(f"{host} was not looked up")
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for address in self._target.addresses
        ]

    async def close(self) -> None:
        pass


async def _unpacked(response: aiohttp.ClientResponse, limits: Limits) -> AsyncIterator[bytes]:
    """The body, piece by piece, never more of it in memory than is wanted."""
    encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding not in ("identity", "", "gzip", "x-gzip", "deflate"):
        raise Refused(f"The page is packed in a way we did not ask for ({encoding[:40]}).")
    unpack = None if encoding in ("identity", "") else _Unpacker(limits.ratio)
    taken = 0
    async for packed in response.content.iter_chunked(64 * 1024):
        taken += len(packed)
        if taken > limits.wire:
            raise Refused(
                f"The page is larger than {limits.wire // 2**20} MB. Look for a smaller one, or "
                "for the part of it you need."
            )
        if unpack is None:
            yield packed
            continue
        for piece in unpack.take(packed):
            yield piece


class _Unpacker:
    """Unpacks in small pieces, and stops at what grows beyond all measure."""

    def __init__(self, ratio: int) -> None:
        self._ratio = ratio
        self._way: Any = None
        self._packed = self._made = 0

    def take(self, packed: bytes) -> Sequence[bytes]:
        self._packed += len(packed)
        pieces: list[bytes] = []
        if self._way is None:
            # Some servers send raw deflate and call it deflate all the same.
            is_raw = packed[:1] not in (b"\x1f", b"\x78", b"\x58", b"\x08")
            self._way = zlib.decompressobj(-zlib.MAX_WBITS if is_raw else zlib.MAX_WBITS | 32)
        while packed:
            try:
                piece = self._way.decompress(packed, 256 * 1024)
            except zlib.error as error:
                raise Refused(f"The page cannot be unpacked: {error}.") from error
            self._made += len(piece)
            if self._made > 2**20 and self._made > self._ratio * self._packed:
                raise Refused(f"The page grows more than {self._ratio} times when it is unpacked.")
            pieces.append(piece)
            packed = self._way.unconsumed_tail
        return pieces


def _joined(url: URL, to: str) -> str:
    try:
        return str(url.join(URL(to)))
    except ValueError as error:
        raise Refused(f"It leads on to {to[:80]!r}, which cannot be read.") from error


def _check_type(url: URL, media_type: str, headers: Any) -> None:
    if media_type == "application/pdf":
        raise Refused(
            f"{url} is a PDF, which cannot be read here. Look for the same as a web page, or for "
            "an abstract of it."
        )
    if "Content-Type" not in headers:
        return  # looked at when it is read
    if not (media_type.startswith("text/") or media_type in _TEXTUAL or _is_textual(media_type)):
        raise Refused(
            f"{url} is {media_type[:80]}, which is no text. Pages, text, JSON, XML, CSV and "
            "Markdown can be read."
        )


def _is_textual(media_type: str) -> bool:
    return media_type.startswith("application/") and media_type.endswith(("+json", "+xml"))


def _failure(url: URL, status: int) -> str:
    match status:
        case 401 | 402 | 403 | 407 | 451:
            return f"{url} is not open to us (HTTP {status}). Try another source."
        case 404 | 410:
            return (
                f"There is no page at {url} (HTTP {status}). Check the address, or search for it."
            )
        case 429:
            return f"{url} wants fewer requests (HTTP 429). Take another source for now."
        case _:
            return f"{url} answered with an error (HTTP {status}). Try another source."
