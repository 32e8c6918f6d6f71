"""Toolsets: the built-in tools, and which of them an agent is given."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from agiraph.core.domain.agents import Agent, Role
from agiraph.core.domain.chat import ToolSpec
from agiraph.core.domain.errors import Refused
from agiraph.core.domain.features import brought
from agiraph.core.tools import communication, delegation, scheduling, staffing, team, work
from agiraph.core.tools.base import Tool
from agiraph.core.tools.calls import on_demand
from agiraph.core.tools.calls.schemas import required_only
from agiraph.core.tools.commands import shell
from agiraph.core.tools.files import files
from agiraph.core.tools.web import reading, web

BUILT_IN: dict[str, Tool] = {
    tool.name: tool
    for tool in (
        work.publish,
        work.checkpoint,
        work.set_acceptance,
        work.finish,
        communication.send_message,
        communication.check_messages,
        communication.ask_human,
        communication.suggest_next,
        delegation.assign_task,
        delegation.task_output,
        team.create_work_node,
        team.check_board,
        staffing.spawn_worker,
        staffing.assign_worker,
        team.cancel_work_node,
        staffing.extend_task,
        staffing.promote,
        team.start_stage,
        team.reconvene,
        files.read_file,
        files.write_file,
        files.edit_file,
        files.list_files,
        files.read_ref,
        shell.bash,
        web.web_search,
        web.web_fetch,
        web.find_in_page,
        reading.read_links,
        team.job_status,
        scheduling.schedule,
        scheduling.list_triggers,
        scheduling.cancel_trigger,
        scheduling.promise,
        on_demand.tool_help,
        on_demand.call_tool,
        *(tool for tools in brought("tools") for tool in tools),
    )
}


def _role(name: str) -> Role:
    tools = frozenset(tool.name for tool in BUILT_IN.values() if name in tool.properties.roles)
    return Role(name=name, tools=tools)


ROLES: dict[str, Role] = {name: _role(name) for name in ("coordinator", "worker")}


def role_of(agent: Agent) -> Role:
    """Return the agent's role; a specialist, whose role is its own name, works as a worker."""
    return ROLES.get(agent.role, ROLES["worker"])


def _may_be_named(tool: Tool) -> bool:
    """Whether a specialist gets the tool by its name alone, whatever the roles."""
    return tool.properties.leads or tool.properties.outside is not None


def tools_for(agent: Agent, extra: Iterable[Tool] = ()) -> Mapping[str, Tool]:
    """Return the tools that this agent may call, sorted by name.

    They are those of its role, narrowed to the names in `agent.tools` if there are any. The order
    is fixed because the tool list is part of the prompt that providers cache.
    """
    known = BUILT_IN | {tool.name: tool for tool in extra}
    role = role_of(agent)
    granted = {name for name, tool in known.items() if role.name in tool.properties.roles}
    wanted = set(agent.tools) or granted
    if agent.role not in ROLES:
        # A specialist's file may name tools that this installation does not have.
        wanted |= {name for name, tool in known.items() if tool.properties.always_granted}
        # A person wrote the file, so the specialist also gets the coordinator's tools and the
        # person's own tools that the file names.
        granted |= {name for name in agent.tools if name in known and _may_be_named(known[name])}
    elif unknown := wanted - known.keys():
        raise Refused(f"There are no tools called {', '.join(sorted(unknown))}.")
    # Granted even to an agent with a list of its own: without them it could never submit a result,
    # or never without doubts.
    kept = role.tools & _kept(BUILT_IN)
    return {name: known[name] for name in sorted((wanted & granted) | kept)}


class Toolset(NamedTuple):
    """The tools of one agent: those it may call, and how its model learns of them."""

    tools: Mapping[str, Tool]
    """All that it may call, sorted by name."""
    shown: tuple[ToolSpec, ...] = ()
    """Those that each request contains. They stay the same for the life of a thread."""
    listed: tuple[str, ...] = ()
    """The names of those that the prompt lists: the model calls them on demand."""


def all_shown(tools: Mapping[str, Tool], *, besides: Collection[str] = ()) -> Toolset:
    """Return a toolset whose tools are all in sight, besides these."""
    return Toolset(tools, tuple(t.spec for t in tools.values() if t.name not in besides))


