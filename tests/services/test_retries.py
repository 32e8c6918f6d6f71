"""A retried node gets more of whichever limit it had used up."""

from typing import Any

import pytest

from agiraph.core.domain.errors import Refused
from agiraph.core.domain.ids import NodeId
from agiraph.core.domain.work import Budget, NodeStatus, StopReason, WorkNode
from agiraph.core.services.board import planning, timing
from agiraph.core.services.lifecycle import continuations
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.services.members import roster
from agiraph.core.store.tx import Tx
from agiraph.testing import World, call, says
from agiraph.testing.scripted import Line
from tests.services.teams import found_waiting_team

R = StopReason
LOOK = says(call("list_files"), input_tokens=900, output_tokens=100)
CALL = says(call("bash", command="true"), input_tokens=900, output_tokens=100)
FINISH = says(call("finish", summary="done"))


async def fail_at_limit(world: World, budget: Budget, *lines: Line) -> WorkNode:
    """Return a goal that failed at a limit; its model has these lines left for the retry."""
    world.script("ada", LOOK, CALL, *lines)
    founded = await world.found("Reach it", budget=budget)
    await world.settle()
    [node] = await world.board(founded.team.id)
    assert node.status in (NodeStatus.PARTIAL, NodeStatus.FAILED)
    return node


async def retry(world: World, node: WorkNode) -> tuple[WorkNode, dict[str, float]]:
    await world.store.write(continuations.retry, node.id)
    await world.settle()
    events = await world.events(node.team_id)
    added = [e.data["added"] for e in events if e.type == "node.assigned" and "added" in e.data]
    return await world.node(node.id), added[-1]


@pytest.mark.parametrize(
    ("budget", "reason", "added"),
    [
        (Budget(turns=3), R.TURNS_SPENT, {"turns": 3}),
        (Budget(tokens=2000), R.TOKENS_SPENT, {"tokens": 2000}),
        (Budget(tokens=1500), R.TOKENS_SPENT, {"tokens": 2000}),
        (Budget(model_calls=2), R.CALLS_SPENT, {"model_calls": 2}),
        (Budget(turns=3, tokens=2000), R.TURNS_SPENT, {"turns": 2, "tokens": 2000}),
    ],
)
async def test_a_retry_is_granted_more_of_the_limit_that_was_used_up(
    world: World, budget: Budget, reason: StopReason, added: dict[str, float]
) -> None:
    last_words = [] if budget.tokens or budget.model_calls else [says("That is all.")]
    node = await fail_at_limit(world, budget, *last_words, FINISH)
    assert node.stop_reason is reason

    node, granted = await retry(world, node)
    assert (node.status, node.result) == (NodeStatus.COMPLETED, "done")
    assert granted == added


async def test_a_retry_is_granted_more_money(world: World) -> None:
    node = await fail_at_limit(world, Budget(turns=3, usd=1.0), says("That is all."), FINISH)

    def pay(tx: Tx) -> None:
        tx.run("update spend set usd = 1.5 where node_id = :id", id=node.id)

    await world.store.write(pay)
    node, granted = await retry(world, node)
    assert (node.result, node.budget.usd, granted) == ("done", 2.5, {"turns": 3, "usd": 1.5})


async def test_a_retry_is_granted_its_time_again(world: World) -> None:
    def takes_long(_: Any) -> Any:
        world.clock.advance(seconds=61)
        return LOOK

    world.script("ada", takes_long, says("That is all."), CALL, FINISH)
    founded = await world.found("Reach it", budget=Budget(seconds=60))
    await world.settle()
    [node] = await world.board(founded.team.id)
    assert node.stop_reason is R.TIME_SPENT

    node, granted = await retry(world, node)
    assert (node.result, granted) == ("done", {"seconds": 60})


@pytest.mark.slow
async def test_each_retry_is_granted_what_the_first_try_had(world: World) -> None:
    world.script("ada", *[LOOK, CALL, says("That is all.")] * 3)
    founded = await world.found("Reach it", budget=Budget(turns=3))
    await world.settle()
    limits: list[int] = []
    for _ in range(3):
        [node] = await world.board(founded.team.id)
        assert node.stop_reason is R.TURNS_SPENT
        limits.append(node.budget.turns)
        if len(limits) < 3:
            await retry(world, node)
    assert limits == [3, 6, 9]


async def test_a_retry_of_a_failure_within_its_limits_is_granted_nothing(world: World) -> None:
    def takes_long(_: Any) -> Any:
        world.clock.advance(seconds=61)
        return LOOK

    world.script("ada", takes_long, *[LOOK] * 4, FINISH)
    founded = await world.found("Reach it")
    await world.settle()
    [node] = await world.board(founded.team.id)
    assert node.stop_reason is R.LOOPING
    assert timing.worked_seconds(node) == 61

    node, granted = await retry(world, node)
    assert (node.result, node.budget, granted) == ("done", Budget(turns=500, chosen={}), {})
    assert timing.worked_seconds(node) == 61


async def test_a_retry_is_granted_more_calls_of_a_limited_tool(world: World) -> None:
    budget = Budget(turns=3, calls={"bash": 1})
    node = await fail_at_limit(world, budget, says("That is all."), CALL, FINISH)

    node, granted = await retry(world, node)
    assert (node.result, granted) == ("done", {"turns": 3, "calls of bash": 1})
    answers = [t.text for t in await world.turns(node.id) if t.role == "tool"]
    assert not any("Not allowed" in text for text in answers)


def create_child(tx: Tx, founded: NewTeam, budget: Budget) -> NodeId:
    assert founded.node is not None
    bob = roster.hire(tx, founded.team.id, name="bob", role="worker", model="scripted/bob")
    return planning.create(
        tx,
        team_id=founded.team.id,
        task="Help",
        source="delegation",
        creator_id=founded.coordinator.id,
        parent_id=founded.node.id,
        assignee_id=bob.id,
        budget=budget,
    ).id


async def test_a_node_limited_to_one_turn_still_has_no_tools_when_retried(world: World) -> None:
    founded, _ = await found_waiting_team(world)
    bob = world.script("bob", RuntimeError("no"), says("It is 4."))
    node_id = await world.store.write(create_child, founded, Budget(turns=1, given={"turns": 1}))
    await world.settle()
    assert (await world.node(node_id)).stop_reason is R.BROKEN

    await world.store.write(continuations.retry, node_id)
    await world.settle()
    node = await world.node(node_id)
    assert (node.status, node.result) == (NodeStatus.COMPLETED, "It is 4.")
    assert bob.requests[-1].tools == ()


async def test_a_retry_is_refused_when_the_parents_budget_is_used_up(world: World) -> None:
    founded, _ = await found_waiting_team(world, budget=Budget(tokens=10_000))
    assert founded.node is not None
    world.script("bob", LOOK, CALL, FINISH)
    node_id = await world.store.write(create_child, founded, Budget(tokens=2000))
    await world.settle()
    assert (await world.node(node_id)).stop_reason is R.TOKENS_SPENT

    def spend_all(tx: Tx) -> None:
        sql = "update spend set input_tokens = 20000 where node_id = :id"
        tx.run(sql, id=founded.node.id)  # type: ignore[union-attr]

    await world.store.write(spend_all)
    with pytest.raises(Refused) as refused:
        await world.store.write(continuations.retry, node_id)
    assert str(refused.value) == (
        "'Help' is paid from the budget of 'Get it done', which is used up: its tokens are used "
        "up. Extend or retry 'Get it done' first, or create a new task."
    )
    assert (await world.node(node_id)).status is NodeStatus.PARTIAL
