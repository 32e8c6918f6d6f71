"""Quiet: the hours in which nobody is disturbed by news they did not ask for."""

import re
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from agiraph.domain.agents import Team
from agiraph.domain.errors import Refused
from agiraph.domain.ids import TeamId
from agiraph.store.teams import TEAMS
from agiraph.store.tx import Tx

_HOURS = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)")


def keep(tx: Tx, team_id: TeamId, hours: str, *, zone: str = "UTC") -> Team:
    """When briefings wait with their way to channels: `22:00-07:00` in a time zone; empty: never.

    The inbox has them at once: it disturbs nobody.
    """
    TEAMS.get(tx, team_id, lock=True)
    if hours:
        begin, end = _hours(hours)
        if begin == end:
            raise Refused(f"Quiet hours {hours!r} begin and end at once; leave them empty instead.")
    _zone(zone)
    TEAMS.update(tx, team_id, quiet_hours=hours, quiet_zone=zone)
    return TEAMS.get(tx, team_id)


def until(team: Team, now: datetime) -> datetime | None:
    """When the quiet hours end that it is now in, if it is."""
    if not team.quiet_hours:
        return None
    begin, end = _hours(team.quiet_hours)
    zone = _zone(team.quiet_zone)
    local = now.astimezone(zone)
    at = local.time()
    is_quiet = begin <= at < end if begin < end else at >= begin or at < end
    if not is_quiet:
        return None
    day = local.date() if at < end else local.date() + timedelta(days=1)
    return datetime.combine(day, end, tzinfo=zone).astimezone(UTC)


def _hours(written: str) -> tuple[time, time]:
    found = _HOURS.fullmatch(written)
    if found is None:
        raise Refused(f"Quiet hours {written!r} are written HH:MM-HH:MM, such as 22:00-07:00.")
    from_hour, from_minute, to_hour, to_minute = (int(part) for part in found.groups())
    return time(from_hour, from_minute), time(to_hour, to_minute)


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise Refused(f"There is no time zone {name!r}; write one as Europe/Berlin.") from error
