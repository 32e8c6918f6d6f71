"""Spend: the sums of a tree of work are those of a walk through it."""

import random
from dataclasses import replace
from typing import Any

import pytest

from agiraph.api.routes.board import costs_of_team
from agiraph.core.domain.chat import Lease
from agiraph.core.domain.ids import NodeId, ThreadId, new_id
from agiraph.core.domain.work import Usage, WorkNode
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.store import spend
from agiraph.core.store.nodes import NODES
from agiraph.core.store.spend import SEARCH, SPEND, Spend, Total
from agiraph.core.store.tx import Tx
from agiraph.testing import World
from tests.store.earlier import to_schema, upgrade

NODES_MADE = 60
AMOUNTS = (
    "calls", "lost", "input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens",
    "thinking_tokens", "usd", "unpriced", "estimated",
)  # fmt: skip


def walked(nodes: list[WorkNode], rows: list[Spend], root: NodeId) -> Total:
    """Return the cost of a node and all below it, found by a walk through all nodes."""
    below, reached = {root}, 0
    while reached != len(below):
        reached = len(below)
        below |= {n.id for n in nodes if n.parent_id in below or n.payer_id in below}
    paid = [row for row in rows if row.node_id in below]
    return Total(
        calls=sum(row.calls + row.lost for row in paid if row.purpose != SEARCH),
        tokens=sum(row.input_tokens + row.output_tokens for row in paid),
        usd=round(sum(row.usd for row in paid), 6),
    )


def grow(tx: Tx, founded: NewTeam, dice: random.Random) -> None:
    """Add nodes below one another, paid for by one another or by nobody, and what they cost; some
    get a payer when they have cost something already."""
    assert founded.node is not None
    made, tops = [founded.node], [founded.node]
    for _ in range(NODES_MADE):
        above: dict[str, Any] = dice.choice(
            [{"parent_id": dice.choice(made).id}] * 3 + [{"payer_id": dice.choice(made).id}, {}]
        )
        node = replace(founded.node, id=NodeId(new_id("node")), source="user", **above)
        NODES.insert(tx, node)
        made.append(node)
        if not above:
            tops.append(node)
        for each in dice.choices(made, k=3):
            settle(tx, founded, each, dice)
    for top in dice.sample(tops[1:], k=len(tops) // 3):
        NODES.update(tx, top.id, payer_id=founded.node.id)
    for each in dice.choices(made, k=NODES_MADE):
        settle(tx, founded, each, dice)


def settle(tx: Tx, founded: NewTeam, node: WorkNode, dice: random.Random) -> None:
    lease = Lease(
        team_id=founded.team.id,
        agent_id=founded.coordinator.id,
        node_id=node.id,
        thread_id=ThreadId(""),
        epoch=0,
    )
    usage = Usage(input_tokens=dice.randrange(900), output_tokens=7, usd=dice.random())
    book = dice.choice([spend.settle, spend.settle, spend.lose])
    book(tx, lease, purpose=dice.choice(["work", "summary", SEARCH]), model="a/b", usage=usage)


def found_by_walk(tx: Tx) -> dict[NodeId, Total]:
    nodes, rows = NODES.select(tx, "1 = 1 order by id"), SPEND.select(tx, "1 = 1 order by usd")
    return {node.id: walked(nodes, rows, node.id) for node in nodes}


def check(tx: Tx, founded: NewTeam) -> None:
    assert founded.node is not None
    expected = found_by_walk(tx)
    assert {node: spend.spent(tx, node) for node in expected} == expected
    paying = {node: total for node, total in expected.items() if total != spend.NOTHING}
    team, listed = founded.team.id, sorted(expected)
    assert spend.spent_between(tx, team, (listed[0], listed[-1])) == paying
    few = {node: total for node, total in paying.items() if listed[9] <= node <= listed[20]}
    assert spend.spent_between(tx, team, (listed[9], listed[20])) == few

    groups, of_goal = spend.by_agent(tx, team, founded.node.id), expected[founded.node.id]
    assert spend.of_goal(groups) == of_goal
    [sums] = tx.all(f"select {', '.join(f'sum({name})' for name in AMOUNTS)} from spend")
    page = costs_of_team(tx, team)
    total = page.total
    assert total.calls + total.searches == sums[0]
    assert [getattr(total, name) for name in AMOUNTS[1:]] == pytest.approx([*map(float, sums[1:])])
    assert page.budget is not None
    used = {limit.name: limit.used for limit in page.budget.limits}
    assert (used["usd"], used["tokens"]) == (of_goal.usd, of_goal.tokens)


@pytest.mark.parametrize("seed", range(3))
async def test_what_work_has_cost_is_what_a_walk_through_its_tree_adds_up(
    world: World, database_url: str, seed: int
) -> None:
    founded = await world.found("Count the beans")
    await world.store.write(grow, founded, random.Random(seed))
    await world.store.read(check, founded)

    before = await world.store.read(found_by_walk)
    await upgrade(world, database_url, lambda tx: to_schema(tx, 45))
    assert await world.store.read(found_by_walk) == before
    await world.store.read(check, founded)


async def test_damaged_rows_that_form_a_circle_are_counted_once(world: World) -> None:
    founded = await world.found("Count the beans")
    assert founded.node is not None
    goal = founded.node
    child = replace(goal, id=NodeId(new_id("node")), source="user", parent_id=goal.id)

    def circle(tx: Tx) -> None:
        NODES.insert(tx, child)
        NODES.update(tx, goal.id, parent_id=child.id)
        for node in (goal, child):
            settle(tx, founded, node, random.Random(1))
        expected = found_by_walk(tx)
        assert {node: spend.spent(tx, node) for node in expected} == expected

    await world.store.write(circle)
