"""Sign-in to an MCP server with OAuth: by a person, kept in the home, renewed, never unasked."""

import asyncio
import secrets
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
import uvicorn
from mcp.server import MCPServer
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl

from agiraph.api.server import bind
from agiraph.features.backup.archive import LEFT_OUT
from agiraph.features.mcp import sign_in
from agiraph.features.mcp.connection import ServerFailed
from agiraph.features.mcp.settings import McpServer
from tests.mcp.kit import call, opened

pytestmark = pytest.mark.slow


class Provider:
    """An authorization server in memory, whose user always agrees."""

    def __init__(self) -> None:
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.tokens: dict[str, AccessToken] = {}
        self.refreshes: dict[str, RefreshToken] = {}

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        assert client_info.client_id is not None
        self.clients[client_info.client_id] = client_info

    async def authorize(
        self, client: OAuthClientInformationFull, params: AuthorizationParams
    ) -> str:
        code = secrets.token_urlsafe(24)
        self.codes[code] = AuthorizationCode(
            code=code,
            scopes=[],
            expires_at=time.time() + 60,
            client_id=client.client_id or "",
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        return construct_redirect_uri(str(params.redirect_uri), code=code, state=params.state)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        del self.codes[authorization_code.code]
        return self._issue(client.client_id or "", authorization_code.resource)

    def _issue(self, client_id: str, resource: str | None) -> OAuthToken:
        access, refresh = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
        self.tokens[access] = AccessToken(
            token=access, client_id=client_id, scopes=[], resource=resource
        )
        self.refreshes[refresh] = RefreshToken(
            token=refresh, client_id=client_id, scopes=[], resource=resource
        )
        return OAuthToken(access_token=access, refresh_token=refresh, expires_in=3600)

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.tokens.get(token)

    async def load_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: str
    ) -> RefreshToken | None:
        return self.refreshes.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        return self._issue(client.client_id or "", refresh_token.resource)

    async def revoke_token(self, token: Any) -> None:
        self.tokens.pop(token.token, None)


@asynccontextmanager
async def protected() -> AsyncGenerator[tuple[str, Provider]]:
    """Serve an MCP server that wants OAuth; yield its address and who issues its tokens."""
    sock = bind("127.0.0.1", 0)
    origin = f"http://127.0.0.1:{sock.getsockname()[1]}"
    provider: Any = Provider()
    server: MCPServer[Any] = MCPServer(
        "protected",
        auth_server_provider=provider,
        auth=AuthSettings(
            issuer_url=AnyHttpUrl(origin),
            resource_server_url=AnyHttpUrl(f"{origin}/mcp"),
            validate_token_resource=True,
            client_registration_options=ClientRegistrationOptions(enabled=True),
        ),
    )

    @server.tool()
    def whoami() -> str:
        """Tell who you are."""
        return "signed in"

    app = server.streamable_http_app(stateless_http=True, json_response=True)
    running = uvicorn.Server(uvicorn.Config(app, log_level="error"))
    task = asyncio.create_task(running.serve(sockets=[sock]))
    try:
        yield f"{origin}/mcp", provider
    finally:
        running.should_exit = True
        await task


async def browse(url: str) -> None:
    """Open the address as a browser does, and go where it leads."""
    async with httpx2.AsyncClient(follow_redirects=True) as browser:
        answer = await browser.get(url)
        assert answer.status_code == 200, answer.text
        assert "You are signed in." in answer.text


async def test_a_person_signs_in_once_and_the_token_is_kept_out_of_backups(tmp_path: Path) -> None:
    async with protected() as (url, provider):
        server = McpServer(name="safe", kind="http", url=url)
        async with opened(tmp_path, server) as servers:
            with pytest.raises(ServerFailed, match="`agiraph mcp login safe`"):
                await call(servers, "whoami", "safe")
        assert provider.clients == {}
        async with opened(tmp_path, server) as servers:
            visits: list[asyncio.Task[None]] = []

            def show(address: str) -> None:
                visits.append(asyncio.create_task(browse(address)))

            async with sign_in.signing_in(servers._home, server, show) as auth:
                servers.signing_in = auth
                assert await call(servers, "whoami", "safe") == "signed in"
            await asyncio.gather(*visits)
        async with opened(tmp_path, server) as servers:  # another runtime finds the token
            assert await call(servers, "whoami", "safe") == "signed in"
        # Under the same name another address gets no token; nor does it ask for one by itself.
        moved = replace(server, url=url.replace("127.0.0.1", "localhost"))
        async with opened(tmp_path, moved) as servers:
            assert servers._auth(moved) is None
            assert servers._auth(server) is not None
        provider.tokens.clear()
        async with opened(tmp_path, server) as servers:
            with pytest.raises(ServerFailed, match="`agiraph mcp login safe`"):
                await call(servers, "whoami", "safe")
    file = tmp_path / sign_in.FILE
    assert (oct(file.stat().st_mode & 0o777), sign_in.FILE in LEFT_OUT) == ("0o600", True)
