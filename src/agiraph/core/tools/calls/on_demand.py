"""On demand: tools that a model is not shown, but may ask about and call.

Each tool in sight costs tokens in every request and makes the choice harder. The prompt lists the
other tools by name; `tool_help` returns the schema of one, `call_tool` calls it. A call by
`call_tool` is unwrapped when its reply is read (`call_reading`), so that policies, events and
people see the real tool. A call of a listed tool by its own name is made, too.
"""

from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import Annotated, Any, cast

import orjson
from pydantic import Field

from agiraph.core.domain.chat import ToolCall, ToolSpec
from agiraph.core.domain.errors import Refused
from agiraph.core.domain.outcomes import Answer, Done
from agiraph.core.run_context import RunContext
from agiraph.core.tools.base import Tool, tool

NEAREST = 3
"""Names that are offered for one that does not exist."""
NO_NAME = (
    "Not called. Give the name of the tool as `name`, and all that it takes as one object in "
    "`arguments`, as tool_help shows."
)


@tool(effect="repeatable", roles=frozenset(), counts_as_work=False)
async def tool_help(ctx: RunContext, name: str) -> Answer:
    """Get what a tool takes: one not shown, or the rarer arguments of a shown one."""
    raise AssertionError("`for_tools` binds the tool to those of its agent.")


@tool(effect="repeatable", roles=frozenset(), counts_as_work=False)
async def call_tool(
    ctx: RunContext,
    name: str,
    arguments: Annotated[dict[str, Any] | None, Field(description="As tool_help shows")] = None,
) -> Answer:
    """Call a tool that is listed but not shown."""
    # Every other call by it was read as a call of the tool that it names (`unwrap`).
    raise Refused(NO_NAME)


def for_tools(tools: Mapping[str, Tool]) -> list[Tool]:
    """Return `tool_help` and `call_tool` for an agent with these tools."""

    async def describe(ctx: RunContext, name: str) -> Answer:
        known = tools.get(name.strip().strip("`").removesuffix("()"))
        if known is None:
            raise Refused(_no_such_tool(name, tools))
        if known.describe is not None:
            return known.describe(ctx)
        return Done(f"{description(known.spec)}\nCall it with {_example(known.spec)}.")

    return [replace(tool_help, act=describe), call_tool]


def description(spec: ToolSpec) -> str:
    """Return what a model must know of a tool to call it."""
    schema = orjson.dumps(spec.schema).decode()
    return f"{spec.name}: {spec.description}\nArguments, as a JSON schema: {schema}"


def unwrap(call: ToolCall, tools: Mapping[str, Tool]) -> ToolCall | None:
    """Return the call that a call by `call_tool` stands for; None for any other call.

    What stands in place of the arguments is left to the reader of the call.
    """
    if call.name != call_tool.name or call.name not in tools or call.malformed is not None:
        return None
    given = call.arguments
    name, arguments = given.get("name"), given.get("arguments")
    beside = {key: value for key, value in given.items() if key not in ("name", "arguments")}
    if not isinstance(name, str) or not name.strip() or (arguments and beside):
        return None
    arguments = arguments or beside  # some models write the arguments beside the name
    found = ToolCall(id=call.id, name=name.strip().removesuffix("()"), via=call_tool.name)
    if isinstance(arguments, dict):
        return replace(found, arguments=cast(dict[str, Any], arguments))
    text = arguments if isinstance(arguments, str) else orjson.dumps(arguments).decode()
    return replace(found, malformed=text)


def _no_such_tool(name: str, tools: Mapping[str, Tool]) -> str:
    near = get_close_matches(name.strip().lower(), tools, n=NEAREST, cutoff=0.7)
    nearest = f"Did you mean {' or '.join(near)}?" if near else f"There are: {', '.join(tools)}."
    return f"There is no tool {name!r}. {nearest}"


def _example(spec: ToolSpec) -> str:
    required = cast(list[str], spec.schema.get("required", []))
    shown = ", ".join(f'"{name}": …' for name in required)
    return f'{call_tool.name}(name="{spec.name}", arguments={{{shown}}})'
