"""Work that was stopped starts again where it was: a task, or all the work of a team."""

from typing import Any

import pytest

from agiraph.core.domain.errors import Conflict, Refused
from agiraph.core.domain.ids import NodeId
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.work import Budget, NodeStatus, StopReason, WorkNode
from agiraph.core.services.lifecycle import endings, restarts, teams
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.store import stages
from agiraph.core.store.nodes import NODES
from agiraph.core.store.tx import Tx
from agiraph.testing import World, call, says
from tests.services.stages import BEGIN, creates, waits
from tests.services.teams import add_child, found_waiting_team

S = NodeStatus
R = StopReason
AGAIN = "[Runtime] This work was stopped. A person starts it again: go on where you were."


async def statuses(world: World, founded: NewTeam) -> dict[str, NodeStatus]:
    return {node.task: node.status for node in await world.board(founded.team.id)}


async def answer_all(world: World, founded: NewTeam) -> None:
    await world.settle()
    for question in await world.questions(founded.team.id):
        await world.answer(question, "Yes.")
    await world.settle()


async def told(world: World, node_id: NodeId) -> list[str]:
    """Return what the agent of a node was told by the runtime after its start."""
    return [t.text for t in await world.turns(node_id) if t.text.startswith("[Runtime]")]


async def ended_by(world: World, founded: NewTeam) -> list[tuple[str, Any]]:
    titles = {node.id: node.task for node in await world.board(founded.team.id)}
    events = await world.events(founded.team.id)
    return [
        (titles[e.data["node_id"]], e.data.get("by")) for e in events if e.type == "node.cancelled"
    ]


async def test_a_stopped_task_goes_on_with_what_was_stopped_below_it(world: World) -> None:
    founded, workers = await found_waiting_team(world, "bob", "cyd", "dee")
    done = await add_child(world, founded, "done", to=workers["dee"])
    first = await add_child(world, founded, "wonder", to=workers["bob"])
    then = await add_child(world, founded, "then", to=workers["cyd"], depends_on=[first, done])
    last = await add_child(world, founded, "last", depends_on=[then])
    await world.settle()
    assert founded.node is not None
    await world.store.write(endings.stop, founded.node.id, by=OWNER)
    await world.settle()
    assert [(await world.node(each)).status for each in (done, first, then, last)] == [
        S.COMPLETED,
        *[S.CANCELLED] * 3,
    ]
    stopped = await world.node(first)
    assert (stopped.canceller_id, stopped.result) == (OWNER, None)

    turns = await world.turns(done)

    def start(tx: Tx, goal: NodeId) -> tuple[WorkNode, list[NodeStatus]]:
        started = restarts.start(tx, goal, by=OWNER)
        return started, [NODES.get(tx, each).status for each in (first, then, last)]

    goal, below = await world.store.write(start, founded.node.id)
    assert (goal.status, goal.canceller_id, goal.cancel_asked_at) == (S.ASSIGNED, None, None)
    # What needs another task waits for it again, also if it belongs to nobody.
    assert below == [S.ASSIGNED, S.PENDING, S.PENDING]
    assert (await world.team(founded.team.id)).status == "active"
    await answer_all(world, founded)
    assert set((await statuses(world, founded)).values()) == {S.COMPLETED}
    [said] = await told(world, founded.node.id)
    assert said.startswith(f"{AGAIN} These tasks of yours go on too: 'wonder' ({first})")
    assert await told(world, first) == [AGAIN]
    assert await world.turns(done) == turns  # what was done is not done again


async def test_the_journal_tells_who_stopped_work_and_who_started_it_again(world: World) -> None:
    founded, workers = await found_waiting_team(world, "bob", "cyd")
    first = await add_child(world, founded, "wonder", to=workers["bob"])
    await add_child(world, founded, "then", to=workers["cyd"], depends_on=[first])
    await world.settle()
    await world.store.write(teams.stop, founded.team.id, by=OWNER)
    await world.settle()
    assert sorted(await ended_by(world, founded)) == [
        ("Get it done", OWNER),
        ("then", OWNER),
        ("wonder", OWNER),
    ]
    seen = len(await world.events(founded.team.id))
    await world.store.write(restarts.resume, founded.team.id, by=OWNER)
    events = (await world.events(founded.team.id))[seen:]
    titles = {node.id: node.task for node in await world.board(founded.team.id)}
    assert sorted(
        (e.type, titles[e.data["node_id"]], e.data["by"]) for e in events if e.data.get("by")
    ) == [
        ("node.assigned", "Get it done", OWNER),
        ("node.assigned", "wonder", OWNER),
        ("node.changed", "then", OWNER),
    ]
    assert "team.resumed" in {e.type for e in events}


async def test_a_stopped_team_goes_on_with_all_that_was_stopped_last(world: World) -> None:
    founded, workers = await found_waiting_team(world, "bob", "cyd")
    early = await add_child(world, founded, "wonder early", to=workers["bob"])
    await world.settle()
    await world.store.write(endings.cancel, early, by=founded.coordinator.id)
    world.clock.advance(minutes=5)
    late = await add_child(world, founded, "wonder late", to=workers["cyd"])
    await world.settle()
    await world.store.write(teams.stop, founded.team.id, by=OWNER)
    await world.settle()
    again = await world.store.write(restarts.resume, founded.team.id, by=OWNER)
    assert again.status == "active"
    await answer_all(world, founded)
    # What the coordinator had dropped before stays dropped.
    assert (await world.node(early)).status is S.CANCELLED
    assert (await world.node(late)).status is S.COMPLETED
    assert (await world.team(founded.team.id)).status == "completed"


