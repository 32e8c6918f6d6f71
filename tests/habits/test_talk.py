"""Talk: how agents and the person speak with each other."""

import pytest

from agiraph.core.domain.messages import MAX_HOPS
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.text.language import guess
from agiraph.core.domain.work import Budget, NodeStatus
from agiraph.core.services.lifecycle import conversation
from agiraph.core.services.mail import bus
from agiraph.core.services.members import roster
from agiraph.testing import Says, World, call, says
from tests.habits.kit import ASK, ASK_MORE, assign


async def test_k1_thanks_for_thanks_end_by_themselves(world: World) -> None:
    def thank(name: str) -> Says:
        return says(call("send_message", to=name, content="Thank you!"))

    replies = 4 * MAX_HOPS
    world.script("ada", thank("bob"), ASK)
    world.script("bob", *[thank("cid"), says(call("publish", summary="Thanked."))] * replies)
    world.script("cid", *[thank("bob"), says(call("publish", summary="Thanked."))] * replies)
    founded = await world.found("Be polite", start=False)
    for name in ("bob", "cid"):
        await world.store.write(
            roster.hire, founded.team.id, name=name, role="worker", model=f"scripted/{name}"
        )
    await world.say(founded.coordinator.id, "Thank bob.", team_id=founded.team.id)
    await world.settle()
    made = [n for n in await world.board(founded.team.id) if n.title.startswith("Message from")]
    assert len(made) <= MAX_HOPS + 2
    assert all(n.status.is_final or n.assignee_id == founded.coordinator.id for n in made)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Please tell me what the plan is for today.", "English"),
        ("Kannst du mir bitte sagen, wann das fertig ist?", "German"),
        ("Est-ce que vous pouvez faire cela pour moi ?", "French"),
        ("¿Puedes hacer esto por favor para el lunes?", "Spanish"),
        ("这个什么时候能完成", "Chinese"),
        ("これはいつ終わりますか", "Japanese"),
        ("Когда это будет готово?", "Russian"),
        ("이거 언제 끝나요?", "Korean"),
        ("ok", None),
        ("42", None),
    ],
)
def test_k4_the_language_of_a_message_is_recognised_or_left_open(
    text: str, language: str | None
) -> None:
    assert guess(text) == language


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("Wann ist das fertig? Kannst du es mir sagen?", "Answer in German, the language of "),
        ("ok", "Answer in the language of the person's last message."),
    ],
)
async def test_k4_the_reply_prompt_names_the_language_of_the_last_message(
    world: World, text: str, line: str
) -> None:
    ada = world.script("ada", says("Ja.", call("no_work_needed")))
    founded = await world.found("Help", start=False)
    await world.chat(founded.coordinator.id, text)
    await world.settle()
    assert line in ada.requests[0].system


async def test_k5_only_the_person_answers_a_question_to_the_person(world: World) -> None:
    world.script(
        "ada",
        says(assign("Paint it", run_in_background=True)),
        says(call("send_message", to="bob", content="The human says: blue.")),
        says(call("ask_human", question="All well?")),
    )
    world.script("bob", says(call("ask_human", question="Red or blue?")))
    founded = await world.found("Paint")
    await world.settle()
    _, task = await world.board(founded.team.id)
    assert task.status is NodeStatus.WAITING
    assert {q.text for q in await world.questions(founded.team.id)} == {"Red or blue?", "All well?"}


async def test_k6_what_is_said_beside_an_open_question_is_heard_before_the_next_call(
    world: World,
) -> None:
    ada = world.script("ada", says(call("ask_human", question="Red or blue?")), ASK)
    founded = await world.found("Paint")
    await world.settle()
    await world.say(founded.coordinator.id, "Take blue.", team_id=founded.team.id)
    await world.settle()
    heard = "\n".join(turn.text for turn in ada.requests[-1].turns)
    assert "Not answered yet; they said: Take blue." in heard


async def test_k7_messages_that_came_before_the_reply_are_answered_together(world: World) -> None:
    ada = world.script("ada", says("Both noted.", call("no_work_needed")))
    founded = await world.found("Help", start=False)
    agent, texts = founded.coordinator, ("First thing.", "Second thing.")
    await world.store.write(
        lambda tx: [conversation.say(tx, agent.id, text, person_id=OWNER) for text in texts]
    )
    await world.settle()
    assert len(ada.requests) == 1
    assert ada.requests[0].turns[0].text == "First thing.\n\nSecond thing."


@pytest.mark.parametrize("again", ["Red or blue?", "red or  blue?"])
async def test_k10_a_question_that_was_answered_is_answered_with_that_answer(
    world: World, again: str
) -> None:
    ada = world.script(
        "ada",
        says(call("ask_human", question="Red or blue?")),
        says(call("ask_human", question=again)),
        ASK,
    )
    founded = await world.found("Paint")
    await world.settle()
    await world.answer((await world.questions(founded.team.id))[0], "Blue.")
    await world.settle()
    assert ada.heard.startswith("You asked this before, and they answered: Blue.")
    assert [q.text for q in await world.questions(founded.team.id)] == ["What now?"]


async def test_k10_an_answer_of_last_week_is_no_answer_to_the_same_words_today(
    world: World,
) -> None:
    again = says(call("ask_human", question="Shall I buy some?"))
    world.script("ada", again, ASK, again, ASK)
    founded = await world.found("Keep the pantry full")
    await world.settle()
    await world.answer((await world.questions(founded.team.id))[0], "Not today.")
    await world.settle()
    world.clock.advance(days=7)
    await world.answer((await world.questions(founded.team.id))[0], "Look again.")
    await world.settle()
    assert [q.text for q in await world.questions(founded.team.id)] == ["Shall I buy some?"]


async def test_k2_many_messages_in_an_hour_are_put_together_and_nothing_is_lost(
    world: World,
) -> None:
    steps = [f"Step {number} is done." for number in range(30)]
    tell = [says(call("send_message", to="human", content=step)) for step in steps]
    world.script("ada", *tell, ASK)
    founded = await world.found("Report", budget=Budget(turns=60))
    await world.settle()
    sent = [m for m in await world.conversation(founded.coordinator) if m.kind == "message"]
    assert len(sent) == bus.MESSAGES_AN_HOUR
    assert "\n\n".join(message.text for message in sent) == "\n\n".join(steps)
    # A question is never put off.
    assert [q.text for q in await world.questions(founded.team.id)] == ["What now?"]


async def test_k2_an_hour_later_a_message_is_one_of_its_own_again(world: World) -> None:
    tell = [says(call("send_message", to="human", content=f"Step {n}.")) for n in range(8)]
    world.script(
        "ada", *tell, ASK, says(call("send_message", to="human", content="Late.")), ASK_MORE
    )
    founded = await world.found("Report")
    await world.settle()
    world.clock.advance(hours=2)
    await world.answer((await world.questions(founded.team.id))[0], "Go on.")
    await world.settle()
    sent = [m.text for m in await world.conversation(founded.coordinator) if m.kind == "message"]
    assert sent[-1] == "Late."
