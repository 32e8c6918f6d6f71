"""Parts: what features keep while a runtime is open, and what they give to it.

A feature names what opens its part in `Feature.part`. Each method of `Part` says what a feature
without one of its own does.
"""

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

from agiraph.core.domain.agents import Team
from agiraph.core.domain.messages import Notice
from agiraph.core.domain.records.channels import Channel, WantedChannel
from agiraph.core.domain.records.search import Engine
from agiraph.core.domain.records.skills import Skill
from agiraph.core.domain.value import dataclass
from agiraph.core.home.layout import Home
from agiraph.core.home.named_secrets import NamedSecrets
from agiraph.core.runtime.background.periodic import PeriodicTasks
from agiraph.core.store.database import Store
from agiraph.core.tools.base import Tool
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
