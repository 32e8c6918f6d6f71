"""Retries: temporary errors are retried with growing waits, permanent errors are not."""

import asyncio
from collections.abc import Callable

import pytest

from agiraph.core.domain.errors import ContextExceeded, ModelGarbled, ModelRefused, ModelUnavailable
from agiraph.models.attempts import Retrying
from agiraph.models.wires.chat_completions import OpenAIModel
from agiraph.testing import ManualClock, ModelServer, says
from agiraph.testing.model_server import (
    Cut,
    Empty,
    Garbage,
    Status,
    Step,
    StreamError,
    context_overflow,
)
from tests.providers.transcripts import request

ModelOn = Callable[[ModelServer], OpenAIModel]
TEMPORARY: dict[str, Step] = {
    "rate limit": Status(429),
    "overloaded": Status(529),
    "server error": Status(500),
    "bad gateway": Status(502),
    "hung up": Cut(None),
    "cut off": Cut(300),
    "broke off": StreamError(2),
    "no body": Empty(),
}
GARBLED = Garbage(b"data: {nope}\n\n")


def retrying(model: OpenAIModel, clock: ManualClock, jitter: float = 1.0) -> Retrying:
    return Retrying(model=model, clock=clock, jitter=lambda: jitter)


@pytest.mark.parametrize("step", TEMPORARY.values(), ids=TEMPORARY.keys())
async def test_temporary_errors_are_retried_with_exponential_backoff(
    model_on: ModelOn, clock: ManualClock, step: Step
) -> None:
    async with ModelServer([step, step, step, says("Hello.")]) as server:
        reply = await retrying(model_on(server), clock).reply(request())

    assert (reply.text, clock.slept, len(server.requests)) == ("Hello.", [1.0, 2.0, 4.0], 4)


@pytest.mark.parametrize(("jitter", "slept"), [(0.0, [0.5, 1.0, 2.0]), (0.5, [0.75, 1.5, 3.0])])
async def test_backoff_has_jitter(
    model_on: ModelOn, clock: ManualClock, jitter: float, slept: list[float]
) -> None:
    async with ModelServer([Status(503)] * 4) as server:
        with pytest.raises(ModelUnavailable):
            await retrying(model_on(server), clock, jitter).reply(request())

    assert (clock.slept, len(server.requests)) == (slept, 4)


async def test_after_four_attempts_the_last_error_is_raised(
    model_on: ModelOn, clock: ManualClock
) -> None:
    async with ModelServer([Status(500, f"Try {n}.") for n in range(1, 6)]) as server:
        with pytest.raises(ModelUnavailable, match=r"answered 500: Try 4\."):
            await retrying(model_on(server), clock).reply(request())

    assert (sum(clock.slept), len(server.requests)) == (7.0, 4)


async def test_retry_after_sets_the_wait(model_on: ModelOn, clock: ManualClock) -> None:
    seconds = Status(429, headers={"retry-after": "9"})
    date = Status(429, headers={"retry-after": "Mon, 05 Jan 2026 09:00:30 GMT"})
    past = Status(429, headers={"retry-after": "Mon, 05 Jan 2026 08:00:00 GMT"})
    async with ModelServer([seconds, date, past, says("Hello.")]) as server:
        await retrying(model_on(server), clock).reply(request())

    assert clock.slept == [9.0, 21.0, 4.0]


async def test_a_retry_after_over_a_minute_is_not_waited_for(
    model_on: ModelOn, clock: ManualClock
) -> None:
    async with ModelServer([Status(429, headers={"retry-after": "61"})]) as server:
        with pytest.raises(ModelUnavailable) as caught:
            await retrying(model_on(server), clock).reply(request())

    assert (caught.value.retry_after, clock.slept, len(server.requests)) == (61.0, [], 1)


@pytest.mark.parametrize("code", [400, 401, 403, 404, 422])
async def test_permanent_errors_are_not_retried(
    model_on: ModelOn, clock: ManualClock, code: int
) -> None:
    async with ModelServer([Status(code), says("Hello.")]) as server:
        with pytest.raises(ModelRefused):
            await retrying(model_on(server), clock).reply(request())

    assert (clock.slept, len(server.requests)) == ([], 1)


async def test_a_context_overflow_is_not_retried(model_on: ModelOn, clock: ManualClock) -> None:
    async with ModelServer([context_overflow(), says("Hello.")]) as server:
        with pytest.raises(ContextExceeded):
            await retrying(model_on(server), clock).reply(request())

    assert (clock.slept, len(server.requests)) == ([], 1)


async def test_a_garbled_reply_is_retried_once_without_a_wait(
    model_on: ModelOn, clock: ManualClock
) -> None:
    async with ModelServer([GARBLED, says("Hello.")]) as server:
        reply = await retrying(model_on(server), clock).reply(request())

    assert (reply.text, clock.slept, len(server.requests)) == ("Hello.", [], 2)


async def test_a_second_garbled_reply_is_not_retried(model_on: ModelOn, clock: ManualClock) -> None:
    async with ModelServer([GARBLED, Status(500), GARBLED, says("Hello.")]) as server:
        with pytest.raises(ModelGarbled):
            await retrying(model_on(server), clock).reply(request())

    assert (clock.slept, len(server.requests)) == ([2.0], 3)


async def test_a_cancelled_call_ends_at_once(model_on: ModelOn, clock: ManualClock) -> None:
    async with ModelServer(lambda _: asyncio.Future[Step]()) as server:
        asking = asyncio.create_task(retrying(model_on(server), clock).reply(request()))
        await server.until(lambda: len(server.requests) == 1)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await server.until(lambda: server.in_flight == 0)

    assert (clock.slept, len(server.requests)) == ([], 1)


def test_a_retrying_model_has_the_name_of_its_model(model_on: ModelOn, clock: ManualClock) -> None:
    assert retrying(model_on(ModelServer([])), clock).name == "openai/test"
