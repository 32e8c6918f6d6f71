"""Rooms: what a reader gets of a job's budget, and when there is none left for one."""

from datetime import UTC, datetime

import pytest

from agiraph.core.domain.ids import NodeId, TeamId
from agiraph.core.domain.work import StopReason
from agiraph.features.research.model.jobs import DEPTHS, Depth, ResearchJob
from agiraph.features.research.verbs import reading_budget, starting
from agiraph.features.research.verbs.reading_budget import Remaining

PLENTY = Remaining(searches=16, pages=24, usd=1.5, tokens=2_000_000.0, seconds=600.0)


def job(depth: Depth = "standard") -> ResearchJob:
    now = datetime(2026, 1, 5, tzinfo=UTC)
    return ResearchJob(
        id=NodeId("node_1"),
        team_id=TeamId("team_1"),
        question="How?",
        depth=depth,
        asks=False,
        created_at=now,
    )


def test_what_is_left_is_shared_among_the_readers_and_the_later_rounds() -> None:
    given = reading_budget.for_reader(PLENTY, job(), waiting=4, rounds=1)
    assert given.calls == {"web_search": 3, "web_fetch": 4}
    assert (given.usd, given.tokens, given.turns) == (0.3, 400_000, 16)
    assert given.seconds == 600.0  # readers work at the same time


def test_the_only_reader_of_a_quick_job_gets_everything() -> None:
    room = PLENTY._replace(searches=4, pages=6)
    given = reading_budget.for_reader(room, job("quick"), waiting=1, rounds=0)
    assert (given.calls, given.turns) == ({"web_search": 4, "web_fetch": 6}, 12)


def test_a_reader_gets_at_least_one_page_of_what_is_left() -> None:
    given = reading_budget.for_reader(
        PLENTY._replace(searches=0, pages=2), job(), waiting=5, rounds=1
    )
    assert given.calls == {"web_search": 0, "web_fetch": 1}


@pytest.mark.parametrize(
    ("room", "shortage"),
    [
        (PLENTY, None),
        (PLENTY._replace(searches=0), None),
        (PLENTY._replace(searches=0, pages=0), StopReason.CALLS_SPENT),
        (PLENTY._replace(usd=0.001), StopReason.MONEY_SPENT),
        (PLENTY._replace(tokens=100), StopReason.TOKENS_SPENT),
        (PLENTY._replace(seconds=3.0), StopReason.TIME_SPENT),
        (PLENTY._replace(usd=None, tokens=None, seconds=None), None),
    ],
)
def test_a_reader_is_started_only_if_there_is_room(
    room: Remaining, shortage: StopReason | None
) -> None:
    assert room.shortage == shortage


@pytest.mark.parametrize("depth", DEPTHS)
def test_the_budget_of_a_job_has_the_limits_of_its_depth(depth: Depth) -> None:
    limits = DEPTHS[depth]
    budget = starting.of_depth(limits, None, None)
    assert (budget.usd, budget.tokens, budget.seconds) == (
        limits.usd,
        limits.tokens,
        limits.seconds,
    )
    assert budget.calls == {"web_search": limits.searches, "web_fetch": limits.pages}
    assert starting.of_depth(limits, 1, 2).calls == {"web_search": 1, "web_fetch": 2}


def test_more_budget_after_the_end_brings_the_searches_and_pages_of_the_depth_again() -> None:
    budget = starting.of_depth(DEPTHS["standard"], None, None)
    assert reading_budget.more_calls(budget, job()).calls == {"web_search": 32, "web_fetch": 48}
