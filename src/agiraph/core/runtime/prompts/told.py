"""Told: what features tell the thread of a new task, besides the files of its team."""

from functools import cache
from typing import Any, Protocol, cast

from agiraph.core.domain.agents import Agent, Team
from agiraph.core.domain.features import brought
from agiraph.core.domain.provenance.labels import Label
from agiraph.core.domain.work import WorkNode
from agiraph.core.run_context import RunContext
from agiraph.core.runtime.prompts.shown_files import ShownFiles
from agiraph.core.store.tx import Tx


class Told(Protocol):
    """What one feature tells a new thread."""

    @property
    def label(self) -> Label:
        """The sources of untrusted text in it, which stands in a fence."""
        ...

    def sections(self, files: ShownFiles, *, has_tools: bool) -> list[str]:
        """Return sections of the system prompt; `files` encloses untrusted text."""
        ...

    def short_sections(self, files: ShownFiles) -> list[str]:
        """Return those of the short prompt, for a small window."""
        ...

    def opened(self, tx: Tx, *, is_lean: bool) -> None:
        """Record that a thread begins with it, in the transaction that writes its prompt."""
        ...


class Teller(Protocol):
    """Finds what a feature tells; `Feature.teller` has the place of one."""

    def load(self, tx: Tx, team: Team, agent: Agent, node: WorkNode) -> Any:
        """Return the rows that it needs, in the transaction that loads the node."""
        ...

    async def tell(self, ctx: RunContext, loaded: Any) -> Told:
        """Return what it tells, from these rows."""
        ...


@cache
def tellers() -> tuple[Teller, ...]:
    """Return the tellers of all features that have one."""
    return tuple(cast(list[Teller], brought("teller")))
