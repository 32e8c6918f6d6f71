"""Failure: circuit breaker, fallback to other models, and prices of replies."""

import pytest

from agiraph.core.domain.chat import Transcript
from agiraph.core.domain.errors import ModelRefused, ModelUnavailable
from agiraph.core.domain.work import NodeStatus
from agiraph.models.attempts import MAX_FAILURES, OPEN_SECONDS, CircuitBreaker, Fallback, Guarded
from agiraph.models.base import Reply, Request
from agiraph.models.catalogue import Catalogue
from agiraph.models.facts.prices import Prices, Terms
from agiraph.models.registry import Account, Keys, Registry
from agiraph.testing import ManualClock, ModelServer, ScriptedModel, World, call, says
from agiraph.testing.model_server import Status
from agiraph.testing.scripted import Line

REQUEST = Request(transcript=Transcript())


def _unavailable(times: int) -> list[Line]:
    return [ModelUnavailable("down") for _ in range(times)]


async def test_the_circuit_breaker_opens_after_failures_and_probes_once() -> None:
    clock = ManualClock()
    inner = ScriptedModel(
        "x/y", [*_unavailable(MAX_FAILURES), *_unavailable(1), says("back"), says("on")]
    )
    model = Guarded(model=inner, circuit=CircuitBreaker("x", clock))
    for _ in range(MAX_FAILURES):
        with pytest.raises(ModelUnavailable, match=r"^down$"):
            await model.reply(REQUEST)

    with pytest.raises(ModelUnavailable, match="not called for 30 s") as caught:
        await model.reply(REQUEST)
    assert (len(inner.requests), caught.value.retry_after) == (MAX_FAILURES, OPEN_SECONDS)

    clock.advance(seconds=OPEN_SECONDS)
    with pytest.raises(ModelUnavailable, match=r"^down$"):
        await model.reply(REQUEST)  # the probe fails: the circuit opens again
    with pytest.raises(ModelUnavailable, match="is not called for"):
        await model.reply(REQUEST)
    clock.advance(seconds=OPEN_SECONDS)
    assert [(await model.reply(REQUEST)).text for _ in range(2)] == ["back", "on"]


async def test_the_fallback_answers_only_when_the_first_model_is_unavailable() -> None:
    first = ScriptedModel("a/1", [*_unavailable(1), says("first")])
    second = ScriptedModel("b/2", [says("second")])
    chain = Fallback((first, second))
    assert [(await chain.reply(REQUEST)).text for _ in range(2)] == ["second", "first"]
    assert chain.name == "a/1, b/2"


async def test_a_refused_request_is_not_sent_to_the_fallback() -> None:
    second = ScriptedModel("b/2", [says("second")])
    chain = Fallback((ScriptedModel("a/1", [ModelRefused("bad key")]), second))
    with pytest.raises(ModelRefused, match="bad key"):
        await chain.reply(REQUEST)
    assert second.requests == []


async def test_when_all_models_fail_the_error_names_each_failure() -> None:
    chain = Fallback((ScriptedModel("a/1", _unavailable(1)), ScriptedModel("b/2", _unavailable(1))))
    with pytest.raises(ModelUnavailable, match=r"^a/1: down b/2: down$"):
        await chain.reply(REQUEST)


async def test_an_error_in_a_chain_says_that_an_earlier_model_may_have_cost_money() -> None:
    lost = ScriptedModel("a/1", [ModelUnavailable("broke off")])
    free = ScriptedModel("b/2", [ModelRefused("bad key", unused=True)])
    unasked = ScriptedModel("c/3", [])
    with pytest.raises(ModelRefused, match="bad key") as caught:
        await Fallback((lost, free, unasked)).reply(REQUEST)
    assert (caught.value.unused, unasked.requests) == (False, [])


async def test_the_fallback_takes_over_a_run_from_an_overloaded_provider(world: World) -> None:
    """The first answers 529; the second continues the thread and is named in its turns."""
    async with ModelServer(lambda seen: Status(529)) as broken:
        script = [
            says(call("write_file", path="a.md", content="x")),
            says(call("finish", summary="ok")),
        ]
        async with ModelServer(script) as sound:
            keys = Keys(
                {
                    "anthropic": Account(key="k", base_url=broken.anthropic_url),
                    "openai": Account(key="k", base_url=sound.openai_url),
                }
            )
            world._keys = keys
            await world.restart()
            founded = await world.found("Go on", model="anthropic/claude-x, openai/test")
            await world.settle()

    [goal] = await world.board(founded.team.id)
    models = {t.model for t in await world.turns(goal.id) if t.role == "assistant"}
    assert (goal.status, goal.result, models) == (NodeStatus.COMPLETED, "ok", {"openai/test"})
    assert len(broken.requests) >= 2  # the first model was called first


async def test_two_providers_work_in_one_process(world: World) -> None:
    async with (
        ModelServer([says(call("finish", summary="by anthropic"))]) as one,
        ModelServer([says(call("finish", summary="by openai"))]) as two,
    ):
        world._keys = Keys(
            {
                "anthropic": Account(key="k", base_url=one.anthropic_url),
                "openai": Account(key="k", base_url=two.openai_url),
            }
        )
        await world.restart()
        first = await world.found("One", model="anthropic/claude-x")
        second = await world.found("Two", model="openai/test")
        await world.settle()
        [a] = await world.board(first.team.id)
        [b] = await world.board(second.team.id)
    assert (a.result, b.result) == ("by anthropic", "by openai")


async def test_a_known_price_is_in_the_usage_and_an_unknown_price_is_none() -> None:
    async with ModelServer([says("hello", input_tokens=1000, output_tokens=100)] * 2) as server:
        clock = ManualClock()
        keys = Keys({"openai": Account(key="k", base_url=server.openai_url)})
        prices = Prices({"openai/mine": Terms(input_usd=2.0, output_usd=10.0, window=5000)})
        models = Catalogue(Registry(keys, clock), prices, clock)
        replies: list[Reply] = [
            await models.resolve(name).reply(Request(transcript=_hello()))
            for name in ("openai/mine", "openai/nobody-knows")
        ]
        await models.close()
    assert [(r.model, r.usage.usd) for r in replies] == [
        ("openai/mine", 0.003),
        ("openai/nobody-knows", None),
    ]
    assert (models.window("openai/mine, openai/gpt-5"), models.window("openai/gpt-5")) == (
        5000,
        272_000,
    )


def _hello() -> Transcript:
    from datetime import UTC, datetime

    from agiraph.core.domain.chat import Turn
    from agiraph.core.domain.ids import ThreadId

    at = datetime(2026, 1, 1, tzinfo=UTC)
    return Transcript(
        [Turn(thread_id=ThreadId("t_1"), seq=1, node_id=None, role="user", text="Hi", at=at)]
    )
