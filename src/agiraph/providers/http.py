"""HTTP: one lean client for all wires, and errors that say whether trying again may help."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from email.utils import parsedate_to_datetime
from typing import Any, cast

import aiohttp
import orjson

from agiraph.domain.errors import ContextExceeded, ModelGarbled, ModelRefused, ModelUnavailable
from agiraph.domain.time import Clock, SystemClock
from agiraph.faultpoints import fault

CONNECT_SECONDS = 20
STALL_SECONDS = 120
"""A stream that says nothing for this long is given up: keep-alives come far more often."""
ERROR_BYTES = 64 * 1024
REPLY_BYTES = 32 * 2**20

_OVERFLOW = ("context_length", "context length", "context window", "maximum context", "too long",
             "exceed_context_size", "request too large", "input token count")  # fmt: skip


class Http:
    """The process's connections to model servers."""

    def __init__(self, clock: Clock | None = None, *, stall_seconds: float = STALL_SECONDS) -> None:
        self._clock = clock or SystemClock()
        self._stall = stall_seconds
        self._session: aiohttp.ClientSession | None = None

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=300),
                timeout=aiohttp.ClientTimeout(
                    total=None, sock_connect=CONNECT_SECONDS, sock_read=self._stall
                ),
                # A proxy or cookie nobody asked for has no place on a line that carries keys.
                trust_env=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=True,
            )
        return self._session

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    @asynccontextmanager
    async def post(
        self, url: str, *, headers: dict[str, str], body: bytes
    ) -> AsyncGenerator[aiohttp.ClientResponse]:
        """A request whose answer begins well; anything else is raised as a `ModelError`."""
        fault("fx:before:llm")
        try:
            async with self._open().post(
                url, data=body, headers=headers, allow_redirects=False
            ) as response:
                if response.status != 200:
                    raise await self._refusal(response)
                yield response
        except aiohttp.ClientPayloadError as error:
            raise ModelUnavailable("The answer was cut off on its way.") from error
        except TimeoutError as error:
            raise ModelUnavailable(f"{_host(url)} has said nothing for too long.") from error
        except aiohttp.ClientError as error:
            raise ModelUnavailable(f"Cannot reach {_host(url)}: {error}") from error

    async def _refusal(self, response: aiohttp.ClientResponse) -> Exception:
        status = response.status
        raw = await response.content.read(ERROR_BYTES)
        said = error_text(raw)
        words = f"{_host(str(response.url))} answered {status}: {said}"
        if status == 413 or (status == 400 and any(w in said.lower() for w in _OVERFLOW)):
            return ContextExceeded(words)
        if status in (408, 409, 425, 429) or status >= 500:
            return ModelUnavailable(words, retry_after=self._retry_after(response))
        if status in (401, 403):
            return ModelRefused(f"{words} Check the key of this provider.")
        if status == 404:
            return ModelRefused(f"{words} Check the model's name and the provider's address.")
        return ModelRefused(words)

    def _retry_after(self, response: aiohttp.ClientResponse) -> float | None:
        value = response.headers.get("retry-after", "")
        try:
            return max(0.0, float(value))
        except ValueError:
            pass
        try:
            when = parsedate_to_datetime(value)
        except ValueError:
            return None
        return max(0.0, (when - self._clock.now()).total_seconds())


def _host(url: str) -> str:
    return url.split("?")[0].removeprefix("https://").removeprefix("http://").split("/")[0]


def error_text(raw: bytes) -> str:
    """What a server's error says, whatever vendor's shape it has."""
    try:
        body: Any = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return raw[:300].decode(errors="replace").strip() or "nothing"
    for key in ("error", "message"):
        if isinstance(body, dict) and key in body:
            body = cast(dict[str, Any], body)[key]
    return str(cast(object, body))[:500]


async def events(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """The `data:` payloads of a server-sent event stream."""
    buffer = b""
    total = 0
    async for chunk in response.content.iter_any():
        total += len(chunk)
        if total > REPLY_BYTES:
            raise ModelGarbled(f"The answer is longer than {REPLY_BYTES // 2**20} MiB.")
        buffer += chunk
        *lines, buffer = buffer.split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                yield line[5:].strip()
    if buffer.startswith(b"data:"):
        yield buffer[5:].strip()


async def whole(response: aiohttp.ClientResponse) -> dict[str, Any]:
    """The JSON object of an answer that does not stream."""
    raw = await response.content.read(REPLY_BYTES + 1)
    while not response.content.at_eof() and len(raw) <= REPLY_BYTES:
        raw += await response.content.read(REPLY_BYTES + 1)
    if len(raw) > REPLY_BYTES:
        raise ModelGarbled(f"The answer is longer than {REPLY_BYTES // 2**20} MiB.")
    return json_object(raw)


def json_object(raw: bytes) -> dict[str, Any]:
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise ModelGarbled(f"The answer is not JSON: {raw[:80]!r}") from error
    if not isinstance(body, dict):
        raise ModelGarbled(f"The answer is not a JSON object: {raw[:80]!r}")
    return body  # pyright: ignore[reportUnknownVariableType]
