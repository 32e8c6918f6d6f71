"""Cron: parse cron expressions and compute their moments in a time zone.

When clocks are set forward, local times are skipped; when they are set back, an hour comes twice. A
moment in a skipped time happens once, in the first minute after it. A moment in the repeated hour
happens the first time only, but both times if the hour field is an interval (`*`, `*/n`).
"""

import calendar
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

from agiraph.core.domain.errors import Refused
from agiraph.core.domain.text.plurals import counted
from agiraph.core.domain.times.moments import parse_zone
from agiraph.core.domain.value import dataclass

DAY = timedelta(days=1)
MINUTE = timedelta(minutes=1)
MOST_MONTHS = 12 * 9
"""The months to search for the next match: 29 February comes at least once in eight years."""
# datetime ends with the year 9999; the margin is for days that are added and for time zones.
LAST_YEAR = 9990

_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_LONGEST = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_SHORT = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_PART = re.compile(r"(\*|[0-9]+|[A-Z]{3})(?:-([0-9]+|[A-Z]{3}))?(?:/([0-9]+))?")


class _Field(NamedTuple):
    name: str
    first: int
    last: int
    names: tuple[str, ...] = ()
    """Names of its values, beginning with `first`."""


_FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of month", 1, 31),
    _Field("month", 1, 12, _MONTHS),
    _Field("day of week", 0, 7, _DAYS),  # 7 is Sunday, too
)


@dataclass(frozen=True, slots=True)
class Cron:
    """A parsed expression in one time zone."""

    minutes: tuple[int, ...]
    """Minutes since midnight, on every day that matches, in order."""
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    """0 is Sunday."""
    either: bool
    """Both day fields are restricted. As in cron, a day then has to match only one of them."""
    is_interval: bool
    zone: ZoneInfo

    def next(self, after: datetime) -> datetime | None:
        """Return the first moment after this one; None if there is none until the year 9990."""
        for day in self._dates(_beginning(after, self.zone)):
            moments = self._moments(day)
            place = bisect_right(moments, after)
            if place < len(moments):
                return moments[place]
        return None

    def between(self, first: datetime, last: datetime) -> Iterator[datetime]:
        """Yield the moments from `first` to `last`, both included."""
        for moments, places in self._spans(first, last):
            yield from (moments[place] for place in places)

    def count(self, first: datetime, last: datetime) -> int:
        """Return how many moments lie from `first` to `last`, without computing each."""
        return sum(len(places) for _, places in self._spans(first, last))

    def _spans(self, first: datetime, last: datetime) -> Iterator[tuple[Sequence[datetime], range]]:
        """Yield each day's moments, with the places of those from `first` to `last`."""
        latest = first - timedelta(microseconds=1)
        end = last.astimezone(self.zone).date()
        for day in self._dates(_beginning(first, self.zone)):
            if day > end:
                return
            moments = self._moments(day)
            yield moments, range(bisect_right(moments, latest), bisect_right(moments, last))
            # A zone may skip a whole day; its moments then equal those of the next day.
            latest = max(latest, moments[-1])

    def last(self, until: datetime, *, not_before: datetime) -> datetime | None:
        """Return the latest moment from `not_before` up to `until`, if there is one."""
        day = until.astimezone(self.zone).date()
        end = _beginning(not_before, self.zone)
        while day >= end:
            if self._matches(day):
                moments = self._moments(day)
                place = bisect_right(moments, until)
                if place:
                    return moments[place - 1] if moments[place - 1] >= not_before else None
            day -= DAY
        return None

    def _matches(self, day: date) -> bool:
        if day.month not in self.months:
            return False
        by_month, by_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return by_month or by_week if self.either else by_month and by_week

    def _dates(self, day: date) -> Iterator[date]:
        """Yield the days that match, beginning with this one."""
        year, month = day.year, day.month
        for _ in range(MOST_MONTHS):
            # `_matches` checks the month too; skipping its days here keeps rare months fast.
            if month in self.months:
                days = range(day.day, calendar.monthrange(year, month)[1] + 1)
                yield from filter(self._matches, (date(year, month, n) for n in days))
            year, month = (year, month + 1) if month < 12 else (year + 1, 1)
            if year > LAST_YEAR:
                return
            day = date(year, month, 1)

    def _moments(self, day: date) -> Sequence[datetime]:
        """Return the moments on this day, in order and without repetition."""
        start = datetime.combine(day, time())
        before, after = (_offset(self.zone, start), _offset(self.zone, start + DAY))
        if before == after:
            first = (start - before).replace(tzinfo=UTC)
            return _Plain(first, self.minutes)
        found: set[datetime] = set()
        local = start
        for minute in self.minutes:
            local = max(local, start + minute * MINUTE)
            while (early := _offset(self.zone, local)) < (
                late := _offset(self.zone, local, fold=1)
            ):
                local += MINUTE  # a skipped local time
            found.add((local - early).replace(tzinfo=UTC))
            if early > late and self.is_interval:  # an hour that comes twice
                found.add((local - late).replace(tzinfo=UTC))
        return sorted(found)


