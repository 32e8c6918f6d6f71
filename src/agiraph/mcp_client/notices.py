"""MCP notices: tells a person that a server has changed its tools, once for each change."""

import hashlib

from agiraph.mcp_client.pins import Pins
from agiraph.mcp_client.servers import McpServers
from agiraph.run_context import RunContext
from agiraph.services.mail import bus
from agiraph.store.tx import Tx

MOST_NAMED = 8


async def tell(ctx: RunContext, servers: McpServers, server: str) -> None:
    """Put what is to be confirmed into the person's inbox, if it is not there yet."""
    known = servers.pins(server)
    if known is not None and (known.pending or known.gone):
        await ctx.store.write(_tell, ctx, server, known)


def _tell(tx: Tx, ctx: RunContext, server: str, known: Pins) -> None:
    """Send the report. Its key is the change itself, so that a second call sends none."""
    digests = sorted(tool.digest for tool in known.pending.values())
    change = hashlib.sha256("\n".join([server, *digests, *known.gone]).encode()).hexdigest()[:16]
    key = f"mcp:{server}:{change}"
    title = f"The MCP server {server} has changed its tools"
    bus.report_once(tx, ctx.node, key=key, title=title, text=text_of(server, known))


def text_of(server: str, known: Pins) -> str:
    """Return what changed and what to do, for a person."""
    changed = [name for name in known.pending if name in known.tools]
    new = [name for name in known.pending if name not in known.tools]
    parts = [
        f"{what}: {', '.join(repr(name) for name in names[:MOST_NAMED])}"
        f"{f' and {len(names) - MOST_NAMED} more' if len(names) > MOST_NAMED else ''}."
        for what, names in (("Changed", changed), ("New", new), ("Gone", [*known.gone]))
        if names
    ]
    return (
        f"{' '.join(parts)} They are off until you have looked at them: on the page Operations, or "
        f"with agiraph mcp confirm {server}"
    )
