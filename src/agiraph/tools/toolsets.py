"""Toolsets: which tools a role is given."""

from collections.abc import Iterable, Mapping

from agiraph.domain.errors import Refused
from agiraph.domain.people import Agent, Role
from agiraph.tools import communication, files, shell, work
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
        files.read_file,
        files.write_file,
        files.edit_file,
        files.list_files,
        shell.bash,
    )
}

_WORK = frozenset(BUILT_IN) - {"finish", "publish"}
ROLES: dict[str, Role] = {
    "coordinator": Role(
        name="coordinator", tools=_WORK | {"finish"}, proactive=True, may_brief=True
    ),
    "worker": Role(name="worker", tools=_WORK | {"publish"}),
}
ENDINGS = frozenset({"finish", "publish"})
"""Every agent keeps its way to hand in, whatever its tools are narrowed to."""


def tools_for(agent: Agent, extra: Iterable[Tool] = ()) -> Mapping[str, Tool]:
    """The tools this agent may call: its role's, or those it was given by name, in fixed order."""
    added = {tool.name: tool for tool in extra}
    known = BUILT_IN | added
    role = ROLES.get(agent.role, ROLES["worker"])
    granted = role.tools | set(added)
    wanted = set(agent.tools) or granted
    if unknown := wanted - set(known):
        raise Refused(f"There are no tools called {', '.join(sorted(unknown))}.")
    names = (wanted & granted) | (role.tools & ENDINGS)
    return {name: known[name] for name in sorted(names)}
