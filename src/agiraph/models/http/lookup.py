"""Lookup: short questions to a model server about itself, answered with JSON."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import orjson

from agiraph.models.http.errors import error_text
from agiraph.models.http.errors import is_wrong_key as says_wrong_key
from agiraph.models.http.proxy import Proxies

if TYPE_CHECKING:  # it takes long to import, and few processes use it
    import aiohttp

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
    import aiohttp

    proxy = proxies.for_url(url) if proxies is not None else None
    through = None if proxy is None else proxy.url
    timeout = aiohttp.ClientTimeout(total=timeout_s)
    told = {**(headers or {}), "accept": "application/json"}
    if proxy is not None and proxy.authorization:
        told["proxy-authorization"] = proxy.authorization
    method = "GET" if body is None else "POST"
    session = aiohttp.ClientSession(timeout=timeout, trust_env=False)
    try:
        # A redirect is not followed: it would send the API key to another host.
        sending = session.request(
            method, url, headers=told, json=body, proxy=through, allow_redirects=False
        )
        async with sending as response:
            return await _read_json(response)
    except TimeoutError as error:
        raise LookupFailed(f"no answer within {timeout_s:g} s") from error
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


async def _read_json(response: "aiohttp.ClientResponse") -> Any:
    if response.status != 200:
        reason = error_text(await response.content.read(MAX_ERROR_BYTES))
        # 403 may mean that the key is good for models and not for their list.
        is_wrong_key = response.status != 403 and says_wrong_key(response.status, reason)
        raise LookupFailed(
            f"it answered {response.status}",
            status=response.status,
            is_wrong_key=is_wrong_key,
            reason=reason,
        )
    raw = bytearray()
    async for chunk in response.content.iter_chunked(2**16):
        raw += chunk
        if len(raw) > MAX_ANSWER_BYTES:
            raise LookupFailed("the answer is too long", status=response.status)
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise LookupFailed("the answer is not JSON", status=response.status) from error
