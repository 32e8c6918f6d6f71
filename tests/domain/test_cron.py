"""Cron expressions: their slots, also on days with a time change, and none twice."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agiraph.core.domain.errors import Refused
from agiraph.core.domain.times.cron import parse
from tests.wording import Wording, refusals

BERLIN, NEW_YORK, LORD_HOWE = "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"
ZONES = (BERLIN, NEW_YORK, LORD_HOWE)


def slots(expression: str, zone: str, day: str, days: int = 1) -> list[str]:
    """Return the local times of all slots on these days, with their UTC offsets."""
    start = datetime.fromisoformat(day).replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)
    local = datetime.fromisoformat(day) + timedelta(days=days)
    end = local.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC) - timedelta(seconds=1)
    found = parse(expression, zone).between(start, end)
    return [f"{moment.astimezone(ZoneInfo(zone)):%H:%M%z}"[:8] for moment in found]


@pytest.mark.parametrize(
    ("expression", "after", "expected"),
    [
        ("0 9 * * MON", "2026-01-05T09:00", "2026-01-12T09:00"),
        ("0 9 * * mon", "2026-01-05T08:59", "2026-01-05T09:00"),
        ("*/15 * * * *", "2026-01-05T09:00:01", "2026-01-05T09:15"),
        ("5/20 * * * *", "2026-01-05T09:46", "2026-01-05T10:05"),
        ("0 0 1 JAN *", "2026-01-05T09:00", "2027-01-01T00:00"),
        ("0 0 29 2 *", "2026-01-05T09:00", "2028-02-29T00:00"),
        ("0 0 29 2 *", "2097-01-05T09:00", "2104-02-29T00:00"),
        ("0 0 31 * *", "2026-01-31T00:00", "2026-03-31T00:00"),
        ("30 8-18/5 * * 1-5", "2026-01-09T18:31", "2026-01-12T08:30"),
        ("0 0 13 * FRI", "2026-01-05T09:00", "2026-01-09T00:00"),  # either day matches
        ("0 0 13 * FRI", "2026-01-09T00:00", "2026-01-13T00:00"),
        ("0 0 */2 * FRI", "2026-01-05T09:00", "2026-01-09T00:00"),  # a star: both must match
        ("0 0 * * FRI-SUN", "2026-01-10T00:00", "2026-01-11T00:00"),
        ("0 0 * * 7", "2026-01-05T09:00", "2026-01-11T00:00"),
        ("@hourly", "2026-01-05T09:00", "2026-01-05T10:00"),
        ("@daily", "2026-01-05T09:00", "2026-01-06T00:00"),
        ("@weekly", "2026-01-05T09:00", "2026-01-11T00:00"),
        ("@monthly", "2026-01-05T09:00", "2026-02-01T00:00"),
        ("@yearly", "2026-01-05T09:00", "2027-01-01T00:00"),
    ],
)
def test_the_next_slot_is_the_first_that_matches(
    expression: str, after: str, expected: str
) -> None:
    moment = parse(expression).next(datetime.fromisoformat(after).replace(tzinfo=UTC))
    assert moment == datetime.fromisoformat(expected).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("expression", "zone", "day", "expected"),
    [
        # Clocks go from 02:00 to 03:00: a slot in the gap fires in the first minute after it.
        ("30 2 * * *", BERLIN, "2026-03-29", ["03:00+02"]),
        ("0 2,3 * * *", BERLIN, "2026-03-29", ["03:00+02"]),
        ("*/20 2 * * *", BERLIN, "2026-03-29", ["03:00+02"]),
        ("0 1,3 * * *", BERLIN, "2026-03-29", ["01:00+01", "03:00+02"]),
        ("0 */8 * * *", BERLIN, "2026-03-29", ["00:00+01", "08:00+02", "16:00+02"]),
        ("0 2-4/2 * * *", BERLIN, "2026-03-29", ["03:00+02", "04:00+02"]),
        ("30 2 * * *", NEW_YORK, "2026-03-08", ["03:00-04"]),
        ("15 2 * * *", LORD_HOWE, "2026-10-04", ["02:30+11"]),
        ("45 2 * * *", LORD_HOWE, "2026-10-04", ["02:45+11"]),
        # Clocks go back an hour: fixed times fire once, intervals every time.
        ("30 2 * * *", BERLIN, "2026-10-25", ["02:30+02"]),
        ("0 2-3 * * *", BERLIN, "2026-10-25", ["02:00+02", "03:00+01"]),
        ("30 1 * * *", NEW_YORK, "2026-11-01", ["01:30-04"]),
        ("45 1 * * *", LORD_HOWE, "2026-04-05", ["01:45+11"]),
    ],
)
def test_fixed_times_fire_once_on_days_with_a_time_change(
    expression: str, zone: str, day: str, expected: list[str]
) -> None:
    assert [shown[:8] for shown in slots(expression, zone, day)] == expected


def test_intervals_fire_every_time_the_local_clock_shows_them() -> None:
    assert slots("30 * * * *", BERLIN, "2026-10-25")[:5] == [
        "00:30+02", "01:30+02", "02:30+02", "02:30+01", "03:30+01"
    ]  # fmt: skip
    assert slots("*/15 * * * *", LORD_HOWE, "2026-04-05")[6:11] == [
        "01:30+11", "01:45+11", "01:30+10", "01:45+10", "02:00+10"
    ]  # fmt: skip
    assert slots("5 * * * *", BERLIN, "2026-03-29")[:4] == [
        "00:05+01", "01:05+01", "03:00+02", "03:05+02"
    ]  # fmt: skip
    assert len(slots("* * * * *", BERLIN, "2026-03-29")) == 23 * 60
    assert len(slots("* * * * *", BERLIN, "2026-10-25")) == 25 * 60


def test_a_slot_on_a_day_that_the_zone_skipped_fires_once() -> None:
    after = datetime(2011, 12, 29, 23, 30, tzinfo=UTC)
    first = parse("0 12 * * *", "Pacific/Apia").next(after)
    assert first is not None
    assert first == datetime(2011, 12, 30, 10, 0, tzinfo=UTC)  # 00:00 on the 31st
    assert parse("0 12 * * *", "Pacific/Apia").next(first) == datetime(
        2011, 12, 30, 22, 0, tzinfo=UTC
    )


EXPRESSIONS = (
    "* * * * *", "*/7 * * * *", "30 2 * * *", "0 */2 * * *", "15 1,2,3 * * *", "59 1 * * SUN",
    "0 0 * * *", "45 1-3 29-31 * *", "0 3 13 * FRI", "*/20 2 * * *",
)  # fmt: skip


@pytest.mark.slow
@settings(max_examples=150)
@given(
    expression=st.sampled_from(EXPRESSIONS),
    zone=st.sampled_from((*ZONES, "UTC", "Asia/Kolkata")),
    start=st.integers(0, 3 * 365 * 1440),
    length=st.integers(0, 3000),
)
def test_counting_slots_agrees_with_listing_them(
    expression: str, zone: str, start: int, length: int
) -> None:
    schedule = parse(expression, zone)
    first = datetime(2025, 1, 1, tzinfo=UTC) + timedelta(minutes=start)
    last = first + timedelta(minutes=length)
    visited = list(schedule.between(first, last))
    assert schedule.count(first, last) == len(visited) == len(set(visited))
    assert schedule.last(last, not_before=first) == (visited[-1] if visited else None)
    assert visited == sorted(visited)


@pytest.mark.slow
@settings(max_examples=200)
@given(
    expression=st.sampled_from(EXPRESSIONS),
    zone=st.sampled_from(ZONES),
    start=st.integers(0, 3 * 365 * 1440),
)
def test_every_slot_matches_the_expression_or_follows_a_time_change(
    expression: str, zone: str, start: int
) -> None:
    schedule = parse(expression, zone)
    after = datetime(2025, 1, 1, tzinfo=UTC) + timedelta(minutes=start)
    moment = schedule.next(after)
    assert moment is not None
    assert moment > after
    local = moment.astimezone(ZoneInfo(zone))
    shows = 60 * local.hour + local.minute in schedule.minutes
    before = (moment - timedelta(minutes=1)).astimezone(ZoneInfo(zone))
    assert shows or local.utcoffset() != before.utcoffset()


WRONG = [
    "",
    "* * * *",
    "0 0 * * * *",
    "60 * * * *",
    "* 24 * * *",
    "* * 0 * *",
    "* * * 13 *",
    "* * * * 8",
    "* * * FOO *",
    "MON * * * *",
    "5-1 * * * *",
    "*/0 * * * *",
    "*/99 * * * *",
    "*-5 * * * *",
    "1.5 * * * *",
    "-1 * * * *",
    "1,,2 * * * *",
    "0 0 30 2 *",
    "0 0 31 4,6,9,11 *",
    "@never",
]


def test_an_invalid_expression_is_refused_with_the_reason(wording: Wording) -> None:
    wording(refusals(WRONG, parse))


@pytest.mark.parametrize("zone", ["", "Mars/Olympus", "../etc/passwd", "Europe", "CET+1"])
def test_an_unknown_time_zone_is_refused(zone: str) -> None:
    with pytest.raises(Refused, match="is not a time zone"):
        parse("* * * * *", zone)
