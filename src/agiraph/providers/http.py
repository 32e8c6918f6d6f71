"""HTTP: one lean client for all wires, and errors that say whether trying again may help."""

import json
import re
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Any, TypeVar, cast

import orjson

from agiraph.domain.errors import (
    ContextExceeded,
    Misconfigured,
    ModelError,
    ModelGarbled,
    ModelRefused,
    ModelUnavailable,
)
from agiraph.domain.time import Clock, SystemClock
from agiraph.faultpoints import fault
from agiraph.providers.http_connection import Body, Line, LineError, Lines, Untrusted, split

T = TypeVar("T")

STALL_SECONDS = 120
"""A stream that says nothing for this long is given up: keep-alives come far more often."""
LONGEST_RETRY_AFTER = 24 * 3600.0
"""A server that sends us away for longer than this is asked again all the same."""
ERROR_BYTES = 64 * 1024
REPLY_BYTES = 32 * 2**20

_REJECTED = frozenset(range(400, 500)) - {408, 499} | {503, 529}
"""Statuses with which a server sends a request away before a model has worked on it. The others
may come after: a gateway that gave up waiting (408, 499, 502, 504), a model that broke (500)."""

_OVERFLOW = ("context_length", "context length", "context window", "maximum context", "too long",
             "exceed_context_size", "request too large", "input token count")  # fmt: skip
_UNBOUNDED = re.compile(rb"NaN|Infinity|[eE]\+?\d{3}")
"""Numbers that a strict JSON parser refuses."""
_RETRY_DELAY = re.compile(rb'"retryDelay"\s*:\s*"([0-9.]+)s"')


@dataclass(frozen=True, slots=True)
class Response:
    """An answer that has begun."""

    line: Line
    host: str

    @property
    def content_type(self) -> str:
        return self.line.headers.get("content-type", "").partition(";")[0].strip().lower()

    async def chunk(self) -> bytes:
        """What has come since; nothing when all has."""
        return await self.line.chunk()


class Http:
    """The process's connections to model servers."""

    def __init__(self, clock: Clock | None = None, *, stall_seconds: float = STALL_SECONDS) -> None:
        self._clock = clock or SystemClock()
        self._lines = Lines(stall_seconds)

    async def close(self) -> None:
        await self._lines.close()

    async def post(
        self,
        url: str,
        *,
        headers: dict[str, str],
        body: Body,
        hear: Callable[[Response], Awaitable[T]],
    ) -> T:
        """Ask, and hear an answer that begins well; any other is raised as a `ModelError`."""
        fault("fx:before:llm")
        host, path, name = split(url)
        shown = name.decode()
        line: Line | None = None
        heard = False
        try:
            line = await self._lines.take(host)
            await line.ask(_head(path, name, headers, body), body)
            response = Response(line, shown)
            if line.status != 200:
                raise await self._refusal(response)
            answer = await hear(response)
            heard = True
            return answer
        except Untrusted as error:
            raise ModelRefused(
                f"{shown} shows a certificate that is not trusted ({error}). If it is your own, "
                "set SSL_CERT_FILE to a file with it.",
                unused=True,
            ) from error
        except LineError as error:
            # Without a connection the request was not sent; after that the model may have worked.
            said = f"Cannot reach {shown}: {error}."
            raise ModelUnavailable(said, unused=line is None) from error
        finally:
            if line is not None:
                self._lines.give_back(host, line, heard=heard)

    async def _refusal(self, response: Response) -> ModelError:
        status, raw = response.line.status, await _up_to(response, ERROR_BYTES)
        said = error_text(raw)
        words = f"{response.host} answered {status}: {said}"
        wait = response.line.headers.get("retry-after") or _delay(raw)
        return failure(status, said, words, retry_after=self._retry_after(wait))

    def _retry_after(self, value: str) -> float | None:
        try:
            seconds = float(value)
        except ValueError:
            try:
                when = parsedate_to_datetime(value)
            except (ValueError, OverflowError):
                return None
            # A date without a zone is in UTC, as all dates of HTTP are.
            seconds = (when.replace(tzinfo=when.tzinfo or UTC) - self._clock.now()).total_seconds()
        return min(max(0.0, seconds), LONGEST_RETRY_AFTER)


def _head(path: str, name: bytes, headers: dict[str, str], body: Body) -> bytes:
    length = sum(map(len, body))
    return b"%scontent-length: %d\r\n\r\n" % (_opening(path, name, *headers.items()), length)


