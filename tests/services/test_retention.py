"""Retention: the steps of work that ended long ago are removed, and its results stay."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from agiraph import config
from agiraph.core.domain.errors import Misconfigured, Refused
from agiraph.core.domain.work import NodeStatus, WorkNode
from agiraph.core.services.lifecycle import continuations, removal
from agiraph.core.store import threads
from agiraph.core.store.engine.connect import open_store
from agiraph.testing import World, call, says
from tests.habits.kit import assign
from tests.runtime.waiting import until

MONTH = timedelta(days=30)
WRITE = call("write_file", path="scratch/report.md", content="The report.")
ASK = says(call("ask_human", question="Go on?"))


@pytest.fixture
async def world(tmp_path: Path, database_url: str) -> AsyncIterator[World]:
    home = tmp_path / "home"
    async with World(home, database_url=database_url, easy_endings=True, retention=MONTH) as opened:
        yield opened


def scratch(world: World, node: WorkNode) -> Path:
    return world.path / "teams" / node.team_id / "nodes" / node.id / "scratch"


async def wait_until_pruned(world: World, node: WorkNode) -> None:
    async def is_so() -> bool:
        return await world.turns(node.id) == []

    await until(world, is_so)


async def test_steps_and_working_files_go_and_results_stay(world: World) -> None:
    world.script("ada", says(assign("Write it")), says(call("finish", summary="It is written.")))
    world.script("bob", says(WRITE), says(call("publish", summary="Written.")))
    founded = await world.found("Have it written")
    await world.settle()
    goal, task = await world.board(founded.team.id)
    said, told = await world.inbox(), len(await world.events(founded.team.id))
    assert len(await world.turns(task.id)) > 2

    world.clock.advance(days=31)
    for node in (goal, task):
        await wait_until_pruned(world, node)
    assert [n.result for n in await world.board(founded.team.id)] == ["It is written.", "Written."]
    assert world.published(task) == {"report.md": "The report."}
    assert (await world.inbox(), len(await world.events(founded.team.id))) == (said, told)
    assert not scratch(world, task).exists()


async def test_what_ended_lately_or_still_goes_on_is_kept(world: World) -> None:
    world.script("ada", says(assign("Write it")), ASK)
    world.script("bob", says(WRITE), says(call("publish", summary="Written.")))
    founded = await world.found("Have it written")
    await world.settle()
    world.clock.advance(days=60)
    world.script("eve", says(call("finish", summary="Quick.")))
    lately = await world.found("Be quick", model="scripted/eve")
    await world.settle()
    await world.runtime.retention.prune(MONTH)

    for node in (*await world.board(founded.team.id), *await world.board(lately.team.id)):
        assert await world.turns(node.id) != []
        assert (await world.thread(node.id)).pruned_at is None


async def test_work_whose_steps_were_removed_is_not_tried_again(world: World) -> None:
    world.script("ada", says("Hm."), says("Hm."), says("Hm."))
    founded = await world.found("Have it written")
    await world.settle()
    [goal] = await world.board(founded.team.id)
    assert goal.status is NodeStatus.FAILED
    world.clock.advance(days=31)
    await wait_until_pruned(world, goal)

    with pytest.raises(Refused, match=r"as the setting `retention` says.*Give the work anew"):
        await world.store.write(continuations.retry, goal.id)
    assert (await world.node(goal.id)).status is NodeStatus.FAILED


@pytest.mark.parametrize("days", [1, 31])
async def test_an_agent_that_left_is_given_more_work_with_or_without_its_steps(
    world: World, days: int
) -> None:
    world.script("ada", says(assign("Write it")), says(call("finish", summary="It is written.")))
    bob = world.script("bob", says(WRITE), says(call("publish", summary="Written.")))
    founded = await world.found("Have it written")
    await world.settle()
    [_, task] = await world.board(founded.team.id)
    world.clock.advance(days=days)
    if days > 30:
        await wait_until_pruned(world, task)
    bob.lines.append(says(call("publish", summary="Longer now.")))
    assert task.assignee_id is not None
    await world.chat(task.assignee_id, "Make it longer.", nudge=True)
    await world.settle()

    more = (await world.board(founded.team.id))[-1]
    assert more.result == "Longer now."
    assert (more.thread_id == task.thread_id) is (days == 1)


async def test_a_removal_that_was_interrupted_goes_on_at_the_next_start(
    world: World, database_url: str
) -> None:
    world.script("ada", says(WRITE), says(call("finish", summary="Written.")))
    founded = await world.found("Write it")
    await world.settle()
    [goal] = await world.board(founded.team.id)
    await world.stop()
    world.clock.advance(days=31)
    store = await open_store(database_url, world.clock)
    [begun] = await store.write(removal.mark_old_threads, world.clock.now() - MONTH, limit=10)
    assert await store.read(threads.turns, begun.id) != []
    await store.close()

    await world.start()
    await wait_until_pruned(world, goal)
    assert not scratch(world, goal).exists()
    thread = await world.thread(goal.id)
    assert (thread.pruned_at, thread.harvested_at) == (world.clock.now(), world.clock.now())


@pytest.mark.parametrize(
    ("written", "kept"), [("90 days", timedelta(days=90)), ("12w", timedelta(weeks=12))]
)
def test_the_setting_is_off_unless_a_person_sets_it(
    tmp_path: Path, written: str, kept: timedelta
) -> None:
    home = {"AGIRAPH_HOME": str(tmp_path)}
    assert config.load(home).retention is None
    (tmp_path / config.FILE).write_text(f'retention = "{written}"\n')
    assert config.load(home).retention == kept
    assert config.load({**home, "AGIRAPH_RETENTION": "off"}).retention is None


@pytest.mark.parametrize("written", ["1 hour", "soon", "0 days", "99999 weeks"])
def test_a_wrong_setting_is_refused(tmp_path: Path, written: str) -> None:
    home = {"AGIRAPH_HOME": str(tmp_path), "AGIRAPH_RETENTION": written}
    with pytest.raises(Misconfigured, match="AGIRAPH_RETENTION"):
        config.load(home)
