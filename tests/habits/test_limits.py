"""Habits of ending: a limit ends the work before the model is done."""

from dataclasses import replace

import pytest

from agiraph.core.domain.ids import NodeId
from agiraph.core.domain.work import Budget, Extension, NodeStatus
from agiraph.core.services.lifecycle import continuations
from agiraph.testing import World, call, says
from tests.habits.kit import ASK, assign

WRITE = says(call("write_file", path="half.md", content="half"))
LOOK = says(call("list_files"))
NO_WORDS = "It gave no summary. What it did stands in its thread."


@pytest.mark.parametrize("words", ["I compare both offers now.", ""])
@pytest.mark.parametrize("giver", ["person", "agent"])
async def test_a_partial_result_is_words_and_files_and_no_log_of_tools(
    world: World, giver: str, words: str
) -> None:
    fails = [says(call("read_file", path=f"file{'x' * n}.md")) for n in range(9)]
    lines = [replace(WRITE, text=words), *fails]
    if giver == "agent":
        world.script("bob", *lines)
        lines = [says(assign("Compare both offers")), ASK]
    world.script("ada", *lines)
    founded = await world.found("Compare")
    await world.settle()

    board = await world.board(founded.team.id)
    node = board[-1]
    assert node.status is NodeStatus.PARTIAL
    assert node.result == f"{words or NO_WORDS}\n\nIts files: half.md"
    if giver == "agent":
        [answer] = [t.text for t in await world.turns(board[0].id) if t.role == "tool"]
        assert "Its files: half.md" in answer
        assert "read_file(" not in answer


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

    await world.store.write(continuations.extend, NodeId(node.id), Extension(turns=2), by="human")
    await world.settle()
    after = await world.node(node.id)
    assert (after.status, after.result, after.thread_id) == (
        NodeStatus.PARTIAL,
        "Still half.",
        node.thread_id,
    )
