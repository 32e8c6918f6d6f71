"""Fetch: downloads a page of the public internet, from a checked address and within limits."""

import asyncio
import zlib
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from yarl import URL

from agiraph.core.domain.errors import Refused
from agiraph.core.domain.provenance.labels import CLEAN, Label, of_page
from agiraph.core.domain.value import dataclass
from agiraph.faultpoints import fault
from agiraph.web.addresses import AddressPolicy, Target

if TYPE_CHECKING:  # it takes long to import, and few processes use it
    import aiohttp

AGENT = "agiraph"
ELSEWHERE = (
    "The address redirects to another site, which is not followed: nobody gave you this address. "
    "Open one that a person, a search or a page gave you, or ask the human."
)
MayRedirect = Callable[[str], bool]
"""Whether a redirect to this address is followed."""
NOT_OPENED = (
    "{url} redirects to another address, which is not opened: it is not a valid address in the "
    "public internet. Try another source."
)
_KINDS = {"image": "a picture", "video": "a video", "audio": "a recording", "font": "a font"}
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_HEADERS = {
    "User-Agent": AGENT,
    # Some sites of documentation have their pages as Markdown, too, and it costs nothing to ask.
    "Accept": "text/markdown,text/html;q=0.9,application/xhtml+xml;q=0.9,text/plain;q=0.8,"
    "application/json;q=0.7,*/*;q=0.5",
    # Only what `_Decompressor` decodes within its limits.
    "Accept-Encoding": "gzip, deflate",
}
_PDF = frozenset({"application/pdf", "application/x-pdf"})
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
    """The largest download and the longest time of one page."""

    download_bytes: int = 5 * 2**20
    decoded_bytes: int = 20 * 2**20
    ratio: int = 100
    """The largest ratio of decompressed to compressed bytes, against decompression bombs."""
    timeout_s: float = 30.0
    redirects: int = 5