@lru_cache(256)
def _opening(path: str, name: bytes, *headers: tuple[str, str]) -> bytes:
    """A request's head as far as it is the same for every turn."""
    lines = "".join(f"{key}: {value}\r\n" for key, value in headers)
    if any(sign in part for sign in "\r\n\0" for part in (path, *dict(headers).values())):
        raise Misconfigured("A key or address of this provider holds a line break; look at it.")
    opening = f"POST {path} HTTP/1.1\r\nhost: {name.decode()}\r\n{lines}"
    return f"{opening}accept-encoding: identity\r\n".encode()


def failure(status: int, said: str, words: str, *, retry_after: float | None = None) -> ModelError:
    """The error that a status stands for: whether trying again may help, and what to look at."""
    error = _failure(status, said, words, retry_after)
    error.unused = status in _REJECTED
    return error


def _failure(status: int, said: str, words: str, retry_after: float | None) -> ModelError:
    if status == 413 or (status == 400 and any(w in said.lower() for w in _OVERFLOW)):
        return ContextExceeded(words)
    if status in (408, 409, 425, 429) or status >= 500:
        return ModelUnavailable(words, retry_after=retry_after)
    if status in (401, 403):
        return ModelRefused(f"{words} Check the key of this provider.")
    if status == 404:
        return ModelRefused(f"{words} Check the model's name and the provider's address.")
    return ModelRefused(words)


def _delay(raw: bytes) -> str:
    """How long to wait where it is said in the body, as Google does."""
    found = _RETRY_DELAY.search(raw)
    return found[1].decode() if found else ""


def error_text(raw: bytes) -> str:
    """What a server's error says, whatever vendor's shape it has."""
    try:
        body: Any = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return raw[:300].decode(errors="replace").strip() or "nothing"
    if isinstance(body, list) and body and isinstance(body[0], dict):
        body = cast(list[Any], body)[0]
    for key in ("error", "message"):
        if isinstance(body, dict) and key in body:
            body = cast(dict[str, Any], body)[key]
    return str(cast(object, body))[:500]


class Events:
    """Takes a server-sent event stream apart: the `data:` payloads in it."""

    def __init__(self) -> None:
        self._rest = b""
        self._total = 0

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """What is whole by now; an empty chunk means that nothing more will come."""
        if not chunk:
            yield from self._last()
            return
        self._total += len(chunk)
        if self._total > REPLY_BYTES:
            raise ModelGarbled(f"The answer is longer than {REPLY_BYTES // 2**20} MiB.")
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                yield line[5:].strip()

    def _last(self) -> Iterator[bytes]:
        if self._rest.startswith(b"data:"):
            last = self._rest[5:].strip()
            if not _is_complete(last):
                raise ModelUnavailable("The answer was cut off before its end.")
            yield last


def _is_complete(data: bytes) -> bool:
    """Whether an event that no line's end follows is all there."""
    try:
        orjson.loads(data)
    except orjson.JSONDecodeError:
        return data == b"[DONE]"
    return True


async def whole(response: Response) -> dict[str, Any]:
    """The JSON object of an answer that does not stream."""
    raw = await _up_to(response, REPLY_BYTES + 1)
    if len(raw) > REPLY_BYTES:
        raise ModelGarbled(f"The answer is longer than {REPLY_BYTES // 2**20} MiB.")
    return json_object(raw)


async def _up_to(response: Response, limit: int) -> bytes:
    """The body, as far as the limit."""
    raw = bytearray()
    while len(raw) < limit and (chunk := await response.chunk()):
        raw += chunk
    return bytes(raw[:limit])


def json_object(raw: bytes) -> dict[str, Any]:
    try:
        body = _parsed(raw)
    except ValueError as error:
        raise ModelGarbled(f"The answer is not JSON: {raw[:80]!r}") from error
    if not isinstance(body, dict):
        raise ModelGarbled(f"The answer is not a JSON object: {raw[:80]!r}")
    return body  # pyright: ignore[reportUnknownVariableType]


def _parsed(raw: bytes) -> Any:
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        if _UNBOUNDED.search(raw) is None:
            raise
    try:
        return json.loads(raw)  # servers in Python write these, and a whole reply is worth more
    except RecursionError as error:
        raise ValueError("nested too deep") from error
