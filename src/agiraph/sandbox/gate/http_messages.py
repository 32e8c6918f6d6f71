"""HTTP messages: reads the requests of a command's programs, and writes the gate's answers.

A connection carries one request. That keeps the state small and leaves no room for a second request
hidden in the body of the first.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from http import HTTPStatus

from agiraph.core.domain.value import dataclass

MAX_HEAD_BYTES = 32 * 1024
CHUNK_BYTES = 64 * 1024
_MOST_HEADERS = 100


class Malformed(Exception):
    """The request is not HTTP as the gate reads it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The head of a request."""

    method: str
    target: str
    """As the client wrote it: a path, a whole URL, or `host:port` after CONNECT."""
    headers: Mapping[str, str]
    """By name in lower case."""

    @property
    def is_chunked(self) -> bool:
        return "transfer-encoding" in self.headers

    @property
    def has_body(self) -> bool:
        return self.is_chunked or self.headers.get("content-length", "0") != "0"


async def read_request(reader: asyncio.StreamReader) -> Request | None:
    """Read the head of a request; return None if the client closed the connection.

    Raises `Malformed`.
    """
    try:
        raw = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    except asyncio.LimitOverrunError as error:
        raise Malformed(f"the head of a request has at most {MAX_HEAD_BYTES:,} bytes") from error
    first, *lines = raw[:-4].decode("latin-1").split("\r\n")
    parts = first.split(" ")
    if len(parts) != 3 or not parts[2].startswith("HTTP/1.") or not parts[0].isupper():
        raise Malformed("the first line is not that of an HTTP/1.1 request")
    if len(lines) > _MOST_HEADERS or any(not 32 < ord(c) < 127 for c in parts[1]):
        raise Malformed("the request has too many headers, or an address that is no address")
    return Request(method=parts[0], target=parts[1], headers=_headers(lines))


def _headers(lines: list[str]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        name = name.lower()
        if not colon or not name or name != name.strip():
            raise Malformed("a header is not of the form `Name: value`")
        # Two lengths let one side see a body where the other sees the next request.
        if name in headers and name in ("content-length", "transfer-encoding", "host"):
            raise Malformed(f"there are two headers {name}")
        headers[name] = value.strip()
    length, coding = headers.get("content-length"), headers.get("transfer-encoding")
    if length is not None and (not length.isdecimal() or coding is not None):
        raise Malformed("the length of the body is not certain")
    if coding is not None and coding.lower() != "chunked":
        raise Malformed("the only transfer encoding is chunked")
    return headers


async def read_body(reader: asyncio.StreamReader, request: Request) -> AsyncIterator[bytes]:
    """Yield the body of a request in pieces; raise `Malformed` if it ends too early."""
    try:
        if not request.is_chunked:
            async for piece in _exactly(reader, int(request.headers.get("content-length", "0"))):
                yield piece
            return
        while size := int((await reader.readuntil(b"\r\n")).split(b";")[0].strip(), 16):
            async for piece in _exactly(reader, size):
                yield piece
            await reader.readexactly(2)
        while await reader.readuntil(b"\r\n") != b"\r\n":
            pass  # trailers, which nobody needs
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError) as error:
        raise Malformed("the body is cut off, or its chunks cannot be read") from error


async def _exactly(reader: asyncio.StreamReader, left: int) -> AsyncIterator[bytes]:
    if left < 0:
        raise Malformed("a chunk has a size below zero")
    while left:
        piece = await reader.read(min(left, CHUNK_BYTES))
        if not piece:
            raise Malformed("the body is cut off")
        left -= len(piece)
        yield piece


def head(status: int, headers: Mapping[str, str] = {}) -> bytes:
    """Return the head of an answer, after which the connection is closed."""
    reason = next((known.phrase for known in HTTPStatus if known == status), "Unknown")
    lines = [f"HTTP/1.1 {status} {reason}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "Connection: close", "", ""]).encode("latin-1", "replace")


def answer(status: int, body: bytes, media_type: str, *, is_head: bool = False) -> bytes:
    """Return a whole answer; for a HEAD request without its body."""
    headers = {"Content-Type": media_type, "Content-Length": str(len(body))}
    return head(status, headers) + (b"" if is_head else body)
