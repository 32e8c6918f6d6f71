"""MCP sign-in: OAuth tokens of servers that a person has signed in to, and the sign-in itself.

The tokens are one file of the home, which only its owner can read, no command can see and no backup
holds. A runtime renews them, but never signs in by itself: that takes a person at a browser.
"""

import asyncio
import contextlib
import html
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

import orjson
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from pydantic import AnyUrl

from agiraph.core.domain.errors import NotFound
from agiraph.core.home.layout import Home
from agiraph.features.mcp.connection import ServerFailed, SignInWanted
from agiraph.features.mcp.settings import McpServer
from agiraph.redaction import keep

FILE = "mcp-tokens.json"
MOST_BYTES = 2**20
PATH = "/callback"
PAGE = b"<!doctype html><title>agiraph</title><p>You are signed in. You can close this page."


class TokenFile:
    """The tokens of one server, in the file of all servers.

    They count only for the address at which a person signed in: if somebody changes the address of
    a server, its tokens must not be sent there.
    """

    def __init__(self, home: Home, server: str, url: str = "") -> None:
        self._home = home
        self._server = server
        self._origin = "://".join(urlsplit(url)[:2]).lower()

    @property
    def exists(self) -> bool:
        """Whether a person has signed in to this server."""
        return "tokens" in self._read()

    async def get_tokens(self) -> OAuthToken | None:
        found = self._read().get("tokens")
        return None if found is None else self._kept(OAuthToken.model_validate(found))

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._write(tokens=self._kept(tokens).model_dump(mode="json", exclude_none=True))

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        found = self._read().get("client")
        return None if found is None else OAuthClientInformationFull.model_validate(found)

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._write(client=client_info.model_dump(mode="json", exclude_none=True))

    def forget(self) -> None:
        """Remove what is stored of this server."""
        every = self._all()
        if every.pop(self._server, None) is not None:
            self._home.folder.write(FILE, orjson.dumps(every))

    def _kept(self, tokens: OAuthToken) -> OAuthToken:
        """Register the tokens for redaction, so that no log or row holds them, and return them."""
        named = {"access": tokens.access_token, "refresh": tokens.refresh_token or ""}
        keep({f"{kind} token of {self._server}": value for kind, value in named.items() if value})
        return tokens

    def _all(self) -> dict[str, Any]:
        try:
            return orjson.loads(self._home.folder.read(FILE, limit=MOST_BYTES))
        except (NotFound, orjson.JSONDecodeError):
            return {}

    def _read(self) -> dict[str, Any]:
        found = cast(dict[str, Any], self._all().get(self._server, {}))
        return found if found.get("origin") == self._origin else {}

    def _write(self, **more: Any) -> None:
        every = self._all()
        every[self._server] = {**self._read(), "origin": self._origin, **more}
        self._home.folder.write(FILE, orjson.dumps(every))


def stored(home: Home, server: McpServer) -> OAuthClientProvider | None:
    """Return the authentication that adds and renews a server's stored token; None if nobody has
    signed in."""
    file = TokenFile(home, server.name, server.url)
    if not file.exists:
        return None

    async def refuse(*_: object) -> Any:
        raise SignInWanted(server.name)

    return _provider(server, file, f"http://127.0.0.1{PATH}", refuse, refuse)


@asynccontextmanager
async def signing_in(
    home: Home, server: McpServer, show: Callable[[str], None]
) -> AsyncGenerator[OAuthClientProvider]:
    """Yield what signs in: `show` gets the address that a person opens in a browser, which then
    comes back to a port of this machine."""
    came: asyncio.Future[AuthorizationCodeResult] = asyncio.get_running_loop().create_future()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, ValueError, UnicodeDecodeError):
            line = (await reader.readline()).decode()
            await _answer(line, writer, came)
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0, limit=16 * 1024) as listener:
        port = listener.sockets[0].getsockname()[1]

        async def open_page(url: str) -> None:
            if not url.startswith(("https://", "http://")):
                raise ServerFailed("The sign-in has an address that is none of the web.")
            show(url)

        async def wait() -> AuthorizationCodeResult:
            return await came

        address = f"http://127.0.0.1:{port}{PATH}"
        file = TokenFile(home, server.name, server.url)
        yield _provider(server, file, address, open_page, wait)


async def _answer(
    line: str, writer: asyncio.StreamWriter, came: "asyncio.Future[AuthorizationCodeResult]"
) -> None:
    parts = urlsplit(line.split(" ")[1])
    given = {name: values[0] for name, values in parse_qs(parts.query).items()}
    is_code = parts.path == PATH and "code" in given
    if is_code and not came.done():
        came.set_result(AuthorizationCodeResult(**given))
    elif parts.path == PATH and "error" in given and not came.done():
        came.set_exception(ServerFailed(f"The sign-in was refused: {given['error'][:200]}."))
    said = PAGE if is_code else html.escape("Nothing here.").encode()
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n" + said)
    await writer.drain()


def _provider(
    server: McpServer,
    file: TokenFile,
    address: str,
    open_page: Callable[[str], Awaitable[None]],
    wait: Callable[[], Awaitable[AuthorizationCodeResult]],
) -> OAuthClientProvider:
    metadata = OAuthClientMetadata(
        client_name="agiraph",
        redirect_uris=[AnyUrl(address)],
        grant_types=["authorization_code", "refresh_token"],
        response_types=["code"],
    )
    return OAuthClientProvider(server.url, metadata, file, open_page, wait)