class _Plain(Sequence[datetime]):
    """The moments of a day without a clock change, computed on access."""

    __slots__ = ("_first", "_minutes")

    def __init__(self, first: datetime, minutes: tuple[int, ...]) -> None:
        self._first = first
        self._minutes = minutes

    def __len__(self) -> int:
        return len(self._minutes)

    def __getitem__(self, place: int) -> datetime:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self._first + self._minutes[place] * MINUTE


def _beginning(moment: datetime, zone: ZoneInfo) -> date:
    """Return the local day before this moment: a clock change may move its last moments on."""
    return moment.astimezone(zone).date() - DAY


def _offset(zone: ZoneInfo, local: datetime, *, fold: int = 0) -> timedelta:
    found = local.replace(tzinfo=zone, fold=fold).utcoffset()
    assert found is not None
    return found


@lru_cache(maxsize=4096)
def parse(expression: str, zone: str = "UTC") -> Cron:
    """Return the parsed expression in this zone. Raise `Refused` with what is wrong."""
    written = _SHORT.get(expression.strip().lower(), expression.strip().upper())
    fields = written.split()
    if written.startswith("@"):
        raise Refused(
            f"{expression!r} is not a known schedule; there are {', '.join(sorted(_SHORT))}."
        )
    if len(fields) != 5:
        raise Refused(
            f"{expression!r} has {counted(len(fields), 'field')}. A schedule has five: minute, "
            "hour, day of month, month, day of week; '0 9 * * MON' is every Monday at nine."
        )
    minutes, hours, days, months, weekdays = (
        _values(expression, field, text) for field, text in zip(_FIELDS, fields, strict=True)
    )
    # As in Vixie cron, `*/2` counts as unrestricted here too.
    either = not fields[2].startswith("*") and not fields[4].startswith("*")
    if not either and not any(_LONGEST[month - 1] >= min(days) for month in months):
        raise Refused(f"{expression!r} names a day that no month has, so it would never happen.")
    return Cron(
        minutes=tuple(60 * hour + minute for hour in sorted(hours) for minute in sorted(minutes)),
        days=days,
        months=months,
        weekdays=frozenset(day % 7 for day in weekdays),
        either=either,
        is_interval=fields[1].startswith("*"),
        zone=parse_zone(zone),
    )


def _values(expression: str, field: _Field, text: str) -> frozenset[int]:
    found: set[int] = set()
    for part in text.split(","):
        match = _PART.fullmatch(part)
        if match is None:
            raise Refused(
                f"{part!r} in {expression!r} cannot be the {field.name}: write a number, a range "
                "(1-5), a list (1,15), a step (*/10) or *."
            )
        low, high, step = match.groups()
        first = field.first if low == "*" else _number(expression, field, low)
        if high is not None:
            last = _number(expression, field, high)
        else:
            last = field.last if low == "*" or step is not None else first
        if field.name == "day of week" and first > last == 0:
            last = 7  # FRI-SUN
        if low == "*" and high is not None:
            raise Refused(f"{part!r} in {expression!r}: * is the whole range already.")
        if first > last:
            raise Refused(
                f"{part!r} in {expression!r} goes backwards; write it as two ranges with a comma."
            )
        if step is not None and not 1 <= int(step) <= field.last:
            raise Refused(f"{part!r} in {expression!r}: a step is from 1 to {field.last}.")
        found.update(range(first, last + 1, int(step or 1)))
    return frozenset(found)


def _number(expression: str, field: _Field, text: str) -> int:
    if text in field.names:
        return field.first + field.names.index(text)
    number = int(text) if text.isdigit() else -1
    if not field.first <= number <= field.last:
        known = f" or {field.names[0]} to {field.names[-1]}" if field.names else ""
        raise Refused(
            f"{text!r} in {expression!r} cannot be the {field.name}: "
            f"that is {field.first} to {field.last}{known}."
        )
    return number
