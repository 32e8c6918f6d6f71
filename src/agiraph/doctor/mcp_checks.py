"""MCP checks: what `agiraph doctor` says of the MCP servers."""

from agiraph.doctor.checkup import Checkup
from agiraph.doctor.mcp_session import opened
from agiraph.domain.errors import AgiraphError
from agiraph.domain.plurals import counted
from agiraph.home.layout import Home
from agiraph.mcp_client import notices, pins
from agiraph.mcp_client.settings import McpServer
from agiraph.redaction import redact


async def check(checkup: Checkup) -> None:
    """Say which servers can be used. With --online each of them is started and asked."""
    settings = checkup.settings
    if not settings.mcp or not settings.home.exists():
        return
    home = Home.open(settings.home)
    for name, server in settings.mcp.items():
        try:
            await _check(checkup, home, name, server)
        except AgiraphError as error:
            checkup.problem(f"mcp {name}", redact(str(error)))
    home.folder.close()


async def _check(checkup: Checkup, home: Home, name: str, server: McpServer) -> None:
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
        return checkup.note(title, notices.text_of(name, known))
    asked = "It answers" if checkup.online else "It is started when it is used"
    return checkup.fine(title, f"{asked}; {counted(len(known.usable), 'tool')}.")
