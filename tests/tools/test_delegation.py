"""Delegation: tasks are assigned, waited for or run in the background."""

import asyncio
import re

from agiraph.core.domain.persons import OWNER
from agiraph.core.home.specialists import specialists
from agiraph.core.services.board.briefs import IN_COMMANDS
from agiraph.core.store import messages
from agiraph.core.tools.delegation import assign_task, described, task_output
from agiraph.testing import Says, World, call, says
from tests.fences import opened
from tests.thinking import ThinkingModel, Thought
from tests.tools.delegated_tasks import (
    ASK,
    DONE,
    WORK,
    S,
    ask_for_result,
    assign,
    completion_notice,
    node_id_in,
    publish,
    tool_answers,
)
from tests.tools.tool_calls import ToolAnswer, refused, run_calls

# Background agents can be launched and results retrieved later.


async def test_a_task_is_waited_for_by_default_and_waiting_makes_no_model_calls(
    world: World,
) -> None:
    ada = world.script("ada", says(assign()), DONE)
    world.script("bob", ASK, says(call("write_file", path="n.md", content="3")), publish("Three."))
    founded = await world.found("Count")
    await world.settle()

    goal, task = await world.board(founded.team.id)
    assert (goal.status, goal.waiting_reason) == (
        S.WAITING,
        "bob: Count files",
    )
    assert (task.source, task.parent_id, task.creator_id) == (
        "delegation",
        goal.id,
        founded.coordinator.id,
    )
    assert len(ada.requests) == 1

    [question] = await world.questions(founded.team.id)
    await world.answer(question, "All.")
    await world.settle()
    files = f"\nFiles: nodes/{task.id}/published/n.md"
    thread = (await world.thread(goal.id)).id
    assert ada.heard == completion_notice(task.id, "Three.", thread=thread, files=files)
    assert len(ada.requests) == 2
    assert (await world.node(goal.id)).status is S.COMPLETED


async def test_a_background_agent_is_launched_and_its_result_is_retrieved_later(
    world: World,
) -> None:
    began, looked = asyncio.Event(), asyncio.Event()

    async def peek() -> Says:
        await began.wait()
        return says(call("task_output", id=node_id_in(ada.heard[-1])))

    async def wait() -> Says:
        looked.set()
        return says(call("task_output", id=node_id_in(ada.heard[-1]), blocking=True))

    async def count() -> Says:
        began.set()
        await looked.wait()
        return says(call("write_file", path="n.md", content="3"))

    ada = ThinkingModel("scripted/ada", [says(assign(run_in_background=True)), peek, wait, DONE])
    world.model("ada", ada)
    world.model("bob", ThinkingModel("scripted/bob", [count, publish("Three.")]))
    founded = await world.found("Count")
    await world.settle()

    goal, task = await world.board(founded.team.id)
    launched, peeked, fetched = (await tool_answers(world, goal.id))[:3]
    assert launched == ToolAnswer(
        f"bob works on it in the background as {task.id}. "
        f'Fetch the result with task_output("{task.id}").'
    )
    assert peeked == ToolAnswer(f"Count files ({task.id}) is running, with bob.")
    assert opened(fetched.text).endswith(" Three.")
    assert (goal.status, task.status) == (S.COMPLETED, S.COMPLETED)


async def test_a_background_result_is_delivered_once_without_being_requested(world: World) -> None:
    ada = world.script("ada", says(assign(run_in_background=True)), ASK, DONE)
    world.script("bob", says(call("write_file", path="n", content="3")), publish("Three."))
    founded = await world.found("Count")
    await world.settle()
    [question] = await world.questions(founded.team.id)
    await world.answer(question, "Whatever.")
    await world.settle()

    goal, task = await world.board(founded.team.id)
    heard = [t.text for t in await world.turns(goal.id) if ": the result, in" in t.text]
    assert [node_id_in(text) for text in heard] == [task.id]
    assert ada.heard == heard[0]


async def test_a_background_result_can_be_retrieved_after_a_restart(world: World) -> None:
    world.script("ada", says(assign(run_in_background=True)), ask_for_result(blocking=True), DONE)
    world.script("bob", ASK, says(call("write_file", path="n", content="3")), publish("Three."))
    founded = await world.found("Count")
    await world.settle()
    await world.restart()
    [question] = await world.questions(founded.team.id)
    await world.answer(question, "All.")
    await world.settle()

    goal, task = await world.board(founded.team.id)
    told = await tool_answers(world, goal.id)
    assert told[1].text.startswith("[Task] bob has finished a task of yours.")
    assert (goal.status, task.result) == (S.COMPLETED, "Three.")


