"""Quiet hours: the daily hours in which no briefing and no notice of a digest is sent to the
person's channels."""

from datetime import datetime

from agiraph.domain import hours as daily
from agiraph.domain.agents import Team
from agiraph.domain.errors import Refused
from agiraph.domain.moments import parse_zone


def check(hours: str, zone: str) -> None:
    """Raise `Refused` for hours or a time zone that cannot be read."""
    if hours and daily.parse(hours).is_whole_day:
        raise Refused(
            f"Quiet hours {hours!r} leave no time to send anything; leave out at least a minute."
        )
    parse_zone(zone)


def end_of_quiet(team: Team, now: datetime) -> datetime | None:
    """Return when the current quiet hours end, or None outside of quiet hours."""
    if not team.quiet_hours:
        return None
    quiet = daily.parse(team.quiet_hours)
    return quiet.next_end(now, team.quiet_zone) if quiet.contain(now, team.quiet_zone) else None
