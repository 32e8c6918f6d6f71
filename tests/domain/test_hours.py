"""Daily hours: one rule set for active hours of heartbeats and quiet hours of teams."""

from datetime import UTC, datetime

import pytest

from agiraph.core.domain.errors import Refused
from agiraph.core.domain.times import hours
from agiraph.core.domain.times.hours import Hours

BERLIN = "Europe/Berlin"


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("08:00-20:00", Hours(480, 1200)),
        (" 8:00 - 20:30 ", Hours(480, 1230)),
        ("22:00-07:00", Hours(1320, 420)),
        ("00:00-24:00", Hours(0, 1440)),
    ],
)
def test_a_span_is_read_as_minutes_since_midnight(text: str, span: Hours) -> None:
    assert hours.parse(text) == span


@pytest.mark.parametrize("text", ["", "8-20", "08:00-08:00", "24:00-07:00", "08:00-24:01", "x"])
def test_an_invalid_span_is_refused(text: str) -> None:
    with pytest.raises(Refused, match="is not a span of hours; write two times such as 08:00"):
        hours.parse(text)


def test_a_time_that_the_clock_skips_begins_after_the_skipped_hour() -> None:
    # At 02:00 on 29 March 2026 the clocks of Berlin are set to 03:00, which is 01:00 UTC.
    before = datetime(2026, 3, 29, 0, 30, tzinfo=UTC)
    after = datetime(2026, 3, 29, 1, 0, tzinfo=UTC)
    span = hours.parse("02:30-20:00")
    assert (span.contain(before, BERLIN), span.contain(after, BERLIN)) == (False, True)
    assert span.next_begin(before, BERLIN) == after


def test_both_passes_of_a_repeated_hour_count() -> None:
    # At 03:00 on 25 October 2026 (01:00 UTC) the clocks of Berlin are set back to 02:00.
    span = hours.parse("22:00-02:30")
    first, second = (datetime(2026, 10, 25, hour, 10, tzinfo=UTC) for hour in (0, 1))
    assert span.contain(first, BERLIN)
    assert span.contain(second, BERLIN)
    assert span.next_end(first, BERLIN) == first.replace(minute=30)
    assert span.next_end(second, BERLIN) == second.replace(minute=30)
