"""Parts: what features keep while a runtime is open, and what they give to it.

A feature names what opens its part in `Feature.part`. Each method of `Part` says what a feature
without one of its own does.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from datetime import UTC, datetime
from functools import cache
from typing import Any

from agiraph.core.domain.agents import Agent, Specialist, Team
from agiraph.core.domain.ids import TeamId
from agiraph.core.domain.messages import Notice
from agiraph.core.domain.records.channels import Channel, WantedChannel
from agiraph.core.domain.records.search import Engine
from agiraph.core.domain.records.skills import Skill
from agiraph.core.domain.tools import ToolProperties
from agiraph.core.domain.value import dataclass
from agiraph.core.home.layout import Home
from agiraph.core.home.named_secrets import NamedSecrets
from agiraph.core.runtime.background.periodic import PeriodicTasks
from agiraph.core.store.database import Store
from agiraph.core.tools.base import Tool
from agiraph.core.tools.calls.sources import ToolSource
from agiraph.core.tools.delegation import assign_task, described
from agiraph.core.tools.files.given_folders import git_commit
from agiraph.core.tools.skills import use_skill
from agiraph.core.tools.staffing import check_tools
from agiraph.core.tools.toolsets import BUILT_IN, Toolset, is_in_sight, toolset
from agiraph.core.tools.web.web import web_search
from agiraph.models.registry import ModelFactory
from agiraph.sandbox.levels import CommandRules
from agiraph.web.access import Web


class Part:
    """What one feature keeps while a runtime is open."""

    async def offered(self, team: Team) -> tuple[Tool, ...]:
        """Return the tools that agents of this team may be given, as a `ToolSource` does: none."""
        return ()

    async def skills(self, team: Team) -> tuple[Skill, ...]:
        """Return the skills that a person has enabled for a team: none."""
        return ()

    def take_notices(self) -> list[Notice]:
        """Return and clear what the person is to be told of tools and skills that are off now:
        nothing."""
        return []

    @property
    def providers(self) -> Mapping[str, ModelFactory]:
        """Return the providers of models that it adds, by name: none."""
        return {}

    def engine(self, name: str) -> Engine | None:
        """Return the search engine that the settings name as `own:NAME`; None: it has none."""
        return None

    def channel(self, wanted: WantedChannel) -> Channel | None:
        """Return the channel that the settings only name; None: it has none."""
        return None

    def tool(self, marked: Callable[..., Any]) -> Tool | None:
        """Return the tool of a function that `agiraph.tool` has marked; None: it makes none."""
        return None

    async def start(self) -> None:
        """Start to work, before the engine does, whose runs may use it."""

    async def stop(self) -> None:
        """Stop working, after the engine has. It may not have been started."""

    async def idle(self) -> None:
        """Wait until it has nothing left to do now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """What the parts of a runtime work with."""

    home: Home
    store: Store
    periodic: PeriodicTasks
    rules: CommandRules
    web: Web
    """How pages are fetched; its engine may only be named yet."""
    secrets: NamedSecrets
    is_sole_process: bool
    """Whether no other process uses the database."""
    settings: Mapping[str, Any]
    """What each feature has read of the settings, by its name."""
    parts: list[Part] = field(default_factory=list[Part])
    """Those that are open: all of them, once they are started."""


MOST_KEPT = 256
"""The most toolsets in the cache; it is cleared when sources have changed that often."""

