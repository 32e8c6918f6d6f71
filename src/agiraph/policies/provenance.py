"""Taint: what a thread may still do by itself after it has read what strangers wrote.

A page may contain instructions that the model then follows. So after a thread has read one, data
leaves it only by ways that existed before, and nothing is stored for later threads, unless a person
allows it. Each tool declares which of its calls need that (`label_objection`); knowledge is held.
"""

from agiraph.domain.chat import ToolCall
from agiraph.run_context import RunContext
from agiraph.store import messages
from agiraph.store.tx import Tx
from agiraph.tools import addresses
from agiraph.tools.base import Tool

MAX_MESSAGES = 200
"""Messages of the person that are searched for an address, newest first."""


def objection(ctx: RunContext, tool: Tool | None, call: ToolCall) -> str | None:
    """Return why a person has to decide on this call; None if it may be made."""
    if not ctx.label or tool is None or tool.label_objection is None:
        return None
    return tool.label_objection(ctx, call)


def was_named_by_person(tx: Tx, ctx: RunContext, tool: Tool | None, call: ToolCall) -> bool:
    """Whether a person has named the address that this call opens, anywhere on the team."""
    if tool is None or not tool.properties.opens_address:
        return False
    said = messages.from_people(tx, ctx.team.id, limit=MAX_MESSAGES)
    return any(addresses.of_call(call) in addresses.in_text(message.text) for message in said)
