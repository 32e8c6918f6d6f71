"""A reply without tool calls waits for the unfinished work, and cancels none of it."""

from typing import Any

from agiraph.core.domain.chat import IN_WORDS, Lease
from agiraph.core.domain.ids import NodeId
from agiraph.core.domain.messages import Draft
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.work import NodeStatus, WorkNode
from agiraph.core.services.board import unfinished
from agiraph.core.services.lifecycle import endings
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.services.mail import bus
from agiraph.core.services.members import roster
from agiraph.core.store import threads, waits
from agiraph.core.store.tx import Tx
from agiraph.models.base import Request
from agiraph.testing import Says, World, call, says
from agiraph.testing.scripted import ReactiveModel
from tests.runtime.waiting import Gate, until
from tests.services.teams import created_ids

S = NodeStatus
FINISH = says(call("finish", summary="all done"))
WAITS = says("I am waiting for the results.")
NUDGE = "You answered without calling a tool, and there is nothing"


def background(name: str) -> Any:
    return call(
        "assign_task",
        agent=f"new:scripted/{name}",
        task=f"Help as {name}",
        description=f"Help of {name}",
        run_in_background=True,
    )


async def found_busy_team(world: World, *lead: Any, workers: tuple[str, ...] = ("bob",)) -> NewTeam:
    """Found a team whose workers each ask a person while the coordinator says these lines."""
    world.script("ada", says(*map(background, workers)), *lead)
    for name in workers:
        world.script(
            name,
            says(call("ask_human", question=f"May {name}?")),
            says(call("publish", summary=f"{name} is done")),
        )
    founded = await world.found("Lead")
    await world.settle()
    return founded


async def allow(world: World, founded: NewTeam, name: str) -> None:
    [asked] = [q for q in await world.questions(founded.team.id) if q.text == f"May {name}?"]
    await world.answer(asked, "Yes.")
    await world.settle()


async def board(world: World, founded: NewTeam) -> list[WorkNode]:
    return await world.board(founded.team.id)


async def team_status(world: World, founded: NewTeam) -> str:
    return (await world.team(founded.team.id)).status


async def test_a_text_only_reply_waits_for_the_running_worker(world: World) -> None:
    founded = await found_busy_team(world, WAITS, FINISH)

    goal, child = await board(world, founded)
    assert (goal.status, child.status, await team_status(world, founded)) == (
        S.WAITING, S.WAITING, "active",
    )  # fmt: skip
    assert goal.waiting_reason == f"Help of bob ({child.id})"
    told = (await world.turns(goal.id))[-1]
    assert told.role == "user"
    assert told.text == unfinished.WAITING.format(what=f"Help of bob ({child.id})")

    await allow(world, founded, "bob")
    goal, child = await board(world, founded)
    assert (goal.result, child.result) == ("all done", "bob is done")
    heard = [t.text for t in await world.turns(goal.id) if t.ref == f"node:{child.id}"]
    assert len(heard) == 1
    assert "bob is done" in heard[0]
    said = [t.text for t in await world.turns(goal.id)]
    assert not any(NUDGE in text for text in said)
    # The result is in the coordinator's thread, so no message repeats it.
    kinds = [m.kind for m in await world.inbox() if m.node_id == child.id]
    assert kinds == ["question"]


async def test_repeated_text_only_replies_are_not_counted_and_end_nothing(world: World) -> None:
    workers = ("bob", "cyd", "dee")
    founded = await found_busy_team(
        world, *[WAITS] * 3, says("Let me see."), FINISH, workers=workers
    )
    for name in workers:
        goal, *children = await board(world, founded)
        assert goal.status is S.WAITING
        assert not any(child.status is S.CANCELLED for child in children)
        await allow(world, founded, name)

    goal, *children = await board(world, founded)
    assert (goal.result, [c.status for c in children]) == ("all done", [S.COMPLETED] * 3)
    nudges = [t.text for t in await world.turns(goal.id) if NUDGE in t.text]
    assert len(nudges) == 1  # for the reply after the last worker had ended