async def test_tasks_assigned_in_one_turn_run_in_parallel(world: World) -> None:
    together = asyncio.Barrier(3)

    def worker(name: str) -> None:
        async def meet() -> Says:
            await together.wait()
            return says(call("write_file", path="n", content=name))

        world.model(name, ThinkingModel(f"scripted/{name}", [meet, publish(f"By {name}.")]))

    for name in ("bob", "cid", "dot"):
        worker(name)
    calls = [assign(f"new:scripted/{name}", f"Part of {name}") for name in ("bob", "cid", "dot")]
    ada = world.script("ada", says(*calls), DONE)
    founded = await world.found("Count in parts")
    await world.settle()

    goal, *parts = await world.board(founded.team.id)
    results = {t.ref: t.text.splitlines()[-2] for t in ada.requests[-1].turns if t.role == "tool"}
    asked = [c.id for t in await world.turns(goal.id) for c in t.calls][:3]
    assert [results[call_id] for call_id in asked] == ["By bob.", "By cid.", "By dot."]
    assert {part.status for part in parts} == {S.COMPLETED}
    assert len(ada.requests) == 2


async def test_parallel_tasks_for_one_specialist_hire_one_agent_each(world: World) -> None:
    together = asyncio.Barrier(2)

    async def meet() -> Says:
        await together.wait()
        return says(call("write_file", path="n", content="x"))

    folder = world.path / "agents"
    folder.mkdir()
    (folder / "scout.md").write_text("---\ndescription: Looks.\nmodel: scripted/scout\n---\nLook.")
    await world.restart()
    both: list[Thought] = [meet, meet, publish("Seen."), publish("Seen.")]
    world.model("scout", ThinkingModel("scripted/scout", both))
    world.script("ada", says(assign("scout", "Look left"), assign("Scout", "Look right")), DONE)
    founded = await world.found("Look around")
    await world.settle()

    _, left, right = await world.board(founded.team.id)
    names = [(await world.agent(n.assignee_id)).name for n in (left, right)]
    assert names == ["scout", "scout-2"]
    assert (left.result, right.result) == ("Seen.", "Seen.")


# The tool's description; no breaking change.


async def test_the_prompt_shows_a_coordinator_each_specialist_in_a_line(world: World) -> None:
    ada = world.script("ada", DONE)
    await world.found("Look at the tools")
    await world.settle()

    [section] = re.findall(r"^Specialists, by name:\n((?:- .+\n)+)", ada.requests[0].system, re.M)
    shown = {name: text.description for name, text in specialists().items()}
    assert section.splitlines() == [f"- {name}: {text}" for name, text in shown.items()]


async def test_a_long_description_of_a_specialist_is_cut_in_the_prompt(world: World) -> None:
    folder = world.path / "agents"
    folder.mkdir()
    (folder / "scout.md").write_text(f"---\ndescription: {'Looks. ' * 100}\n---\nLook.")
    await world.restart()
    ada = world.script("ada", DONE)
    await world.found("Look at the tools")
    await world.settle()

    [line] = re.findall(r"^- scout: (.+)$", ada.requests[0].system, re.M)
    assert line.startswith("Looks. Looks.")
    assert len(line) <= 161


async def test_a_worker_learns_of_the_specialists_when_it_asks_for_the_tool(world: World) -> None:
    world.script("ada", says(assign("new:scripted/bob")), DONE)
    asks = says(call("tool_help", name="assign_task"))
    bob = world.script("bob", asks, WORK, says(call("publish", summary="Three.")))
    founded = await world.found("Count")
    await world.settle()

    _, task = await world.board(founded.team.id)
    [told, *_] = [t.text for t in await world.turns(task.id) if t.role == "tool"]
    assert "assign_task" not in bob.requests[0].tools
    for name, specialist in specialists().items():
        tools = ", ".join(specialist.tools)
        assert f"- {name}: {specialist.description}\n  Tools: {tools}\n  Not when: " in told
    assert '  Example: "Make one report out of the three studies" → assign_task(' in told


