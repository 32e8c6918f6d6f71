"""Tool sources: where the tools of an installation come from, besides those that agiraph ships."""

from typing import Protocol

from agiraph.core.domain.agents import Team
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
