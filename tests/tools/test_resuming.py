"""Resuming: a finished task is continued in its own thread by its own agent."""

import re

from agiraph.core.domain.work import StopReason
from agiraph.core.runtime.steps import NOT_ALONE
from agiraph.core.services.board import leases
from agiraph.core.services.lifecycle import endings
from agiraph.models.base import Request
from agiraph.testing import Says, World, call, says
from tests.fences import fenced_task
from tests.tools.delegated_tasks import (
    ASK,
    DONE,
    S,
    ask_for_result,
    assign,
    coordinators_question,
    node_id_in,
    publish,
    resume,
    tool_answers,
)
from tests.tools.tool_calls import refused

# Agent sessions can be resumed with full context.


async def test_a_session_is_resumed_with_full_context(world: World) -> None:
    world.script("ada", says(assign()), resume(), DONE)
    bob = world.script(
        "bob",
        says("I count.", call("write_file", path="n.md", content="3")),
        publish("Three."),
        says("I sort.", call("write_file", path="s.md", content="a b c")),
        publish("Sorted."),
    )
    founded = await world.found("Count and sort")
    await world.settle()

    goal, first, second = await world.board(founded.team.id)
    before, after = bob.requests[1], bob.requests[2]
    assert (first.result, second.result) == ("Three.", "Sorted.")
    assert (first.thread_id, first.assignee_id) == (second.thread_id, second.assignee_id)
    assert after.turns[: len(before.turns)] == before.turns
    assert after.system == before.system
    assert [t.text for t in after.turns[len(before.turns) :]] == [
        "",
        "Published: n.md.",
        "[Task] You have been given a task.\nTitle: Count files\nFrom: coordinator\n"
        f"Id: {second.id}\nLimits: 100 turns\n\n"
        f"{fenced_task('Now sort them', second.thread_id or '')}",
    ]
    assert (world.published(first), world.published(second)) == (
        {"n.md": "3"},
        {"s.md": "a b c"},
    )
    assert [node_id_in(t.text) for t in (await tool_answers(world, goal.id))[:2]] == [
        first.id,
        second.id,
    ]


async def test_a_session_is_resumed_by_agent_name_in_the_background_and_after_a_restart(
    world: World,
) -> None:
    again = says(assign("BOB", "Once more", resume="bob", run_in_background=True))
    more = says(call("ask_human", question="And now?"))
    world.script("ada", says(assign()), ASK, again, ask_for_result(), more, DONE)
    bob = world.script(
        "bob", says(call("write_file", path="n", content="3")), publish("One."), publish("Two.")
    )
    founded = await world.found("Count twice")
    await world.settle()
    await world.restart()
    for _ in range(2):
        [question] = await world.questions(founded.team.id)
        await world.answer(question, "Go on.")
        await world.settle()

    goal, first, second = await world.board(founded.team.id)
    assert (first.thread_id, second.result) == (second.thread_id, "Two.")
    assert "Count the files" in bob.requests[2].turns[0].text
    assert "Once more" in bob.heard
    assert goal.status is S.COMPLETED


async def test_a_resumed_session_can_be_resumed_again_from_any_of_its_tasks(world: World) -> None:
    world.script("ada", says(assign()), resume(), resume(task="Now print them"), DONE)
    bob = world.script(
        "bob",
        says(call("write_file", path="n", content="3")),
        publish("One."),
        publish("Two."),
        publish("Three."),
    )
    founded = await world.found("Count on and on")
    await world.settle()

    _, *tasks = await world.board(founded.team.id)
    assert [t.result for t in tasks] == ["One.", "Two.", "Three."]
    assert len({t.thread_id for t in tasks}) == 1
    heard = "\n".join(t.text for t in bob.requests[-1].turns)
    assert all(words in heard for words in ("Count the files", "Now sort", "Now print"))


async def test_a_failed_session_can_be_resumed(world: World) -> None:
    world.script("ada", says(assign()), resume(task="Try harder"), DONE)
    bob = world.script("bob", says(), says(), says(), publish("There."))
    founded = await world.found("Count")
    await world.settle()

    _, failed, done = await world.board(founded.team.id)
    assert (failed.status, done.status, done.result) == (S.FAILED, S.COMPLETED, "There.")
    assert "Try harder" in bob.heard


async def test_a_session_that_ended_in_silence_can_be_resumed(world: World) -> None:
    world.script("ada", says(assign()), resume(), DONE)
    three = (says("Three."), says("Three, I said."), says("It is three."))
    bob = world.script("bob", *three, publish("Sorted."))
    founded = await world.found("Count and sort")
    await world.settle()

    _, first, second = await world.board(founded.team.id)
    assert (first.stop_reason, first.result) == (StopReason.SILENT, "It is three.")
    assert bob.heard.startswith("[Task] You have been given a task.")
    assert second.result == "Sorted."


