"""Search on both databases: the case of letters does not matter, and steps lead to their thread."""

from agiraph.core.domain.messages import Draft, Message
from agiraph.core.domain.persons import OWNER
from agiraph.core.services.mail import bus
from agiraph.core.store import messages
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


async def test_a_conversation_is_searched_whole_in_any_script_newest_first_and_in_pages(
    world: World,
) -> None:
    team = await world.found("Listen", start=False)
    ada = team.coordinator.id
    said = [
        "Der Überschlag: 40 % mehr",
        "ПЛАН на неделю",
        "ΣΧΈΔΙΟ",
        "我们明天讨论计划",
        "خطة الأسبوع",
        "40 times more",
        "план готов",
    ]
    for text in said:
        about = Draft(recipient=OWNER, team_id=team.team.id, sender=ada, text=text)
        await world.store.write(bus.send, about)
    mine = Draft(recipient=ada, team_id=team.team.id, sender=OWNER, text="Mein Plan: план?")
    await world.store.write(bus.send, mine)
    other = await world.found("Elsewhere", start=False)
    elsewhere = Draft(
        recipient=OWNER, team_id=other.team.id, sender=other.coordinator.id, text="план"
    )
    await world.store.write(bus.send, elsewhere)

    async def found(*words: str, limit: int = 5, before: str = "") -> list[Message]:
        return await world.store.read(
            messages.lately, team.team.id, ada, OWNER, limit=limit, before=before, words=words
        )

    async def texts(*words: str) -> list[str]:
        return [one.text for one in await found(*words)]

    assert await texts("план") == ["ПЛАН на неделю", "план готов", "Mein Plan: план?"]
    assert await texts("σχέδιο") == ["ΣΧΈΔΙΟ"]
    assert await texts("讨论") == ["我们明天讨论计划"]
    assert await texts("خطة") == ["خطة الأسبوع"]
    assert await texts("40", "%") == ["Der Überschlag: 40 % mehr"]
    assert await texts("überschlag", "mehr") == ["Der Überschlag: 40 % mehr"]
    assert await texts("план", "überschlag") == []
    newest = await found("план", limit=2)
    [oldest] = await found("план", limit=2, before=newest[0].id)
    assert [one.text for one in (oldest, *newest)] == await texts("план")
