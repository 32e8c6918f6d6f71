"""Added tools: guards the calls of tools that agiraph does not ship.

The program that embeds agiraph may add tools of its own (`Runtime.open(tools=…)`). Only their
author knows what a call reaches, and says so by `@tool(outside=…)`. A tool that says nothing is
taken for one that sends: in a labelled thread a person decides on each call of it.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from agiraph.core.domain.chat import ToolCall
from agiraph.core.domain.outcomes import Done
from agiraph.core.domain.provenance.labels import CLEAN, Label, of_program
from agiraph.core.domain.provenance.sinks import Sink, WayOut
from agiraph.core.domain.tools import Reach
from agiraph.core.run_context import RunContext
from agiraph.core.tools.base import Tool

_SINKS: Mapping[Reach, tuple[Sink, str]] = {
    "reads": (Sink.TOOL_READS, "the tool would tell others what it looks for"),
    "changes": (Sink.TOOL_CHANGES, "the tool would change something outside of the team"),
    "sends": (Sink.TOOL_SENDS, "the tool would send something to others"),
}


def guarded(tool: Tool) -> Tool:
    """Return an added tool that says where its calls send data. Its answers are labelled with its
    name, unless it labels them itself."""
    reach: Reach = tool.properties.outside or "sends"
    if reach == "nothing" or tool.way_out is not None:
        return tool
    tool = leaving(tool, reach)
    return tool if tool.properties.outside is None else _labelling(tool)


def leaving(tool: Tool, reach: Reach) -> Tool:
    """Return the tool so that its calls take the way out of this reach."""
    sink, why = _SINKS[reach]

    async def way_out(ctx: RunContext, call: ToolCall) -> WayOut:
        return WayOut(sink=sink, target=tool.name, why=why)

    return replace(tool, way_out=way_out)


def label_of(name: str, reach: Reach) -> Label:
    """Return the label of what a tool of this name brings from outside."""
    return CLEAN if reach == "nothing" else of_program(name)


def _labelling(tool: Tool) -> Tool:
    """Return the tool so that its answers carry its name as their source."""
    act = tool.act

    def labelled(answer: Any) -> Any:
        if not isinstance(answer, Done) or answer.label:
            return answer
        return replace(answer, label=of_program(tool.name))

    def act_now(*args: Any, **given: Any) -> Any:
        return labelled(act(*args, **given))

    async def act_later(*args: Any, **given: Any) -> Any:
        return labelled(await act(*args, **given))

    return replace(tool, act=act_now if tool.effect == "transaction" else act_later)
