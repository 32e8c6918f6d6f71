"""Human in the loop: questions wait for their answers, also through a restart."""

import pytest

from agiraph.core.domain.errors import AlreadyAnswered, NotFound
from agiraph.core.domain.ids import MessageId
from agiraph.core.domain.work import NodeStatus, StopReason
from agiraph.testing import World, call, says
from tests.doubts import doubts_of
from tests.scenarios.endings import ACCEPTS, OPENS, defines, finishes


async def test_an_answer_reaches_its_question_after_a_restart(world: World) -> None:
    ada = world.script(
        "ada",
        says(
            defines("`setup.sql` creates the database"),
            call("ask_human", question="PostgreSQL or SQLite?", options=["PostgreSQL", "SQLite"]),
        ),
        says(call("write_file", path="setup.sql", content="create database ours;")),
        finishes("Set up PostgreSQL.", "file:setup.sql"),
        OPENS,
        ACCEPTS,
    )
    founded = await world.found("Set up a database for our project.")
    await world.settle()

    [goal] = await world.board(founded.team.id)
    [question] = await world.questions(founded.team.id)
    assert (goal.status, goal.waiting_reason) == (
        NodeStatus.WAITING,
        "asked the human: PostgreSQL or SQLite?",
    )
    assert question.options == ("PostgreSQL", "SQLite")

    await world.restart()
    await world.answer(question, "PostgreSQL, for production")
    await world.settle()

    goal, _ = await world.board(founded.team.id)
    assert (goal.status, goal.result, doubts_of(goal), goal.attempt) == (
        NodeStatus.COMPLETED,
        "Set up PostgreSQL.",
        None,
        1,
    )
    assert ada.requests[1].turns[-1].text == "PostgreSQL, for production"


async def test_two_open_questions_get_their_own_answers(world: World) -> None:
    ada = world.script(
        "ada",
        says(defines("it says which and when")),
        says(call("ask_human", question="Which?"), call("ask_human", question="When?")),
        finishes("This one, tomorrow.", "the person's two answers"),
        ACCEPTS,
    )
    founded = await world.found("Find out which one they want, and when")
    await world.settle()
    which, when = await world.questions(founded.team.id)

    await world.answer(when, "Tomorrow")
    await world.settle()
    assert [n.status for n in await world.board(founded.team.id)] == [NodeStatus.WAITING]

    await world.answer(which, "This one")
    await world.settle()
    [_, _, asked, review] = ada.requests
    calls = {c.id: c.arguments.get("question") for t in asked.turns for c in t.calls}
    answers = {calls[t.ref]: t.text for t in asked.turns if t.role == "tool" and t.ref}
    assert answers.items() >= {"Which?": "This one", "When?": "Tomorrow"}.items()
    assert "This one, tomorrow." in review.turns[0].text
    goal, judged = await world.board(founded.team.id)
    assert (goal.status, doubts_of(goal)) == (NodeStatus.COMPLETED, None)
    assert (judged.status, judged.stop_reason) == (NodeStatus.COMPLETED, StopReason.ACCEPTED)


async def test_a_second_answer_is_refused_and_the_first_stands(world: World) -> None:
    ada = world.script(
        "ada",
        says(defines("`choice.md` names their choice"), call("ask_human", question="Which?")),
        says(call("write_file", path="choice.md", content="the first")),
        finishes("They chose the first.", "file:choice.md"),
        OPENS,
        ACCEPTS,
    )
    founded = await world.found("Ask which one they want")
    await world.settle()
    [question] = await world.questions(founded.team.id)
    await world.answer(question, "the first")

    with pytest.raises(AlreadyAnswered, match="the first answer stands"):
        await world.answer(question, "the second")
    with pytest.raises(NotFound, match="no message 'msg_none'"):
        await world.answer(MessageId("msg_none"), "to nobody")
    await world.settle()
    assert ada.requests[1].turns[-1].text == "the first"
    goal, _ = await world.board(founded.team.id)
    assert (goal.status, doubts_of(goal)) == (NodeStatus.COMPLETED, None)


async def test_a_late_answer_becomes_new_work_if_the_person_wants_it(
    world: World,
) -> None:
    from agiraph.core.services.lifecycle import endings

    ada = world.script(
        "ada",
        says(call("ask_human", question="Which?\n\nOne or two.")),
        says(call("finish", summary="noted")),
        insists=True,
    )
    founded = await world.found("Ask")
    await world.settle()
    [question] = await world.questions(founded.team.id)
    [goal] = await world.board(founded.team.id)
    await world.store.write(endings.cancel, goal.id)
    await world.answer(question, "this one")
    await world.settle()
    assert len(await world.board(founded.team.id)) == 1
    [offer] = await world.questions(founded.team.id)
    await world.answer(offer, offer.options[0])
    await world.settle()

    cancelled, late = await world.board(founded.team.id)
    assert (cancelled.status, late.status) == (NodeStatus.CANCELLED, NodeStatus.COMPLETED)
    assert "(answering 'Which? One or two.') this one" in ada.requests[-1].turns[0].text
