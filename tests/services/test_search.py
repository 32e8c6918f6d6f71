"""Search on both databases: the case of letters does not matter, and steps lead to their thread."""

from agiraph.core.domain.persons import OWNER
from agiraph.core.store.lists import search
from agiraph.testing import World, call, says


async def test_messages_and_steps_are_found_whatever_the_case_of_their_letters(
    world: World,
) -> None:
    world.script(
        "ada",
        says("Ich schreibe die ÜBERSICHT.", call("list_dir", path=".")),
        says(call("finish", summary="Hier ist die Übersicht.")),
    )
    team = await world.found("Schreibe etwas")
    await world.settle()
    words = ["übersicht"]
    said = await world.store.read(search.messages, words, person=OWNER, team=None, limit=5)
    assert [(each.kind, each.text) for each in said] == [("message", "Hier ist die Übersicht.")]
    steps = await world.store.read(search.steps, words, team=team.team.id, limit=5)
    assert any("Ich schreibe die ÜBERSICHT." in each.text for each in steps)
    assert {each.agent_id for each in steps} == {team.coordinator.id}
