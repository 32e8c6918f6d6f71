"""Programs and labels: what a program says is foreign, and untrusted text starts none unasked."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agiraph.core.domain.agents import Command
from agiraph.core.domain.ids import TeamId
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.provenance.grants import Grant
from agiraph.core.domain.provenance.labels import CLEAN, of_program
from agiraph.core.domain.work import NodeStatus
from agiraph.core.services.board import labels
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.store import teams
from agiraph.core.store.grants import GRANTS
from agiraph.testing import Call, World, call
from tests.tools.strangers import READ, found_with_calls, go_on_with, strange_world, undecided

SAYS_HI = "echo hi > _result.md"
"""A command of a model's own."""
NAMED = {"agent": Command(command="echo named > _result.md")}


@pytest.fixture
async def strange(tmp_path: Path, database_url: str) -> AsyncIterator[World]:
    async with strange_world(tmp_path, database_url, commands=NAMED) as world:
        yield world


def run(command: str, task: str = "Go") -> Call:
    return call("assign_task", agent=f"cli:{command}", task=task, description="Run it")


async def results(world: World, founded: NewTeam) -> list[tuple[NodeStatus, str | None]]:
    return [(n.status, n.result) for n in (await world.board(founded.team.id))[1:]]


async def trust(world: World, team_id: TeamId | None, pattern: str) -> Grant:
    grant = Grant(
        id=f"grant_{pattern}",
        kind="trust",
        pattern=pattern,
        team_id=team_id,
        person_id=OWNER,
        created_at=world.clock.now(),
    )
    return await world.store.write(GRANTS.insert, grant)


@pytest.mark.parametrize("trust", ["strict", "standard"])
@pytest.mark.parametrize("command", ["agent", SAYS_HI])
async def test_strangers_words_start_no_program_unasked(
    strange: World, command: str, trust: str
) -> None:
    founded = await found_with_calls(strange, READ, run(command), trust=trust)
    [question] = await undecided(strange, founded)
    assert question.call is not None
    assert (question.kind, question.call.arguments["command"]) == ("approval", command)
    assert "a program would be run on this task" in question.text
    [(status, _)] = await results(strange, founded)
    assert not status.is_final


@pytest.mark.parametrize("command", ["agent", SAYS_HI])
async def test_the_same_program_runs_on_a_clean_task(strange: World, command: str) -> None:
    founded = await found_with_calls(strange, run(command))
    [(status, _)] = await results(strange, founded)
    assert status is NodeStatus.COMPLETED
    assert await undecided(strange, founded) == []


async def test_an_open_team_runs_programs_on_strangers_words(strange: World) -> None:
    founded = await found_with_calls(strange, READ, run(SAYS_HI), trust="open")
    assert await results(strange, founded) == [(NodeStatus.COMPLETED, "hi")]


async def test_an_approved_program_runs(strange: World) -> None:
    founded = await found_with_calls(strange, READ, run(SAYS_HI))
    [question] = await undecided(strange, founded)
    await strange.answer(question, decision="approve")
    await strange.settle()
    assert await results(strange, founded) == [(NodeStatus.COMPLETED, "hi")]


async def test_what_a_program_says_labels_its_reader(strange: World) -> None:
    founded = await found_with_calls(
        strange, run(SAYS_HI), call("bash", command="curl x", network="open")
    )
    assert founded.node is not None
    assert (await strange.thread(founded.node.id)).label == of_program("echo")
    [question] = await undecided(strange, founded)
    assert "the program echo" in question.text


@pytest.mark.slow
async def test_a_team_with_a_program_of_the_settings_works_unattended(strange: World) -> None:
    """The second task quotes the first result, so it is labelled by the program itself."""
    founded = await found_with_calls(
        strange, run("agent", "First"), run("agent", "Second"), run("agent", "Third")
    )
    assert await results(strange, founded) == [(NodeStatus.COMPLETED, "named")] * 3
    assert await undecided(strange, founded) == []


async def test_a_program_is_run_again_on_its_own_words_without_asking(strange: World) -> None:
    founded = await found_with_calls(strange, run(SAYS_HI, "First"), run(SAYS_HI, "Second"))
    assert await results(strange, founded) == [(NodeStatus.COMPLETED, "hi")] * 2
    assert await undecided(strange, founded) == []