async def test_a_stage_runs_again_with_the_tasks_that_were_stopped_in_it(world: World) -> None:
    lead = (BEGIN, creates("wonder one", "wonder two"), waits(), says("I wait."),
            says(call("finish", summary="done without")))  # fmt: skip
    founded, _ = await found_waiting_team(world, "bob", "cyd", lead=lead)
    [begin] = await world.questions(founded.team.id)
    await world.answer(begin, "Yes.")
    await world.settle()
    await world.store.write(teams.stop, founded.team.id, by=OWNER)
    await world.settle()
    [stage] = await world.store.read(stages.of_team, founded.team.id)
    assert stage.status == "broken"
    await world.store.write(restarts.resume, founded.team.id, by=OWNER)
    [stage] = await world.store.read(stages.of_team, founded.team.id)
    assert (stage.status, stage.ended_at) == ("running", None)
    await answer_all(world, founded)
    [stage] = await world.store.read(stages.of_team, founded.team.id)
    assert stage.status == "met"
    found = await statuses(world, founded)
    assert [found["wonder one"], found["wonder two"]] == [S.COMPLETED] * 2


async def test_a_task_goes_on_alone_while_its_team_works(world: World) -> None:
    founded, workers = await found_waiting_team(world, "bob")
    task = await add_child(world, founded, "wonder", to=workers["bob"])
    await world.settle()
    await world.store.write(endings.cancel, task, by=OWNER)
    await world.settle()
    await world.store.write(restarts.start, task, by=OWNER)
    await answer_all(world, founded)
    assert (await world.node(task)).status is S.COMPLETED


async def test_work_that_still_stops_starts_again_a_moment_later(world: World) -> None:
    founded, workers = await found_waiting_team(world, "bob")
    task = await add_child(world, founded, "wonder", to=workers["bob"])
    await world.settle()

    def stopping(tx: Any) -> None:
        NODES.update(tx, task, status=S.RUNNING, owner="elsewhere", cancel_requested=True)

    await world.store.write(teams.stop, founded.team.id, by=OWNER)
    await world.store.write(stopping)
    with pytest.raises(Conflict, match="stops at its next step"):
        await world.store.write(restarts.resume, founded.team.id, by=OWNER)
    with pytest.raises(Conflict, match="stops at its next step"):
        await world.store.write(restarts.start, task, by=OWNER)


async def test_the_goal_that_failed_starts_again_with_its_team(world: World) -> None:
    world.script("ada", *[says("Hm.")] * 3, says(call("finish", summary="done")))
    founded = await world.found("Get it done")
    await world.settle()
    assert (await statuses(world, founded)) == {"Get it done": S.FAILED}
    assert (await world.team(founded.team.id)).status == "stopped"
    await world.store.write(restarts.resume, founded.team.id, by=OWNER)
    await world.settle()
    assert (await statuses(world, founded)) == {"Get it done": S.COMPLETED}


async def test_a_goal_that_ended_at_a_limit_does_not_start_again_unasked(world: World) -> None:
    world.script("ada", says(call("list_files")), says("So far."), says("So far."))
    founded = await world.found("Get it done", budget=Budget(turns=2))
    await world.settle()
    [goal] = await world.board(founded.team.id)
    assert goal.stop_reason is R.TURNS_SPENT
    with pytest.raises(Refused, match="ended at a limit: its turns are used up"):
        await world.store.write(restarts.resume, founded.team.id, by=OWNER)


async def test_nothing_starts_again_where_nothing_was_left_undone(world: World) -> None:
    world.script("ada")
    founded = await world.found("Get it done", start=False)
    await world.store.write(teams.stop, founded.team.id, by=OWNER)
    with pytest.raises(Refused, match="Nothing of 'Get it done' was left undone"):
        await world.store.write(restarts.resume, founded.team.id, by=OWNER)


async def test_a_task_that_needs_what_failed_cannot_start_again_alone(world: World) -> None:
    founded, workers = await found_waiting_team(world, "bob", "cyd")
    first = await add_child(world, founded, "wonder", to=workers["bob"])
    then = await add_child(world, founded, "then", to=workers["cyd"], depends_on=[first])
    await world.settle()
    await world.store.write(teams.stop, founded.team.id, by=OWNER)
    await world.settle()
    with pytest.raises(Refused, match="'then' needs work that did not succeed"):
        await world.store.write(restarts.start, then, by=OWNER)


async def test_nothing_of_an_archived_team_starts_again(world: World) -> None:
    founded, workers = await found_waiting_team(world, "bob")
    task = await add_child(world, founded, "wonder", to=workers["bob"])
    await world.settle()
    await world.store.write(teams.archive, founded.team.id, by=OWNER)
    with pytest.raises(Refused, match="is archived"):
        await world.store.write(restarts.start, task, by=OWNER)
    await world.store.write(teams.restore, founded.team.id)
    await world.store.write(restarts.resume, founded.team.id, by=OWNER)
    await answer_all(world, founded)
    assert (await world.node(task)).status is S.COMPLETED


async def test_a_team_goes_on_whose_goal_was_stopped(world: World) -> None:
    founded, workers = await found_waiting_team(world, "bob")
    task = await add_child(world, founded, "wonder", to=workers["bob"])
    await world.settle()
    assert founded.node is not None
    await world.store.write(endings.stop, founded.node.id, by=OWNER)
    await world.settle()
    await world.store.write(restarts.resume, founded.team.id, by=OWNER)
    await answer_all(world, founded)
    assert (await world.node(task)).status is S.COMPLETED
    assert (await world.team(founded.team.id)).status == "completed"
