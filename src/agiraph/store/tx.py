"""Tx: what a verb may do inside its transaction, the same on both databases."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol

from agiraph.domain.events import Event, TeamEvent
from agiraph.domain.ids import AgentId, TeamId
from agiraph.domain.work import Lane, Queue

Row = Sequence[Any]
Dialect = Literal["sqlite", "postgres"]


@dataclass(slots=True)
class Aftermath:
    """What the rest of the process should know once the transaction is durable."""

    events: list[Event] = field(default_factory=list[Event])
    wakes: list[Queue] = field(default_factory=list[Queue])
    cancels: list[Queue] = field(default_factory=list[Queue])
    alarm: bool = False


class Tx(Protocol):
    now: datetime
    dialect: Dialect
    """For the few things the two databases do not have in common, such as searching text."""
    held: dict[str, dict[str, Any]] | None
    """What was read by its key, by table, and not changed since; None where others may change
    it meanwhile."""

    def run(self, sql: str, /, **values: Any) -> int:
        """Change rows; how many were changed."""
        ...

    def one(self, sql: str, /, **values: Any) -> Row | None: ...

    def all(self, sql: str, /, **values: Any) -> list[Row]: ...

    def emit(self, team_id: TeamId, event: TeamEvent, /) -> None:
        """Record an event of this transaction. It is numbered last and committed with the rows."""
        ...

    def emitted(self, team_id: TeamId) -> int:
        """How many events of a team this transaction has said and not numbered yet."""
        ...

    def wake(self, agent_id: AgentId, lane: Lane = "work") -> None:
        """Somebody should look at this queue once this is committed."""
        ...

    def cancel(self, agent_id: AgentId, lane: Lane = "work") -> None:
        """Whoever works off this queue should stop what it is doing now."""
        ...

    def alarm(self) -> None:
        """A due time was written; the nearest one may have changed."""
        ...
