"""Toolsets: which tools a role is given."""

from collections.abc import Iterable, Mapping

from agiraph.domain.agents import Agent, Role
from agiraph.domain.errors import Refused
from agiraph.tools import (
    communication,
    delegation,
    files,
    knowledge,
    research,
    scheduling,
    shell,
    team,
    web,
    work,
)
from agiraph.tools.base import Tool

BUILT_IN: dict[str, Tool] = {
    tool.name: tool
    for tool in (
        work.publish,
        work.checkpoint,
        work.finish,
        communication.send_message,
        communication.check_messages,
        communication.ask_human,
        communication.suggest_next,
        delegation.assign_task,
        delegation.task_output,
        team.create_work_node,
        team.check_board,
        team.spawn_worker,
        team.assign_worker,
        team.cancel_work_node,
        team.promote,
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
        research.research_start,
        research.job_status,
        *knowledge.WORK,
        scheduling.schedule,
        scheduling.list_triggers,
        scheduling.cancel_trigger,
        scheduling.promise,
    )
}

_LEADING = frozenset(
    {"spawn_worker", "assign_worker", "promote", "start_stage", "reconvene", "promise"}
)
_WORK = frozenset(BUILT_IN) - {"finish", "publish"} - _LEADING
ROLES: dict[str, Role] = {
    "coordinator": Role(
        name="coordinator",
        tools=(_WORK | _LEADING | {"finish"}) - {"suggest_next"},
        proactive=True,
        may_brief=True,
    ),
    "worker": Role(name="worker", tools=_WORK | {"publish", "check_board"}),
}
ENDINGS = frozenset({"finish", "publish"})
"""Every agent keeps its way to hand in, whatever its tools are narrowed to."""
_TALKING = frozenset(
    {"checkpoint", "send_message", "check_messages", "ask_human", "suggest_next", "read_ref"}
)
"""A specialist's file names the tools of its trade; with the team it can talk in any case."""


def tools_for(agent: Agent, extra: Iterable[Tool] = ()) -> Mapping[str, Tool]:
    """The tools this agent may call: its role's, or those it was given by name, in fixed order."""
    added = {tool.name: tool for tool in extra}
    known = BUILT_IN | added
    role = ROLES.get(agent.role, ROLES["worker"])
    granted = role.tools | set(added)
    wanted = set(agent.tools) or granted
    if agent.role not in ROLES:  # a file may name tools that this installation does not have
        wanted |= _TALKING
    elif unknown := wanted - set(known):
        raise Refused(f"There are no tools called {', '.join(sorted(unknown))}.")
    names = (wanted & granted) | (role.tools & ENDINGS)
    return {name: known[name] for name in sorted(names)}
