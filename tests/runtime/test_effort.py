"""Effort: of all settings that say how much a model thinks, the most specific one counts."""

from pathlib import Path

from agiraph.core.domain.ids import AgentId, NodeId, TeamId
from agiraph.core.domain.work import WorkNode
from agiraph.core.services.lifecycle import settings
from agiraph.testing import Call, World, call, says

DONE = says(call("finish", summary="done"))
HANDED_IN = says(call("publish", summary="done"))


def give(**more: str) -> Call:
    return call("assign_task", task="Count the files", description="Count files", **more)


async def children(world: World, team_id: TeamId) -> list[WorkNode]:
    return [node for node in await world.board(team_id) if node.parent_id is not None]


async def test_without_any_setting_no_effort_is_asked_for(world: World) -> None:
    ada = world.script("ada", DONE)
    await world.found("Count")
    await world.settle()
    assert [asked.effort for asked in ada.requests] == [None]


async def test_a_team_s_effort_is_that_of_its_agents_unless_a_task_says_otherwise(
    world: World,
) -> None:
    ada = world.script("ada", says(give(agent="new:scripted/bob", effort="low")), DONE)
    bob = world.script("bob", HANDED_IN)
    founded = await world.found("Count", effort="high")
    await world.settle()

    assert [asked.effort for asked in ada.requests] == ["high", "high"]
    assert [asked.effort for asked in bob.requests] == ["low"]
    [task] = await children(world, founded.team.id)
    assert task.effort == "low"


async def test_a_specialist_s_file_says_how_much_it_thinks(world: World) -> None:
    folder = world.path / "agents"
    folder.mkdir()
    (folder / "scout.md").write_text(
        "---\ndescription: Looks.\nmodel: scripted/eve\neffort: max\n---\nLook."
    )
    await world.restart()
    world.script("ada", says(give(agent="scout")), DONE)
    eve = world.script("eve", HANDED_IN)
    await world.found("Count", effort="low")
    await world.settle()
    assert [asked.effort for asked in eve.requests] == ["max"]


async def test_a_hired_worker_keeps_its_effort_and_a_piece_of_work_its_own(world: World) -> None:
    hired = call("spawn_worker", name="bob", model="scripted/bob", effort="medium")
    planned = call("create_work_node", task="Count dogs", assigned_to="bob", effort="none")
    ada = world.script(
        "ada", says(hired), says(planned), says(give(agent="bob")), DONE, insists=False
    )
    bob = world.script("bob", *[HANDED_IN] * 2)
    await world.found("Count")
    await world.settle()

    assert [asked.effort for asked in bob.requests] == ["none", "medium"]
    assert {asked.effort for asked in ada.requests} == {None}


async def test_a_role_has_an_effort_in_the_settings(tmp_path: Path) -> None:
    async with World(tmp_path / "home", efforts={"worker": "low", "coordinator": "max"}) as world:
        ada = world.script("ada", says(give(agent="new:scripted/bob")), DONE)
        bob = world.script("bob", HANDED_IN)
        await world.found("Count")
        await world.settle()
        assert {asked.effort for asked in ada.requests} == {"max"}
        assert {asked.effort for asked in bob.requests} == {"low"}


async def test_a_changed_effort_counts_from_the_next_run_on(world: World) -> None:
    ada = world.script("ada", says(call("ask_human", question="Which?")), DONE)
    founded = await world.found("Count")
    await world.settle()
    assert founded.node is not None
    await world.store.write(settings.set_effort_of_agent, AgentId(founded.coordinator.id), "low")
    await world.store.write(settings.set_effort_of_node, NodeId(founded.node.id), "high")
    [question] = await world.questions(founded.team.id)
    await world.answer(question, "All")
    await world.settle()

    assert [asked.effort for asked in ada.requests] == [None, "high"]
    stored: WorkNode = await world.node(founded.node.id)
    assert stored.effort == "high"
