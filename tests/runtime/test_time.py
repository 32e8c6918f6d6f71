"""A year of schedules with time changes and jumping clocks: no slot fires twice, none is lost."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from agiraph.core.domain.ids import AgentId
from agiraph.core.domain.triggers import Trigger
from agiraph.core.services.lifecycle import timers
from agiraph.core.services.triggers import definitions
from agiraph.core.services.triggers.firing import MISFIRE
from agiraph.core.store import triggers as rows
from agiraph.core.store import waits
from agiraph.core.store.tx import Tx
from agiraph.testing import World

MINUTE = timedelta(minutes=1)
YEAR = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
MARCH = datetime(2026, 3, 10, 9, 0, tzinfo=UTC)
"""The start of forty days with a time change, a Friday 13 and the end of a month."""
SPRING = datetime(2026, 4, 2, 9, 0, tzinfo=UTC)
HALF_AN_HOUR = "Australia/Lord_Howe"
"""A zone whose clocks change by half an hour, in the southern summer."""
EXPRESSIONS = (
    "0 * * * SUN",
    "*/45 * 1-8 MAR,APR,OCT,NOV *",
    "5 */4 * * *",
    "30 2 * * *",
    "30 1 * * *",
    "45 1 * * *",
    "15 2 * * SUN",
    "0 2,3 * * *",
    "*/20 2 * * *",
    "0 9 * * MON-FRI",
    "0 0 1 * *",
    "59 23 31 * *",
    "0 12 13 * FRI",
    "10 0-23/6 * MAR,APR,OCT,NOV *",
)
POLICIES = ("once", "all", "skip")


# ---- the expected slots, found by visiting every minute --------------------------------------


def _numbers(text: str, first: int, last: int, names: str = "") -> set[int]:
    for number, name in enumerate(names.split(), first):
        text = text.replace(name, str(number))
    found: set[int] = set()
    for part in text.split(","):
        span, _, step = part.partition("/")
        low, _, high = span.replace("*", f"{first}-{last}").partition("-")
        found.update(range(int(low), int(high or low) + 1, int(step or 1)))
    return found


MONTHS = "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC"


def _matcher(expression: str) -> Callable[[datetime], bool]:
    minute, hour, day, month, weekday = expression.split()
    minutes, hours = _numbers(minute, 0, 59), _numbers(hour, 0, 23)
    days, months = _numbers(day, 1, 31), _numbers(month, 1, 12, MONTHS)
    weekdays = {n % 7 for n in _numbers(weekday, 0, 7, "SUN MON TUE WED THU FRI SAT")}
    both = day != "*" and weekday != "*"

    def matches(local: datetime) -> bool:
        if local.minute not in minutes or local.hour not in hours or local.month not in months:
            return False
        by_day, by_week = local.day in days, local.isoweekday() % 7 in weekdays
        return by_day or by_week if both else by_day and by_week

    return matches


def expected(expression: str, minutes: list[tuple[datetime, datetime, list[datetime]]]) -> set[str]:
    """Return every slot, from the local time of each minute and the local times it skipped."""
    matches = _matcher(expression)
    is_interval = expression.split()[1].startswith("*")
    found: set[str] = set()
    for moment, local, skipped_times in minutes:
        shown = matches(local) and (is_interval or not local.fold)
        if shown or (skipped_times and any(matches(each) for each in skipped_times)):
            found.add(moment.isoformat(timespec="seconds"))
    return found


def walk(zone: str, first: datetime, last: datetime) -> Iterator[tuple[Any, Any, list[Any]]]:
    """Yield each minute with its local time, and the local times skipped just before it."""
    moment, before = first, (first - MINUTE).astimezone(ZoneInfo(zone)).replace(tzinfo=None)
    while moment <= last:
        local = moment.astimezone(ZoneInfo(zone))
        naive = local.replace(tzinfo=None)
        skipped = [before + n * MINUTE for n in range(1, (naive - before) // MINUTE)]
        yield moment, local, skipped
        moment, before = moment + MINUTE, naive


# ---- the actual firings ---------------------------------------------------------------------


@dataclass
class Clock:
    """A clock that jumps on certain days: ahead, back, or over the hours of a suspension."""

    now: datetime
    end: datetime
    jumps: list[tuple[datetime, timedelta]] = field(default_factory=list[Any])

    def reach(self, due: datetime) -> bool:
        """Advance to a due time, or to the target of a jump before it; return False at the end."""
        if self.jumps and self.jumps[0][0] <= due:
            at, by = self.jumps.pop(0)
            self.now = at + by
            return True
        self.now = max(self.now, due)
        return self.now <= self.end


def fire_until_end(tx: Tx, clock: Clock) -> None:
    """Fire everything that is due, at each due time until the end."""
    real = tx.now
    while (due := waits.next_due(tx)) is not None and clock.reach(due):
        tx.now = clock.now
        while timers.fire_due(tx):
            pass
    tx.now = real


def jumps(start: datetime, days: int) -> list[tuple[datetime, timedelta]]:
    """Return jumps every few days: in turn an hour ahead, an hour back, eight hours suspended."""
    kinds = (timedelta(hours=1), timedelta(hours=-1), timedelta(hours=8))
    times = range(2, days, 11 if days > 50 else 4)
    minutes = (timedelta(days=day, minutes=37 * day) for day in times)
    return [(start + at, kinds[n % 3]) for n, at in enumerate(minutes)]


def create_triggers(tx: Tx, agent_id: AgentId, zone: str, start: datetime) -> list[Trigger]:
    real, tx.now = tx.now, start
    made = [
        definitions.create(
            tx,
            agent_id=agent_id,
            type="scheduled",
            config={"cron": expression, "zone": zone, "misfire": POLICIES[n % 3]},
            action="send_message",
            payload={"to": "human", "content": f"{expression} in {zone}"},
        ).trigger
        for n, expression in enumerate(EXPRESSIONS)
    ]
    tx.now = real
    return made


def fired_and_skipped(tx: Tx, trigger: Trigger) -> tuple[list[str], list[tuple[str, str, int]]]:
    """Return the slots that fired, and the ranges of those that were skipped."""
    found = rows.firings(tx, trigger.id, limit=1_000_000)
    assert {f.reason for f in found if f.outcome == "skipped"} <= {MISFIRE}
    return (
        [f.slot for f in found if f.outcome == "fired"],
        [(f.slot, f.last_slot or f.slot, f.count) for f in found if f.outcome == "skipped"],
    )


def texts_to_person(tx: Tx) -> list[str]:
    return [row[0] for row in tx.all("select text from messages where recipient = 'human'")]


async def run(world: World, zone: str, start: datetime, days: int) -> None:
    founded = await world.found("Keep time", start=False)
    made = await world.store.write(create_triggers, founded.coordinator.id, zone, start)
    end = start + timedelta(days=days)
    await world.store.write(fire_until_end, Clock(start, end, jumps(start, days)))

    minutes = list(walk(zone, start + MINUTE, end))
    messages = await world.store.read(texts_to_person)
    for expression, trigger in zip(EXPRESSIONS, made, strict=True):
        slots = expected(expression, minutes)
        fired, skipped = await world.store.read(fired_and_skipped, trigger)
        passed: list[str] = []
        for first, last, count in skipped:
            run = sorted(slot for slot in slots if first <= slot <= last)
            assert (len(run), run[0], run[-1]) == (count, first, last), (expression, zone)
            passed += run
        assert len(fired) == len(set(fired)), (expression, zone)
        assert sorted(fired + passed) == sorted(slots), (expression, zone)
        assert messages.count(f"{expression} in {zone}") == len(fired)
        kept = await world.store.read(rows.TRIGGERS.get, trigger.id)
        assert (kept.fired, kept.skipped) == (len(fired), len(passed))


@pytest.mark.slow
async def test_in_forty_days_of_jumping_clocks_each_slot_fires_once_or_is_recorded_as_skipped(
    tmp_path: Path,
) -> None:
    async with World(tmp_path / "home", easy_endings=True) as world:
        await run(world, HALF_AN_HOUR, MARCH, 40)


@pytest.mark.long
@pytest.mark.timeout(400)
@pytest.mark.parametrize("zone", [HALF_AN_HOUR, "Europe/Berlin", "America/New_York"])
async def test_in_a_year_of_jumping_clocks_each_slot_fires_once_or_is_recorded_as_skipped(
    tmp_path: Path, zone: str
) -> None:
    async with World(tmp_path / "home", easy_endings=True) as world:
        await run(world, zone, YEAR, 365)


@pytest.mark.slow
async def test_each_slot_fires_once_or_is_recorded_as_skipped_on_both_databases(
    world: World,
) -> None:
    await run(world, HALF_AN_HOUR, SPRING, 5)


def test_the_reference_finds_skipped_and_repeated_hours() -> None:
    """The reference itself: an hour that is skipped, an hour that is repeated."""
    spring = datetime(2026, 3, 29, tzinfo=UTC)
    skipped_times = [
        s for _, _, s in walk("Europe/Berlin", spring, spring + timedelta(hours=3)) if s
    ]
    assert [(len(s), s[0].hour, s[-1].minute) for s in skipped_times] == [(60, 2, 59)]
    autumn = datetime(2026, 10, 25, tzinfo=UTC)
    walked = list(walk("Europe/Berlin", autumn, autumn + timedelta(hours=3)))
    assert len(expected("30 2 * * *", walked)) == 1
    assert len(expected("30 * * * *", walked)) == 3
    assert re.match(r"2026-10-25T00:30", min(expected("30 2 * * *", walked)))
