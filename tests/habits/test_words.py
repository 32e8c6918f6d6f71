"""Habits E1 to E4, E11 to E16, E18, E20, E21, C17 and D16: replies in words, empty and cut ones."""

from pathlib import Path
from typing import Any

import pytest

from agiraph.core.domain.chat import ToolCall
from agiraph.core.domain.errors import ModelGarbled
from agiraph.core.domain.work import Budget, NodeStatus, StopReason, WorkNode
from agiraph.core.tools.base import CUT_OFF
from agiraph.models.facts.prices import Prices, Terms
from agiraph.models.registry import Account, Keys
from agiraph.models.servers import Server
from agiraph.testing import Call, ModelServer, Says, World, call, says
from agiraph.testing.script import Seen
from agiraph.testing.scripted import Line, ScriptedModel
from tests.fences import opened

S = NodeStatus
SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
LOOK = call("list_files")
PUBLISH = says(call("publish", summary="ok"))


def finish(summary: str = "done") -> list[Says]:
    """Submit, and again where the first time is sent back."""
    return [says(call("finish", summary=summary))] * 3


async def run(world: World, *lines: Line, **more: Any) -> tuple[WorkNode, ScriptedModel]:
    ada = world.script("ada", *lines)
    founded = await world.found("Write a.md", **more)
    await world.settle()
    return (await world.board(founded.team.id))[0], ada


async def told(world: World, node: WorkNode) -> list[str]:
    turns = await world.turns(node.id)
    return [t.text for t in turns if t.role == "user" and t.text.startswith("[Runtime]")]


def worker(name: str = "bob") -> Call:
    return call(
        "assign_task",
        agent=f"new:scripted/{name}",
        task=f"Help of {name}",
        description=f"Help of {name}",
        run_in_background=True,
    )


async def test_e1_waiting_in_words_parks_the_node(world: World) -> None:
    world.script("bob", says(call("ask_human", question="May I?")), PUBLISH)
    waits = says("I am waiting for the results.")
    goal, _ = await run(world, says(worker()), waits, *finish())
    _, child = await world.board(goal.team_id)
    team = await world.team(goal.team_id)
    assert (goal.status, child.status, team.status) == (S.WAITING, S.WAITING, "active")

    [question] = await world.questions(goal.team_id)
    await world.answer(question, "Yes.")
    await world.settle()
    goal, child = await world.board(goal.team_id)
    assert (goal.status, child.status) == (S.COMPLETED, S.COMPLETED)


@SQLITE
async def test_e2_announced_steps_are_nudged_and_fail_the_node_after_three(world: World) -> None:
    goal, ada = await run(
        world, says("Now let me read X."), says("I will start now."), says("Next, the notebooks…")
    )

    assert (goal.status, goal.stop_reason) == (S.FAILED, StopReason.SILENT)
    assert (goal.result, len(ada.requests)) == ("Next, the notebooks…", 3)
    assert len(set(await told(world, goal))) == 2
    assert await world.questions(goal.team_id) == []


async def test_e3_a_question_in_words_goes_to_the_person(world: World) -> None:
    asks = says("I can do both. Please tell me: red or blue?")
    goal, _ = await run(world, asks, says(LOOK), *finish())

    [question] = await world.questions(goal.team_id)
    assert (goal.status, goal.result, question.kind) == (S.WAITING, None, "question")
    assert question.text == "I can do both. Please tell me: red or blue?"
    await world.answer(question, "Blue.")
    await world.settle()
    goal = await world.node(goal.id)
    heard = [t.text for t in await world.turns(goal.id) if t.ref == f"answer:{question.id}"]
    assert (goal.status, len(heard), heard[0].endswith("Blue.")) == (S.COMPLETED, 1, True)


@SQLITE
async def test_e3_the_same_question_after_its_answer_is_silence(world: World) -> None:
    asks = says("Red or blue?")
    goal, _ = await run(world, asks, asks, says(LOOK), *finish())
    [question] = await world.questions(goal.team_id)
    await world.answer(question, "Blue.")
    await world.settle()

    goal = await world.node(goal.id)
    asked = [m for m in await world.inbox() if m.kind == "question"]
    assert (goal.status, len(asked)) == (S.COMPLETED, 1)


@SQLITE
@pytest.mark.parametrize(
    "leave",
    [
        "Step 1 is done. Would you like me to continue?",
        "Soll ich weitermachen?",
        "Voulez-vous que je continue ?",
        "¿Quieres que continúe?",
        "Vuoi che continui?",
        "Quer que eu continue?",
        "要我继续吗？",  # noqa: RUF001
        "続けてもよろしいでしょうか？",  # noqa: RUF001
        "Мне продолжить?",
    ],
)
async def test_e4_a_request_for_leave_is_a_question_to_the_person(world: World, leave: str) -> None:
    """Its words are not read: what ends with a question mark reaches whoever gave the work."""
    goal, _ = await run(world, says(leave), says(LOOK), *finish())

    [asked] = await world.questions(goal.team_id)
    assert (goal.status, asked.text) == (S.WAITING, leave)
    await world.answer(asked, "Yes.")
    await world.settle()
    assert (await world.node(goal.id)).status is S.COMPLETED


