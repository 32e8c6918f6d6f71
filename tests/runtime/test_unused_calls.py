"""A call that a provider refused before any work costs nothing; one that may have worked does."""

import socket
from pathlib import Path

import pytest

from agiraph.api.routes import board
from agiraph.cli.costs import sum_text
from agiraph.core.domain.ids import NodeId
from agiraph.core.domain.work import Budget
from agiraph.core.store import spend
from agiraph.models.facts.prices import Prices, Terms
from agiraph.models.registry import Account, Keys
from agiraph.testing import ModelServer, World, call, says
from agiraph.testing.model_server import (
    Cut,
    Empty,
    Garbage,
    Overflow,
    Seen,
    Status,
    Step,
    StreamError,
)

MODEL = "openai/test"
PRICES = Prices({MODEL: Terms(input_usd=1.0, output_usd=1.0)})
LATER = {"retry-after": "90"}
"""Longer than a retry waits: the call fails at its first try."""

REFUSED: dict[str, Step] = {
    "400": Status(400),
    "401": Status(401),
    "402": Status(402),
    "403": Status(403),
    "404": Status(404),
    "422": Status(422),
    "429": Status(429, headers=LATER),
    "503": Status(503, headers=LATER),
    "529": Status(529, headers=LATER),
    "too long": Overflow(250_000, 200_000),
    "an error in place of an answer": Status(200, {"error": {"code": 401, "message": "no key"}}),
}
MAY_HAVE_WORKED: dict[str, Step] = {
    "408": Status(408, headers=LATER),
    "500": Status(500, headers=LATER),
    "502": Status(502, headers=LATER),
    "504": Status(504, headers=LATER),
    "closed before the answer": Cut(None),
    "cut off": Cut(60, says("This is a long answer that is cut off.")),
    "broken off": StreamError(2),
    "garbage": Garbage(),
    "empty": Empty(),
    "refused by the model": says("", finish="content_filter"),
}


async def charged(world: World, model: str = MODEL) -> tuple[int, float]:
    """Return the lost calls and dollars that a team's first step is charged; check the totals."""
    founded = await world.found("Try", model=model, budget=Budget(turns=3))
    await world.settle()
    assert founded.node is not None
    rows = await world.store.read(spend.of_node, NodeId(founded.node.id))
    total = (await world.store.read(board.costs_of_team, founded.team.id)).total
    assert (total.lost, total.usd) == (sum(r.lost for r in rows), sum(r.usd for r in rows))
    assert total.calls == 0
    return total.lost, total.usd


@pytest.mark.parametrize("case", REFUSED)
async def test_a_refused_call_costs_nothing(tmp_path: Path, database_url: str, case: str) -> None:
    async with ModelServer(lambda _: REFUSED[case]) as server:
        keys = Keys({"openai": Account(key="sk-test", base_url=server.openai_url)})
        path = tmp_path / "home"
        async with World(
            path, database_url=database_url, keys=keys, prices=PRICES, easy_endings=True
        ) as world:
            assert await charged(world) == (0, 0.0)
            assert server.requests
            await world.restart()  # nor is it charged later, as a call interrupted by a crash
            await world.settle()


async def test_a_call_to_an_unreachable_server_costs_nothing(tmp_path: Path) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # bound, and never listening
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}/v1"
        keys = Keys({"openai": Account(key="sk-test", base_url=url)})
        async with World(tmp_path / "home", keys=keys, prices=PRICES, easy_endings=True) as world:
            assert await charged(world) == (0, 0.0)


@pytest.mark.parametrize("case", MAY_HAVE_WORKED)
async def test_a_call_that_may_have_worked_is_charged(tmp_path: Path, case: str) -> None:
    async with ModelServer(lambda _: MAY_HAVE_WORKED[case]) as server:
        keys = Keys({"openai": Account(key="sk-test", base_url=server.openai_url)})
        async with World(tmp_path / "home", keys=keys, prices=PRICES, easy_endings=True) as world:
            lost, usd = await charged(world)
    assert (lost, usd > 0) == (1, True)


async def test_a_call_is_charged_if_one_of_its_tries_may_have_worked(tmp_path: Path) -> None:
    """The first try is cut off, the second is refused: the call is charged."""
    steps: list[Step] = [Cut(60, says("This is a long answer.")), Status(401)]
    async with ModelServer(steps) as server:
        keys = Keys({"openai": Account(key="sk-test", base_url=server.openai_url)})
        async with World(tmp_path / "home", keys=keys, prices=PRICES, easy_endings=True) as world:
            lost, _ = await charged(world)
    assert lost == 1


async def test_a_fallback_chain_is_charged_if_any_of_its_models_may_have_worked(
    tmp_path: Path,
) -> None:
    def script(seen: Seen) -> Step:
        return Status(500) if seen.model == "first" else Status(429, headers=LATER)

    async with ModelServer(script) as server:
        keys = Keys({"openai": Account(key="sk-test", base_url=server.openai_url)})
        async with World(tmp_path / "home", keys=keys, prices=PRICES, easy_endings=True) as world:
            refused, _ = await charged(world, "openai/second, openai/third")
            lost, _ = await charged(world, "openai/first, openai/second")
    assert (refused, lost) == (0, 1)


async def test_the_bill_names_a_lost_call_with_what_it_was_charged(tmp_path: Path) -> None:
    async with ModelServer([Status(500, headers=LATER)]) as server:
        keys = Keys({"openai": Account(key="k", base_url=server.openai_url)})
        async with World(tmp_path / "home", keys=keys, prices=PRICES) as world:
            founded = await world.found("Try", model=MODEL, budget=Budget(turns=3))
            await world.settle()
            bill = await world.store.read(board.costs_of_team, founded.team.id)
    shown = sum_text(bill.total)
    assert "1 call · 1 lost call of them, charged as reserved" in shown
    assert not shown.startswith("$0.0000")


@pytest.mark.parametrize("model", [MODEL, "openai/first, openai/second"])
async def test_a_call_that_broke_off_is_charged_beside_the_one_that_was_answered(
    tmp_path: Path, model: str
) -> None:
    """The first try breaks off; made again, or asked of the next model, the call is answered."""
    broken = [Cut(60, says("This is a long answer that is cut off."))]
    broken *= 1 if model == MODEL else 4  # the first model gives up after four tries
    steps: list[Step] = [*broken, says("", call("finish", summary="It is done.", reached="yes"))]
    async with ModelServer(steps) as server:
        keys = Keys({"openai": Account(key="k", base_url=server.openai_url)})
        async with World(tmp_path / "home", keys=keys, prices=PRICES, easy_endings=True) as world:
            founded = await world.found("Try", model=model, budget=Budget(turns=3))
            await world.settle()
            total = (await world.store.read(board.costs_of_team, founded.team.id)).total
    assert (total.calls, total.lost) == (1, 1)
    assert "1 lost call of them, charged as reserved" in sum_text(total)