PDF_BYTES = 20 * 2**20
"""The largest PDF: documents have pictures in them, which are not read."""
DOWNLOAD = Limits(download_bytes=50 * 2**20, decoded_bytes=50 * 2**20, timeout_s=120.0)
"""The limits of a file that is saved as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """A decompressed body, with the headers that are needed to read it."""

    asked: str
    """The address that was asked for. Sentences of ours name it, never the next field."""
    url: str
    """The address after all redirects, which a server may have chosen."""
    media_type: str
    charset: str | None
    body: bytes
    modified: str = ""
    is_cut: bool = False
    """Whether the body was longer than `decoded_bytes`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetcher:
    """Opens web pages without cookies and proxies, and only at public addresses.

    A proxy would look hosts up by itself, so that we could not check their addresses.
    """

    policy: AddressPolicy = AddressPolicy()
    limits: Limits = field(default_factory=Limits)

    async def fetch(self, text: str, *, may_redirect: MayRedirect | None = None) -> Fetched:
        """Return the page at a URL, or raise `Refused` with a reason that a model can act on.

        The reason repeats nothing that a server sent. It has the label of the hosts that answered.
        `may_redirect` decides on every address that the first one redirects to; None: all may be
        opened that are public.
        """
        visit = _Visit(asked=text, limits=self.limits, may_redirect=may_redirect)
        return await self._fetch(visit)

    async def download(self, text: str, *, may_redirect: MayRedirect | None = None) -> Fetched:
        """Return the file at a URL as it is, of whatever type; it must fit into `DOWNLOAD`."""
        visit = _Visit(asked=text, limits=DOWNLOAD, may_redirect=may_redirect, is_file=True)
        return await self._fetch(visit)

    async def _fetch(self, visit: "_Visit") -> Fetched:
        import aiohttp

        from agiraph.web.pinned import is_unanswered, reason_of

        seconds = visit.limits.timeout_s
        try:
            async with asyncio.timeout(seconds):
                fault("fx:before:fetch")
                fetched = await self._follow(visit)
                fault("fx:after:fetch")
                return fetched
        except TimeoutError:
            visit.label |= visit.trying  # something of an answer may have come
            said = f"{visit.shown} did not answer within {seconds:.0f} seconds. Try another source."
            raise visit.labelled(Refused(said)) from None
        except Refused as refusal:
            raise visit.labelled(refusal) from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            if not is_unanswered(error):
                visit.label |= visit.trying
            said = f"{visit.shown} could not be opened: {reason_of(error)}."
            raise visit.labelled(Refused(said)) from error

    async def _follow(self, visit: "_Visit") -> Fetched:
        target = await self.policy.check(visit.asked)
        for _ in range(visit.limits.redirects + 1):
            found = await self._get(visit, target)
            if isinstance(found, Fetched):
                return found
            if visit.may_redirect is not None and not visit.may_redirect(found):
                raise Refused(ELSEWHERE)
            try:
                # Checked like the first address: a public page may point anywhere.
                target = await self.policy.check(found)
            except Refused as refusal:
                raise Refused(NOT_OPENED.format(url=visit.shown)) from refusal
        raise Refused(
            f"The address redirects more than {visit.limits.redirects} times. Try another source."
        )

    async def _get(self, visit: "_Visit", target: Target) -> Fetched | str:
        """Return the body, or the URL of a redirect."""
        visit.trying = of_page(str(target.url))
        limits = visit.limits
        async with (
            self._session(target, limits) as session,
            session.get(target.url, allow_redirects=False) as response,
        ):
            visit.label |= visit.trying
            if response.status in _REDIRECTS and (to := response.headers.get("Location")):
                return _joined(visit, target.url, to)
            if response.status >= 400:
                raise Refused(_failure(visit.shown, response.status))
            if not visit.is_file:
                _check_type(visit, target.url, response)
                if _says_pdf(target.url, response.content_type):
                    limits = replace(limits, download_bytes=PDF_BYTES)
            return await _read_body(visit, target, response, limits)

    def _session(self, target: Target, limits: Limits) -> "aiohttp.ClientSession":
        import aiohttp

        from agiraph.web.pinned import open_session

        # A session for each hop: no connection, cookie or DNS answer of one host serves another.
        return open_session(
            target,
            self.policy.allows_connection,
            headers=_HEADERS,
            timeout=aiohttp.ClientTimeout(total=limits.timeout_s),
        )


@dataclass(slots=True, kw_only=True)
class _Visit:
    """One fetch: what was asked for, and who has answered so far."""

    asked: str
    limits: Limits
    may_redirect: MayRedirect | None
    is_file: bool = False
    """Whether any type of file is taken, and only as a whole."""
    label: Label = CLEAN
    """The hosts that have answered."""
    trying: Label = CLEAN
    """The host that was asked last."""

    @property
    def shown(self) -> str:
        return self.asked[:200]

    def labelled(self, refusal: Refused) -> Refused:
        refusal.label |= self.label
        return refusal


async def _read_body(
    visit: _Visit, target: Target, response: "aiohttp.ClientResponse", limits: Limits
) -> Fetched:
    body = bytearray()
    is_cut = False
    async for piece in _decompressed(response, limits):
        if len(body) + len(piece) > limits.decoded_bytes:
            body += piece[: limits.decoded_bytes - len(body)]
            is_cut = True
            break
        body += piece
    if is_cut and visit.is_file:
        raise Refused(_too_large(limits))
    return Fetched(
        asked=visit.shown,
        url=str(target.url),
        media_type=response.content_type,
        charset=response.charset,
        body=bytes(body),
        modified=response.headers.get("Last-Modified", ""),
        is_cut=is_cut,
    )


async def _decompressed(response: "aiohttp.ClientResponse", limits: Limits) -> AsyncIterator[bytes]:
    """Yield the decompressed body in pieces, so that a reader that stops early saves memory."""
    encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding not in ("identity", "", "gzip", "x-gzip", "deflate"):
        raise Refused("The page is compressed in a way we did not ask for. Try another source.")
    decompressor = None if encoding in ("identity", "") else _Decompressor(limits.ratio)
    received = 0
    async for chunk in response.content.iter_chunked(64 * 1024):
        received += len(chunk)
        if received > limits.download_bytes:
            raise Refused(_too_large(limits))
        for piece in (chunk,) if decompressor is None else decompressor.feed(chunk):
            yield piece


