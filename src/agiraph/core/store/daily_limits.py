"""Daily limits: the days on which the home's limit on money was reached, and what was allowed."""

from dataclasses import dataclass

from agiraph.core.domain.ids import MessageId, TeamId
from agiraph.core.store.rows import Table
from agiraph.core.store.tx import Tx


@dataclass(frozen=True, slots=True, kw_only=True)
class DailyLimit:
    """A day in UTC, and what became of its limit."""

    day: str
    stopped_usd: float | None = None
    """The dollars at which work stopped: the limit then, with what was allowed before."""
    allowed_usd: float = 0.0
    """What a person has allowed on top of the limit, for this day."""
    offered_usd: float = 0.0
    """What an approval without an amount allows."""
    question_id: MessageId | None = None
    """The newest request to allow more."""
    deleted_usd: float = 0.0
    """What teams spent on this day that were deleted since."""

    def is_reached(self, limit_usd: float, used_usd: float) -> bool:
        """Whether no further call may start: the money is used, or work has stopped before."""
        most = limit_usd + self.allowed_usd
        return used_usd >= most or self.has_stopped_at(most)

    def has_stopped_at(self, most_usd: float) -> bool:
        """Whether work has stopped under this limit or a higher one."""
        return self.stopped_usd is not None and most_usd <= self.stopped_usd


DAILY_LIMITS = Table("daily_limits", DailyLimit, key="day")


def lock(tx: Tx, day: str) -> DailyLimit:
    """Return the row of a day, made if needed, and hold its lock until the commit."""
    tx.run(
        "insert into daily_limits (day, allowed_usd, offered_usd) values (:day, 0, 0)"
        " on conflict (day) do nothing",
        day=day,
    )
    return DAILY_LIMITS.get(tx, day, lock=True)


def asked_by(tx: Tx, question_id: MessageId) -> DailyLimit | None:
    """Return the day whose limit this request is about; None if it is about something else."""
    found = DAILY_LIMITS.select(tx, "question_id = :id", id=question_id)
    return found[0] if found else None


def open_in(tx: Tx, team_id: TeamId) -> list[DailyLimit]:
    """Return the days whose request was sent by this team and is not answered yet, locked."""
    asked = "select id from messages where team_id = :team and answered_at is null"
    found = DAILY_LIMITS.select(tx, f"question_id in ({asked})", team=team_id)
    return [lock(tx, row.day) for row in found]
