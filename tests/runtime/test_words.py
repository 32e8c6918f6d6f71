"""A reply in words while work is open is a wait for that work, and cancels nobody."""

from typing import Any

from agiraph.domain.chat import IN_WORDS, Lease
from agiraph.domain.ids import NodeId
from agiraph.domain.persons import OWNER
from agiraph.domain.work import NodeStatus, WorkNode
from agiraph.providers.base import Request
from agiraph.services.board import unfinished
from agiraph.services.lifecycle import endings
from agiraph.services.lifecycle.teams import NewTeam
from agiraph.services.mail import bus
from agiraph.services.members import roster
from agiraph.store import threads, waits
from agiraph.store.teams import TEAMS
from agiraph.store.tx import Tx
from agiraph.testing import Says, World, call, says
from agiraph.testing.scripted import ReactiveModel
from tests.runtime.waiting import Gate, until
from tests.services.team import created

S = NodeStatus
FINISH = says(call("finish", summary="all done"))
WAITS = says("I am waiting for the results.")
NUDGE = "You answered without calling a tool. If you are done"


def background(name: str) -> Any:
    return call(
        "assign_task",
        agent=f"new:scripted/{name}",
        task="Help",
        description=f"Help of {name}",
        run_in_background=True,
    )


async def at_work(world: World, *lead: Any, workers: tuple[str, ...] = ("bob",)) -> NewTeam:
    """A goal whose workers ask a person, one each, while its coordinator goes on with these."""
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


async def status(world: World, founded: NewTeam) -> str:
    return (await world.store.read(TEAMS.get, founded.team.id)).status


