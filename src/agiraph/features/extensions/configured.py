"""Configured tools: which roles and teams get an own tool, from `[tools.NAME]` of agiraph.toml."""

from typing import Annotated, Literal

from pydantic import Field

from agiraph.config import Picker
from agiraph.core.domain.agents import Team
from agiraph.core.domain.sections import Section, entry


@entry
class ToolRule:
    """The settings of one own tool. None: the value from the tool's file."""

    roles: frozenset[Literal["coordinator", "worker"]] | None = None
    teams: frozenset[Annotated[str, Field(min_length=1)]] | None = None
    """Names or ids of the teams that get it; None: all."""
    shown: bool | None = None

    def is_for(self, team: Team) -> bool:
        return self.teams is None or bool(self.teams & {team.id, team.name})


TOOLS: Section[ToolRule] = Section(
    "tools",
    ToolRule,
    '[tools.NAME] with roles = ["coordinator", "worker"] (an empty list: only specialists '
    'whose file names it), teams = ["team name or id"], shown = false',
)


def read(pick: Picker) -> dict[str, ToolRule]:
    """Return which roles and teams get an own tool, by its name."""
    return pick.tables(TOOLS)
