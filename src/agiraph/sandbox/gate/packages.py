"""Package reader: shows a command the package indexes of this machine, for reading only.

The pages of an index are written anew, so that only what the index lists can be fetched. A request
upstream holds nothing of the command's but the name of a package: no query, no header, no body.
Hashes stay as the index gave them, so pip, uv, npm and cargo check what they receive.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import IO, Protocol
from urllib.parse import unquote, urlsplit

from agiraph.core.domain.text.conversion import Converter
from agiraph.sandbox.gate.exchange import Exchange, Limits, pieces_of, whole_body
from agiraph.sandbox.gate.http_messages import CHUNK_BYTES
from agiraph.sandbox.gate.indexes import PackageIndexes
from agiraph.sandbox.gate.package_names import NOT_KNOWN, Ecosystem, PackageNames, is_name
from agiraph.sandbox.gate.rules import Denied
from agiraph.sandbox.gate.upstream import Upstream

NO_SUCH_PACKAGE = "No package index of this machine has {name!r}."
NO_SUCH_FILE = "The package index lists no such file."
NOT_CONFIGURED = (
    "No index for {kind} packages is configured on this machine: name one under [packages] in "
    "agiraph.toml."
)
LOCAL = "local-index"
"""The name of a `file:` index where hosts are named."""
MOST_MARKS = 600_000
"""Of a page. A mark begins a value of JSON or a tag or attribute of HTML, each of which takes up to
250 bytes of memory once it is read."""
_MARKS_OF_JSON, _MARKS_OF_HTML = b",[{", b"< \t\r\n\f/\"'"

Reach = Callable[[str, str], Awaitable[None]]
"""Records that the command reaches a host, and what for, before anything is sent there."""
Inspect = Callable[[Path], Awaitable[None]]
"""Reads a whole file of a package before the program has received the last of it."""


class Index(Protocol):
    """One kind of package index."""

    ecosystem: Ecosystem

    async def answer(self, exchange: Exchange, path: str) -> None:
        """Answer a request for this path below the index."""
        ...


class Source:
    """What all kinds of indexes share: asks upstream, checks names, and sends files."""

    def __init__(
        self,
        indexes: PackageIndexes,
        upstream: Upstream,
        names: PackageNames,
        reach: Reach,
        *,
        converter: Converter,
        limits: Limits,
        team: str,
    ) -> None:
        self.indexes = indexes
        self.converter = converter
        self.upstream = upstream
        self.names = names
        self.limits = limits
        self._reach = reach
        self._team = team

    async def check_name(self, ecosystem: Ecosystem, name: str) -> None:
        """Raise `Denied` unless the command may ask for this package."""
        if not is_name(ecosystem, name):
            raise Denied("That is not the name of a package.", status=404)
        await asyncio.to_thread(self.names.read_declared)
        if not self.names.allows(ecosystem, name):
            raise Denied(NOT_KNOWN.format(name=name, team=self._team), host=name)

    async def read(self, url: str, *, accept: str) -> tuple[bytes, str] | None:
        """Return a page of an index and its media type; None if the index has no such page."""
        if urlsplit(url).scheme == "file":
            await self._reach(LOCAL, "packages")
            path = _local_path(url)
            found = await asyncio.to_thread(_read_local, path, self.limits.page_bytes)
            if found is None:
                return None
            await asyncio.to_thread(_check, found, _MARKS_OF_HTML)
            return found, "text/html"
        await self._reach(urlsplit(url).hostname or "", "packages")
        async with self.upstream.get(url, accept=accept) as response:
            if response.status in (404, 410):
                return None
            if response.status != 200:
                raise Denied(f"A package index answered {response.status}.", status=502)
            body = await whole_body(response, self.limits.page_bytes)
            kind = response.content_type
            # Only an index that may answer with HTML is read as such.
            is_html = "html" in accept and not kind.endswith("+json")
            await asyncio.to_thread(_check, body, _MARKS_OF_HTML if is_html else _MARKS_OF_JSON)
            return body, kind

    async def send_file(
        self,
        exchange: Exchange,
        url: str,
        *,
        inspect: Inspect | None = None,
    ) -> None:
        """Send a file that an index lists. From now on untrusted code may run in the command."""
        if not exchange.is_head:
            self.names.bind()
        if urlsplit(url).scheme == "file":
            await self._reach(LOCAL, "packages")
            path = _local_path(url)
            if not path.is_file():
                raise Denied(NO_SUCH_FILE, status=404)
            headers = {"Content-Length": str(path.stat().st_size)}
            await self._send(exchange, 200, headers, _local_pieces(path), inspect)
            return
        await self._reach(urlsplit(url).hostname or "", "packages")
        method = "HEAD" if exchange.is_head else "GET"
        async with self.upstream.get(url, method=method) as response:
            passed = ("Content-Length", "Content-Encoding")
            headers = {n: response.headers[n] for n in passed if n in response.headers}
            await self._send(exchange, response.status, headers, pieces_of(response), inspect)

    async def _send(
        self,
        exchange: Exchange,
        status: int,
        headers: Mapping[str, str],
        pieces: AsyncIterator[bytes],
        inspect: Inspect | None,
    ) -> None:
        headers = {"Content-Type": "application/octet-stream", **headers}
        if inspect is None or exchange.is_head or status != 200:
            return await exchange.stream(status, headers, pieces)
        with tempfile.NamedTemporaryFile(prefix="agiraph-package-") as copy:
            kept = _inspected(pieces, copy.file, Path(copy.name), inspect)
            return await exchange.stream(status, headers, kept)


async def _inspected(
    pieces: AsyncIterator[bytes],
    copy: IO[bytes],
    path: Path,
    inspect: Inspect,
) -> AsyncIterator[bytes]:
    """Yield the pieces; the last one only after `inspect` has read the whole copy at `path`."""
    last = b""
    async for piece in pieces:
        if last:
            yield last
        copy.write(piece)
        last = piece
    copy.flush()
    await inspect(path.resolve())
    yield last


def _check(page: bytes, marks: bytes) -> None:
    """Raise `Denied` for a page of an index that would take much memory to read."""
    if sum(page.count(mark) for mark in marks) > MOST_MARKS:
        raise Denied("The page of the index lists too much to be read.", status=502)


def _local_path(url: str) -> Path:
    return Path(unquote(urlsplit(url).path))


def _read_local(path: Path, limit: int) -> bytes | None:
    path = path / "index.html" if path.is_dir() else path
    try:
        with path.open("rb") as file:
            return file.read(limit)
    except (FileNotFoundError, NotADirectoryError):
        return None


async def _local_pieces(path: Path) -> AsyncIterator[bytes]:
    with await asyncio.to_thread(path.open, "rb") as file:
        while piece := await asyncio.to_thread(file.read, CHUNK_BYTES):
            yield piece