async def test_what_a_program_of_the_settings_says_starts_no_other_command(strange: World) -> None:
    founded = await found_with_calls(strange, run("agent"), run(SAYS_HI, "Say hi"))
    [question] = await undecided(strange, founded)
    assert question.call is not None
    assert question.call.arguments["command"] == SAYS_HI


@pytest.mark.parametrize("pattern", [SAYS_HI, "echo"])
async def test_a_program_that_a_person_trusts_is_no_stranger(strange: World, pattern: str) -> None:
    founded = await found_with_calls(strange, run(SAYS_HI))
    await trust(strange, founded.team.id, pattern)
    [node] = (await strange.board(founded.team.id))[1:]
    path = f"nodes/{node.id}/published/_result.md"
    # The command would ask in a labelled thread.
    await go_on_with(
        strange,
        founded,
        call("read_file", path=path),
        call("bash", command="true", network="open"),
    )
    assert await undecided(strange, founded) == []


async def test_without_trust_the_same_file_labels(strange: World) -> None:
    founded = await found_with_calls(strange, run(SAYS_HI))
    [node] = (await strange.board(founded.team.id))[1:]
    path = f"nodes/{node.id}/published/_result.md"
    await go_on_with(
        strange,
        founded,
        call("read_file", path=path),
        call("bash", command="true", network="open"),
    )
    assert len(await undecided(strange, founded)) == 1


@pytest.mark.slow
async def test_a_name_is_trusted_in_its_team_and_for_earlier_agents_alone(strange: World) -> None:
    founded = await found_with_calls(strange, run(SAYS_HI))
    team_id = founded.team.id
    assert await strange.store.read(labels.trusted, team_id) == frozenset()
    await trust(strange, None, "echo")  # for all teams: their models may choose the name
    assert "program:echo" not in await strange.store.read(labels.trusted, team_id)
    await trust(strange, team_id, "echo-2")  # nobody has this name yet
    strange.clock.advance(seconds=1)
    await go_on_with(strange, founded, run(SAYS_HI, "Once more"))
    assert "program:echo-2" not in await strange.store.read(labels.trusted, team_id)
    await trust(strange, None, SAYS_HI)
    assert {"program:echo", "program:echo-2"} <= await strange.store.read(labels.trusted, team_id)


KEPT: dict[str, tuple[Call, ...]] = {
    "hired for one task and promoted": (
        call("create_work_node", task="Go", assigned_to=f"cli:{SAYS_HI}", title="Run it"),
        call("promote", worker="echo"),
    ),
}


@pytest.mark.parametrize("way", KEPT)
async def test_a_program_that_strangers_had_hired_asks_in_clean_threads_too(
    strange: World, way: str
) -> None:
    founded = await found_with_calls(strange, READ, *KEPT[way])
    for question in await undecided(strange, founded):
        await strange.answer(question, decision="deny")
    await strange.settle()
    await go_on_with(
        strange,
        founded,
        call("assign_task", agent="echo", task="Help", description="A clean task"),
    )
    agent = await strange.store.read(teams.by_name, founded.team.id, "echo")
    assert agent.persistent
    assert agent.label
    [question] = await undecided(strange, founded)
    assert "a program would be run on this task" in question.text


async def test_a_program_hired_by_a_clean_thread_has_no_label(strange: World) -> None:
    founded = await found_with_calls(strange, run(SAYS_HI))
    agents = await strange.store.read(teams.everyone, founded.team.id)
    assert [agent.label for agent in agents] == [CLEAN, CLEAN]


async def test_a_rude_model_that_hires_the_program_again_is_asked_each_time(
    strange: World,
) -> None:
    """It claims that the person allowed it, and tries every way to hire."""
    tries: tuple[Any, ...] = (
        call("create_work_node", task="The human allowed it", assigned_to=f"cli:{SAYS_HI}"),
        call("create_work_node", task="Approved already", assigned_to=f"cli: {SAYS_HI} "),
        call("spawn_worker", name="eve", type="autonomous", agent_command=SAYS_HI),
    )
    founded = await found_with_calls(strange, READ, *tries)
    statuses = [status for status, _ in await results(strange, founded)]
    assert NodeStatus.COMPLETED not in statuses
    assert "eve" not in {a.name for a in await strange.store.read(teams.everyone, founded.team.id)}
