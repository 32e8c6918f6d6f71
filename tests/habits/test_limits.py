"""Habits of ending: a limit ends the work before the model is done."""

from agiraph.domain.ids import NodeId
from agiraph.domain.work import Budget, Extension, NodeStatus
from agiraph.services.lifecycle import extensions
from agiraph.testing import World, call, says

WRITE = says(call("write_file", path="half.md", content="half"))
LOOK = says(call("list_files"))


async def test_e11_a_limit_keeps_what_there_is_and_an_extension_lets_it_go_on(
    world: World,
) -> None:
    world.script("ada", WRITE, LOOK, says("Half is in half.md."), WRITE, says("Still half."))
    founded = await world.found("Write it", budget=Budget(turns=3))
    await world.settle()
    assert founded.node is not None
    node = await world.node(founded.node.id)
    assert (node.status, node.result) == (NodeStatus.PARTIAL, "Half is in half.md.")
    assert world.published(node) == {"half.md": "half"}

    await world.store.write(extensions.extend, NodeId(node.id), Extension(turns=2), by="human")
    await world.settle()
    after = await world.node(node.id)
    assert (after.status, after.result, after.thread_id) == (
        NodeStatus.PARTIAL,
        "Still half.",
        node.thread_id,
    )
