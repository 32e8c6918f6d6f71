"""Lookup: short questions to a model server about itself, answered with JSON."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import orjson

from agiraph.core.domain.errors import Misconfigured
from agiraph.models.http.client import lookup_head
from agiraph.models.http.connection import ConnectionFailed, ConnectionPool, parse_url
from agiraph.models.http.errors import error_text
from agiraph.models.http.errors import is_wrong_key as says_wrong_key
from agiraph.models.http.patience import Patience
from agiraph.models.http.proxy import Proxies, Proxy

TIMEOUT_S = 3.0
"""A server that has not answered a question about itself after this long is not asked again now."""
MAX_ANSWER_BYTES = 8 * 2**20
"""OpenRouter's list of all models takes about one MiB."""

MAX_ERROR_BYTES = 8 * 2**10


class LookupFailed(Exception):
    """The server gave no answer that can be read; says why. `status` is 0 if it was not reached."""

    def __init__(
        self, message: str, *, status: int = 0, is_wrong_key: bool = False, reason: str = ""
    ) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        """What the server says is wrong, if it answered with an error."""
        self.is_wrong_key = is_wrong_key
        """Whether the server refused the API key itself, rather than the URL or the rights of the
        key."""


async def look_up(
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    body: Mapping[str, Any] | None = None,
    timeout_s: float = TIMEOUT_S,
    proxies: Proxies | None = None,
) -> Any:
    """Return the JSON of a GET, or of a POST if there is a body; raise `LookupFailed`."""

    proxy = proxies.for_url(url) if proxies is not None else None
    told = {**(headers or {}), "accept": "application/json"}
    content = None if body is None else orjson.dumps(body)
    if content is not None:
        told["content-type"] = "application/json"
    try:
        async with asyncio.timeout(timeout_s):
            # aiohttp takes long to import, and most servers are asked without it.
            if proxy is None and "@" not in urlsplit(url).netloc:
                return await _directly(url, told, content)
            return await _by_aiohttp(url, told, content, proxy)
    except TimeoutError as error:
        raise LookupFailed(f"no answer within {timeout_s:g} s") from error


async def _directly(url: str, headers: dict[str, str], body: bytes | None) -> Any:
    target, pool = parse_url(url), ConnectionPool()
    try:
        connection = await pool.acquire(target.origin)
        try:
            head = lookup_head(target, headers, body)
            await connection.send_request(head, [] if body is None else [body], Patience())
            # A redirect is not followed: it would send the API key to another host.
            return await _read_json(connection.status, connection.read_chunk)
        finally:
            connection.close()
    except Misconfigured as error:
        raise LookupFailed(str(error)) from error
    except ConnectionFailed as error:
        match error.__cause__:
            case OSError(errno=int() as number) if number > 0:
                reason = os.strerror(number).lower()
            case _:
                reason = str(error)
        raise LookupFailed(reason) from error


async def _by_aiohttp(
    url: str, headers: dict[str, str], body: bytes | None, proxy: Proxy | None
) -> Any:
    import aiohttp

    if proxy is not None and proxy.authorization:
        headers["proxy-authorization"] = proxy.authorization
    through = None if proxy is None else proxy.url
    session = aiohttp.ClientSession(trust_env=False)
    try:
        sending = session.request(
            "GET" if body is None else "POST",
            url,
            headers=headers,
            data=body,
            proxy=through,
            allow_redirects=False,
        )
        async with sending as response:
            return await _read_json(response.status, response.content.readany)
    except aiohttp.ClientConnectorError as error:
        # The error's own text names the address again, as every message of ours does.
        number = error.os_error.errno
        raise LookupFailed(os.strerror(number).lower() if number else str(error)) from error
    except aiohttp.ClientError as error:
        raise LookupFailed(f"the request failed ({type(error).__name__})") from error
    except ValueError as error:  # aiohttp refuses a key beside a password in the address
        raise LookupFailed(
            "its address has a user and password, and a key is sent as well; take one of them out"
        ) from error
    finally:
        await session.close()


async def _read_json(status: int, read_chunk: Callable[[], Awaitable[bytes]]) -> Any:
    raw, limit = bytearray(), MAX_ANSWER_BYTES if status == 200 else MAX_ERROR_BYTES
    while len(raw) <= limit and (chunk := await read_chunk()):
        raw += chunk
    if status != 200:
        reason = error_text(bytes(raw[:limit]))
        # A vendor may answer 403 to a good key that may call models, but not list them.
        is_wrong_key = status != 403 and says_wrong_key(status, reason)
        said = f"it answered {status}"
        raise LookupFailed(said, status=status, is_wrong_key=is_wrong_key, reason=reason)
    if len(raw) > limit:
        raise LookupFailed("the answer is too long", status=status)
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise LookupFailed("the answer is not JSON", status=status) from error
