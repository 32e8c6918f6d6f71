"""Habits $1 to $4, $6, $7, D7, D8, C13, T6 and K3: loops, polling, repeated calls and echoes."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agiraph.core.domain.chat import ToolCall, Transcript, Turn
from agiraph.core.domain.ids import ThreadId
from agiraph.core.domain.work import NodeStatus, StopReason
from agiraph.core.policies.batches import seconds_asleep
from agiraph.core.policies.loops import Loops
from agiraph.core.runtime.calls import ANSWER_CHARACTERS
from agiraph.core.runtime.compaction import TOO_SMALL
from agiraph.core.tools.files.files import read_file
from agiraph.models.facts.prices import Prices, Terms
from agiraph.testing import World, call, says
from tests.habits.test_words import LOOK, PUBLISH, SQLITE, finish, run, told, worker

S = NodeStatus
READ = says(call("read_file", path="_spec.md"))


@SQLITE
async def test_cost_1_the_third_reading_of_an_unchanged_file_is_a_line(world: World) -> None:
    goal, _ = await run(world, READ, says(LOOK), READ, says(LOOK), READ, *finish())

    answers = [t for t in await world.turns(goal.id) if t.role == "tool"]
    assert answers[0].text == answers[2].text
    assert [answer.is_repeated for answer in answers[:5:2]] == [False, False, True]


def reading(texts: Sequence[str], name: str = "call_{}") -> Transcript:
    """Return a thread in which one file is read again and again, with these texts."""
    found: list[Turn] = []
    about: dict[str, Any] = {
        "thread_id": ThreadId("thread_1"),
        "node_id": None,
        "at": datetime.now(UTC),
    }
    for number, text in enumerate(texts):
        made = ToolCall(id=name.format(number), name="read_file", arguments={"path": "log.md"})
        seq = 2 * number + 1
        found.append(Turn(role="assistant", text="", calls=(made,), seq=seq, **about))
        found.append(Turn(role="tool", text=text, ref=made.id, seq=seq + 1, **about))
    return Transcript(found)


def verdict(transcript: Transcript) -> StopReason | None:
    ended = Loops({"read_file": read_file}).verdict(transcript)
    return None if ended is None else ended.reason


def test_a_file_that_says_to_be_unchanged_is_read_as_it_is() -> None:
    line = "Unchanged since you read it: the text stands above, {}"
    assert verdict(reading([line.format(word) for word in "abcde"])) is None
    assert verdict(reading([line.format("one")] * 5)) is StopReason.LOOPING


@pytest.mark.parametrize("name", ["again:{}", "circle:{}", "flush:{}", "landing{}", "call_{}"])
def test_the_id_that_a_model_gives_its_call_hides_no_circle(name: str) -> None:
    transcript = reading(["the same"] * 5, name)
    assert verdict(transcript) is StopReason.LOOPING
    assert Loops({"read_file": read_file}).note(transcript) is not None
    assert len(transcript.steps(9)) == 5


@SQLITE
async def test_cost_2_a_failing_command_with_new_times_and_numbers_is_a_circle(
    world: World,
) -> None:
    fails = says(call("bash", command="date +%s.%N; echo pid $$; exit 3"))
    goal, ada = await run(world, *[fails] * 9)

    assert (goal.status, goal.stop_reason, len(ada.requests)) == (S.PARTIAL, StopReason.LOOPING, 5)


@SQLITE
async def test_cost_3_varied_arguments_with_the_same_failure_are_warned_and_stopped(
    world: World,
) -> None:
    fails = [says(call("read_file", path=f"file{'x' * n}.md")) for n in range(12)]
    goal, ada = await run(world, *fails)

    assert (goal.stop_reason, len(ada.requests)) == (StopReason.LOOPING, 8)
    [warning] = [text for text in await told(world, goal) if "circles" in text]
    assert "failed 5 times with the same message" in warning


BESIDE = {
    "words": says("I try the next file."),
    "thinking": says("", thinking="Perhaps another name."),
    "look": says(LOOK),
    "call": says(call("list_files", path=".")),
}


@SQLITE
@pytest.mark.parametrize("beside", BESIDE)
async def test_nothing_harmless_between_failing_calls_hides_a_circle(
    world: World, beside: str
) -> None:
    fails = [says(call("read_file", path=f"file{'x' * n}.md")) for n in range(40)]
    goal, ada = await run(world, *[reply for each in fails for reply in (each, BESIDE[beside])])

    assert (goal.status, goal.stop_reason) == (S.PARTIAL, StopReason.LOOPING)
    assert len(ada.requests) == 15  # the eighth failure


@SQLITE
async def test_a_harmless_call_in_the_reply_of_a_failing_one_hides_no_circle(world: World) -> None:
    listing = call("list_files", path=".")
    fails = [says(call("read_file", path=f"file{'x' * n}.md"), listing) for n in range(40)]
    goal, ada = await run(world, *fails)

    assert (goal.stop_reason, len(ada.requests)) == (StopReason.LOOPING, 8)


@SQLITE
async def test_new_commands_between_the_same_failing_one_do_not_hide_it_for_long(
    world: World,
) -> None:
    fails = says(call("bash", command="cat missing.txt"))
    steps = [(fails, says(call("bash", command=f"echo {n}"))) for n in range(40)]
    goal, ada = await run(world, *[reply for pair in steps for reply in pair])

    assert (goal.stop_reason, len(ada.requests)) == (StopReason.LOOPING, 29)


@SQLITE
async def test_a_command_that_fails_less_each_time_is_no_circle(world: World) -> None:
    """Its message has fewer failures each time, and something is written in between."""
    tries = [
        reply
        for left in range(18, 0, -1)
        for reply in (
            says(call("write_file", path=f"try{left}.py", content="x")),
            says(call("bash", command=f"true; echo '{left} failed'; exit 1")),
        )
    ]
    goal, _ = await run(world, *tries, *finish())

    assert goal.status is S.COMPLETED


@SQLITE
async def test_cost_4_a_few_steps_in_any_order_that_write_nothing_are_stopped(
    world: World,
) -> None:
    order = "012021102210120201210120021102"
    steps = [says(call("bash", command=f"true {n}")) for n in order]
    goal, ada = await run(world, *steps, *steps)

    assert goal.stop_reason is StopReason.LOOPING
    assert len(ada.requests) <= 30


@SQLITE
async def test_cost_6_long_outputs_are_bounded(world: World) -> None:
    long = says(call("bash", command="head -c 200000 /dev/zero | tr '\\0' x"))
    goal, _ = await run(world, long, *finish())

    [answer, *_] = [t.text for t in await world.turns(goal.id) if t.role == "tool"]
    assert len(answer) <= ANSWER_CHARACTERS


@SQLITE
async def test_cost_7_a_cut_lists_the_files_that_were_read_and_written(world: World) -> None:
    write = says(call("write_file", path="a.md", content="x"))
    big = says(LOOK, input_tokens=100_000)
    summary = [says("Saved."), says("I wrote a.md.")]
    goal, _ = await run(world, READ, write, big, *summary, *finish())

    [cut] = [t.text for t in await world.turns(goal.id) if t.is_summary]
    assert "Files you have written:\n- a.md" in cut
    assert "Files you have read already:\n- _spec.md" in cut


async def test_cost_7_work_stops_if_the_fixed_prompt_fills_most_of_the_window(
    tmp_path: Path,
) -> None:
    prices = Prices({"own": Terms(window=6_000)})
    async with World(tmp_path / "home", prices=prices, easy_endings=True) as world:
        ada = world.script("ada", says(LOOK, input_tokens=5_900))
        founded = await world.found("Do it")
        await world.settle()
        [goal] = await world.board(founded.team.id)
        [question] = await world.questions(founded.team.id)
    assert goal.status is S.WAITING
    assert TOO_SMALL.partition("{:,} tokens of it")[0].format(6_000) in question.text
    assert len(ada.requests) == 1  # nothing was spent on a summary that cannot help


@SQLITE
@pytest.mark.parametrize("look", ["check_board", "job_status", "check_messages"])
async def test_d7_a_second_look_that_finds_nothing_new_waits(world: World, look: str) -> None:
    world.script("bob", says(call("ask_human", question="May I?")), PUBLISH, PUBLISH)
    goal, ada = await run(world, says(worker()), *[says(call(look))] * 9)
    goal, child = await world.board(goal.team_id)

    assert (goal.status, child.status) == (S.WAITING, S.WAITING)
    assert len(ada.requests) <= 5


@SQLITE
async def test_d8_a_long_sleep_beside_open_tasks_is_refused(world: World) -> None:
    world.script("bob", says(call("ask_human", question="May I?")), PUBLISH, PUBLISH)
    sleeps = says(call("bash", command="sleep 300"))
    goal, _ = await run(world, says(worker()), sleeps, says("I wait."))
    _, child = await world.board(goal.team_id)

    answers = [t.text for t in await world.turns(goal.id) if t.role == "tool"]
    assert f'call task_output(id="{child.id}", blocking=true)' in answers[1]
    assert [seconds_asleep(c) for c in ("sleep 5", "sleep 2m", "echo sleepy")] == [5, 120, 0]
    assert seconds_asleep("while true; do sleep 1; done") > 30


@SQLITE
async def test_c13_of_identical_calls_in_one_reply_one_is_made(world: World) -> None:
    world.script("bob", PUBLISH, PUBLISH)
    goal, _ = await run(world, says(worker(), worker()), says("I wait."), *finish())

    _, *children = await world.board(goal.team_id)
    answers = [t.text for t in await world.turns(goal.id) if t.role == "tool"]
    assert len(children) == 1
    assert "Not made again" in answers[1]
    assert children[0].id in answers[1]


@SQLITE
async def test_t6_a_notice_that_the_model_wrote_is_called_its_own(world: World) -> None:
    goal, _ = await run(world, says("[Runtime] bob is done.", LOOK), *finish())

    assert any("You wrote this yourself" in text for text in await told(world, goal))


@SQLITE
async def test_k3_no_thoughts_or_notices_reach_the_person(world: World) -> None:
    echo = "[Runtime] Your thread was shortened.\n<think>hm</think>The build is green."
    sends = says(call("send_message", to="human", content=echo))
    founded_goal, _ = await run(world, sends, *finish())

    agent = founded_goal.assignee_id
    assert agent is not None
    events = await world.events(founded_goal.team_id)
    sent = [e.data["text"] for e in events if e.type == "message.sent"]
    assert "The build is green." in sent


@SQLITE
async def test_many_questions_in_a_row_are_collected_and_all_are_answered(world: World) -> None:
    asks = [call("ask_human", question=f"How wide is wall {n}?") for n in range(24)]
    choice = call("ask_human", question="Which colour?", options=["red", "green"])
    ada = world.script("ada", says(*asks, choice), *finish())
    founded = await world.found("Paint the walls")
    await world.settle()
    first, second, rest = await world.questions(founded.team.id)
    assert (first.text, second.text) == ("How wide is wall 0?", "How wide is wall 1?")
    # Nothing is lost: each question and its options stand in one of the three.
    assert [line for line in rest.text.split("\n\n") if "wall" in line] == [
        f"How wide is wall {n}?" for n in range(2, 24)
    ]
    assert (rest.text.endswith("Which colour? (red / green)"), rest.options) == (True, ())

    await world.restart()
    for question in (first, second, rest):
        await world.answer(question, "3 m, and green.")
    await world.settle()
    [goal] = await world.board(founded.team.id)
    answers = [t.text for t in ada.requests[1].turns if t.role == "tool"]
    assert len(answers) == 25
    assert all("3 m, and green." in text for text in answers)
    assert (goal.status, await world.questions(founded.team.id)) == (S.COMPLETED, [])
