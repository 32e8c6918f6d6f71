"""The watchdog reports stalled work once; waiting work and slow commands are not stalled."""

import asyncio
import os
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agiraph.core.domain.chat import Lease
from agiraph.core.domain.errors import Fenced
from agiraph.core.domain.ids import SYSTEM, NodeId
from agiraph.core.domain.outcomes import Finished
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.work import Budget, NodeStatus
from agiraph.core.services.lifecycle import endings, journal, timers
from agiraph.core.services.members import roster
from agiraph.core.store import messages
from agiraph.models.base import Request
from agiraph.testing import Says, World, call, says
from tests.runtime.waiting import until
from tests.services.teams import add_child, found_waiting_team
from tests.thinking import ThinkingModel

S = NodeStatus
LATE = timers.STALLED_AFTER_SECONDS + 1
ONE_TURN = Budget(turns=1, given={"turns": 2})
"""A budget with which a node ends after its first reply, while its children run on."""


async def check_after(world: World, node_id: NodeId, *seconds: float) -> list[int]:
    """Check for stalls after each of these delays; return the number of reports by then."""
    told: list[int] = []
    for each in seconds:
        world.clock.advance(seconds=each)
        await world.store.write(timers.report_stalled)
        told.append(len(await stall_reports(world, node_id)))
    return told


async def stall_reports(world: World, node_id: NodeId) -> list[tuple[str, str, str]]:
    found = await world.store.read(messages.of_node, node_id)
    return [(m.sender, m.recipient, m.kind) for m in found if m.sender == SYSTEM]


class SteppedModel:
    """A model whose every reply waits until the test releases it."""

    def __init__(self, world: World, name: str, *lines: Says) -> None:
        self.arrived = [asyncio.Event() for _ in lines]
        self.go = [asyncio.Event() for _ in lines]

        def step(number: int, line: Says) -> Callable[[], Any]:
            async def think() -> Says:
                self.arrived[number].set()
                await self.go[number].wait()
                return line

            return think

        model = ThinkingModel(f"scripted/{name}", [step(n, line) for n, line in enumerate(lines)])
        world.model(name, model)


async def test_a_stall_is_reported_once_per_episode_to_the_nodes_creator(world: World) -> None:
    steps = SteppedModel(
        world,
        "slow",
        says(call("write_file", path="a.md", content="a bit")),
        says(call("publish", summary="x")),
    )
    founded, _ = await found_waiting_team(world)
    worker = await world.store.write(
        roster.hire, founded.team.id, name="slow", role="worker", model="scripted/slow"
    )
    node_id = await add_child(world, founded, "dawdle", to=worker)
    await steps.arrived[0].wait()

    assert await check_after(world, node_id, 60, LATE, LATE, LATE) == [0, 1, 1, 1]
    assert await stall_reports(world, node_id) == [(SYSTEM, founded.coordinator.id, "notice")]
    steps.go[0].set()  # progress ends the episode
    await steps.arrived[1].wait()
    assert await check_after(world, node_id, 1) == [1]
    assert (await world.node(node_id)).stalled_at is None
    assert await check_after(world, node_id, 60, LATE, LATE) == [1, 2, 2]

    steps.go[1].set()
    await world.settle()
    assert (await world.node(node_id)).status is S.COMPLETED
    assert await check_after(world, node_id, LATE) == [2]


async def test_a_stalled_goal_is_reported_to_the_person(world: World) -> None:
    steps = SteppedModel(world, "ada", says(call("finish", summary="x")))
    founded = await world.found("Dawdle")
    await steps.arrived[0].wait()
    assert founded.node is not None
    assert await check_after(world, founded.node.id, LATE, LATE) == [1, 1]
    [told] = await world.inbox()
    assert (told.sender, told.kind, told.text) == (
        SYSTEM,
        "report",
        f"coordinator works on Dawdle ({founded.node.id}), but has made no progress for 10 "
        "minutes. You can wait, ask, or cancel it.",
    )
    steps.go[0].set()
    await world.settle()


