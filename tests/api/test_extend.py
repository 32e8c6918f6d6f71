"""Limits over HTTP: a goal's defaults, and the extension of a partial goal."""

import pytest

from agiraph.core.domain.work import Budget
from agiraph.core.services.board import budgets
from agiraph.testing import says
from tests.api.serving import Served
from tests.services.test_retries import CALL, LOOK


@pytest.mark.slow
async def test_a_partial_goal_is_extended_once_for_each_key(served: Served) -> None:
    served.world.script("ada", LOOK, CALL, says("Half of it."), CALL, says("More of it."))
    _, team = await served.ask("POST", "/teams", {"goal": "Count", "budget": {"turns": 3}})
    await served.world.settle()
    _, [node] = await served.ask("GET", f"/teams/{team['id']}/board")
    assert (node["status"], node["stop_reason"]) == ("partial", "turns_spent")

    path = f"/nodes/{node['id']}/extend"
    status, after = await served.ask("POST", path, {"turns": 2}, Idempotency_Key="k1")
    again = await served.ask("POST", path, {"turns": 2}, Idempotency_Key="k1")
    assert (status, after["status"], again) == (200, "assigned", (200, after))
    await served.world.settle()
    _, detail = await served.ask("GET", f"/nodes/{node['id']}")
    assert (detail["status"], detail["result"], detail["budget"]["turns"]) == (
        "partial",
        "More of it.",
        5,
    )

    assert (await served.ask("POST", path, {"turns": 0}))[0] == 422
    assert (await served.ask("POST", path, {"usd": -1.0}))[0] == 422
    status, problem = await served.ask("POST", path, {})
    assert (status, "Say how much more to give" in problem["detail"]) == (422, True)
    assert (await served.ask("POST", "/nodes/node_x/extend", {"turns": 5}))[0] == 404


async def test_a_goal_without_chosen_limits_has_the_default_ones(served: Served) -> None:
    served.world.script("ada")
    _, team = await served.ask("POST", "/teams", {"goal": "Count"})
    _, [node] = await served.ask("GET", f"/teams/{team['id']}/board")
    _, detail = await served.ask("GET", f"/nodes/{node['id']}")
    limits = {name: detail["budget"][name] for name in ("turns", "tokens", "usd", "seconds")}
    assert limits == {"turns": 500, "tokens": None, "usd": None, "seconds": 24 * 3600.0}


def test_a_goal_whose_model_has_no_price_gets_a_limit_on_tokens() -> None:
    unpriced = budgets.for_goal(None, mode="infinite", is_priced=False)
    assert unpriced == Budget(turns=500, tokens=5_000_000)
    chosen = Budget(turns=7, tokens=9, seconds=60.0)
    assert budgets.for_goal(chosen, mode="finite", is_priced=False) == chosen
