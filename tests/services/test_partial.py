"""A node that a limit or a loop ended is partial if it has something to show, else failed."""

from agiraph.core.domain.work import Budget, NodeStatus, StopReason
from agiraph.core.services.lifecycle import continuations
from agiraph.models.base import Request
from agiraph.testing import Says, World, call, says
from agiraph.testing.scripted import ScriptedModel
from tests.services.stages import child_nodes, creates, found_team, last_tool_answer, stage_of
from tests.services.teams import created_ids, found_waiting_team
from tests.services.test_retries import CALL, FINISH, LOOK, create_child

R, S = StopReason, NodeStatus
LAST_WORDS = says("Half of it is in notes.md.")
DETAIL = "It stopped at a limit before it was done: its turns are used up."


async def test_without_anything_to_show_a_limit_is_a_failure(world: World) -> None:
    world.script("ada", LOOK)
    founded = await world.found("Reach it", budget=Budget(model_calls=0))
    await world.settle()
    [node] = await world.board(founded.team.id)
    assert (node.status, node.stop_reason, node.result) == (S.FAILED, R.CALLS_SPENT, None)


async def test_a_checkpoint_is_something_to_show(world: World) -> None:
    step = says(call("checkpoint", summary="Read half of it."), input_tokens=900, output_tokens=100)
    world.script("ada", step)
    founded = await world.found("Reach it", budget=Budget(tokens=900))
    await world.settle()
    [node] = await world.board(founded.team.id)
    ended = (node.status, node.stop_reason, node.result)
    assert ended == (S.PARTIAL, R.TOKENS_SPENT, "Read half of it.")
    [told] = await world.inbox()
    assert told.text.endswith("What there is so far:\nRead half of it.")


async def test_a_loop_with_files_is_partial_and_can_be_retried(world: World) -> None:
    world.script("ada", says(call("write_file", path="a.md", content="x")), *[LOOK] * 5, FINISH)
    founded = await world.found("Reach it")
    await world.settle()
    [node] = await world.board(founded.team.id)
    assert (node.status, node.stop_reason, list(node.manifest)) == (
        S.PARTIAL,
        R.LOOPING,
        ["a.md"],
    )
    await world.store.write(continuations.retry, node.id)
    await world.settle()
    assert (await world.node(node.id)).attempt == 2


async def test_the_creator_is_told_that_it_is_partial_with_what_there_is(world: World) -> None:
    world.script("bob", LOOK, CALL, LAST_WORDS)
    world.script(
        "ada",
        says(
            call(
                "create_work_node",
                task="Help",
                assigned_to="new:scripted/bob",
                max_turns=3,
            )
        ),
        lambda request: says(call("task_output", id=created_ids(request)[0], blocking=True)),
        says(call("ask_human", question="What now?")),
    )
    founded = await world.found("Reach it")
    await world.settle()
    assert founded.node is not None
    [child] = [n for n in await world.board(founded.team.id) if n.parent_id]
    assert child.status is S.PARTIAL
    answer = [t for t in await world.turns(founded.node.id) if t.role == "tool"][1]
    assert answer.failed
    assert "Status: partial (turns_spent)" in answer.text
    assert f"{DETAIL}\n\nWhat there is so far:\nHalf of it is in notes.md." in answer.text


async def test_a_dependent_treats_a_partial_node_as_unmet(world: World) -> None:
    world.script("bob", LOOK, CALL, LAST_WORDS)

    def needs(request: Request) -> Says:
        [first] = created_ids(request)
        return says(call("create_work_node", task="Build on it", depends_on=[first]))

    world.script(
        "ada",
        says(call("create_work_node", task="Help", assigned_to="new:scripted/bob", max_turns=3)),
        needs,
        says(call("ask_human", question="What now?")),
    )
    founded = await world.found("Reach it")
    await world.settle()
    first, second = [n for n in await world.board(founded.team.id) if n.parent_id]
    assert (first.status, second.status, second.stop_reason) == (S.PARTIAL, S.FAILED, R.UNMET)


async def test_a_stage_is_not_met_by_a_partial_node_but_shows_its_result(world: World) -> None:
    world.script("talker", LOOK, CALL, LAST_WORDS)
    founded = await found_team(
        world,
        creates("talk", assigned_to="new:scripted/talker", max_turns=3),
        lambda request: says(
            call("start_stage", name="first", nodes=created_ids(request)),
        ),
        says(call("ask_human", question="What now?")),
    )
    [node] = await child_nodes(world, founded)
    assert (node.status, node.budget.turns) == (S.PARTIAL, 3)
    assert (await stage_of(world, founded)).status == "broken"
    assert "Half of it is in notes.md." in await last_tool_answer(world, founded)


async def test_children_run_on_below_a_goal_that_used_up_its_own_turns(world: World) -> None:
    """Their results wait for the goal as mail, and the team stops when the last one has ended."""
    bob = world.script("bob", says(call("ask_human", question="May I?")))
    world.script(
        "ada",
        says(call("create_work_node", task="Help", assigned_to="new:scripted/bob")),
        CALL,
        LAST_WORDS,
    )
    founded = await world.found("Reach it", budget=Budget(turns=3))
    await world.settle()
    goal, child = await world.board(founded.team.id)
    assert (goal.status, child.status) == (S.PARTIAL, S.WAITING)
    assert (await world.team(founded.team.id)).status == "active"

    bob.lines.append(says(call("publish", summary="Helped.")))
    [question] = await world.questions(founded.team.id)
    await world.answer(question, "Yes.")
    await world.settle()
    assert (await world.node(child.id)).result == "Helped."
    assert (await world.team(founded.team.id)).status == "stopped"


async def test_children_end_with_a_goal_whose_tokens_are_used_up(world: World) -> None:
    """The limit counts for them too, so they could not go on."""
    ada = ScriptedModel(
        "scripted/ada", [says(call("ask_human", question="Shall we?"))], insists=True
    )
    founded, _ = await found_waiting_team(world, lead=ada, budget=Budget(tokens=2000))
    world.script("bob", says(call("ask_human", question="May I?")))
    child = await world.store.write(create_child, founded, Budget())
    await world.settle()
    ada.lines += [LOOK, CALL]
    [question] = [q for q in await world.questions(founded.team.id) if q.node_id != child]
    await world.answer(question, "Go on.")
    await world.settle()
    assert founded.node is not None
    assert (await world.node(founded.node.id)).status in (S.PARTIAL, S.FAILED)
    assert (await world.node(child)).status is S.CANCELLED
