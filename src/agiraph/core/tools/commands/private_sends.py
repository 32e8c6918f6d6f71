"""Private sends: a clean thread asks once before a command, or an address that the model made up,
can send a person's files or mail to a host that nobody allowed.

No stranger is behind such a call, but a mistake of the model may be: it posts to the wrong host
what a person gave it to read.
"""

import asyncio
from collections.abc import Collection

from agiraph.core.domain.chat import ToolCall
from agiraph.core.domain.provenance.sinks import Sink, WayOut
from agiraph.core.home.layout import UPLOADS
from agiraph.core.home.scopes import Area
from agiraph.core.run_context import RunContext
from agiraph.core.store import channels, grants, messages
from agiraph.core.store.texts import file_labels
from agiraph.core.store.tx import Tx
from agiraph.core.tools.base import Tool
from agiraph.core.tools.files import given_folders
from agiraph.core.tools.web import addresses
from agiraph.web import links

OPEN = "open"
WHY = (
    "the {call} would reach {hosts}, which nobody has allowed for this team, and it can send "
    "{what} there; this work has read {size:,} bytes of that"
)
_READ_BY_TOOL = frozenset({Area.GIVEN_TO_READ, Area.GIVEN_TO_CHANGE, Area.UPLOADS})


async def sources(ctx: RunContext) -> list[str]:
    """Return what of a person's a command of this thread can send, in words; nothing for a public
    thread and in a team whose trust is open."""
    if not ctx.node.kind.sees_team or ctx.team.trust == "open":
        return []
    found = [f"the folder {one.name}" for one in given_folders.seen_by(ctx)]
    labelled = await ctx.store.read(file_labels.under, ctx.team.id, f"{UPLOADS}/")
    names = await asyncio.to_thread(_uploads, ctx)
    # Labelled ones are hidden from the commands of a clean thread.
    found += ["files that were uploaded"] if names - {file.path for file in labelled} else []
    if await ctx.store.read(channels.mail_texts, ctx.team.id):
        found.append("mail")
    return found


def _uploads(ctx: RunContext) -> set[str]:
    with ctx.home.team(ctx.team.id).folder as folder:
        if not folder.exists(UPLOADS):
            return set()
        return {f"{UPLOADS}/{entry.name}" for entry in folder.list(UPLOADS)}


async def way_out(ctx: RunContext, tool: Tool, call: ToolCall) -> WayOut | None:
    """Return the way out of a call that can send what is a person's; None if it cannot."""
    if tool.properties.opens_address:
        return await _way_of_address(ctx, call)
    return await _way_of_command(ctx, call) if tool.properties.runs_commands else None


async def _way_of_address(ctx: RunContext, call: ToolCall) -> WayOut | None:
    """Return the way out of an address that the model made up, where this thread has read what is a
    person's; None at hosts that were allowed, and at those where only their operator sees it."""
    address = addresses.of_call(call)
    host = links.host_of(address)
    if not host or ctx.web.reading_hosts.has(address) or not (what := await sources(ctx)):
        return None
    size = await ctx.store.read(_bytes_read, ctx)
    if not size or not await ctx.store.read(addresses.carries_words, ctx, address):
        return None
    if await ctx.store.read(_may_open, ctx, host):
        return None
    why = WHY.format(call="address", hosts=host, what=" and ".join(what), size=size)
    return WayOut(sink=Sink.PRIVATE_SEND, target=host, why=why)


async def _way_of_command(ctx: RunContext, call: ToolCall) -> WayOut | None:
    """Return the way out of a command with the whole network; None if there is nothing to send, or
    if all hosts that its words name were allowed."""
    if call.arguments.get("network") != OPEN or not (what := await sources(ctx)):
        return None
    command = str(call.arguments.get("command", ""))
    hosts = links.typed_hosts(command)
    unknown = sorted(hosts - await ctx.store.read(allowed_hosts, ctx, hosts))
    if hosts and not unknown:
        return None
    size = await ctx.store.read(_bytes_read, ctx)
    named = ", ".join(unknown) or "hosts that its words do not name"
    why = WHY.format(call="command", hosts=named, what=" and ".join(what), size=size)
    if not unknown:
        return WayOut(sink=Sink.NETWORK_COMMAND, target=command, why=why)
    return WayOut(sink=Sink.PRIVATE_SEND, target=unknown[0], why=why)


async def bounds(ctx: RunContext, command: str) -> frozenset[str] | None:
    """Return the hosts to which a command with the whole network is bound because it can send what
    is a person's; None if it is not, or if a person has allowed this very call."""
    if ctx.is_confirmed or not await sources(ctx):
        return None
    hosts = links.typed_hosts(command)
    return frozenset(await ctx.store.read(allowed_hosts, ctx, hosts))


def allowed_hosts(tx: Tx, ctx: RunContext, hosts: Collection[str]) -> set[str]:
    """Return those of these hosts that a person has granted, or to which they have let this thread
    send before."""
    nodes = {ctx.node.id, *(turn.node_id for turn in ctx.transcript.turns)}
    asked = [m for node_id in nodes if node_id for m in messages.asks_of_node(tx, node_id)]
    sent = {
        host
        for m in asked
        if m.decision == "approve" and m.call and m.way_out and m.way_out.sink is Sink.PRIVATE_SEND
        for host in links.typed_hosts(" ".join(map(str, m.call.arguments.values())))
    }
    return {h for h in hosts if h in sent or grants.find(tx, ctx.team.id, "reach", h) is not None}


def _may_open(tx: Tx, ctx: RunContext, host: str) -> bool:
    """Whether a person lets the team read or reach this host, or has let this thread send there."""
    is_read = grants.find(tx, ctx.team.id, "read", host) is not None
    return is_read or bool(allowed_hosts(tx, ctx, [host]))


def _bytes_read(tx: Tx, ctx: RunContext) -> int:
    """Return how many bytes of files and mail of a person stand in this thread."""
    calls = {call.id: call for turn in ctx.transcript.turns for call in turn.calls}
    answered = [t for t in ctx.transcript.turns if t.role == "tool" and (t.ref or "") in calls]
    read = [turn for turn in answered if _reads(ctx, calls[turn.ref or ""])]
    told = "\n".join(turn.text for turn in ctx.transcript.turns if turn.role == "user")
    mail = [text for text in channels.mail_texts(tx, ctx.team.id) if text in told]
    texts = [*(turn.text for turn in read), *mail]
    return sum(len(text.encode(errors="replace")) for text in texts)


def _reads(ctx: RunContext, call: ToolCall) -> bool:
    tool = ctx.known_tools.get(call.name)
    path = call.arguments.get("path")
    if isinstance(path, str):
        return ctx.scope.locate(path).area in _READ_BY_TOOL
    return tool is not None and tool.runs_commands