async def test_a_call_beside_an_ending_one_is_made_before_a_session_is_resumed(
    world: World,
) -> None:
    world.script("ada", says(assign()), resume(), DONE)
    bob = world.script(
        "bob",
        says(call("publish", summary="Three."), call("bash", command="touch late")),
        publish("Sorted."),
    )
    founded = await world.found("Count and sort")
    await world.settle()

    _, first, _ = await world.board(founded.team.id)
    roles = [(t.role, t.text) for t in bob.requests[-1].turns]
    assert [text for role, text in roles if role == "tool"] == [
        NOT_ALONE.format(name="publish"),
        "[exit code 0]",
        "Published: late.",
    ]
    assert "Now sort them" in roles[-1][1]
    assert world.published(first) == {"late": ""}


async def test_a_session_cancelled_during_a_wait_is_resumed_without_the_wait(
    world: World,
) -> None:
    world.script("ada", says(assign(run_in_background=True)), ASK, resume(), DONE)
    bob = world.script("bob", ASK, publish("Sorted."))
    founded = await world.found("Count")
    await world.settle()
    _, task = await world.board(founded.team.id)
    await world.store.write(endings.cancel, task.id)
    await world.answer(await coordinators_question(world, founded), "Go on without it.")
    await world.settle()

    _, task, again = await world.board(founded.team.id)
    assert (task.status, again.status, again.result) == (S.CANCELLED, S.COMPLETED, "Sorted.")
    assert [t.text for t in bob.requests[-1].turns if t.role == "tool"] == [leases.CUT_OFF]
    assert "Now sort them" in bob.heard


async def test_a_wrong_or_unfinished_session_is_not_resumed(world: World) -> None:
    def odd(request: Request) -> Says:
        known = node_id_in("\n".join(turn.text for turn in request.transcript.spoken()))
        return says(
            assign("bob", resume="node_0"),
            assign("bob", resume="nobody"),
            assign("coordinator", resume=goal_id()),
            assign("carol", resume=known),
            assign("bob", resume=known),
        )

    def goal_id() -> str:
        assert founded.node is not None
        return founded.node.id

    unbegun = call("create_work_node", task="Wait", depends_on=[], assigned_to="new:scripted/cid")
    world.script("ada", says(assign(run_in_background=True), unbegun), ASK, odd, DONE)
    world.script("bob", ASK)
    world.script("cid", ASK)
    founded = await world.found("Count")
    await world.settle()
    question = await coordinators_question(world, founded)
    await world.answer(question, "Go on.")
    await world.settle()

    goal, task, *_ = await world.board(founded.team.id)
    lists = "check_board lists them with their ids. resume takes the id that assign_task gave."
    busy = f"{task.id} is still waiting; send_message reaches its worker."
    assert (await tool_answers(world, goal.id))[3:8] == [
        refused(f"There is no node 'node_0'. {lists}"),
        refused(f"There is no node 'nobody'. {lists}"),
        refused(f"{goal.id} is still running; send_message reaches its worker."),
        refused(busy),
        refused(busy),
    ]


async def test_a_session_is_resumed_only_by_its_own_agent_and_once_at_a_time(world: World) -> None:
    def odd(request: Request) -> Says:
        known = node_id_in("\n".join(turn.text for turn in request.transcript.spoken()))
        return says(
            assign("new:scripted/cid", resume=known),
            assign("bob", "Sort", resume=known, run_in_background=True),
            assign("worker", "Sort again", resume=known, run_in_background=True),
        )

    world.script("ada", says(assign()), odd, ASK, DONE)
    world.script("bob", says(call("write_file", path="n", content="3")), publish("Three."), ASK)
    founded = await world.found("Count")
    await world.settle()

    goal, first, second = await world.board(founded.team.id)
    told = (await tool_answers(world, goal.id))[1:4]
    assert told[0] == refused(f"{first.id} was done by bob; to resume it, give agent='bob'.")
    assert told[1].text.startswith(f"bob works on it in the background as {second.id}.")
    assert told[2] == refused(
        f"{second.id} is already being worked on in that thread; wait until it has ended."
    )


async def test_a_task_that_never_started_cannot_be_resumed(world: World) -> None:
    def again(request: Request) -> Says:
        said = "\n".join(turn.text for turn in request.transcript.spoken())
        [blocked] = re.findall(r"Created (node_\w+), given to bob", said)
        return says(assign("bob", resume=blocked))

    def blocked(request: Request) -> Says:
        said = "\n".join(turn.text for turn in request.transcript.spoken())
        needs = [node_id_in(said)]
        node = call("create_work_node", task="x", depends_on=needs, assigned_to="new:scripted/bob")
        return says(node)

    wait = ask_for_result(blocking=True)
    first = call("create_work_node", task="Fail", assigned_to="new:scripted/cid")
    world.script("ada", says(first), blocked, wait, again, DONE)
    world.script("bob")
    world.script("cid", ASK, says(), says(), says())
    founded = await world.found("Count")
    await world.settle()
    [question] = await world.questions(founded.team.id)
    await world.answer(question, "None.")
    await world.settle()

    goal, _, unmet = await world.board(founded.team.id)
    assert (unmet.status, unmet.stop_reason) == (S.FAILED, StopReason.UNMET)
    assert (await tool_answers(world, goal.id))[3] == refused(
        f"Nobody ever began {unmet.id}; create a new task, without resume."
    )
