"""finish, publish and checkpoint: the first two publish and end the node."""

import pytest

from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.work import NodeStatus, StopReason
from agiraph.core.services.board import planning
from agiraph.core.services.lifecycle import teams
from agiraph.core.services.members import roster
from agiraph.core.store.tx import Tx
from agiraph.testing import World, call, says
from tests.tools.delegated_tasks import tool_answers
from tests.tools.tool_calls import ToolAnswer, node_folder, refused, run_calls


async def test_finish_publishes_ends_the_node_and_completes_a_finite_team(world: World) -> None:
    world.script(
        "ada",
        says(call("write_file", path="out/a.md", content="Hello.")),
        says(call("finish", summary="It is in out/a.md."), call("bash", command="echo late")),
    )
    founded = await world.found("Say hello")
    await world.settle()

    [goal] = await world.board(founded.team.id)
    [told] = await world.inbox()
    last = [t.text for t in await world.turns(goal.id) if t.role == "tool"][-1]
    assert (goal.status, goal.stop_reason, goal.result) == (
        NodeStatus.COMPLETED,
        StopReason.FINISHED,
        "It is in out/a.md.",
    )
    assert list(goal.manifest) == ["out/a.md"]
    assert last == "Published: out/a.md."
    assert world.published(goal) == {"out/a.md": "Hello."}
    assert (told.kind, told.title, told.text) == (
        "result",
        "Say hello",
        "It is in out/a.md.",
    )
    assert [e.type for e in await world.events(founded.team.id)][-1] == "team.completed"


async def test_publish_ends_only_the_workers_node(world: World) -> None:
    def give(tx: Tx) -> str:
        founded = teams.create(
            tx, owner_id=OWNER, goal="Help", model="scripted/ada", start=False, learns=False
        )
        worker = roster.hire(tx, founded.team.id, name="bob", role="worker", model="scripted/bob")
        planning.create(
            tx, team_id=founded.team.id, task="Count", source="user", assignee_id=worker.id
        )
        return founded.team.id

    world.script("bob", says(call("publish", summary="Three.")))
    team_id = await world.store.write(give)
    await world.settle()

    [node] = await world.board(team_id)
    assert (node.status, node.stop_reason, node.result) == (
        NodeStatus.COMPLETED,
        StopReason.PUBLISHED,
        "Three.",
    )
    assert "team.completed" not in [e.type for e in await world.events(team_id)]


async def test_a_checkpoint_is_stored_and_emitted_while_the_work_continues(world: World) -> None:
    goal, told = await run_calls(
        world,
        call("checkpoint", summary="Half of it."),
        call("checkpoint", summary="Most of it."),
    )

    events = await world.events(goal.team_id)
    shown = [e.data for e in events if e.type == "node.checkpoint"]
    assert told == [ToolAnswer("Noted."), ToolAnswer("Noted.")]
    assert (goal.checkpoint, goal.result) == ("Most of it.", "done")
    assert shown == [
        {"node_id": goal.id, "summary": "Half of it."},
        {"node_id": goal.id, "summary": "Most of it."},
    ]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_finish_without_a_summary_is_refused_and_the_work_continues(world: World) -> None:
    lines = (call("finish", summary=""), call("finish"), call("publish", summary="x"))
    world.script("ada", *map(says, lines), says(call("finish", summary="done")))
    founded = await world.found("Use the tools")
    await world.settle()
    [goal] = await world.board(founded.team.id)
    told = await tool_answers(world, goal.id)

    usage = (
        "It takes: summary, reached, evidence (optional), nothing_to_do (optional), "
        "give_up (optional)."
    )
    assert told[:2] == [
        refused(f"finish: 'summary' is wrong (String should have at least 1 character). {usage}"),
        refused("finish: 'summary' is missing. Say what was done and what came of it."),
    ]
    assert told[2].text.startswith("There is no tool called 'publish'. Your tools: ask_human,")
    assert goal.result == "done"


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_result_that_cannot_be_published_is_refused_and_kept(world: World) -> None:
    world.script(
        "ada",
        says(call("write_file", path="_manifest.json", content="{}")),
        says(call("finish", summary="too early")),
        says(call("bash", command="mv _manifest.json mine.json")),
        says(call("finish", summary="now")),
    )
    founded = await world.found("Publish")
    await world.settle()

    [goal] = await world.board(founded.team.id)
    answers = [t.text for t in await world.turns(goal.id) if t.role == "tool"]
    assert answers[1] == (
        "scratch/_manifest.json has a name that publishing needs; remove it or rename it."
    )
    assert (goal.result, world.published(goal)) == ("now", {"mine.json": "{}"})
    assert sorted(file.name for file in node_folder(world, goal).iterdir()) == [
        "_refs.json",
        "_spec.md",
        "published",
        "scratch",
    ]
