"""Tx: the transaction that a verb is given; the same interface on both databases."""

from collections.abc import Sequence
from dataclasses import field
from datetime import datetime
from typing import Any, Literal, Protocol

from agiraph.core.domain.events import Event, TeamEvent
from agiraph.core.domain.ids import AgentId, TeamId
from agiraph.core.domain.value import dataclass
from agiraph.core.domain.work import Lane, Queue

Row = Sequence[Any]
Dialect = Literal["sqlite", "postgres"]


@dataclass(slots=True)
class Aftermath:
    """The effects of a committed transaction on this process: events, queues to run or cancel."""

    events: list[Event] = field(default_factory=list[Event])
    wakes: list[Queue] = field(default_factory=list[Queue])
    cancels: list[Queue] = field(default_factory=list[Queue])
    alarm: bool = False


class Tx(Protocol):
    now: datetime
    dialect: Dialect
    """For the few features in which the databases differ, such as full-text search."""
    cache: dict[str, dict[str, Any]] | None
    """Rows read by key in this transaction, by table, until they are changed; None on PostgreSQL,
    where another transaction may change a row that is not locked."""

    def run(self, sql: str, /, **values: Any) -> int:
        """Run a statement; return how many rows it changed."""
        ...

    def one(self, sql: str, /, **values: Any) -> Row | None: ...

    def all(self, sql: str, /, **values: Any) -> list[Row]: ...

    def emit(self, team_id: TeamId, event: TeamEvent, /) -> None:
        """Record an event of this transaction. It is numbered last and committed with the rows."""
        ...

    def emitted(self, team_id: TeamId) -> int:
        """Return how many events of a team this transaction has recorded and not numbered yet."""
        ...

    def wake(self, agent_id: AgentId, lane: Lane = "work") -> None:
        """Have this queue worked off once the transaction is committed."""
        ...

    def cancel(self, agent_id: AgentId, lane: Lane = "work") -> None:
        """Cancel the node that runs in this queue, in whichever process, after the commit."""
        ...

    def alarm(self) -> None:
        """Tell the engine that the earliest due time may have changed."""
        ...
