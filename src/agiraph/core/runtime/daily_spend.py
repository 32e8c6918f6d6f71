"""Daily spend: what all teams have spent today, as this process knows it, against the daily limit.

It also knows what each team has spent within the last minutes (see
`services/lifecycle/overspending.py`). The sum is read from the rows every half minute, and more
often near the limit; what this process books meanwhile is added. So a turn needs no statement for
it.
"""

from collections import deque
from dataclasses import field

from agiraph.core.domain.chat import Lease
from agiraph.core.domain.errors import BurnRateReached, DailyLimitReached
from agiraph.core.domain.ids import TeamId
from agiraph.core.domain.times.time import Clock
from agiraph.core.domain.value import dataclass
from agiraph.core.domain.work import Usage
from agiraph.core.services.lifecycle import overspending
from agiraph.core.store import spend
from agiraph.core.store.database import Store
from agiraph.core.store.spend import DAILY_LIMITS, DailyLimit
from agiraph.core.store.tx import Tx

REFRESH_S = 30.0
NEAR, NEAR_REFRESH_S = 0.9, 2.0
"""From this share of the limit on, the rows are read more often: other processes spend too."""


@dataclass(slots=True)
class _Pace:
    """What a team has spent lately in this process."""

    usd: float = 0.0
    tokens: int = 0
    """Tokens without a price."""
    _spent: deque[tuple[float, float, int]] = field(default_factory=deque[tuple[float, float, int]])

    def add(self, at: float, usd: float, tokens: int) -> None:
        self._spent.append((at, usd, tokens))
        self.usd, self.tokens = self.usd + usd, self.tokens + tokens

    def forget(self, *, before: float) -> None:
        """Take off what was spent before this moment."""
        while self._spent and self._spent[0][0] < before:
            _, usd, tokens = self._spent.popleft()
            self.usd, self.tokens = self.usd - usd, self.tokens - tokens

    def is_low(self) -> bool:
        return self.usd < overspending.LEAST_USD and self.tokens < overspending.LEAST_TOKENS


@dataclass(slots=True)
class DailySpend:
    """The sum of one process. Without a limit it does nothing."""

    store: Store
    clock: Clock
    limit_usd: float | None
    _row: DailyLimit = field(default=DailyLimit(day=""), init=False)
    _read_at: float = field(default=0.0, init=False)
    _read_usd: float = field(default=0.0, init=False)
    _booked_usd: float = field(default=0.0, init=False)
    """What this process has booked since the rows were read."""
    _reserved: dict[str, float] = field(default_factory=dict[str, float], init=False)
    """Money for the calls under way in this process, by thread."""
    _paid: set[str] = field(default_factory=set[str], init=False)
    """Models without a listed price that have reported a cost."""

    _recent: dict[TeamId, "_Pace"] = field(default_factory=dict[TeamId, "_Pace"], init=False)

    async def start(self) -> None:
        """Let work go on that stopped under a lower limit than the settings have now."""
        if await self.store.read(_has_stopped):
            await self.store.write(overspending.free_if_raised, self.limit_usd)

    async def reserve(self, thread_id: str, model: str, usd: float) -> None:
        """Reserve money for a call; raise `DailyLimitReached` if the day has none left.

        Models that cost nothing, or whose price nobody knows, are not stopped.
        """
        if self.limit_usd is None or (usd <= 0 and model not in self._paid):
            return
        self.release(thread_id)
        if self._is_stale():
            await self._read()
        if self._is_reached():
            # A person may have allowed more, and a sum may count a call twice for some seconds.
            await self._read()
            if self._is_reached():
                raise DailyLimitReached(self.limit_usd)
        self._reserved[thread_id] = usd

    def release(self, thread_id: str) -> None:
        """Forget the reservation of a call that has ended or is not made."""
        self._reserved.pop(thread_id, None)

    def book(self, team_id: TeamId, model: str, usage: Usage) -> None:
        """Add what a call has cost."""
        if usage.usd:
            self._booked_usd += usage.usd
            self._paid.add(model)
        tokens = usage.tokens if usage.usd is None else 0
        if usage.usd or tokens:
            pace = self._recent.setdefault(team_id, _Pace())
            pace.add(self.clock.monotonic(), usage.usd or 0.0, tokens)

    async def check_pace(self, lease: Lease) -> None:
        """Raise `BurnRateReached` if the goal of a run spends so fast that it must wait for a
        person, who is asked once."""
        pace = self._recent.get(lease.team_id)
        if pace is None or pace.is_low():
            return
        pace.forget(before=self.clock.monotonic() - overspending.WINDOW.total_seconds())
        if pace.is_low():
            return
        usd, tokens, limit_usd = pace.usd, pace.tokens, self.limit_usd
        if await self.store.write(
            overspending.check_goal, lease, usd=usd, tokens=tokens, limit_usd=limit_usd
        ):
            raise BurnRateReached

    @property
    def _used_usd(self) -> float:
        return self._read_usd + self._booked_usd + sum(self._reserved.values())

    def _is_reached(self) -> bool:
        return self._row.is_reached(self.limit_usd or 0.0, self._used_usd)

    def _is_stale(self) -> bool:
        most = (self.limit_usd or 0.0) + self._row.allowed_usd
        longest = NEAR_REFRESH_S if self._used_usd >= NEAR * most else REFRESH_S
        is_old = self.clock.monotonic() - self._read_at >= longest
        return is_old or self._row.day != spend.day_of(self.clock.now())

    async def _read(self) -> None:
        before = self._booked_usd
        self._row, self._read_usd = await self.store.read(_today)
        # What was booked during the read may be counted twice until the next one, but not lost.
        self._booked_usd -= before
        self._read_at = self.clock.monotonic()


def _today(tx: Tx) -> tuple[DailyLimit, float]:
    day = spend.day_of(tx.now)
    return DAILY_LIMITS.find(tx, day) or DailyLimit(day=day), spend.usd_of_day(tx, day)


def _has_stopped(tx: Tx) -> bool:
    row = DAILY_LIMITS.find(tx, spend.day_of(tx.now))
    return row is not None and row.stopped_usd is not None