def toolset(
    agent: Agent,
    extra: Iterable[Tool] = (),
    *,
    is_lean: bool = False,
    explained: Mapping[str, Tool] | None = None,
    hidden: Collection[str] = (),
) -> Toolset:
    """Return the agent's tools, and which of them its model sees.

    `is_lean`: for a small window. Only the basic tools are shown, shortened, and none is listed.
    `explained`: tools whose description is longer in `tool_help` than in the requests. `hidden`:
    tools that cannot work in this installation; a call of one is refused with the reason.
    """
    granted = tools_for(agent, extra)
    in_sight = _lean_names(granted, agent) if is_lean else _names_in_sight(granted, agent)
    in_sight -= {*hidden}
    seen = {
        name: tool
        if tool.is_shown == (name in in_sight)
        else replace(tool, is_shown=not tool.is_shown)
        for name, tool in granted.items()
    }
    if is_lean:
        return Toolset(seen, tuple(_lean(t) for t in seen.values() if t.is_shown))
    # An always-granted tool that only looks is not listed: what it finds comes by itself.
    listed = [
        name
        for name, tool in granted.items()
        if name not in in_sight
        and name not in hidden
        and not (tool.properties.always_granted and tool.properties.polls)
    ]
    if listed:
        help_on = seen | {n: t for n, t in (explained or {}).items() if n in seen}
        seen |= {tool.name: tool for tool in on_demand.for_tools(help_on)}
    tools = {name: seen[name] for name in sorted(seen)}
    shown = tuple(_usual(tool) if listed else tool.spec for tool in tools.values() if tool.is_shown)
    return Toolset(tools, shown, tuple(listed))


def _usual(tool: Tool) -> ToolSpec:
    """Return the tool without its rare arguments."""
    spec, rare = tool.spec, tool.properties.rare
    if not rare:
        return spec
    usual = {name: field for name, field in spec.schema["properties"].items() if name not in rare}
    return replace(spec, schema={**spec.schema, "properties": usual})


def is_in_sight(tool: Tool, agent: Agent) -> bool:
    """Whether the agent's model sees the tool."""
    return bool(_names_in_sight({tool.name: tool}, agent))


def _names_in_sight(tools: Mapping[str, Tool], agent: Agent) -> set[str]:
    """Return the tools that the agent's model sees: those for its role, those that the agent's file
    names, and those that end its work."""
    role = role_of(agent).name
    shown = {name for name, tool in tools.items() if role in tool.properties.in_sight}
    return shown | _kept(tools) | tools.keys() & {*agent.tools}


def _lean_names(tools: Mapping[str, Tool], agent: Agent) -> set[str]:
    """Return the tools that a model with a small window sees. It sees web tools only if the agent's
    file names them."""
    role = role_of(agent).name
    shown = {name for name, tool in tools.items() if role in tool.properties.basic_for}
    named = tools.keys() & {*agent.tools}
    return shown | _kept(tools) | {n for n in named if tools[n].properties.gives_addresses}


def _lean(tool: Tool) -> ToolSpec:
    """Return the tool as a small model is shown it: one sentence and what a call must have, and of
    a call that ends the work also the evidence, without which no end is free of doubts."""
    spec = tool.spec
    first, dot, _ = spec.description.partition(". ")
    more = ("evidence",) if tool.properties.ends_node else ()
    return replace(spec, description=first + dot.strip(), schema=required_only(spec.schema, *more))


_READS_SCRATCH = replace(
    files.read_file,
    description="Read a text file in scratch/. Long files come in pages: use the offset you "
    "are given.",
)

PUBLIC: Mapping[str, Tool] = {
    tool.name: tool
    for tool in (
        web.find_in_page,
        files.list_files,
        work.publish,
        _READS_SCRATCH,
        web.web_fetch,
        web.web_search,
        files.write_file,
    )
}
"""The tools of a public reader, whatever its agent may call otherwise: none of them shows it or
anybody else what the team knows."""


def _kept(tools: Mapping[str, Tool]) -> set[str]:
    """Return the tools without which an agent could not end its work."""
    return {
        name
        for name, tool in tools.items()
        if tool.properties.ends_node or tool.properties.sets_acceptance
    }
