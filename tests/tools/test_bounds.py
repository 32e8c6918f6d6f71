"""Bounds: the board and the summaries of stages in a thread have a maximum length."""

from agiraph.core.domain.chat import Lease
from agiraph.core.domain.ids import ThreadId
from agiraph.core.domain.stages import StageContract
from agiraph.core.domain.work import NodeStatus
from agiraph.core.services.board import planning, stages
from agiraph.core.services.board.stages import SUMMARY
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.store.nodes import NODES
from agiraph.core.store.tx import Tx
from agiraph.core.tools.team import MAX_NODES
from agiraph.testing import World, call, says


def create_finished_nodes(tx: Tx, founded: NewTeam, number: int) -> list[str]:
    """Create completed nodes with long results, and an open one that is older."""
    made = [
        planning.create(tx, team_id=founded.team.id, task=f"Part {n}", source="self").id
        for n in range(number + 1)
    ]
    for node_id in made[1:]:
        NODES.update(tx, node_id, status=NodeStatus.COMPLETED, result="long " * 1000)
    return list(made)


async def test_the_board_shows_open_nodes_and_the_last_completed_ones(world: World) -> None:
    ada = world.script(
        "ada",
        says(call("check_board")),
        says(call("finish", summary="seen")),
        says(call("publish", summary="done")),  # the open node, which is assigned to ada
    )
    founded = await world.found("Look", start=False)
    made = await world.store.write(create_finished_nodes, founded, 2 * MAX_NODES)
    await world.say(founded.coordinator.id, "Look at it.", team_id=founded.team.id)
    await world.settle()

    shown = ada.requests[1].turns[-1].text.split("Team:")[0]
    assert shown.count("- node_") == MAX_NODES
    assert made[0] in shown
    assert made[-1] in shown
    assert made[1] not in shown
    assert len(shown) < 500 * MAX_NODES


async def test_the_summary_of_a_stage_with_many_results_is_bounded(world: World) -> None:
    world.script("ada", says(call("ask_human", question="What now?")))
    founded = await world.found("Look")
    await world.settle()
    assert founded.node is not None
    lease = Lease(
        team_id=founded.team.id,
        agent_id=founded.coordinator.id,
        node_id=founded.node.id,
        thread_id=ThreadId(""),
        epoch=0,
    )

    def summary(tx: Tx) -> str:
        made = create_finished_nodes(tx, founded, 100)[1:]
        stage = stages.start(tx, lease, name="s", node_ids=made, contract=StageContract())
        return stages.summary(tx, stage, "t_1")

    said = await world.store.write(summary)
    assert said.count("has finished a task of yours") == 100
    assert "characters more by task_output" in said
    assert len(said) < SUMMARY + 100 * 700
