"""Configured tools: which roles and teams get an own tool, from `[tools.NAME]` of agiraph.toml."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agiraph.domain.agents import Team
from agiraph.domain.errors import Misconfigured
from agiraph.home.named_secrets import NamedSecrets

TABLE = "tools"
EXAMPLE = (
    '[tools.NAME] with roles = ["coordinator", "worker"] (an empty list: only specialists whose '
    'file names it), teams = ["team name or id"], shown = false'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRule:
    """The settings of one own tool. None: the value from the tool's file."""

    roles: frozenset[str] | None = None
    teams: frozenset[str] | None = None
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


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    roles: list[Literal["coordinator", "worker"]] | None = None
    teams: list[Annotated[str, Field(min_length=1)]] | None = None
    shown: bool | None = None


def tool_rules(path: Path, written: Any) -> dict[str, ToolRule]:
    """Return the rules of a settings file by tool, or raise `Misconfigured` with the entry."""
    if not isinstance(written, dict):
        raise Misconfigured(f"{path}: tools are tables: {EXAMPLE}.")
    return {
        name: _rule(f"{path}: [{TABLE}.{name}]", table)
        for name, table in cast(dict[str, Any], written).items()
    }


def _rule(where: str, table: Any) -> ToolRule:
    try:
        entry = _Entry.model_validate(table)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        inner = ".".join(str(part) for part in first["loc"])
        raise Misconfigured(f"{where} {inner}: {first['msg']}. Write {EXAMPLE}.") from error
    return ToolRule(
        roles=None if entry.roles is None else frozenset(entry.roles),
        teams=None if entry.teams is None else frozenset(entry.teams),
        shown=entry.shown,
    )
