"""Circles: agents that ask and wait for each other all end, or wait for a person."""

from collections.abc import Callable

import pytest

from agiraph.core.domain.work import NodeStatus, WorkNode
from agiraph.models.base import Request
from agiraph.testing import Says, World, call, says
from agiraph.testing.scripted import Line
from tests.habits.kit import ASK, ASK_MORE
from tests.services.stages import creates, waits
from tests.services.teams import created_ids

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
S = NodeStatus
LOOK, PUBLISH = says(call("list_files")), says(call("publish", summary="painted"))


def blocks(index: int = 0) -> Callable[[Request], Says]:
    """Return a reply that waits for one of the tasks which its thread created."""

    def reply(request: Request) -> Says:
        return says(call("task_output", id=created_ids(request)[index], blocking=True))

    return reply


async def board_of(world: World, *lines: Line) -> list[WorkNode]:
    """Let a coordinator follow the lines, and return all nodes when nothing moves any more."""
    world.script("ada", *lines)
    founded = await world.found("Get it painted")
    await world.settle()
    return await world.board(founded.team.id)


def statuses(board: list[WorkNode]) -> list[NodeStatus]:
    return [node.status for node in board]


async def test_two_workers_that_ask_at_once_both_end_without_an_answer(world: World) -> None:
    one = world.script("one", says("Red or blue?"), LOOK, PUBLISH)
    two = world.script("two", says("Oil or water?"), LOOK, PUBLISH)
    board = await board_of(
        world,
        creates("Paint the door", assigned_to="new:scripted/one"),
        creates("Paint the wall", assigned_to="new:scripted/two"),
        *[waits() for _ in range(6)],
        ASK,
        ASK,
        ASK,
    )
    assert statuses(board) == [S.WAITING, S.COMPLETED, S.COMPLETED], [
        (n.title, n.status, n.waiting_reason) for n in board
    ]
    assert board[0].waiting_reason == "asked the human: What now?"
    for model in (one, two):
        assert "gave no answer" in str([t.text for r in model.requests for t in r.turns])


async def test_a_question_through_two_levels_ends_without_an_answer(world: World) -> None:
    hand = world.script("hand", says("Red or blue?"), LOOK, PUBLISH)
    world.script(
        "lead",
        creates("Mix the paint", assigned_to="new:scripted/hand"),
        blocks(),
        says(call("send_message", to="coordinator", content="Red or blue?")),
        blocks(),
        blocks(),
        blocks(),
        LOOK,
        PUBLISH,
    )
    board = await board_of(
        world,
        creates("Paint it", assigned_to="new:scripted/lead"),
        *[blocks() for _ in range(6)],
        ASK,
    )
    assert [node.status for node in board[1:]] == [S.COMPLETED, S.COMPLETED], [
        (n.task[:20], n.status, n.stop_reason, n.waiting_reason, n.result) for n in board
    ]
    assert "gave no answer" in str([t.text for r in hand.requests for t in r.turns])


async def test_three_that_each_ask_the_one_above_end(world: World) -> None:
    world.script("hand", says("Red or blue?"), LOOK, PUBLISH)
    world.script(
        "lead",
        creates("Mix the paint", assigned_to="new:scripted/hand"),
        says("I wait. Which one does the owner want?"),
        says("Which one does the owner want, red or blue?"),
        says("Still waiting: red or blue?"),
        LOOK,
        PUBLISH,
        PUBLISH,
    )
    board = await board_of(
        world,
        creates("Paint it", assigned_to="new:scripted/lead"),
        *[says("I am waiting for the results.") for _ in range(5)],
        ASK,
    )
    assert statuses(board)[1:] == [S.COMPLETED, S.COMPLETED]


@pytest.mark.slow
async def test_a_worker_that_asks_again_and_again_ends(world: World) -> None:
    world.script("hand", *[says(f"Red or blue, part {n}?") for n in range(5)], LOOK, PUBLISH)
    board = await board_of(
        world,
        creates("Paint it", assigned_to="new:scripted/hand"),
        *[blocks() for _ in range(14)],
        ASK,
    )
    assert [(n.status, n.waiting_reason) for n in board] == [
        (S.WAITING, "asked the human: What now?"),
        (S.COMPLETED, None),
    ]


async def test_workers_that_wait_for_each_other_in_messages_end(world: World) -> None:
    world.script(
        "one",
        says(call("send_message", to="two", content="Which color do you take?", kind="question")),
        says("I wait for the answer of two."),
        says("I still wait for two."),
        says("Waiting."),
        says("Waiting for two."),
        PUBLISH,
    )
    world.script(
        "two",
        says(call("send_message", to="one", content="Which color do you take?", kind="question")),
        says("I wait for the answer of one."),
        says("I still wait for one."),
        says("Waiting."),
        says("Waiting for one."),
        PUBLISH,
    )
    board = await board_of(
        world,
        creates("Paint the door", assigned_to="new:scripted/one"),
        creates("Paint the wall", assigned_to="new:scripted/two"),
        *[waits() for _ in range(6)],
        ASK,
    )
    assert all(n.status.is_final for n in board[1:]), [
        (n.title, n.status, n.waiting_reason) for n in board
    ]


async def test_a_giver_that_waits_for_a_person_hears_its_workers_question(world: World) -> None:
    world.script("hand", says("Red or blue?"), LOOK, PUBLISH)
    goal, child = await board_of(
        world,
        creates("Paint it", assigned_to="new:scripted/hand"),
        ASK,
        says("I am waiting for the results."),
        says("I am waiting for the results."),
        ASK_MORE,
        ASK_MORE,
    )
    assert (goal.waiting_reason, child.status) == ("your question 'What now?'", S.COMPLETED)
    [question] = await world.questions(goal.team_id)
    await world.answer(question, "Blue.")
    await world.settle()
    assert statuses(await world.board(goal.team_id)) == [S.WAITING, S.COMPLETED]