async def test_words_while_a_worker_is_at_work_wait_for_it(world: World) -> None:
    founded = await at_work(world, WAITS, FINISH)

    goal, child = await board(world, founded)
    assert (goal.status, child.status, await status(world, founded)) == (
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
    # It was told in its thread, so no message says it again.
    kinds = [m.kind for m in await world.inbox() if m.node_id == child.id]
    assert kinds == ["question"]


async def test_words_over_and_over_are_not_counted_and_end_nothing(world: World) -> None:
    workers = ("bob", "cyd", "dee")
    founded = await at_work(world, *[WAITS] * 3, says("Let me see."), FINISH, workers=workers)
    for name in workers:
        goal, *children = await board(world, founded)
        assert goal.status is S.WAITING
        assert not any(child.status is S.CANCELLED for child in children)
        await allow(world, founded, name)

    goal, *children = await board(world, founded)
    assert (goal.result, [c.status for c in children]) == ("all done", [S.COMPLETED] * 3)
    nudges = [t.text for t in await world.turns(goal.id) if NUDGE in t.text]
    assert len(nudges) == 1  # for the words after the last of them had ended


async def test_blank_replies_wait_too(world: World) -> None:
    founded = await at_work(world, says(" "), says(" "), says(" "), FINISH, workers=("bob", "cyd"))
    goal, *children = await board(world, founded)
    assert (goal.status, [c.status for c in children]) == (S.WAITING, [S.WAITING] * 2)


async def test_a_worker_that_fails_ends_the_wait_and_the_others_go_on(world: World) -> None:
    founded = await at_work(world, WAITS, WAITS, workers=("bob", "cyd"))
    goal, bob, _ = await board(world, founded)
    await world.store.write(endings.cancel, bob.id)
    await world.settle()

    goal, bob, cyd = await board(world, founded)
    assert [n.status for n in (goal, bob, cyd)] == [S.WAITING, S.CANCELLED, S.WAITING]
    assert goal.waiting_reason == f"Help of cyd ({cyd.id})"


async def test_a_message_ends_the_wait_early(world: World) -> None:
    founded = await at_work(world, WAITS, WAITS)
    await world.say(founded.coordinator.id, "How is it going?", team_id=founded.team.id)
    await world.settle()

    goal, child = await board(world, founded)
    said = [t.text for t in await world.turns(goal.id)]
    assert "[Message from human] How is it going?" in said
    assert (goal.status, child.status) == (S.WAITING, S.WAITING)


async def test_a_stage_that_still_runs_is_waited_for_as_one(world: World) -> None:
    def stage(request: Request) -> Says:
        return says(call("start_stage", name="both", nodes=created(request)))

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


async def test_work_that_nobody_was_chosen_for_is_handed_out_and_waited_for(world: World) -> None:
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


async def test_what_waits_for_a_decision_of_ones_own_is_not_waited_for(world: World) -> None:
    """Nobody else would ever end it."""

    def needing(request: Request) -> Says:
        needs = created(request)
        return says(call("create_work_node", task="Second", depends_on=needs, if_unmet="ask"))

    made = call("create_work_node", task="First", assigned_to="new:scripted/bob")
    world.script("bob", says(call("ask_human", question="May bob?")))
    world.script("ada", says(made), needing, WAITS, WAITS, FINISH)
    founded = await world.found("Lead")
    await world.settle()
    goal, first, second = await board(world, founded)
    assert (goal.status, second.status) == (S.WAITING, S.PENDING)
    await world.store.write(endings.cancel, first.id)
    await world.settle()

    goal, first, second = await board(world, founded)
    assert (first.status, second.status, goal.result) == (S.CANCELLED, S.CANCELLED, "all done")


async def held(world: World, *lead: Any) -> tuple[NewTeam, Gate]:
    """A goal with a worker, whose coordinator is about to say the first of these lines."""
    first, second = Gate(), Gate()
    ada = world.script("ada", says(background("bob")), *lead)
    ada.gate = first
    founded = await world.found("Lead")
    await first.reached()
    ada.gate = second
    first.set()
    await second.reached()
    return founded, second


async def test_no_circle_of_waits_comes_of_words(world: World) -> None:
    """A worker that waits for the goal is not waited for by it."""
    goals: list[NodeId] = []
    gate = Gate()
    world.script(
        "bob",
        lambda _: says(call("task_output", id=goals[0], blocking=True)),
        says(call("publish", summary="ok")),
    ).gate = gate
    founded, lead = await held(world, says("Waiting."), says("Done."))
    assert founded.node is not None
    goals.append(founded.node.id)
    gate.set()

    async def worker_waits() -> bool:
        return (await board(world, founded))[1].status is S.WAITING

    await until(world, worker_waits)
    lead.set()
    await world.settle()
    goal, child = await board(world, founded)
    assert (goal.result, child.status.is_final) == ("Done.", True)


def ask(tx: Tx, founded: NewTeam) -> None:
    assert founded.node is not None
    bus.send(
        tx,
        team_id=founded.team.id,
        sender=founded.coordinator.id,
        recipient=OWNER,
        kind="question",
        text="Red or blue?",
        node_id=founded.node.id,
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


def begin_to_wait(tx: Tx, node_id: NodeId) -> None:
    """What a runner writes before it parks a node that replied in words."""
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


async def test_a_runner_that_dies_before_it_parks_leaves_the_wait_to_its_successor(
    world: World,
) -> None:
    world.script(
        "bob", says(call("ask_human", question="May bob?")), says(call("publish", summary="ok"))
    )
    founded, gate = await held(world, FINISH)
    assert founded.node is not None
    await until(world, lambda: asks(world, founded))
    await world.store.write(begin_to_wait, founded.node.id)
    await world.restart()
    gate.set()
    await world.settle()

    goal, child = await board(world, founded)
    assert [w.call_id for w in await world.store.read(waits.of_node, goal.id)] == [IN_WORDS]
    assert (goal.status, child.status) == (S.WAITING, S.WAITING)
    await allow(world, founded, "bob")
    goal, child = await board(world, founded)
    assert (goal.result, child.result) == ("all done", "ok")


async def asks(world: World, founded: NewTeam) -> bool:
    return bool(await world.questions(founded.team.id))
