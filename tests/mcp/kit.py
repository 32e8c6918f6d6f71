"""MCP kit: servers for tests, opened without a runtime."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson

from agiraph.core.home.layout import Home
from agiraph.core.home.named_secrets import NamedSecrets
from agiraph.features.mcp.servers import McpServers
from agiraph.features.mcp.settings import McpServer
from agiraph.features.mcp.toolbox import text_of
from agiraph.sandbox.levels import CommandRules, Wanted
from agiraph.web.access import Web

RUDE = Path(__file__).with_name("rude_server.py")


def rude(name: str = "rude", **more: Any) -> McpServer:
    """Return the rude server, as a person would write it down."""
    return McpServer(name=name, command=(sys.executable, "-I", "-S", str(RUDE)), **more)


@asynccontextmanager
async def opened(
    path: Path, *servers: McpServer, web: Web | None = None, level: Wanted = ""
) -> AsyncGenerator[McpServers]:
    """Open servers of a home, confined as on this machine or at this level; end them with the
    block."""
    home = Home.open(path)
    rules = await asyncio.to_thread(CommandRules().confined, level, home.path)
    named = {one.name: one for one in servers}
    made = McpServers(named, home, rules, web or Web(), NamedSecrets())
    try:
        yield made
    finally:
        await made.close()
        home.folder.close()


async def call(servers: McpServers, tool: str, name: str = "rude", **given: Any) -> str:
    """Return the text that a tool of a server answers."""

    def make(client: Any) -> Awaitable[Any]:
        return client.call_tool(tool, given)

    return text_of(await servers.connection(name).use(make))


def behave(path: Path, name: str = "rude", **behaviour: Any) -> None:
    """Change what the rude server offers at its next start."""
    folder = path / "mcp" / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "behaviour.json").write_bytes(orjson.dumps(behaviour))


def pids(path: Path, name: str = "rude") -> list[str]:
    """Return the process ids, in their own namespace, with which the server was started."""
    try:
        return (path / "mcp" / name / "pids").read_text().split()
    except FileNotFoundError:
        return []


Act = Callable[[], Awaitable[Any]]