async def test_blank_replies_wait_too(world: World) -> None:
    founded = await found_busy_team(
        world, says(" "), says(" "), says(" "), FINISH, workers=("bob", "cyd")
    )
    goal, *children = await board(world, founded)
    assert (goal.status, [c.status for c in children]) == (S.WAITING, [S.WAITING] * 2)


async def test_a_cancelled_worker_ends_the_wait_and_the_others_continue(world: World) -> None:
    founded = await found_busy_team(world, WAITS, WAITS, workers=("bob", "cyd"))
    goal, bob, _ = await board(world, founded)
    await world.store.write(endings.cancel, bob.id)
    await world.settle()

    goal, bob, cyd = await board(world, founded)
    assert [n.status for n in (goal, bob, cyd)] == [S.WAITING, S.CANCELLED, S.WAITING]
    assert goal.waiting_reason == f"Help of cyd ({cyd.id})"


async def test_a_message_ends_the_wait_early(world: World) -> None:
    founded = await found_busy_team(world, WAITS, WAITS)
    await world.say(founded.coordinator.id, "How is it going?", team_id=founded.team.id)
    await world.settle()

    goal, child = await board(world, founded)
    said = [t.text for t in await world.turns(goal.id)]
    assert "[Message from human] How is it going?" in said
    assert (goal.status, child.status) == (S.WAITING, S.WAITING)


async def test_a_running_stage_is_waited_for_as_a_whole(world: World) -> None:
    def stage(request: Request) -> Says:
        return says(call("start_stage", name="both", nodes=created_ids(request)))

    def made(name: str) -> Any:
        return call("create_work_node", task=name, assigned_to=f"new:scripted/{name}")

    world.script("ada", says(made("bob"), made("cyd")), stage, WAITS, FINISH)
    for name in ("bob", "cyd"):
        world.script(
            name,
            says(call("ask_human", question=f"May {name}?")),
            says(call("publish", summary="ok")),
        )
    founded = await world.found("Lead")
    await world.settle()
    await world.say(founded.coordinator.id, "Hurry.", team_id=founded.team.id)
    await world.settle()
    goal = (await board(world, founded))[0]
    assert (goal.status, goal.waiting_reason) == (S.WAITING, "stage 'both'")

    await allow(world, founded, "bob")
    assert (await board(world, founded))[0].status is S.WAITING
    await allow(world, founded, "cyd")
    assert (await board(world, founded))[0].result == "all done"


async def test_an_unassigned_node_is_assigned_and_waited_for(world: World) -> None:
    world.script("ada", says(call("create_work_node", task="Help")), WAITS, FINISH)
    world.model(
        "hand", ReactiveModel("scripted/hand", lambda _: says(call("publish", summary="ok")))
    )
    founded = await world.found("Lead")
    await world.store.write(
        roster.hire, founded.team.id, name="bob", role="worker", model="scripted/hand"
    )
    await world.settle()
    goal, child = await board(world, founded)
    assert (goal.result, child.result) == ("all done", "ok")


async def test_a_node_that_needs_the_waiters_own_decision_is_not_waited_for(world: World) -> None:
    """Only the coordinator itself could end that wait."""

    def needing(request: Request) -> Says:
        needs = created_ids(request)
        return says(call("create_work_node", task="Second", depends_on=needs, if_unmet="ask"))

    made = call("create_work_node", task="First", assigned_to="new:scripted/bob")
    world.script("bob", says(call("ask_human", question="May bob?")))
    world.script("ada", says(made), needing, WAITS, WAITS, FINISH, FINISH)
    founded = await world.found("Lead")
    await world.settle()
    goal, first, second = await board(world, founded)
    assert (goal.status, second.status) == (S.WAITING, S.PENDING)
    await world.store.write(endings.cancel, first.id)
    await world.settle()

    goal, first, second = await board(world, founded)
    assert (first.status, goal.result) == (S.CANCELLED, "all done")


