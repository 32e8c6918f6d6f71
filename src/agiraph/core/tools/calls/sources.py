"""Tool sources: where the tools of an installation come from, besides those that agiraph ships."""

from typing import Protocol

from agiraph.core.domain.agents import Team
from agiraph.core.domain.messages import Notice
from agiraph.core.domain.records.skills import Skill
from agiraph.core.tools.base import Tool


class ToolSource(Protocol):
    """Offers tools that may change while the runtime runs: files of a person, MCP servers."""

    async def offered(self, team: Team) -> tuple[Tool, ...]:
        """Return the tools that agents of this team may be given, each guarded (`calls/added.py`).

        It is called at the beginning of each run of a node, so it must be quick, and it never
        raises. While nothing changes it returns the same objects: agents with the same tools
        share one toolset.
        """
        ...


class OwnCode(Protocol):
    """Code or skills that a person has enabled, which may change beside them."""

    def take_notices(self) -> list[Notice]:
        """Return and clear what the person is to be told of what is off now."""
        ...


class SkillSource(OwnCode, Protocol):
    async def offered(self, team: Team) -> tuple[Skill, ...]:
        """Return the skills that a person has enabled for a team."""
        ...