def _too_large(limits: Limits) -> str:
    what = "file" if limits is DOWNLOAD else "page"
    return (
        f"The {what} is larger than {limits.download_bytes // 2**20} MiB. Look for a smaller one, "
        "or for the part of it you need."
    )


class _Decompressor:
    """Decompresses in small pieces, and refuses a decompression bomb."""

    def __init__(self, ratio: int) -> None:
        self._ratio = ratio
        self._zlib: Any = None
        self._bytes_in = self._bytes_out = 0

    def feed(self, chunk: bytes) -> Sequence[bytes]:
        self._bytes_in += len(chunk)
        pieces: list[bytes] = []
        if self._zlib is None:
            # Some servers send raw deflate data without the zlib header that "deflate" means.
            is_raw = chunk[:1] not in (b"\x1f", b"\x78", b"\x58", b"\x08")
            self._zlib = zlib.decompressobj(-zlib.MAX_WBITS if is_raw else zlib.MAX_WBITS | 32)
        # What follows the end of the data is left: reading it again and again would never end.
        while chunk and not self._zlib.eof:
            try:
                piece = self._zlib.decompress(chunk, 256 * 1024)
            except zlib.error as error:
                raise Refused("The page cannot be decompressed. Try another source.") from error
            self._bytes_out += len(piece)
            # Small pages may shrink a lot, such as tables of zeros; they can do no harm.
            if self._bytes_out > 2**20 and self._bytes_out > self._ratio * self._bytes_in:
                raise Refused(
                    f"The page grows more than {self._ratio} times when it is decompressed. Try "
                    "another source."
                )
            pieces.append(piece)
            chunk = self._zlib.unconsumed_tail
        return pieces


def _joined(visit: _Visit, url: URL, location: str) -> str:
    """Return the URL of a redirect, whose Location header may be relative."""
    try:
        return str(url.join(URL(location)))
    except ValueError as error:
        raise Refused(NOT_OPENED.format(url=visit.shown)) from error


def _check_type(visit: _Visit, url: URL, response: "aiohttp.ClientResponse") -> None:
    media_type = response.content_type
    if "Content-Type" not in response.headers or _says_pdf(url, media_type):
        return  # `page.read` looks at the bytes instead
    if not (media_type.startswith("text/") or media_type in _TEXTUAL or _is_textual(media_type)):
        kind = media_type.partition("/")[0]
        what = f"is {_KINDS[kind]}, not text" if kind in _KINDS else "is not text"
        raise Refused(
            f"{visit.shown} {what}. Pages, PDF, feeds, text, JSON, XML, CSV and Markdown can be "
            "read."
        )


def _says_pdf(url: URL, media_type: str) -> bool:
    """Whether a response is a PDF by its type, or by its name where the type says nothing."""
    is_unknown = media_type in ("application/octet-stream", "binary/octet-stream")
    return media_type in _PDF or (is_unknown and url.path.lower().endswith(".pdf"))


def is_pdf(fetched: Fetched) -> bool:
    """Whether this is a PDF, by its first bytes. A server may say it of anything."""
    return fetched.body[:64].lstrip().startswith(b"%PDF-") or fetched.media_type in _PDF


def _is_textual(media_type: str) -> bool:
    return media_type.startswith("application/") and media_type.endswith(("+json", "+xml"))


def _failure(url: str, status: int) -> str:
    match status:
        case 401 | 402 | 403 | 407 | 451:
            return f"{url} denies access (HTTP {status}). Try another source."
        case 404 | 410:
            return (
                f"There is no page at {url} (HTTP {status}). Check the address, or search for it."
            )
        case 429:
            return f"{url} limits the number of requests (HTTP 429). Use another source for now."
        case _:
            return f"{url} returned an error (HTTP {status}). Try another source."
