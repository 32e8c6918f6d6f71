"""Configured tools: which roles and teams get an own tool, from `[tools.NAME]` of agiraph.toml."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from agiraph.core.domain.agents import Team
from agiraph.core.domain.sections import Section, entry
from agiraph.core.home.named_secrets import NamedSecrets


@entry
class ToolRule:
    """The settings of one own tool. None: the value from the tool's file."""

    roles: frozenset[Literal["coordinator", "worker"]] | None = None
    teams: frozenset[Annotated[str, Field(min_length=1)]] | None = None
    """Names or ids of the teams that get it; None: all."""
    shown: bool | None = None

    def is_for(self, team: Team) -> bool:
        return self.teams is None or bool(self.teams & {team.id, team.name})


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtensionSettings:
    """What the settings say of extensions."""

    secrets: NamedSecrets = field(default_factory=NamedSecrets, repr=False)
    rules: Mapping[str, ToolRule] = field(default_factory=dict[str, ToolRule])
    """Which roles and teams get an own tool, by its name."""


NO_EXTENSIONS = ExtensionSettings()
TOOLS: Section[ToolRule] = Section(
    "tools",
    ToolRule,
    '[tools.NAME] with roles = ["coordinator", "worker"] (an empty list: only specialists '
    'whose file names it), teams = ["team name or id"], shown = false',
)
