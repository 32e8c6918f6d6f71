"""No node gets stuck: an error while it ends fails it, and a cancel always ends it."""

from typing import Any

import pytest

from agiraph.core.domain.work import NodeStatus, StopReason
from agiraph.core.services.lifecycle import endings
from agiraph.core.store.nodes import NODES
from agiraph.core.store.tx import Tx
from agiraph.testing import World, call, says
from tests.services.teams import add_child, found_waiting_team


def remove_runner(tx: Tx, node_id: Any, owner: str | None) -> None:
    """Put a node into the state in which a vanished runner leaves it."""
    NODES.update(tx, node_id, status=NodeStatus.RUNNING, owner=owner)


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("is_owned", [True, False])
async def test_a_cancel_ends_a_node_that_no_process_runs(world: World, is_owned: bool) -> None:
    founded, workers = await found_waiting_team(world, "bob")
    node_id = await add_child(world, founded, "wonder", to=workers["bob"])
    await world.settle()
    owner = world.runtime.engine._owner if is_owned else None  # pyright: ignore
    await world.store.write(remove_runner, node_id, owner)
    await world.store.write(endings.cancel, node_id)
    await world.settle()

    assert (await world.node(node_id)).status is NodeStatus.CANCELLED


def break_inbox(tx: Tx) -> None:
    """Make storing a message to the person fail, and with it the transaction that ends a node."""
    tx.run(
        "create trigger no_mail before insert on messages when new.recipient = 'human'"
        " and new.text like '%BREAK%' begin select raise(abort, 'no room for it'); end"
    )


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_node_whose_end_cannot_be_stored_fails_instead_of_hanging(
    world: World,
) -> None:
    await world.store.write(break_inbox)
    world.script("ada", says(call("finish", summary="BREAK")))
    founded = await world.found("Answer")
    await world.settle()
    [node] = await world.board(founded.team.id)

    assert (node.status, node.stop_reason) == (NodeStatus.FAILED, StopReason.BROKEN)
    [told_of] = await world.inbox()
    assert (told_of.kind, "no room for it" in told_of.text) == ("failure", True)
