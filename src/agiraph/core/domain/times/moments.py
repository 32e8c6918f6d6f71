"""Moments: read time zones, points in time and delays as people write them."""

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from agiraph.core.domain.errors import Refused
from agiraph.late_patterns import late

MAX_AHEAD = timedelta(days=3660)
"""How far ahead anything may be scheduled."""

_DELAY = late(r"(?:in\s+)?(\d+(?:\.\d+)?)\s*(s|m|h|d|w)\w*", re.IGNORECASE)
_UNIT_S = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 7 * 86_400.0}


def parse_zone(name: str) -> ZoneInfo:
    """Return the time zone of this IANA name. Raise `Refused` if there is none."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:  # an unknown name, a path, a directory
        raise Refused(
            f"{name!r} is not a time zone; use a name such as 'Europe/Berlin' or 'UTC'."
        ) from error


def local(moment: datetime, zone: str) -> datetime:
    """Return a moment as clocks in this zone show it; in UTC if this machine does not know it."""
    try:
        return moment.astimezone(parse_zone(zone))
    except Refused:
        return moment.astimezone(UTC)


def as_text(moment: datetime, zone: str) -> str:
    """Return a moment with its time zone, such as *2030-05-20 09:00 Europe/Berlin*."""
    shown = local(moment, zone)
    return f"{shown:%Y-%m-%d %H:%M} {shown.tzinfo}"


def parse_moment(text: str, zone: str) -> datetime:
    """Return an ISO date and time in UTC. A text without an offset is local time in `zone`."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise Refused(
            f"{text!r} is not a time; write it as 2030-05-20T09:00 or 2030-05-20T09:00+02:00."
        ) from error
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=parse_zone(zone))
    return moment.astimezone(UTC)


def parse_span(text: str) -> timedelta:
    """Return how long a text such as `90 days` is. Raise `Refused` if it names no such time."""
    delay = _DELAY.fullmatch(text.strip())
    seconds = float(delay[1]) * _UNIT_S[delay[2].lower()] if delay else 0.0
    if not 0 < seconds <= MAX_AHEAD.total_seconds():
        raise Refused(f"{text!r} is not a time of up to ten years; write it as '90 days'.")
    return timedelta(seconds=seconds)


def parse_deadline(text: str, now: datetime, zone: str = "UTC") -> datetime:
    """Return the moment that a text names: an ISO date and time, `2 hours` or `in 3 days`."""
    if delay := _DELAY.fullmatch(text.strip()):
        seconds = float(delay[1]) * _UNIT_S[delay[2].lower()]
        # Compared as seconds: a timedelta of "999999999999 weeks" would raise OverflowError.
        if seconds <= MAX_AHEAD.total_seconds():
            return now + timedelta(seconds=seconds)
        raise Refused(f"{text!r} is too far away; ten years is the most.")
    try:
        return parse_moment(text, zone)
    except Refused as error:
        raise Refused(
            f"{text!r} is not a time; write '2 hours', 'in 3 days' or 2030-05-20T09:00."
        ) from error