@SQLITE
async def test_e11_a_model_that_never_finishes_is_warned_and_its_words_are_kept(
    world: World,
) -> None:
    steps = [says(call("checkpoint", summary=f"step {n}")) for n in range(9)]
    goal, _ = await run(world, *steps, says("Nine steps."), budget=Budget(turns=10))

    notes = [t.text for t in await world.turns(goal.id) if t.text.startswith("[Budget]")]
    assert "8 of 9 turns" in notes[0]
    assert (goal.status, goal.stop_reason, goal.result) == (
        S.PARTIAL,
        StopReason.TURNS_SPENT,
        "Nine steps.",
    )


@pytest.mark.parametrize("thinking", ["", "Let me apply the edit."])
async def test_e12_e13_an_empty_reply_is_nudged_and_three_fail_the_node(
    tmp_path: Path, thinking: str
) -> None:
    """Over a real wire: no person is asked, and no request is sent twice."""
    async with ModelServer([says("", thinking=thinking)] * 4) as server:
        keys = Keys({"openai": Account(key="k", base_url=server.openai_url)})
        async with World(tmp_path / "home", keys=keys, easy_endings=True) as world:
            founded = await world.found("Write", model="openai/test")
            await world.settle()
            [goal] = await world.board(founded.team.id)
            kept = [t for t in await world.turns(goal.id) if t.role == "assistant"]
            asked = await world.questions(founded.team.id)
        bodies = [seen.raw for seen in server.requests]

    assert (goal.status, goal.stop_reason, asked) == (S.FAILED, StopReason.SILENT, [])
    assert [t.provider_data.thinking for t in kept] == [thinking] * 3
    assert len(set(bodies)) == len(bodies) == 3
    assert goal.result is None


@SQLITE
async def test_e13_thoughts_are_never_called(world: World) -> None:
    thought = says("", thinking='I call {"name": "finish", "arguments": {"summary": "x"}}.')
    goal, _ = await run(world, thought, says(LOOK), *finish("real"))

    assert (goal.status, goal.result) == (S.COMPLETED, "real")


@SQLITE
async def test_e14_a_cut_reply_is_marked_and_continued_and_never_a_result(world: World) -> None:
    goal, _ = await run(world, says("half an ans", finish="length"), says(LOOK), *finish())

    cut = [t.text for t in await world.turns(goal.id) if t.is_cut]
    assert (goal.result, cut) == ("done", ["half an ans"])
    assert "Your reply broke off" in (await told(world, goal))[0]


@SQLITE
async def test_e14_a_cut_single_answer_does_not_complete_its_node(world: World) -> None:
    world.script("bob", says("half an ans", finish="length"))
    single = call("create_work_node", task="Say", assigned_to="new:scripted/bob", max_turns=1)
    goal, _ = await run(world, says(single), says("Waiting."), *finish())

    _, child = await world.board(goal.team_id)
    assert child.status is S.PARTIAL


@SQLITE
@pytest.mark.parametrize("finish_reason", ["length", None])
async def test_e15_e16_a_cut_call_is_not_made_and_says_why(
    world: World, finish_reason: str | None
) -> None:
    cut = Call("write_file", raw='{"path": "a.md", "content": "on and o')
    goal, _ = await run(world, says(cut, finish=finish_reason), says(LOOK), *finish())

    answers = [t.text for t in await world.turns(goal.id) if t.role == "tool"]
    assert answers[0] == f"write_file: {CUT_OFF}"
    assert "cut off by the output limit; write it in smaller pieces" in answers[0]
    assert "a.md" not in world.published(goal)


@SQLITE
async def test_e16_a_preamble_without_its_call_is_nudged(world: World) -> None:
    preamble = says("I'll read the brief first.", finish="tool_calls")
    goal, _ = await run(world, preamble, says(LOOK), *finish())

    assert goal.result == "done"
    assert any("A step that you announce is not done" in text for text in await told(world, goal))


