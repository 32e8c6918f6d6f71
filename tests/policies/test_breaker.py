"""A model that loops or falls silent is warned once, and then stopped with a reason."""

from collections.abc import Sequence

import pytest

from agiraph.core.domain.outcomes import Failed, Finished
from agiraph.core.domain.work import NodeStatus, StopReason, WorkNode
from agiraph.core.policies.breaker import Breaker
from agiraph.testing import Call, Says, World, call, says
from agiraph.testing.scripted import Line, ScriptedModel
from tests.providers.transcripts import thread, tool_call, turn

LOOP_WARNING = (
    "[Runtime] You go in circles: the same calls, 3 times over, with the same outcome. It will "
    "not turn out differently. Do something else, ask, or submit what you have; if it goes on like "
    "this, your work is ended."
)
NUDGE = (
    "[Runtime] You answered without calling a tool, and there is nothing that you could "
    "wait for. A step that you "
    "announce is not done: do it now with a tool call. If you are done, call finish. To wait "
    "for a teammate's answer, ask them with send_message, kind question."
)
LOOP_REASON = "The model went in circles: the same calls, 5 times over, with the same outcome."
FINISH = says(call("finish", summary="done"))
LOOK = call("read_file", path="_spec.md")


async def run(world: World, *lines: Line) -> tuple[WorkNode, ScriptedModel]:
    ada = world.script("ada", *lines)
    founded = await world.found("Go on")
    await world.settle()
    [node] = await world.board(founded.team.id)
    return node, ada


async def runtime_notes(world: World, node: WorkNode) -> list[str]:
    """Return the runtime's own notes in the thread."""
    turns = await world.turns(node.id)
    return [t.text for t in turns if t.role == "user" and t.text.startswith("[Runtime]")]


def repeat(*calls: Call, times: int) -> list[Says]:
    return [says(c) for c in calls] * times


async def test_a_repeated_call_is_warned_about_once_and_stopped_at_the_fifth_time(
    world: World,
) -> None:
    node, ada = await run(world, *[says("Again.", LOOK)] * 9)

    [told] = await world.inbox()
    assert (node.status, node.stop_reason, len(ada.requests)) == (
        NodeStatus.PARTIAL,
        StopReason.LOOPING,
        5,
    )
    assert await runtime_notes(world, node) == [LOOP_WARNING]
    assert told.text == f"{LOOP_REASON}\n\nWhat there is so far:\nAgain."


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("calls", "asked"),
    [
        ((LOOK, call("list_files")), 10),
        ((LOOK, call("list_files"), call("read_file", path="GOAL.md")), 15),
        ([call("bash", command=f"true {n}") for n in range(4)], 20),
        ([call("bash", command=f"true {n}") for n in range(6)], 30),
    ],
)
async def test_up_to_six_calls_in_turn_are_a_loop_too(
    world: World, calls: Sequence[Call], asked: int
) -> None:
    node, ada = await run(world, *repeat(*calls, times=6))

    assert (node.stop_reason, len(ada.requests)) == (StopReason.LOOPING, asked)
    assert await runtime_notes(world, node) == [LOOP_WARNING]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    "wrong",
    [
        call("fly", to="the moon"),
        call("read_file", path="nowhere.md"),
        call("read_file", file="a.md"),
        Call("read_file", raw='{"path'),
        call("bash", command="exit 3"),
    ],
    ids=["unknown tool", "no file", "wrong argument", "no object", "failing command"],
)
async def test_a_repeated_error_is_a_loop(world: World, wrong: Call) -> None:
    node, ada = await run(world, *[says(wrong)] * 9)

    assert (node.stop_reason, len(ada.requests)) == (StopReason.LOOPING, 5)


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_many_calls_in_one_reply_do_not_hide_a_loop(world: World) -> None:
    node, ada = await run(world, *[says(*[LOOK] * 20, call("bash", command="true"))] * 9)

    assert (node.stop_reason, len(ada.requests)) == (StopReason.LOOPING, 5)


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_repeated_checks_for_mail_with_nothing_to_wait_for_are_a_loop(world: World) -> None:
    node, ada = await run(world, *[says(call("check_messages"))] * 12, FINISH)

    assert (node.stop_reason, len(ada.requests)) == (StopReason.LOOPING, 5)
    assert await runtime_notes(world, node) == [LOOP_WARNING]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_checks_for_mail_do_not_hide_a_loop(world: World) -> None:
    node, ada = await run(world, *repeat(LOOK, call("check_messages"), times=9))
    assert (node.stop_reason, len(ada.requests)) == (StopReason.LOOPING, 9)


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_repeated_call_with_changing_outcomes_is_no_loop(world: World) -> None:
    count = call("bash", command="echo x >> log; wc -l < log")
    node, _ = await run(world, *[says(count)] * 8, FINISH)

    assert (node.result, await runtime_notes(world, node)) == ("done", [])


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_model_that_heeds_the_warning_is_not_stopped(world: World) -> None:
    other = says(call("list_files"))
    node, _ = await run(world, *[says(LOOK)] * 3, other, *[says(LOOK)] * 2, FINISH)

    assert (node.result, await runtime_notes(world, node)) == ("done", [LOOP_WARNING])


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_reply_without_tool_calls_is_nudged_and_the_work_continues(world: World) -> None:
    node, ada = await run(world, says("Let me think."), says("Now.", LOOK), says("Hm."), FINISH)

    assert (node.result, node.stop_reason) == ("done", StopReason.FINISHED)
    assert await runtime_notes(world, node) == [NUDGE, NUDGE]
    assert ada.heard == NUDGE


