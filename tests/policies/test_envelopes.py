"""Envelopes: money, tokens and calls are nested as the nodes are."""

import asyncio

from agiraph.core.domain.ids import NodeId, TeamId
from agiraph.core.domain.work import Budget, NodeStatus, StopReason
from agiraph.core.services.board import planning
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.services.members import roster
from agiraph.core.store import spend
from agiraph.core.store.tx import Tx
from agiraph.testing import World, call, says


def _hire_for_node(tx: Tx, team_id: TeamId, parent: NodeId, name: str, budget: Budget) -> NodeId:
    worker = roster.hire(tx, team_id, name=name, role="worker", model=f"scripted/{name}")
    return planning.create(
        tx,
        team_id=team_id,
        task="Note",
        source="delegation",
        assignee_id=worker.id,
        parent_id=parent,
        budget=budget,
    ).id


async def _found_parent(world: World, budget: Budget) -> NewTeam:
    world.script("ada", says(call("ask_human", question="Shall we?")))
    founded = await world.found("Share an envelope", budget=budget)
    await world.settle()
    return founded


async def test_spending_of_children_empties_the_parents_envelope(world: World) -> None:
    founded = await _found_parent(world, Budget(tokens=500))
    assert founded.node is not None
    notes = [says(call("checkpoint", summary=f"step {n}")) for n in range(10)]
    world.script("bob", *notes)
    child = await world.store.write(
        _hire_for_node, founded.team.id, founded.node.id, "bob", Budget()
    )
    await world.settle()

    node = await world.node(child)
    assert (node.status, node.stop_reason) == (NodeStatus.PARTIAL, StopReason.TOKENS_SPENT)
    total = await world.store.read(spend.total, founded.node.id)
    assert (total.calls, total.tokens) == (5, 600)  # the call that passed the limit was the last


async def test_concurrent_children_make_no_more_calls_than_the_envelope_allows(
    world: World,
) -> None:
    founded = await _found_parent(world, Budget(model_calls=9))
    assert founded.node is not None
    gate = asyncio.Event()
    for number in range(8):
        lines = [says(call("checkpoint", summary=f"step {n}")) for n in range(10)]
        world.script(f"w{number}", *lines).gate = gate
        await world.store.write(
            _hire_for_node, founded.team.id, founded.node.id, f"w{number}", Budget()
        )
    gate.set()
    await world.settle()

    total = await world.store.read(spend.total, founded.node.id)
    reasons = {n.stop_reason for n in await world.board(founded.team.id) if n.parent_id}
    assert (total.calls, reasons) == (9, {StopReason.CALLS_SPENT})


async def test_an_empty_envelope_of_a_child_stops_only_that_child(world: World) -> None:
    founded = await _found_parent(world, Budget(tokens=100_000))
    assert founded.node is not None
    world.script("bob", *[says(call("checkpoint", summary=f"step {n}")) for n in range(10)])
    world.script("eve", says(call("publish", summary="done")))
    poor = await world.store.write(
        _hire_for_node, founded.team.id, founded.node.id, "bob", Budget(tokens=200)
    )
    rich = await world.store.write(
        _hire_for_node, founded.team.id, founded.node.id, "eve", Budget()
    )
    await world.settle()

    assert (await world.node(poor)).stop_reason is StopReason.TOKENS_SPENT
    assert (await world.node(rich)).stop_reason is StopReason.PUBLISHED
