"""Usage: impossible token counts are replaced by an estimate, and the reply is kept."""

import logging
from pathlib import Path
from typing import Any

import orjson
import pytest

from agiraph.api.routes import board
from agiraph.core.domain.work import MOST_TOKENS, Budget, NodeStatus, StopReason, Usage
from agiraph.models.base import OnDelta, Reply, Request
from agiraph.models.facts.prices import Prices, Terms
from agiraph.models.http.client import HttpClient
from agiraph.models.registry import Account, Keys
from agiraph.models.wires import usage as usages
from agiraph.testing import ManualClock, ModelServer, World, call, says
from agiraph.testing.model_server import Garbage
from agiraph.testing.scripted import as_reply

ABSURD = ["1" + "0" * 30, "9223372036854775808", "-5", "1.5", "1e400", '"12"', "NaN", "true",
          "[1]", "100000001"]  # fmt: skip


def openai(value: str) -> bytes:
    said = {"choices": [{"index": 0, "delta": {"content": "Hello."}, "finish_reason": "stop"}]}
    usage = b'{"choices":[],"usage":{"prompt_tokens":%s,"completion_tokens":7}}' % value.encode()
    return b"data: %s\n\ndata: %s\n\ndata: [DONE]\n\n" % (orjson.dumps(said), usage)


def anthropic(value: str) -> bytes:
    head = b'{"type":"message_start","message":{"usage":{"input_tokens":%s}}}' % value.encode()
    rest: list[dict[str, Any]] = [
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0,
         "delta": {"type": "text_delta", "text": "Hello."}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"},
         "usage": {"output_tokens": 7}},
        {"type": "message_stop"},
    ]  # fmt: skip
    return b"".join(b"data: %s\n\n" % event for event in [head, *map(orjson.dumps, rest)])


def gemini(value: str) -> bytes:
    part = b'{"candidates":[{"content":{"parts":[{"text":"Hello."}]},"finishReason":"STOP"}],'
    usage = b'"usageMetadata":{"promptTokenCount":%s,"candidatesTokenCount":7}}' % value.encode()
    return b"data: %s%s\n\n" % (part, usage)


WIRES = {"openai": openai, "anthropic": anthropic, "gemini": gemini}


@pytest.mark.parametrize("value", ABSURD)
@pytest.mark.parametrize("wire", WIRES)
async def test_an_impossible_token_count_is_replaced_by_an_estimate(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, wire: str, value: str
) -> None:
    model = f"{wire}/count-{value}"
    async with ModelServer(lambda _: Garbage(WIRES[wire](value))) as server:
        keys = Keys(
            {
                "openai": Account(key="k", base_url=server.openai_url),
                "anthropic": Account(key="k", base_url=server.anthropic_url),
                "gemini": Account(key="k", base_url=server.gemini_url),
            }
        )
        prices = Prices({model: Terms(input_usd=1.0, output_usd=1.0)})
        async with World(tmp_path / "home", keys=keys, prices=prices, easy_endings=True) as world:
            with caplog.at_level(logging.WARNING, logger="agiraph.models"):
                founded = await world.found("Say hello", model=model, budget=Budget(turns=2))
                await world.settle()
            total = (await world.store.read(board.costs_of_team, founded.team.id)).total
            [node] = await world.board(founded.team.id)
    sent = sum(len(seen.raw) // usages.BYTES_PER_TOKEN + 1 for seen in server.requests)
    assert (node.stop_reason, total.calls) == (StopReason.TURNS_SPENT, 2)
    assert (total.input_tokens, total.output_tokens) == (sent, 2 * 2)
    assert total.usd == pytest.approx((sent + 4) / 1e6)
    assert [r.getMessage().startswith(model) for r in caplog.records] == [True]


@pytest.mark.parametrize(
    "usage",
    [
        Usage(input_tokens=2**70, output_tokens=2**70, cached_tokens=2**70),
        Usage(input_tokens=-1, output_tokens=-(2**70), cached_tokens=-1, usd=-3.0),
        Usage(input_tokens=10, output_tokens=1, cached_tokens=1000, usd=float("nan")),
        Usage(input_tokens=1, output_tokens=1, usd=float("inf")),
    ],
)
async def test_wrong_usage_of_a_custom_model_breaks_nothing(world: World, usage: Usage) -> None:
    class Miscounts:
        name = "scripted/ada"

        async def reply(self, request: Request, on_delta: OnDelta | None = None) -> Reply:
            said = as_reply(says(call("finish", summary="done")))
            return Reply(text=said.text, calls=said.calls, usage=usage)

    world.model("ada", Miscounts())
    founded = await world.found("Count")
    await world.settle()
    [node] = await world.board(founded.team.id)
    total = (await world.store.read(board.costs_of_team, founded.team.id)).total
    assert node.status is NodeStatus.COMPLETED
    assert 0 <= total.cached_tokens <= total.input_tokens <= MOST_TOKENS
    assert (total.usd, total.unpriced) == (0.0, 1)


@pytest.mark.parametrize("cost", ["-1", "1e400", "NaN", '"1"', "true", "1e12"])
def test_an_impossible_price_is_treated_as_unknown(cost: str) -> None:
    read = usages.UsageReader({"cost": float(cost) if cost[0] in "-1N" else orjson.loads(cost)})
    assert (read.usd("cost"), read.doubts) == (None, [])


def test_more_cached_than_sent_tokens_do_not_make_the_cost_negative() -> None:
    terms = Prices({"a/b": Terms(input_usd=10.0, output_usd=1.0, cached_usd=0.0)})
    usage = Usage(input_tokens=10, output_tokens=0, cached_tokens=10**6).bounded()
    assert terms.usd("a/b", usage) == 0.0


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("inf", 86400.0), ("1e400", 86400.0), ("9" * 400, 86400.0), ("nan", 0.0), ("-5", 0.0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 86400.0), ("Mon, 01 Jan 0001 00:00:00 +2300", 0.0),
        ("Fri, 31 Dec 9999 23:59:59 -2359", 86400.0), ("Fri, 31 Dec 99999 23:59:59 GMT", None),
        ("soon", None), ("", None), ("Mon, 99 Foo 2020 99:99:99 +9999999", None),
    ],
)  # fmt: skip
async def test_an_absurd_retry_after_is_bounded(header: str, seconds: float | None) -> None:
    http = HttpClient(ManualClock())
    assert http._seconds_of(header) == seconds  # pyright: ignore[reportPrivateUsage]
    await http.close()