def compacting(*after: Says, summary: Says | None = None, flush: Says | None = None) -> Any:
    """Return a script that fills a small window and then gives these replies."""
    rest = list(after)
    has_cut: list[bool] = []

    def script(seen: Seen) -> Says:
        tokens = {"input_tokens": len(seen.raw) // 4}
        last = seen.messages[-1].text
        if "will soon be replaced by a summary" in last:
            return flush or says("Nothing to save.", **tokens)
        if "Write the summary" in last:
            has_cut.append(True)
            return summary or says("I took notes.", **tokens)
        if has_cut:
            return rest.pop(0)
        return says(call("checkpoint", summary=f"note {seen.index} " + "x" * 3000), **tokens)

    return script


async def run_compacting(tmp_path: Path, script: Any) -> tuple[WorkNode, list[str], list[Any]]:
    async with ModelServer(script) as server:
        keys = Keys({"openai": Account(key="k", base_url=server.openai_url)})
        prices = Prices({"openai/test": Terms(window=20_000)})
        async with World(tmp_path / "home", keys=keys, prices=prices, easy_endings=True) as world:
            founded = await world.found("Take notes", model="openai/test", budget=Budget(turns=90))
            await world.settle()
            [goal] = await world.board(founded.team.id)
            turns = await world.turns(goal.id)
            asked = await world.questions(founded.team.id)
        cut = next(i for i, t in enumerate(turns) if t.is_summary)
        return goal, [t.text for t in turns[cut:] if t.role == "user"], asked


@pytest.mark.slow
async def test_e18_no_nudge_follows_a_summary_and_the_first_words_are_only_nudged(
    tmp_path: Path,
) -> None:
    words = says("Now I continue with step 3.")
    goal, heard, _ = await run_compacting(tmp_path, compacting(words, *finish(), *finish()))

    assert goal.status is S.COMPLETED
    assert "without calling a tool" not in heard[0]
    assert "You answered without calling a tool" in heard[1]


@pytest.mark.slow
async def test_p6_a_summary_without_text_never_replaces_the_thread(tmp_path: Path) -> None:
    calls = says(call("checkpoint", summary="no"))
    goal, heard, _ = await run_compacting(tmp_path, compacting(*finish(), summary=calls))

    assert goal.status is S.COMPLETED
    assert "checkpoint(note 0" in heard[0]


async def test_p5_an_unexpected_tool_call_does_not_park_the_work(world: World) -> None:
    """A model that fails when it is asked for notes or a summary: a digest takes their place."""
    big = says(call("checkpoint", summary="note " + "x" * 3000), input_tokens=100_000)
    broken = ModelGarbled("The model's reply contains a broken tool call (UNEXPECTED_TOOL_CALL).")
    goal, _ = await run(world, says(LOOK), says(LOOK), big, broken, broken, *finish())

    [summary] = [t.text for t in await world.turns(goal.id) if t.is_summary]
    assert (goal.status, "checkpoint(note" in summary) == (S.COMPLETED, True)
    assert await world.questions(goal.team_id) == []


@SQLITE
async def test_e20_a_landed_node_without_a_last_word_shows_its_checkpoint_and_no_tool_log(
    world: World,
) -> None:
    noted = says(call("checkpoint", summary="Half of it is done."))
    goal, _ = await run(world, noted, says(call("finish", summary="x")), budget=Budget(turns=2))
    assert (goal.status, goal.result) == (S.PARTIAL, "Half of it is done.")

    world.script("eve", says(LOOK), says(call("finish", summary="x")))
    founded = await world.found("Write", model="scripted/eve", budget=Budget(turns=2))
    await world.settle()
    [goal] = await world.board(founded.team.id)
    said = "It gave no summary. What it did stands in its thread."
    assert (goal.status, goal.result) == (S.PARTIAL, said)


@SQLITE
async def test_e21_the_same_words_twice_are_silence(world: World) -> None:
    goal, _ = await run(world, *[says("Understood, standing by.")] * 3)

    assert (goal.status, goal.stop_reason) == (S.FAILED, StopReason.SILENT)
    assert (
        "You said the same again" in (await told(world, goal))[1]
        or "The same words" in (await told(world, goal))[1]
    )


@SQLITE
async def test_k8_good_resolutions_across_replies_fail_the_node(world: World) -> None:
    goal, _ = await run(
        world, says("I'll do it."), says("I'm sorry, I'll implement it."), says("I'll start.")
    )

    assert (goal.status, goal.stop_reason) == (S.FAILED, StopReason.SILENT)


@SQLITE
@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>\n{"name": "write_file", "arguments": {"path": "a.md"}}\n</tool_call>',
        "<function=write_file>\n<parameter=path>a.md</parameter>\n</function>",
        '<invoke name="write_file"><parameter name="path">a.md</parameter></invoke>',
        '[TOOL_CALLS] [{"name": "write_file", "arguments": {"path": "a.md"}}]',
        '```json\n{"name": "write_file", "arguments": {"path": "a.md"}}\n```',
        '<call_record name="write_file">a.md</call_record>',
    ],
)
async def test_c17_a_call_written_as_text_is_never_made_nor_a_result(
    world: World, text: str
) -> None:
    goal, _ = await run(world, *[says(text)] * 3)

    first, second = await told(world, goal)
    assert first.startswith("[Runtime] Nothing was called: you wrote a call as text.")
    assert second.startswith("[Runtime] Nothing was called again")
    if "call_record" not in text:
        assert "write_file takes: path (string), content (string)." in first
    assert (goal.status, goal.stop_reason, goal.result) == (S.FAILED, StopReason.SILENT, None)
    [message] = [m for m in await world.inbox() if m.kind == "failure"]
    assert "set the tool parser of the model's server" in message.text


