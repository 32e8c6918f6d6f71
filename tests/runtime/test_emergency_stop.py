"""Emergency stop: all work is interrupted at once and goes on only when a person resumes it."""

import asyncio

from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.work import NodeStatus
from agiraph.core.services.lifecycle import removal, teams
from agiraph.core.store import events
from agiraph.core.store.tx import Tx
from agiraph.models.base import Request
from agiraph.testing import World, call, says
from agiraph.testing.scripted import ScriptedModel


def can_finish(request: Request) -> bool:
    return any(tool.name == "finish" for tool in request.tools)


async def asked(model: ScriptedModel) -> None:
    """Wait until the model was asked; its reply waits for its gate."""
    async with asyncio.timeout(10):
        while not model.requests:  # noqa: ASYNC110
            await asyncio.sleep(0)


async def test_stopped_work_stays_stopped_over_a_restart_until_it_is_resumed(
    world: World,
) -> None:
    done = says(call("finish", summary="All beans counted."))
    ada = world.script("ada", done, insists=True)
    ada.gate = asyncio.Event()
    founded = await world.found("Count the beans", acceptance=["answer"], review="never")
    await asked(ada)
    stop = await world.store.write(teams.stop_all, by="admin")
    assert (stop.running, stop.queued, stop.by) == (1, 0, "admin")
    assert [(one.team, one.agent, one.lane) for one in stop.interrupted] == [
        (founded.team.name, "coordinator", "work")
    ]
    # A second stop, and one of another process, returns the stop that is in force.
    assert await world.store.write(teams.stop_all, by="other") == stop
    await world.settle()
    assert founded.node is not None
    assert (await world.node(founded.node.id)).status is NodeStatus.ASSIGNED

    ada.gate.set()
    await world.chat(founded.coordinator.id, "How does it stand?")
    await world.restart()
    await world.settle()
    assert await world.store.read(teams.found_stop) == stop
    assert (await world.node(founded.node.id)).status is NodeStatus.ASSIGNED
    assert len(ada.requests) == 1

    # The work and the reply to the person go on side by side, in any order.
    ada.lines = [lambda request: done if can_finish(request) else says("It is done.")] * 9
    assert await world.store.write(teams.resume_all) == 2
    assert await world.store.write(teams.resume_all) == 0
    await world.settle()
    assert await world.store.read(teams.found_stop) is None
    assert (await world.node(founded.node.id)).status is NodeStatus.COMPLETED
    # The team's history tells of it, once for each stop and resume.
    told = await world.store.read(events.after, founded.team.id, 0, like="work.%")
    assert [(event.type, event.data) for event in told] == [
        ("work.stopped", {"by": "admin"}),
        ("work.resumed", {}),
    ]


async def test_a_team_that_is_archived_during_a_stop_is_told_of_its_end(
    world: World,
) -> None:
    world.script("ada", insists=True)
    archived, deleted = [
        (await world.found(f"Count {what}", start=False)).team.id for what in ("a", "b")
    ]
    name = (await world.team(deleted)).name
    gone = {"name": name, "stop": True, "who": "admin", "person_id": OWNER}
    await world.store.write(teams.stop_all, by="admin")
    await world.store.write(teams.archive, archived)
    await world.store.write(removal.delete_team, deleted, **gone)
    await world.store.write(teams.resume_all)
    told = await world.store.read(events.after, archived, 0, like="work.%")
    assert [event.type for event in told] == ["work.stopped", "work.resumed"]


async def test_work_that_a_crash_left_running_is_not_taken_up_while_work_is_stopped(
    world: World,
) -> None:
    ada = world.script("ada", says(call("finish", summary="Done.")), insists=True)
    ada.gate = asyncio.Event()
    founded = await world.found("Count the beans", acceptance=["answer"], review="never")
    await asked(ada)
    assert founded.node is not None
    running = await world.node(founded.node.id)
    await world.runtime.stop()
    # As a killed process leaves it: running, without an owner.
    await world.store.write(_run_without_owner, running.id)
    await world.store.write(teams.stop_all, by="admin")
    ada.gate.set()
    await world.restart()
    await world.settle()
    assert (await world.node(running.id)).status is NodeStatus.RUNNING
    await world.store.write(teams.resume_all)
    await world.settle()
    assert (await world.node(running.id)).status is NodeStatus.COMPLETED


def _run_without_owner(tx: Tx, node_id: str) -> None:
    tx.run("update nodes set status = 'running', owner = null where id = :id", id=node_id)
