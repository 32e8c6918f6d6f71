"""Plans: PLAN.md belongs to a goal, and the coordinator's prompt shows it."""

from agiraph.core.domain.provenance.labels import Label
from agiraph.core.home import file_versions
from agiraph.core.home.layout import PLAN
from agiraph.core.services.lifecycle import teams
from agiraph.core.store.texts import file_labels
from agiraph.testing import World, call, says

DONE = says(call("finish", summary="done"))
HEADING = "# Your plan for the goal (PLAN.md)"


async def test_a_coordinator_is_shown_its_plan_until_it_gets_another_goal(world: World) -> None:
    plan = "Read the list.\nThen count."
    ada = world.script("ada", says(call("write_file", path="PLAN.md", content=plan)), *[DONE] * 3)
    founded = await world.found("Count the herons", model="scripted/ada")
    await world.settle()
    await world.say(founded.coordinator.id, "Count again", team_id=founded.team.id)
    await world.settle()
    assert HEADING not in ada.requests[0].system
    assert f"{HEADING}\n\n{plan}\n\n" in ada.requests[-1].system

    # A thread that had read a page wrote the plan in between.
    label = Label(("page:a.example",))
    put = (founded.team.id, "PLAN.md", plan.encode())
    await world.store.write(file_labels.put, *put, label=label)
    await world.store.write(teams.set_goal, founded.team.id, "Count the storks")
    await world.settle()

    folder = world.path / "teams" / founded.team.id
    assert HEADING not in ada.requests[-1].system
    assert (folder / "PLAN.md").read_text() == PLAN
    with world.runtime.home.team(founded.team.id).folder as files:
        goals = file_versions.versions(files, "GOAL.md")
        texts = [file_versions.read(files, "GOAL.md", version.id) for version in goals]
    assert texts == [b"# Goal\n\nCount the storks\n", b"# Goal\n\nCount the herons\n"]
    assert [version.author for version in goals] == ["human", "human"]
    [kept] = (folder / "memory" / "archive").glob("plan-*.md")
    assert kept.read_text() == plan
    labelled = await world.store.read(file_labels.under, founded.team.id)
    assert {file.path: file.label for file in labelled} == {f"memory/archive/{kept.name}": label}
