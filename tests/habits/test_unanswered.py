"""Habit D16: a giver that goes back to waiting without an answer does not block its worker."""

import pytest

from agiraph.core.domain.work import NodeStatus, WorkNode
from agiraph.models.base import Request
from agiraph.testing import Says, World, call, says
from agiraph.testing.scripted import Line, ScriptedModel
from tests.habits.kit import ASK
from tests.services.stages import creates, waits
from tests.services.teams import created_ids

S = NodeStatus
SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
BLUE = call("send_message", to="hand", content="Blue.")
LOOK, PUBLISH = says(call("list_files")), says(call("publish", summary="painted"))


async def run(world: World, *lines: Line) -> tuple[WorkNode, ScriptedModel, ScriptedModel]:
    """Let a worker ask in words while its coordinator waits for a stage; return the worker's node
    and both models."""
    hand = world.script("hand", says("Red or blue?"), LOOK, PUBLISH)
    ada = world.script("ada", creates("Paint it", assigned_to="new:scripted/hand"), waits(), *lines)
    founded = await world.found("Get it painted")
    await world.settle()
    goal, child = await world.board(founded.team.id)
    assert (goal.status, goal.waiting_reason) == (S.WAITING, "asked the human: What now?")
    return child, hand, ada


async def test_d16_a_giver_that_waits_again_is_reminded_and_then_answers(world: World) -> None:
    child, hand, ada = await run(world, waits(), says(BLUE), waits(), ASK)

    assert child.status is S.COMPLETED
    reminder = ada.requests[3].turns[-1]
    assert reminder.failed
    assert reminder.text.startswith("Not waiting yet: hand waits for your answer to msg_")
    assert "Red or blue?" in reminder.text
    heard = "\n".join(turn.text for turn in hand.requests[1].turns)
    assert "Blue." in heard


@SQLITE
async def test_d16_a_failed_call_that_names_the_question_is_no_reminder(world: World) -> None:
    def errs(request: Request) -> Says:
        asked = next(t.ref for t in reversed(request.transcript.turns) if "Red or blue?" in t.text)
        return says(call("send_message", to=asked, content="Hm."))

    child, hand, ada = await run(world, errs, waits(), says(BLUE), waits(), ASK)

    wrong, reminder = ada.requests[3].turns[-1], ada.requests[4].turns[-1]
    assert wrong.failed
    assert reminder.text.startswith("Not waiting yet: hand waits for your answer to msg_")
    assert wrong.text.count(reminder.reminds_of or "?") == 1
    assert child.status is S.COMPLETED
    assert "Blue." in "\n".join(turn.text for turn in hand.requests[1].turns)


async def test_d16_a_giver_that_never_answers_leaves_the_decision_to_the_worker(
    world: World,
) -> None:
    child, hand, _ = await run(world, waits(), waits(), ASK)

    assert child.status is S.COMPLETED
    assert (
        hand.requests[1]
        .turns[-1]
        .text.startswith("[Runtime] coordinator gave no answer to your question 'Red or blue?")
    )


@SQLITE
async def test_d16_a_giver_that_waits_for_the_task_itself_is_reminded_too(world: World) -> None:
    def for_task(request: Request) -> Says:
        [task] = created_ids(request)
        return says(call("task_output", id=task, blocking=True))

    child, hand, _ = await run(world, for_task, for_task, ASK)

    assert child.status is S.COMPLETED
    assert "gave no answer" in hand.requests[1].turns[-1].text


@SQLITE
async def test_d16_a_givers_words_are_sent_to_the_worker_that_asked(world: World) -> None:
    child, hand, ada = await run(world, says("Take the blue one."), ASK)

    assert child.status is S.COMPLETED
    assert "Take the blue one." in hand.requests[1].turns[-1].text
    told = [turn.text for turn in ada.requests[3].turns if turn.text.startswith("[Runtime]")]
    assert told[-1].endswith(
        " Your words were sent to hand, who had asked you and waited for your answer."
    )