def test_all_new_parameters_are_optional_and_nothing_breaks() -> None:
    assert assign_task.spec.schema["required"] == ["agent", "task", "description"]
    assert task_output.spec.schema["required"] == ["id"]
    optional = {
        name: field.default
        for spec in (assign_task, task_output)
        for name, field in spec.arguments.model_fields.items()
        if not field.is_required()
    }
    assert optional == {
        "context": "",
        "inputs": None,
        "output": "",
        "boundaries": "",
        "run_in_background": False,
        "resume": None,
        "effort": None,
        "public": False,
        "blocking": False,
        "timeout_ms": None,
    }


def test_describing_specialists_changes_the_description_and_nothing_else() -> None:
    shown = described(assign_task, {})
    assert (shown.spec.schema, shown.act, shown.effect) == (
        assign_task.spec.schema,
        assign_task.act,
        assign_task.effect,
    )


async def test_a_wrong_assign_task_call_is_refused_with_its_arguments(world: World) -> None:
    world.script("bob")
    usage = (
        "It takes: agent, task, description, context (optional), inputs (optional), output "
        "(optional), boundaries (optional), effort (optional), run_in_background (optional), "
        "resume (optional), public (optional)."
    )
    goal, told = await run_calls(
        world,
        call("assign_task", agent="new:scripted/bob", description="x"),
        call("assign_task", agent="new:scripted/bob", task="", description="x"),
        call("assign_task", agent="new:scripted/bob", task="x", description="x" * 201),
        call("assign_task", agent="new:scripted/bob", task="x", description="x", model="y"),
        assign("new:scripted/bob", "   "),
        assign("coordinator"),
    )

    short, long = "String should have at least 1 character", "String should have at most 200"
    assert told == [
        refused(f"assign_task: 'task' is missing. {usage}"),
        refused(f"assign_task: 'task' is wrong ({short}). {usage}"),
        refused(f"assign_task: 'description' is wrong ({long} characters). {usage}"),
        refused(f"assign_task: there is no argument 'model'. {usage}"),
        refused("Say what is to be done: the task is empty."),
        refused("That is you. Do it yourself, or give it to somebody else."),
    ]
    assert [n.id for n in await world.board(goal.team_id)] == [goal.id]
    conversation = await world.store.read(
        messages.conversation, goal.team_id, goal.assignee_id, OWNER
    )
    assert [m.recipient for m in conversation] == [OWNER]


# A task has a brief.


async def test_a_worker_reads_the_whole_brief_and_nothing_that_only_its_giver_can_read(
    world: World,
) -> None:
    bob = world.script("bob", WORK, publish("Three."))
    given = {"agent": "new:scripted/bob", "task": "Count the files, for a table.", "title": "Count"}
    goal, told = await run_calls(
        world,
        call("write_file", path="draft.md", content="mine"),
        call("assign_task", **given, inputs=["draft.md"]),
        call("assign_task", **given, inputs=["MEMORY.md"]),
        call("assign_task", **given, inputs="PLAN.md\nhttps://a.example/x", output=["a number"]),
    )

    advice = (
        ": that is yours alone. Put what it needs of it into context. Of other tasks it can read "
        "nodes/<id>/published/…."
    )
    assert told[1] == refused(f"inputs: a worker cannot read 'draft.md'{advice}")
    assert told[2] == refused(f"inputs: a worker cannot read 'MEMORY.md'{advice}")
    _, task = await world.board(goal.team_id)
    assert task.task == (
        "Count the files, for a table.\n\nInputs:\n- PLAN.md\n- https://a.example/x\n\n"
        "Output:\n- a number"
    )
    assert task.task in bob.requests[0].turns[-1].text


async def test_an_earlier_task_is_an_input_once_it_has_ended(world: World) -> None:
    world.script("bob", ASK, WORK, publish("Three."))
    world.script("cid", WORK, publish("Four."))
    first = assign("new:scripted/bob", "Count the files", run_in_background=True)
    later = ask_for_result(blocking=True)

    def use(_: object) -> Says:
        earlier = node_id_in(ada.heard)
        return says(assign("new:scripted/cid", "Add one to it", inputs=[earlier]))

    ada = world.script("ada", says(first), use, later, use, DONE)
    founded = await world.found("Count")
    await world.settle()
    [question] = await world.questions(founded.team.id)
    await world.answer(question, "All.")
    await world.settle()

    goal, counted, added = await world.board(founded.team.id)
    answers = [answer.text for answer in await tool_answers(world, goal.id)]
    assert "and its files are not published yet. Wait for it with task_output" in answers[1]
    inputs = f"- nodes/{counted.id}/published\n({IN_COMMANDS})"
    assert added.task == f"Add one to it\n\nInputs:\n{inputs}"