async def test_a_waiting_creator_is_told_of_the_stall_at_once(world: World) -> None:
    steps = SteppedModel(world, "slow", says(call("publish", summary="x")))
    lead = (
        says(call("assign_task", agent="new:scripted/slow", task="a", description="dawdle")),
        says(call("check_board")),
        lambda request: says(call("task_output", id=slow_node(request), blocking=True)),
        says(call("finish", summary="done")),
    )
    world.script("ada", *lead)
    founded = await world.found("Give it away")
    await steps.arrived[0].wait()

    async def waits() -> bool:
        return (await world.board(founded.team.id))[0].status is S.WAITING

    await until(world, waits)
    [_, errand] = await world.board(founded.team.id)
    assert await check_after(world, errand.id, LATE) == [1]

    async def waits_again() -> bool:
        goal = (await world.board(founded.team.id))[0]
        return goal.status is S.WAITING and (goal.waiting_reason or "").startswith("the result")

    await until(world, waits_again)
    assert founded.node is not None
    said = [t.text for t in await world.turns(founded.node.id)]
    assert any("has made no progress for 10 minutes" in text for text in said)
    assert any("[running] dawdle (slow); no progress for a while" in t for t in said)
    steps.go[0].set()
    await world.settle()


def slow_node(request: Request) -> str:
    return re.findall(r"- (node_\w+) \[running\] dawdle", request.transcript.turns[-2].text)[0]


async def test_a_waiting_node_is_not_stalled(world: World) -> None:
    founded, workers = await found_waiting_team(world, "bob")
    node_id = await add_child(world, founded, "wonder", to=workers["bob"])
    await world.settle()
    assert await check_after(world, node_id, LATE, 86_400, 86_400) == [0, 0, 0]


async def test_a_command_is_not_stalled_before_its_own_timeout(
    world: World, tmp_path: Path
) -> None:
    begun, end = tmp_path / "begun", tmp_path / "end"
    for fifo in (begun, end):
        os.mkfifo(fifo)
    command = f"echo > {begun}; cat {end}"
    world.script(
        "ada",
        says(call("bash", command=command, timeout=3000)),
        says(call("finish", summary="done")),
    )
    founded = await world.found("Run it")
    await asyncio.to_thread(begun.read_text)
    assert founded.node is not None
    assert await check_after(world, founded.node.id, LATE, 2900 - LATE, 800) == [0, 0, 1]
    await asyncio.to_thread(end.write_text, "over")
    await world.settle()
    assert (await world.board(founded.team.id))[0].status is S.COMPLETED


async def test_a_write_with_a_stale_lease_is_refused(world: World) -> None:
    steps = SteppedModel(world, "ada", says(call("finish", summary="never")))
    founded = await world.found("Dawdle")
    await steps.arrived[0].wait()
    assert founded.node is not None
    thread = await world.thread(founded.node.id)
    stale = Lease(
        team_id=founded.team.id,
        agent_id=founded.coordinator.id,
        node_id=founded.node.id,
        thread_id=thread.id,
        epoch=thread.epoch,
    )
    await world.store.write(endings.cancel, founded.node.id)
    await world.settle()

    turns = await world.turns(founded.node.id)
    for late in (
        partial(journal.answer, answers=[]),
        partial(journal.begin, system="late", assignment="words"),
        partial(endings.end_node, outcome=Finished("late")),
    ):
        late.__name__ = "late"  # type: ignore[attr-defined]
        with pytest.raises(Fenced):
            await world.store.write(late, lease=stale)
    assert await world.turns(founded.node.id) == turns
    assert (await world.node(founded.node.id)).status is S.CANCELLED


async def test_the_watchdog_checks_without_being_called(world: World) -> None:
    steps = SteppedModel(world, "ada", says(call("finish", summary="done")))
    founded = await world.found("Dawdle")
    await steps.arrived[0].wait()
    assert founded.node is not None
    node_id = founded.node.id

    async def noticed() -> bool:
        return (await world.node(node_id)).stalled_at is not None

    world.clock.advance(seconds=LATE)
    await until(world, noticed)
    steps.go[0].set()
    await world.settle()
    assert len(await stall_reports(world, node_id)) == 1


async def test_a_stall_is_reported_to_the_person_when_its_creator_has_no_work(
    world: World,
) -> None:
    steps = SteppedModel(world, "slow", says(call("publish", summary="x")))
    lead = (says(call("checkpoint", summary="half"), call("ask_human", question="Shall we?")),)
    founded, _ = await found_waiting_team(world, lead=lead, mode="infinite", budget=ONE_TURN)
    worker = await world.store.write(
        roster.hire, founded.team.id, name="slow", role="worker", model="scripted/slow"
    )
    node_id = await add_child(world, founded, "dawdle", to=worker)
    await steps.arrived[0].wait()
    [question] = await world.questions(founded.team.id)
    await world.answer(question, "Enough.")

    async def is_spent() -> bool:
        return (await world.board(founded.team.id))[0].status is S.PARTIAL

    await until(world, is_spent)
    assert await check_after(world, node_id, LATE) == [1]
    assert await stall_reports(world, node_id) == [(SYSTEM, OWNER, "report")]
    steps.go[0].set()
    await world.settle()
