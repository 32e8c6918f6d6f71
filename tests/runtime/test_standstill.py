"""No node stands still: whatever breaks at its end, it ends, and stop ends it in any case."""

from typing import Any

import pytest

from agiraph.domain.work import NodeStatus, StopReason
from agiraph.services.lifecycle import endings
from agiraph.store.nodes import NODES
from agiraph.store.tx import Tx
from agiraph.testing import World, says
from tests.services.team import gathered, put


def without_runner(tx: Tx, node_id: Any, owner: str | None) -> None:
    """A node as it stands when its runner has gone without a word."""
    NODES.update(tx, node_id, status=NodeStatus.RUNNING, owner=owner)


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("is_owned", [True, False])
async def test_stop_ends_a_node_that_nobody_runs(world: World, is_owned: bool) -> None:
    founded, workers = await gathered(world, "bob")
    node_id = await put(world, founded, "wonder", to=workers["bob"])
    await world.settle()
    owner = world.runtime.engine._owner if is_owned else None  # pyright: ignore
    await world.store.write(without_runner, node_id, owner)
    await world.store.write(endings.cancel, node_id)
    await world.settle()

    assert (await world.node(node_id)).status is NodeStatus.CANCELLED


def break_inbox(tx: Tx) -> None:
    """Let no message to the person be stored: any that a node's end wants to leave breaks it."""
    tx.run(
        "create trigger no_mail before insert on messages when new.recipient = 'human'"
        " and new.text like '%BREAK%' begin select raise(abort, 'no room for it'); end"
    )


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_an_end_that_cannot_be_written_down_is_a_failure_and_no_standstill(
    world: World,
) -> None:
    await world.store.write(break_inbox)
    world.script("ada", says("BREAK"), says("BREAK"))
    founded = await world.found("Answer")
    await world.settle()
    [node] = await world.board(founded.team.id)

    assert (node.status, node.stop_reason) == (NodeStatus.FAILED, StopReason.BROKEN)
    [told_of] = await world.inbox()
    assert (told_of.kind, "no room for it" in told_of.text) == ("failure", True)