async def test_c17_a_call_with_a_wrong_key_is_told_of_its_key_and_not_of_tool_calls(
    tmp_path: Path,
) -> None:
    # As a small model on llama.cpp wrote it: the form is right, the key is not.
    wrong = says('<call key27fsm write_file>\n{"path": "a.md", "content": "Rain"}\n</call>')
    async with ModelServer(lambda _: wrong) as server:
        keys = Keys(servers={"house": Server(base_url=f"{server.url}/v1", window=8_192)})
        async with World(tmp_path, keys=keys) as world:
            founded = await world.found("Write a.md", model="text/house/m")
            await world.settle()
            [goal] = await world.board(founded.team.id)
            first, second = await told(world, goal)
            [message] = [m for m in await world.inbox() if m.kind == "failure"]
    assert first.startswith("[Runtime] Nothing was called: your call does not have the key")
    assert second.startswith("[Runtime] Nothing was called again. Copy the line of the call")
    assert (goal.status, goal.stop_reason) == (S.FAILED, StopReason.SILENT)
    assert "without their key or in another form: use a more capable model." in message.text
    assert "under the name text/" not in message.text


async def test_d16_a_workers_question_goes_to_whoever_gave_the_task(world: World) -> None:
    world.script("bob", says("Shall the title be red or blue?"), says(LOOK), PUBLISH, PUBLISH)
    task = call("assign_task", agent="new:scripted/bob", task="Paint it", description="Paint")
    answer = says(call("send_message", to="bob", content="Blue."))
    goal, ada = await run(world, says(task), answer, says("I wait."), *finish())

    goal, child = await world.board(goal.team_id)
    assert (goal.status, child.status) == (S.COMPLETED, S.COMPLETED)
    assert [m for m in await world.inbox() if m.kind == "question"] == []
    heard = "\n".join(t.text for t in ada.requests[1].turns)
    assert "Shall the title be red or blue?" in heard
    assert "Blue." in "\n".join(t.text for t in await world.turns(child.id))


async def test_d16_a_question_sent_as_a_message_to_the_giver_can_be_waited_for(
    world: World,
) -> None:
    content = "Shall the title be red or blue?"
    asks = says(call("send_message", to="coordinator", content=content, kind="question"))
    bob = world.script("bob", asks, says(LOOK), PUBLISH, PUBLISH)
    task = call("assign_task", agent="new:scripted/bob", task="Paint it", description="Paint")
    answer = says(call("send_message", to="bob", content="Blue."))
    goal, _ = await run(world, says(task), answer, says("I wait."), *finish())

    goal, child = await world.board(goal.team_id)
    assert (goal.status, child.status) == (S.COMPLETED, S.COMPLETED)
    answered = bob.requests[1].turns[-1]
    assert (answered.role, opened(answered.text)) == (
        "tool",
        "[Message from coordinator (answer)] Blue.",
    )
    waits = [e.data["reason"] for e in await world.events(goal.team_id)
             if e.type == "node.waiting" and e.data["node_id"] == child.id]  # fmt: skip
    assert waits == [f"asked coordinator: {content}"]


@SQLITE
async def test_d16_a_question_that_its_giver_never_answers_does_not_block_for_ever(
    world: World,
) -> None:
    world.script("bob", says("Red or blue?"), says(LOOK), PUBLISH, PUBLISH)
    lead = world.script("lead", says(worker()), says("I wait."), PUBLISH, PUBLISH, PUBLISH)
    task = call("assign_task", agent="new:scripted/lead", task="Lead it", description="Lead")
    goal, _ = await run(world, says(task), says("I wait."), *finish())

    board = await world.board(goal.team_id)
    assert [node.status.is_final for node in board] == [True] * len(board)
    assert lead.requests


def test_a_call_with_complete_arguments_is_not_cut_off() -> None:
    whole = ["{'a': 1}", "[1]", "path=a.md", '{"a": "}"} x']
    assert [ToolCall(id="a", name="b", malformed=text).is_cut_off for text in whole] == [False] * 4
    torn = ["", '{"a', '{"a": "\\"', '{"a": {"b": 1}', "[1"]
    assert [ToolCall(id="a", name="b", malformed=text).is_cut_off for text in torn] == [True] * 5
