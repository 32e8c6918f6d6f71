"""The task_output tool: status of a task, waiting with and without a timeout, wrong ids."""

import json

import pytest

from agiraph.core.domain.work import StopReason
from agiraph.models.base import Request
from agiraph.testing import Says, World, call, says
from tests.fences import opened
from tests.tools.delegated_tasks import (
    ASK,
    DONE,
    S,
    ask_for_result,
    assign,
    completion_notice,
    coordinators_question,
    node_id_in,
    publish,
    tool_answers,
)
from tests.tools.tool_calls import ToolAnswer, refused, run_calls


async def test_without_blocking_it_returns_the_last_checkpoint_and_the_wait(world: World) -> None:
    world.script("ada", says(assign(run_in_background=True)), ASK, ask_for_result(), DONE)
    asks = says(call("checkpoint", summary="Half."), call("ask_human", question="Which?"))
    world.script("bob", asks)
    founded = await world.found("Count")
    await world.settle()
    question = await coordinators_question(world, founded)
    await world.answer(question, "Go on.")
    await world.settle()

    goal, task = await world.board(founded.team.id)
    assert (await tool_answers(world, goal.id))[2] == ToolAnswer(
        f"Count files ({task.id}) is waiting, with bob. "
        "It waits: asked the human: Which?. Last checkpoint: Half."
    )


async def test_blocking_with_a_timeout_ends_in_time_and_the_task_continues(world: World) -> None:
    wait = ask_for_result(blocking=True, timeout_ms=60_000)
    world.script(
        "ada", says(assign(run_in_background=True)), wait, ask_for_result(blocking=True), DONE
    )
    world.script("bob", ASK, says(call("write_file", path="n", content="3")), publish("Three."))
    founded = await world.found("Count")
    await world.settle()
    goal, task = await world.board(founded.team.id)
    assert goal.waiting_reason == f"the result of {task.title!r} ({task.id})"

    await world.pass_time(seconds=59)
    assert len(await tool_answers(world, goal.id)) == 1

    await world.pass_time(seconds=1)
    [late] = (await tool_answers(world, goal.id))[1:]
    assert late.text.startswith(f"The time is over. Count files ({task.id}) is ")
    assert late.text.endswith("It goes on; ask again later.")
    assert not (await world.node(task.id)).status.is_final

    [question] = await world.questions(founded.team.id)
    await world.answer(question, "All.")
    await world.settle()
    assert opened((await tool_answers(world, goal.id))[2].text).endswith(" Three.")
    assert (await world.node(goal.id)).status is S.COMPLETED


async def test_a_result_that_comes_in_time_is_not_followed_by_a_timeout(world: World) -> None:
    wait = ask_for_result(blocking=True, timeout_ms=60_000)
    ada = world.script("ada", says(assign(run_in_background=True)), wait, ASK, DONE)
    world.script("bob", ASK, says(call("write_file", path="n", content="3")), publish("Three."))
    founded = await world.found("Count")
    await world.settle()
    [question] = await world.questions(founded.team.id)
    await world.answer(question, "All.")
    await world.settle()
    await world.pass_time(hours=1)

    goal, _ = await world.board(founded.team.id)
    told = await tool_answers(world, goal.id)
    assert [": the result, in" in t.text for t in told] == [False, True]
    assert len(ada.requests) == 3


async def test_a_failed_task_is_reported_as_a_failure_with_and_without_blocking(
    world: World,
) -> None:
    world.script("ada", says(assign()), ask_for_result(), ask_for_result(blocking=True), DONE)
    world.script("bob", says(), says(), says())
    founded = await world.found("Count")
    await world.settle()

    goal, task = await world.board(founded.team.id)
    waited, peeked, blocked = (await tool_answers(world, goal.id))[:3]
    why = "The model made no tool call in 3 replies in a row. It said nothing at all."
    thread = (await world.thread(goal.id)).id
    assert (task.status, task.stop_reason) == (S.FAILED, StopReason.SILENT)
    assert waited == refused(completion_notice(task.id, why, "failed (silent)", thread=thread))
    assert peeked == blocked
    assert peeked.failed
    assert peeked.text.startswith("[Task] bob could not do a task of yours.")
    assert goal.status is S.COMPLETED


