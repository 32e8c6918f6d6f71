"""MCP session: opens one MCP server of the settings, to look at its tools."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from agiraph.config import Settings
from agiraph.domain.errors import NotFound
from agiraph.home.layout import Home
from agiraph.home.levels import CommandRules
from agiraph.home.sandbox import database_files
from agiraph.mcp_client.servers import McpServers


@asynccontextmanager
async def opened(settings: Settings, name: str) -> AsyncGenerator[tuple[Home, McpServers]]:
    """Open the home for one server. The server is ended when the block ends."""
    if name not in settings.mcp:
        raise NotFound("MCP server", name, known="`agiraph mcp list` shows all.")
    home = Home.open(settings.home)
    rules = CommandRules.of(
        settings.limits, database_files(settings.database_url), settings.sandbox_readable
    ).confined(settings.sandbox, home.path)
    only = {name: settings.mcp[name]}
    servers = McpServers(only, home, rules, settings.web, settings.secrets)
    try:
        yield home, servers
    finally:
        await servers.close()
