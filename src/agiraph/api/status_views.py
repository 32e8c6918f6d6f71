"""Status views: what a server says about itself."""

from datetime import datetime

from pydantic import Field

from agiraph.api.view import View
from agiraph.domain.confinement import Level


class SandboxView(View):
    """How the commands of agents are confined on the server's machine."""

    level: Level = Field(description="none: commands are not confined, and each asks a person.")
    is_named: bool = Field(description="Whether the settings name the level.")
    has_spare_user: bool = Field(
        description="Whether root's commands run as another user, one for each team."
    )
    description: str = Field(description="The level in one or two sentences, for people.")
    not_held: list[str] = Field(description="What commands can do in spite of it.")
    reasons: list[str] = Field(description="Why better levels were not taken.")
    limited_by: str = Field(description="How limits of processes, memory and disk are kept.")


class StatusView(View):
    build: str
    failing: list[str] = Field(description="A sentence for each background task that fails now.")
    sandbox: SandboxView
    stopped_at: datetime | None = Field(
        description="When all work was stopped by an emergency stop that is in force; None: none."
    )
