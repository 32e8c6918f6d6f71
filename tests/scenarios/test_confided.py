"""Confided: what a person wrote to one agent alone, another agent does not find."""

import pytest

from agiraph.core.domain.ids import AgentId, TeamId
from agiraph.core.services.members import roster
from agiraph.testing import World, call, says
from agiraph.testing.script import Says

SECRET = "The party is on 12 May in the barn. Don't tell bob."
PARTS = ("12 May", "barn")
LOOKS = {
    "search": call("search", query="party barn May"),
    "look_into": call("look_into", what="alice"),
    "check_board": call("check_board"),
}


async def found_two(world: World) -> tuple[TeamId, AgentId, AgentId]:
    """Found a team with the workers alice and bob; return its id and theirs."""
    founded = await world.found("Plan the summer", start=False)
    made = [
        await world.store.write(
            roster.hire, founded.team.id, name=name, role="worker", model=f"scripted/{name}"
        )
        for name in ("alice", "bob")
    ]
    return founded.team.id, made[0].id, made[1].id


async def bob_looks(world: World, bob: AgentId, look: str) -> str:
    """Let bob answer the person after a look; return all that bob was shown."""
    model = world.script("bob", says(LOOKS[look]), says("I do not know.", call("no_work_needed")))
    await world.chat(bob, "When is the party?")
    await world.settle()
    assert len(model.requests) == 2
    return "\n".join(
        [asked.system for asked in model.requests]
        + [turn.text for turn in model.requests[-1].turns if turn.role == "tool"]
    )


TALKS: dict[str, list[Says]] = {
    "chat": [says("I keep it to myself.", call("no_work_needed"))],
    "work": [
        says("I see to it.", call("start_work")),
        says(call("ask_human", question="Shall there be music?")),
        says(call("publish", summary="It is arranged.")),
    ],
}


@pytest.mark.parametrize("talk", TALKS)
@pytest.mark.parametrize("look", LOOKS)
async def test_what_a_person_writes_to_one_agent_is_not_found_by_another(
    talk: str, look: str, world: World
) -> None:
    team, alice, bob = await found_two(world)
    world.script("alice", *TALKS[talk])
    await world.chat(alice, SECRET)
    await world.settle()
    for question in await world.questions(team):
        await world.answer(question, "Yes: the barn is loud on 12 May anyway.")
    await world.settle()
    shown = await bob_looks(world, bob, look)
    assert [part for part in PARTS if part in shown] == []


async def test_what_was_handed_on_is_found(world: World) -> None:
    _, alice, bob = await found_two(world)
    handed = says("I tell bob.", call("start_work", task="Wait."))
    world.script("alice", handed, says(call("send_message", to="bob", content=SECRET)),
                 says(call("publish", summary="Told.")))  # fmt: skip
    world.script("bob", says(call("publish", summary="Heard of the barn.")))
    await world.chat(alice, SECRET)
    await world.settle()
    assert "barn" in await bob_looks(world, bob, "search")