async def test_an_unknown_id_is_refused_with_where_to_find_ids(world: World) -> None:
    other = await world.found("Another team's", start=True, model="scripted/eve")
    world.script("eve", ASK)
    await world.settle()
    assert other.node is not None
    unknown = ["node_0", other.node.id, "%%%%", "____", " ", ""]
    _, told = await run_calls(world, *[call("task_output", id=name) for name in unknown])

    known = "check_board lists them with their ids."
    assert told == [refused(f"There is no node {name!r}. {known}") for name in unknown]


async def test_a_task_is_found_by_the_end_of_its_id(world: World) -> None:
    def tail(request: Request) -> Says:
        said = "\n".join(turn.text for turn in request.transcript.spoken())
        return says(call("task_output", id=f" {node_id_in(said)[-8:]} "))

    world.script("ada", says(assign()), tail, DONE)
    world.script("bob", says(call("write_file", path="n", content="3")), publish("Three."))
    founded = await world.found("Count")
    await world.settle()

    goal, task = await world.board(founded.team.id)
    fetched = (await tool_answers(world, goal.id))[1]
    assert (node_id_in(fetched.text), fetched.failed) == (task.id, False)


async def test_waiting_for_ones_own_work_or_in_a_cycle_is_refused(world: World) -> None:
    def on_the_goal(request: Request) -> Says:
        return says(call("task_output", id=goal_id(), blocking=True))

    def goal_id() -> str:
        assert founded.node is not None
        return founded.node.id

    world.script("ada", on_the_goal, says(assign()), DONE)
    world.script("bob", on_the_goal, publish("Never mind."))
    founded = await world.found("Count")
    await world.settle()

    goal, task = await world.board(founded.team.id)
    assert (await tool_answers(world, goal.id))[0] == refused(
        "That is your own work; nobody else will end it."
    )
    assert (await tool_answers(world, task.id))[0] == refused(
        f"{goal.id} needs or waits for your own work, so neither would ever end. Go on without "
        "it, or submit what you have first."
    )
    assert (goal.status, task.status) == (S.COMPLETED, S.COMPLETED)


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_an_invalid_timeout_is_refused(world: World) -> None:
    wrong = (0, -1, 10**12, "soon")
    calls = (call("task_output", id="node_1", timeout_ms=timeout) for timeout in wrong)
    _, answers = await run_calls(world, *calls)

    assert len(answers) == len(wrong)
    for told in answers:
        assert told.failed
        assert told.text.startswith("task_output: 'timeout_ms' is wrong (Input should be ")
        _, schema = told.text.split("). Its arguments, as a JSON schema: ")
        assert [*json.loads(schema)["properties"]] == ["id", "blocking", "timeout_ms"]


async def test_a_message_ends_a_wait_for_a_task_and_the_result_still_arrives(world: World) -> None:
    ada = world.script("ada", says(assign()), ask_for_result(blocking=True), DONE)
    world.script("bob", ASK, says(call("write_file", path="n", content="3")), publish("Three."))
    founded = await world.found("Count")
    await world.settle()
    await world.say(founded.coordinator.id, "Still there?", team_id=founded.team.id)
    await world.settle()
    _, task = await world.board(founded.team.id)
    assert [t.text for t in ada.requests[1].turns][-2:] == [
        "Interrupted, because there is a message for you; it follows. What you waited for (bob: "
        f"Count files ({task.id})) is still under way: wait again, or do something else first.",
        "[Message from human] Still there?",
    ]
    [question] = await world.questions(founded.team.id)
    await world.answer(question, "All.")
    await world.settle()

    goal, task = await world.board(founded.team.id)
    assert (goal.status, task.result) == (S.COMPLETED, "Three.")
    assert " Three." in opened(ada.heard)


async def test_an_interrupted_wait_with_a_timeout_names_the_task(world: World) -> None:
    wait = ask_for_result(blocking=True, timeout_ms=60_000)
    ada = world.script("ada", says(assign(run_in_background=True)), wait, DONE)
    world.script("bob", ASK)
    founded = await world.found("Count")
    await world.settle()
    await world.say(founded.coordinator.id, "Still there?", team_id=founded.team.id)
    await world.settle()
    _, task = await world.board(founded.team.id)

    told = [t.text for t in ada.requests[2].turns if t.role == "tool"][-1]
    assert told.startswith("Interrupted, because there is a message for you")
    assert f"(the result of {task.title!r} ({task.id})) is still under way" in told
