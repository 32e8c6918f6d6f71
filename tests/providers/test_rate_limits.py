"""Rate limits: calls wait before they are sent, take turns by team, and learn from responses."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from agiraph.core.domain.errors import ModelUnavailable
from agiraph.core.domain.work import Usage
from agiraph.models.base import Request
from agiraph.models.http.client import HttpClient
from agiraph.models.http.rate_limits import Pace, Rate, RateLimits, Slot
from agiraph.models.wires.chat_completions import OpenAIModel
from agiraph.testing import ModelServer, says
from agiraph.testing.clock import ManualClock
from agiraph.testing.script import Status
from tests.providers.transcripts import thread

NAME = "openai/gpt"


class StillClock(ManualClock):
    """A clock whose sleepers wait until a test moves it."""

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await self.sleep_until(self.now() + timedelta(seconds=seconds))


def pace(clock: ManualClock, rate: Rate | None = None, key: str = "k", name: str = NAME) -> Pace:
    return RateLimits(clock, {"openai": rate or Rate()}).of(name, key)


async def turns(clock: ManualClock, seconds: float = 0.0) -> None:
    """Move the clock, and let all tasks run that can."""
    clock.advance(seconds=seconds)
    for _ in range(20):
        await asyncio.sleep(0)


async def test_without_limits_nothing_waits() -> None:
    clock = ManualClock()
    paced = pace(clock)
    for _ in range(1000):
        await paced.acquire("team", 100_000)
    assert clock.slept == []


async def test_requests_beyond_the_limit_wait_for_their_share_of_a_minute() -> None:
    clock = ManualClock()
    paced = pace(clock, Rate(requests_per_minute=6))
    for _ in range(8):
        await paced.acquire("team", 10)
    assert clock.slept == [pytest.approx(10.0), pytest.approx(10.0)]


async def test_tokens_are_corrected_by_what_a_call_used() -> None:
    clock = ManualClock()
    paced = pace(clock, Rate(tokens_per_minute=600))
    slot = await paced.acquire("team", 300)
    slot.settle(Usage(input_tokens=500, output_tokens=50))
    await paced.acquire("team", 150)  # 50 are left, and 10 come each second
    assert clock.slept == [pytest.approx(10.0)]


async def test_a_call_above_the_limit_needs_all_of_it_but_is_made() -> None:
    clock = ManualClock()
    paced = pace(clock, Rate(tokens_per_minute=600))
    for _ in range(2):
        await paced.acquire("team", 5000)
    assert sum(clock.slept) == pytest.approx(120.0)  # a minute for the debt, a minute for its own


async def test_waiting_calls_take_turns_by_team() -> None:
    clock = StillClock()
    paced = pace(clock, Rate(requests_per_minute=1))
    order: list[str] = []

    async def ask(team: str) -> None:
        await paced.acquire(team, 1)
        order.append(team)

    asked = [asyncio.create_task(ask(team)) for team in ["a", "a", "a", "a", "b", "c", "b"]]
    await turns(clock)
    for _ in range(6):
        await turns(clock, 61)
    assert order == ["a", "a", "b", "c", "a", "b", "a"]
    assert all(task.done() for task in asked)


async def test_a_cancelled_call_leaves_its_place_to_the_next() -> None:
    clock = StillClock()
    paced = pace(clock, Rate(requests_per_minute=1))
    await paced.acquire("a", 1)
    first, second = (asyncio.create_task(paced.acquire(team, 1)) for team in ("a", "b"))
    await turns(clock)
    first.cancel()
    await turns(clock, 61)
    assert (first.cancelled(), second.done()) == (True, True)


@pytest.mark.parametrize(
    ("headers", "waited_s"),
    [
        (
            {
                "x-ratelimit-limit-requests": "60",
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-requests": "1m0s",
            },
            1.0,
        ),
        (
            {
                "x-ratelimit-limit-tokens": "6000",
                "x-ratelimit-remaining-tokens": "0",
                "x-ratelimit-reset-tokens": "60s",
            },
            1.0,
        ),
        (
            {
                "anthropic-ratelimit-requests-limit": "30",
                "anthropic-ratelimit-requests-remaining": "0",
                "anthropic-ratelimit-requests-reset": "2026-01-05T09:01:00Z",
            },
            2.0,
        ),
        (
            {
                "anthropic-ratelimit-input-tokens-limit": "600",
                "anthropic-ratelimit-input-tokens-remaining": "50",
            },
            5.0,
        ),
        ({"x-ratelimit-limit-requests": "60", "x-ratelimit-remaining-requests": "59"}, 0.0),
        ({"x-ratelimit-limit-requests": "many", "x-ratelimit-remaining-requests": "0"}, 0.0),
        ({"x-ratelimit-limit-requests": "-5", "x-ratelimit-remaining-requests": "0"}, 0.0),
        ({"x-ratelimit-limit-requests": "nan", "x-ratelimit-remaining-requests": "inf"}, 0.0),
    ],
)
async def test_limits_are_learned_from_the_headers_of_a_response(
    headers: dict[str, str], waited_s: float
) -> None:
    clock = ManualClock(datetime(2026, 1, 5, 9, 0, tzinfo=UTC))
    paced = pace(clock)
    (await paced.acquire("team", 100)).answer(headers)
    await paced.acquire("team", 100)
    assert sum(clock.slept) == pytest.approx(waited_s)


async def test_a_limit_that_the_server_resets_sooner_is_whole_then() -> None:
    clock = ManualClock()
    paced = pace(clock)
    headers = {
        "x-ratelimit-limit-tokens": "6000",
        "x-ratelimit-remaining-tokens": "0",
        "x-ratelimit-reset-tokens": "500ms",
    }
    (await paced.acquire("team", 100)).answer(headers)
    clock.advance(seconds=0.6)
    await paced.acquire("team", 6000)
    assert clock.slept == []


async def test_calls_under_way_count_against_what_the_server_has_left() -> None:
    clock = ManualClock()
    paced = pace(clock)
    slots: list[Slot] = [await paced.acquire("team", 100) for _ in range(3)]
    slots[0].answer({"x-ratelimit-limit-requests": "60", "x-ratelimit-remaining-requests": "2"})
    await paced.acquire("team", 100)
    assert clock.slept == [pytest.approx(1.0)]


async def test_what_a_vendor_reads_from_its_cache_does_not_count_for_its_own_limit() -> None:
    clock = ManualClock()
    paced = pace(clock)
    headers = {"x-ratelimit-limit-tokens": "8000", "x-ratelimit-remaining-tokens": "7000"}
    for _ in range(5):
        slot = await paced.acquire("team", 50_000)
        slot.answer(headers)
        slot.settle(Usage(input_tokens=50_000, cached_tokens=49_500))
    clock.slept.clear()
    slot = await paced.acquire("team", 50_000)
    assert clock.slept == []


async def test_models_and_keys_have_limits_of_their_own_and_share_those_of_the_settings() -> None:
    clock = ManualClock()
    limits = RateLimits(clock, {"openai": Rate(requests_per_minute=3)})
    spent = {"x-ratelimit-limit-requests": "60", "x-ratelimit-remaining-requests": "0"}
    (await limits.of("openai/a", "k").acquire("team", 1)).answer(spent)
    await limits.of("openai/b", "k").acquire("team", 1)
    await limits.of("openai/a", "other").acquire("team", 1)
    assert clock.slept == []
    await limits.of("openai/b", "k").acquire("team", 1)
    await limits.of("openai/b", "k").acquire("team", 1)
    assert clock.slept == [pytest.approx(20.0)]


async def test_after_a_refusal_other_calls_wait_instead_of_being_refused() -> None:
    clock = ManualClock()
    refused = Status(429, "slow down", {"retry-after": "7"})
    async with ModelServer([refused, says("Hello."), says("Hello.")]) as server:
        http = HttpClient(clock)
        model = OpenAIModel(name=NAME, model="gpt", base_url=server.openai_url, key="k", http=http)
        request = Request(transcript=thread(), team="team_a")
        with pytest.raises(ModelUnavailable, match="slow down"):
            await model.reply(request)
        assert (await model.reply(request)).text == "Hello."
        await http.close()
    assert clock.slept == [pytest.approx(7.0)]


async def test_a_call_for_a_waiting_person_fails_instead_of_a_long_wait() -> None:
    clock = ManualClock()
    paced = pace(clock, Rate(requests_per_minute=6))
    for _ in range(6):
        await paced.acquire("team", 10, longest_wait_s=5.0)
    with pytest.raises(ModelUnavailable) as refused:
        await paced.acquire("team", 10, longest_wait_s=5.0)
    assert (refused.value.unused, refused.value.retry_after, clock.slept) == (
        True,
        pytest.approx(10.0),
        [],
    )