async def found_held_team(world: World, *lead: Any) -> tuple[NewTeam, Gate]:
    """Found a team with a worker; its coordinator is held back before the first of these lines."""
    first, second = Gate(), Gate()
    ada = world.script("ada", says(background("bob")), *lead)
    ada.gate = first
    founded = await world.found("Lead")
    await first.reached()
    ada.gate = second
    first.set()
    await second.reached()
    return founded, second


async def test_a_text_only_reply_creates_no_cycle_of_waits(world: World) -> None:
    """The goal does not wait for a worker that waits for the goal."""
    goals: list[NodeId] = []
    gate = Gate()
    world.script(
        "bob",
        lambda _: says(call("task_output", id=goals[0], blocking=True)),
        says(call("publish", summary="ok")),
    ).gate = gate
    founded, lead = await found_held_team(world, says("Waiting."), FINISH)
    assert founded.node is not None
    goals.append(founded.node.id)
    gate.set()

    async def worker_waits() -> bool:
        return (await board(world, founded))[1].status is S.WAITING

    await until(world, worker_waits)
    lead.set()
    await world.settle()
    goal, child = await board(world, founded)
    assert (goal.result, child.status.is_final) == ("all done", True)


def ask(tx: Tx, founded: NewTeam) -> None:
    assert founded.node is not None
    bus.send(
        tx,
        Draft(
            team_id=founded.team.id,
            sender=founded.coordinator.id,
            recipient=OWNER,
            kind="question",
            text="Red or blue?",
            node_id=founded.node.id,
        ),
    )


async def test_an_open_question_is_waited_for_and_answered_in_the_thread(world: World) -> None:
    gate = Gate()
    world.script("ada", WAITS, FINISH).gate = gate
    founded = await world.found("Lead")
    await gate.reached()
    await world.store.write(ask, founded)
    gate.set()
    await world.settle()
    [goal] = await board(world, founded)
    assert (goal.status, goal.waiting_reason) == (S.WAITING, "your question 'Red or blue?'")

    [question] = await world.questions(founded.team.id)
    await world.answer(question, "Blue.")
    await world.settle()
    [goal] = await board(world, founded)
    assert goal.result == "all done"
    heard = [t for t in await world.turns(goal.id) if t.ref == f"answer:{question.id}"]
    assert [(t.role, t.text) for t in heard] == [
        ("user", "[Message from human] (answering your question 'Red or blue?') Blue.")
    ]


def write_waits(tx: Tx, node_id: NodeId) -> None:
    """Write what a runner writes before it parks a node after a reply without tool calls."""
    thread = threads.of_node(tx, node_id)
    assert thread is not None
    lease = Lease(
        team_id=thread.team_id,
        agent_id=thread.agent_id,
        node_id=node_id,
        thread_id=thread.id,
        epoch=thread.epoch,
    )
    assert unfinished.open_waits(tx, lease, reply=threads.append_point(tx, thread.id).head)


async def test_a_runner_that_dies_before_it_parks_leaves_its_waits_to_the_next_runner(
    world: World,
) -> None:
    world.script(
        "bob", says(call("ask_human", question="May bob?")), says(call("publish", summary="ok"))
    )
    founded, gate = await found_held_team(world, FINISH)
    assert founded.node is not None
    await until(world, lambda: has_question(world, founded))
    await world.store.write(write_waits, founded.node.id)
    await world.restart()
    gate.set()
    await world.settle()

    goal, child = await board(world, founded)
    assert [w.call_id for w in await world.store.read(waits.of_node, goal.id)] == [IN_WORDS]
    assert (goal.status, child.status) == (S.WAITING, S.WAITING)
    await allow(world, founded, "bob")
    goal, child = await board(world, founded)
    assert (goal.result, child.result) == ("all done", "ok")


async def has_question(world: World, founded: NewTeam) -> bool:
    return bool(await world.questions(founded.team.id))