_Key = tuple[str, tuple[str, ...], bool, tuple[int, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedTools:
    """The tools of this installation, and which of them each agent is given."""

    extra: tuple[Tool, ...] = ()
    """Tools of the program that embeds agiraph."""
    parts: tuple[Part, ...] = ()
    """Those of features, which may offer tools and skills."""
    sources: tuple[ToolSource, ...] = ()
    specialists: Mapping[str, Specialist] = field(default_factory=dict[str, Specialist])
    has_search: bool = False
    _toolsets: dict[_Key, tuple[tuple[Tool, ...], Toolset]] = field(
        default_factory=dict[_Key, tuple[tuple[Tool, ...], Toolset]], repr=False
    )
    """The cache of toolsets. A key holds the ids of the tool objects, so each entry keeps these
    objects alive: a freed id could be reused."""

    async def skills_of(self, team: Team) -> tuple[Skill, ...]:
        """Return the skills that a person has enabled for a team."""
        return tuple([skill for part in self.parts for skill in await part.skills(team)])

    async def of_team(self, team: Team, skills: tuple[Skill, ...] = ()) -> tuple[Tool, ...]:
        """Return the team's tools that are not built in. If two have the same name, the first one
        is used; none replaces a built-in tool."""
        shipped = (use_skill,) if skills else ()
        if any(folder.is_writable for folder in team.folders):
            shipped = (*shipped, git_commit)
        found = {tool.name: tool for tool in (*shipped, *self.extra)}
        for source in (*self.parts, *self.sources):
            for tool in await source.offered(team):
                if tool.name not in BUILT_IN:
                    found.setdefault(tool.name, tool)
        return tuple(found.values())

    async def check(self, names: Sequence[str], *, team: str) -> None:
        """Raise `Refused` unless a new team with this name can be given all these tools."""
        new = Team(id=TeamId(""), name=team, goal="", created_at=datetime.now(UTC))
        offered = await self.of_team(new) if names else ()
        check_tools(names, {*BUILT_IN, use_skill.name, *(tool.name for tool in offered)})

    def take_notices(self) -> tuple[Notice, ...]:
        """Return and clear the unsent notices about a person's own tools and skills."""
        return tuple(one for part in self.parts for one in part.take_notices())

    def properties(self, offered: tuple[Tool, ...]) -> Mapping[str, ToolProperties]:
        """Return the properties of all tools that a team may use, by name."""
        return {**_built_in(), **{tool.name: tool.properties for tool in offered}}

    def toolset(self, agent: Agent, offered: tuple[Tool, ...], *, is_lean: bool) -> Toolset:
        """Return the agent's tools; agents with the same tools share the same objects."""
        agent = self._without_gone(agent, offered)
        offered = tuple(one for one in offered if one.is_for is None or one.is_for(agent.role))
        agent = _with_lists(agent, offered)
        ids = tuple(map(id, offered))
        key = (agent.role, agent.tools, is_lean, ids)
        if key not in self._toolsets:
            if len(self._toolsets) >= MOST_KEPT:
                self._toolsets.clear()
            self._toolsets[key] = (offered, self._make(agent, offered, is_lean=is_lean))
        return self._toolsets[key][1]

    def _make(self, agent: Agent, offered: tuple[Tool, ...], *, is_lean: bool) -> Toolset:
        # If the prompt lists the specialists, the tool's description does not: a thread's prompt is
        # stored, and a changed file of a specialist must not change the thread's tools.
        told = described(assign_task, self.specialists)
        extra = offered if is_in_sight(assign_task, agent) else (*offered, told)
        hidden = () if self.has_search else (web_search.name,)
        hidden = (*hidden, *(tool.name for tool in offered if tool.properties.listed_by))
        return toolset(agent, extra, is_lean=is_lean, explained={told.name: told}, hidden=hidden)

    def _without_gone(self, agent: Agent, offered: tuple[Tool, ...]) -> Agent:
        """Return the agent without the tools that a person has disabled since it was hired. An
        empty list would mean every tool of its role, so then the agent keeps the tools that end its
        work."""
        known = BUILT_IN.keys() | {tool.name for tool in offered}
        kept = tuple(name for name in agent.tools if name in known)
        if kept == agent.tools:
            return agent
        ending = (tool.name for tool in BUILT_IN.values() if tool.properties.ends_node)
        return replace(agent, tools=kept or tuple(ending))


@cache
def _built_in() -> Mapping[str, ToolProperties]:
    return {name: tool.properties for name, tool in BUILT_IN.items()}


def _with_lists(agent: Agent, offered: tuple[Tool, ...]) -> Agent:
    """Complete the agent's list of tools: a tool that lists others (`mcp__NAME`) brings all that it
    lists, and each of them brings the listing tool."""
    listed = {tool.name: tool.properties.listed_by for tool in offered}
    more = {
        name: None
        for tool, by in listed.items()
        for name in (tool, by)
        if by and (by in agent.tools or tool in agent.tools)
    }
    if not agent.tools or not more:
        return agent
    return replace(agent, tools=tuple(dict.fromkeys((*agent.tools, *more))))
