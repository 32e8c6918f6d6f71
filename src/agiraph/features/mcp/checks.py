"""MCP checks: what `agiraph doctor` says of each server, and a server opened alone."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from agiraph.config import Settings
from agiraph.core.domain.errors import AgiraphError, NotFound
from agiraph.core.domain.text.plurals import counted
from agiraph.core.home.layout import Home
from agiraph.doctor.checkup import Checkup
from agiraph.features.mcp import pins
from agiraph.features.mcp.servers import McpServers
from agiraph.features.mcp.settings import McpServer, servers_of
from agiraph.redaction import redact
from agiraph.sandbox.levels import CommandRules
from agiraph.sandbox.sandbox import database_files


async def check(checkup: Checkup) -> None:
    """Say which servers can be used. With --online each of them is started and asked."""
    settings = checkup.settings
    named = servers_of(settings)
    if not named or not settings.home.exists():
        return
    home = Home.open(settings.home)
    for name, server in named.items():
        try:
            await _check_server(checkup, home, name, server)
        except AgiraphError as error:
            checkup.problem(f"mcp {name}", redact(str(error)))
    home.folder.close()


async def _check_server(checkup: Checkup, home: Home, name: str, server: McpServer) -> None:
    title = f"mcp {name}"
    if server.fault:
        return checkup.problem(title, f"{server.origin}: {server.description}.")
    if why := pins.unconfirmed(server, pins.load(home.folder, name)):
        return checkup.note(title, f"It {why}")
    if checkup.online:
        async with opened(checkup.settings, name) as (_, servers):
            known = await servers.look(name)
    else:
        known = pins.load(home.folder, name)
    if known is None:
        return checkup.note(title, f"Its tools are not known yet: agiraph mcp test {name}")
    if known.pending or known.gone:
        return checkup.note(title, pins.news(name, known))
    asked = "It answers" if checkup.online else "It is started when it is used"
    return checkup.fine(title, f"{asked}; {counted(len(known.usable), 'tool')}.")


@asynccontextmanager
async def opened(settings: Settings, name: str) -> AsyncGenerator[tuple[Home, McpServers]]:
    """Open the home for one server. The server is ended when the block ends."""
    named = servers_of(settings)
    if name not in named:
        raise NotFound("MCP server", name, known="`agiraph mcp list` shows all.")
    home = Home.open(settings.home)
    rules = CommandRules.of(
        settings.limits, database_files(settings.database_url), settings.sandbox_readable
    ).confined(settings.sandbox, home.path)
    servers = McpServers({name: named[name]}, home, rules, settings.web, settings.secrets)
    try:
        yield home, servers
    finally:
        await servers.close()
