"""Hiring in a labelled thread: free for models with no more tools than the hirer's own."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.store import teams
from agiraph.core.store.teams import AGENTS
from agiraph.testing import Call, World, call, says
from tests.tools.strangers import DONE, READ, found_with_calls, go_on_with, strange_world, undecided

TRUSTS = ["strict", "standard", "open"]


@pytest.fixture
async def strange(tmp_path: Path, database_url: str) -> AsyncIterator[World]:
    async with strange_world(tmp_path, database_url) as world:
        yield world


async def names(world: World, founded: NewTeam) -> list[str]:
    return [agent.name for agent in await world.members(founded.team.id)]


HIRES: dict[str, Call] = {
    "spawn_worker": call("spawn_worker", name="bob", model="scripted/bob"),
    "spawn_worker with tools": call("spawn_worker", name="bob", tools=["bash", "web_fetch"]),
    "assign_task": call(
        "assign_task", agent="new:scripted/bob", task="Count to three", description="Count"
    ),
    "create_work_node": call(
        "create_work_node", task="Count to three", assigned_to="new:scripted/bob"
    ),
}


@pytest.mark.parametrize("trust", TRUSTS)
@pytest.mark.parametrize("way", HIRES)
async def test_a_labelled_thread_hires_models_without_asking(
    strange: World, way: str, trust: str
) -> None:
    strange.script("bob", says("one, two, three"), DONE)
    founded = await found_with_calls(strange, READ, HIRES[way], trust=trust)
    assert await names(strange, founded) == ["coordinator", "bob"]
    assert await undecided(strange, founded) == []


async def restricted(world: World) -> NewTeam:
    """Found a team whose coordinator has few tools."""
    founded = await world.found("Keep watch", start=False)
    own = ("read_page", "read_file", *{made.name for made in HIRES.values()}, "assign_worker")
    await world.store.write(AGENTS.update, founded.coordinator.id, tools=own)
    world.script("ada")
    world.script("bob", says("one, two, three"), DONE)
    return founded


MORE = HIRES | {
    "a specialist": call(
        "assign_task", agent="researcher", task="Count to three", description="Count"
    ),
    "a specialist with a model": call(
        "assign_task", agent="new:researcher:scripted/bob", task="Count", description="Count"
    ),
}


@pytest.mark.parametrize("way", MORE)
async def test_a_newcomer_with_more_tools_than_the_hirer_needs_a_person(
    strange: World, way: str
) -> None:
    founded = await restricted(strange)
    await go_on_with(strange, founded, READ, MORE[way])
    assert await names(strange, founded) == ["coordinator"]
    [question] = await undecided(strange, founded)
    assert "the newcomer would have more tools than I have" in question.text


@pytest.mark.parametrize("way", MORE)
async def test_the_same_newcomer_is_hired_by_a_clean_thread(strange: World, way: str) -> None:
    founded = await restricted(strange)
    await go_on_with(strange, founded, MORE[way])
    assert len(await names(strange, founded)) == 2


async def test_a_newcomer_with_the_hirers_own_tools_needs_nobody(strange: World) -> None:
    founded = await restricted(strange)
    few = call("spawn_worker", name="bob", tools=["read_file", "send_message"])
    await go_on_with(strange, founded, READ, few)
    assert await names(strange, founded) == ["coordinator", "bob"]
    assert await undecided(strange, founded) == []


async def test_a_strict_team_asks_before_a_worker_is_kept(strange: World) -> None:
    strange.script("bob", says("one, two, three"), DONE)
    founded = await found_with_calls(
        strange, READ, HIRES["assign_task"], call("promote", worker="bob"), trust="strict"
    )
    bob = await strange.store.read(teams.by_name, founded.team.id, "bob", with_retired=True)
    assert not bob.persistent
    assert len(await undecided(strange, founded)) == 1
