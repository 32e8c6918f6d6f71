"""Hours: a daily span of local time, such as 08:00-20:00 or, over midnight, 22:00-07:00."""

import re
from datetime import UTC, datetime, time
from typing import NamedTuple

from agiraph.core.domain.errors import Refused
from agiraph.core.domain.times import cron, moments

DAY_MINUTES = 24 * 60

_SPAN = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)\s*-\s*([01]?\d|2[0-4]):([0-5]\d)")


class Hours(NamedTuple):
    """A span of minutes since local midnight. `begin` belongs to the span, `end` does not."""

    begin: int
    end: int
    """Smaller than `begin` if the span continues after midnight; 1440 is midnight."""

    @property
    def is_whole_day(self) -> bool:
        return (self.begin, self.end) == (0, DAY_MINUTES)

    def contain(self, moment: datetime, zone: str) -> bool:
        """Tell whether the zone's clock shows a time within the span at this moment."""
        local = moment.astimezone(moments.parse_zone(zone))
        minute = 60 * local.hour + local.minute
        if self.begin < self.end:
            return self.begin <= minute < self.end
        return minute >= self.begin or minute < self.end

    def next_begin(self, now: datetime, zone: str) -> datetime | None:
        return _next(self.begin, now, zone)

    def next_end(self, now: datetime, zone: str) -> datetime | None:
        return _next(self.end % DAY_MINUTES, now, zone)


def parse(text: str) -> Hours:
    """Return the span that a text such as `08:00-20:00` names. Raise `Refused` if it names none."""
    begin = end = 0
    if span := _SPAN.fullmatch(text.strip()):
        begin, end = (60 * int(span[part]) + int(span[part + 1]) for part in (1, 3))
    # 08:00-08:00 could mean a whole day or nothing, so it is refused.
    if begin == end or end > DAY_MINUTES:
        raise Refused(f"{text!r} is not a span of hours; write two times such as 08:00-20:00.")
    return Hours(begin, end)


def _next(minute: int, now: datetime, zone: str) -> datetime | None:
    """Return the first moment after now at which the zone's clock reaches this minute."""
    # A cron schedule knows the days on which clocks change: a minute that the clock jumps over
    # counts as reached right after the jump.
    due = cron.parse(f"{minute % 60} {minute // 60} * * *", zone).next(now)
    # In an hour that comes twice, cron takes the first time only. Between the two, the second one
    # is next; cron alone would answer with the following day.
    info = moments.parse_zone(zone)
    shown = datetime.combine(
        now.astimezone(info).date(), time(minute // 60, minute % 60), info
    ).replace(fold=1)
    second = shown.astimezone(UTC)
    is_real = second.astimezone(info).time() == shown.time()  # False inside a jump forward
    return second if is_real and second > now and (due is None or second < due) else due