async def test_three_replies_in_words_fail_the_node_and_the_last_words_are_its_result(
    world: World,
) -> None:
    node, ada = await run(world, says("I think it is 4."), says("It is 4."), says("Four."))

    assert (node.status, node.stop_reason, node.result, len(ada.requests)) == (
        NodeStatus.FAILED,
        StopReason.SILENT,
        "Four.",
        3,
    )
    [told] = await world.inbox()
    assert (told.kind, told.text) == (
        "failure",
        "The model made no tool call in 3 replies in a row.\n\nWhat there is so far:\nFour.",
    )
    first, second = await runtime_notes(world, node)
    assert first == NUDGE
    assert second.startswith("[Runtime] Still no tool call.")
    assert second.endswith("One more reply without a tool call ends this work as failed.")


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("nothing", ["", "  \n"])
async def test_three_empty_replies_fail_the_node(world: World, nothing: str) -> None:
    node, ada = await run(world, *[says(nothing)] * 9)

    [told] = await world.inbox()
    assert (node.status, node.stop_reason, len(ada.requests)) == (
        NodeStatus.FAILED,
        StopReason.SILENT,
        3,
    )
    assert told.text == (
        "The model made no tool call in 3 replies in a row. It said nothing at all."
    )


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_call_after_silent_replies_starts_the_count_anew(world: World) -> None:
    node, _ = await run(
        world, says(""), says("Hm."), says(LOOK), says("So."), says("Well."), FINISH
    )

    assert (node.stop_reason, node.result) == (StopReason.FINISHED, "done")


def test_without_tools_the_first_reply_is_the_answer() -> None:
    heard = thread(turn("user", "What is 2 + 2?"), turn("assistant", "It is 4."))

    assert Breaker({}).verdict(heard) == Finished("It is 4.", StopReason.ANSWERED)


def test_calls_without_answers_yet_are_no_loop() -> None:
    made = [turn("assistant", "", calls=(tool_call(f"c{n}", "look"),)) for n in range(6)]
    answered = [t for n, m in enumerate(made) for t in (m, turn("tool", "x", ref=f"c{n}"))]

    assert Breaker({}).verdict(thread(turn("user", "Go."), *answered[:-1])) is None
    stopped = Breaker({}).verdict(thread(turn("user", "Go."), *answered))
    assert stopped == Failed(StopReason.LOOPING, LOOP_REASON)
