"""Provenance: what a thread may still do by itself after it has read untrusted text.

A page may contain instructions that the model then follows. So in such a thread a call that takes
a way out is decided by the team's trust (`domain.sinks`): it is made, or a person decides.
"""

from agiraph.core.domain.chat import ToolCall
from agiraph.core.domain.provenance.labels import CLEAN
from agiraph.core.domain.provenance.sinks import Sink, WayOut, verdict
from agiraph.core.run_context import RunContext
from agiraph.core.services.board import team_hosts
from agiraph.core.store.tx import Tx
from agiraph.core.tools.base import Tool
from agiraph.core.tools.commands import private_sends
from agiraph.core.tools.files import given_folders
from agiraph.core.tools.web import addresses
from agiraph.web import links


async def guarded_way_out(ctx: RunContext, tool: Tool | None, call: ToolCall) -> WayOut | None:
    """Return the way out of this call if a person has to decide on it; None if it may be made."""
    if tool is None or tool.way_out is None:
        return None
    runs_commands = tool.properties.runs_commands
    # A command reads the folders of a person by itself, also where nothing has been read of them.
    label = ctx.label | (given_folders.label_of(ctx) if runs_commands else CLEAN)
    is_free = not label or not ctx.node.kind.sees_team
    is_confined = ctx.command_rules.confinement.is_confined
    if is_free and (is_confined or not runs_commands):
        return await private_sends.way_out(ctx, tool, call)
    way = await tool.way_out(ctx, call)
    if way is None or (is_free and way.sink is not Sink.UNCONFINED_COMMAND):
        return None
    return None if verdict(way.sink, ctx.team.trust) == "free" else way


def is_named_by_person(tx: Tx, ctx: RunContext, tool: Tool | None, call: ToolCall) -> bool:
    """Whether a person has named the address that this call opens, anywhere on the team."""
    if tool is None or not tool.properties.opens_address:
        return False
    wanted = links.requested(addresses.of_call(call))
    return wanted is not None and team_hosts.was_named(tx, ctx.team.id, wanted)
