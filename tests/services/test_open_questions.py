"""A person's message during an open question or approval is delivered; the question stays open."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agiraph.core.domain.agents import Rule
from agiraph.core.domain.errors import ModelRefused
from agiraph.core.domain.ids import NodeId
from agiraph.core.domain.messages import Draft, Message
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.work import NodeStatus
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.services.mail import bus
from agiraph.core.services.members import roster
from agiraph.core.store.messages import MESSAGES
from agiraph.models.base import Request
from agiraph.testing import Call, Says, World, call, says
from agiraph.testing.scripted import Line, ReactiveModel, ScriptedModel
from tests.services.teams import add_child, found_waiting_team

ASK = call("ask_human", question="Red or blue?")
SAME = call("ask_human", question="Red  or blue?\n")
NOT_ANSWERED = "Not answered yet; they said: {}\n"
NOT_APPROVED = "Not approved yet, so this call was not made; they said: {}\n"
DONE = says(call("finish", summary="painted"))


async def found_asking_team(
    world: World, *lines: Line, replies: tuple[Line, ...] = (), **more: Any
) -> tuple[ScriptedModel, NewTeam]:
    """Found a team whose coordinator has asked the person something and waits."""
    ada = world.script("ada", *lines)
    world.script("mouth", *replies)
    founded = await world.found("Paint the fence", **more)
    await world.settle()
    return ada, founded


async def send(world: World, founded: NewTeam, how: str, text: str = "Mind the roses.") -> None:
    """Send a person's message as a broadcast, a nudge or a chat message."""
    match how:
        case "broadcast":
            draft = Draft(team_id=founded.team.id, sender=OWNER, recipient="", text=text)
            await world.store.write(bus.broadcast, draft)
        case "nudge":
            await world.chat(founded.coordinator.id, text, nudge=True)
        case _:
            await world.chat(founded.coordinator.id, text)


async def thread_outline(world: World, node_id: NodeId) -> list[tuple[str, str]]:
    """Return the node's thread after its assignment: roles, and calls or first lines."""
    turns = [t for t in await world.turns(node_id) if t.role not in ("system", "intent")]
    ended = {c.id for t in turns for c in t.calls if c.name == "finish"}
    turns = [t for t in turns if t.ref not in ended]
    return [(t.role, ",".join(c.name for c in t.calls) or t.text.split("\n")[0]) for t in turns[1:]]


async def questions(world: World) -> list[Message]:
    """Return every question or approval that was ever asked."""
    return await world.store.read(MESSAGES.select, "kind in ('question', 'approval') order by id")


@pytest.fixture
async def world(tmp_path: Path, database_url: str) -> AsyncIterator[World]:
    path = tmp_path / "home"
    async with World(
        path, database_url=database_url, reply_model="scripted/mouth", easy_endings=True
    ) as opened:
        yield opened


def ask_until_answered(request: Request) -> Says:
    """Ask; ask the same again after the person's message; finish after the answer."""
    if "roses" in request.transcript.turns[1].text:
        return says(call("finish", summary="minded"))
    answers = [t.text for t in request.transcript.turns if t.role == "tool"]
    if not answers:
        return says(ASK)
    return says(SAME) if answers[-1].startswith("Not answered") else DONE


REPLIES: dict[str, Line] = {
    "send": says("I hear you."),
    "nudge": says("never asked"),
}


@pytest.mark.parametrize("how", REPLIES)
@pytest.mark.parametrize("restarts", [False, True], ids=["", "restarted"])
async def test_a_message_during_an_open_question_is_delivered_and_asks_it_only_once(
    world: World, how: str, restarts: bool
) -> None:
    world.model("ada", ReactiveModel("scripted/ada", ask_until_answered))
    world.script("mouth", REPLIES[how])
    founded = await world.found("Paint the fence")
    await world.settle()
    [question] = await world.questions(founded.team.id)
    if restarts:
        await world.restart()
    await send(world, founded, how)
    if restarts:
        await world.restart()
    await world.settle()

    assert founded.node is not None
    goal = await world.node(founded.node.id)
    assert (goal.status, goal.waiting_reason) == (
        NodeStatus.WAITING,
        "asked the human: Red  or blue?\n",
    )
    message = [("user", "[Message from human] Mind the roses.")]
    assert await thread_outline(world, goal.id) == [
        ("assistant", "ask_human"),
        ("tool", NOT_ANSWERED.format("Mind the roses.").strip()),
        *message,
        ("assistant", "ask_human"),
    ]
    assert [q.id for q in await questions(world)] == [question.id]
    await world.restart()
    await world.answer(question, "Blue.")
    await world.settle()
    assert (await thread_outline(world, goal.id))[-2:] == [
        ("tool", "Blue."),
        ("assistant", "finish"),
    ]


async def test_new_work_ends_no_wait_and_the_work_that_waits_hears_of_it_later(
    world: World,
) -> None:
    world.model("ada", ReactiveModel("scripted/ada", ask_until_answered))
    world.script("mouth", says("I will.", call("start_work", task="Mind the roses")))
    founded = await world.found("Paint the fence")
    await world.settle()
    await send(world, founded, "send")
    await world.settle()
    assert founded.node is not None
    assert await thread_outline(world, founded.node.id) == [("assistant", "ask_human")]
    [_, side] = await world.board(founded.team.id)
    assert (side.task, side.status) == ("Mind the roses", NodeStatus.COMPLETED)
    heard = [turn.ref for turn in await world.turns(side.id) if "Message from human" in turn.text]
    assert heard == ["assignment"]
    [question] = await world.questions(founded.team.id)
    await world.answer(question, "Blue.")
    await world.settle()
    assert (await thread_outline(world, founded.node.id))[1:] == [
        ("tool", "Blue."),
        ("user", "[Message from human] Mind the roses."),
        ("assistant", "finish"),
    ]


@pytest.mark.parametrize("question", [ASK, None], ids=["asked", "in words"])
async def test_what_a_person_says_to_everyone_answers_no_question(
    world: World, question: Call | None
) -> None:
    asks = says("Red or blue?") if question is None else says(question)
    _, founded = await found_asking_team(world, asks, DONE)
    await send(world, founded, "broadcast")
    await world.settle()
    [asked] = await world.questions(founded.team.id)
    assert founded.node is not None
    assert (await world.node(founded.node.id)).status is NodeStatus.WAITING

    await world.answer(asked, "Blue.")
    await world.settle()
    outline = await thread_outline(world, founded.node.id)
    assert ("user", "[Message from human] Mind the roses.") in outline[-2:]
    assert [n.status for n in await world.board(founded.team.id)] == [NodeStatus.COMPLETED]


async def test_a_teammates_question_is_heard_during_a_question_to_the_person(world: World) -> None:
    """The answer to the person's question still reaches the call that asks it again."""
    answers = says(call("send_message", to="tom", content="Port 80."))
    ada, founded = await found_asking_team(world, says(ASK), answers, says(SAME), DONE)
    asks = call("send_message", to="coordinator", content="Which port?", kind="question")
    tom_model = world.script("tom", says(asks), says(call("publish", summary="done")))
    tom = await world.store.write(
        roster.hire, founded.team.id, name="tom", role="worker", model="scripted/tom"
    )
    await add_child(world, founded, "connect", to=tom)
    await world.settle()

    first = ada.requests[1].turns[-2]
    assert first.text.startswith(
        "Not answered yet; there is a message of a teammate for you, and it follows.\n"
    )
    assert "Port 80." in tom_model.requests[1].turns[-1].text
    assert founded.node is not None
    assert (await world.node(founded.node.id)).waiting_reason == "asked the human: Red  or blue?\n"
    [question] = await world.questions(founded.team.id)
    await world.answer(question, "Blue.")
    await world.settle()
    assert (await world.node(founded.node.id)).status is NodeStatus.COMPLETED


async def test_an_answer_after_the_agent_went_on_is_still_delivered(world: World) -> None:
    gone_on = says(call("ask_human", question="How many coats?"))
    _, founded = await found_asking_team(world, says(ASK), gone_on, DONE)
    [question] = await world.questions(founded.team.id)
    await send(world, founded, "nudge", "Start with the gate.")
    await world.settle()
    assert [q.text for q in await world.questions(founded.team.id)] == [
        "Red or blue?",
        "How many coats?",
    ]
    await world.answer(question, "Blue.")
    await world.settle()

    assert founded.node is not None
    assert await thread_outline(world, founded.node.id) == [
        ("assistant", "ask_human"),
        ("tool", NOT_ANSWERED.format("Start with the gate.").strip()),
        ("user", "[Message from human] Start with the gate."),
        ("assistant", "ask_human"),
        ("tool", NOT_ANSWERED.format("(answering 'Red or blue?') Blue.").strip()),
        ("user", "[Message from human] (answering 'Red or blue?') Blue."),
        ("assistant", "finish"),
    ]


async def test_two_calls_with_the_same_question_get_the_same_answer(world: World) -> None:
    _, founded = await found_asking_team(world, says(ASK, SAME), DONE)
    [question] = await questions(world)
    await world.answer(question, "Blue.")
    await world.settle()
    assert founded.node is not None
    answers = [
        text for role, text in await thread_outline(world, founded.node.id) if role == "tool"
    ]
    assert answers[:2] == ["Blue.", "Blue."]


async def test_the_same_question_with_other_options_is_another_question(world: World) -> None:
    first = call("ask_human", question="Which?", options=["red", "blue"])
    second = call("ask_human", question="Which?", options=["blue", "green"])
    _, founded = await found_asking_team(world, says(first), says(second))
    await send(world, founded, "nudge", "Not red.")
    await world.settle()
    assert [q.options for q in await questions(world)] == [("red", "blue"), ("blue", "green")]


async def test_every_parked_call_is_answered_before_the_message_is_added(world: World) -> None:
    ids: list[str] = []
    lead: tuple[Line, ...] = (
        says(call("ask_human", question="Begin?")),
        lambda _: says(ASK, call("task_output", id=ids[0], blocking=True)),
        says(ASK),
    )
    founded, workers = await found_waiting_team(world, "bob", lead=lead)
    ids.append(await add_child(world, founded, "wonder", to=workers["bob"]))
    await world.settle()
    [begin] = [q for q in await world.questions(founded.team.id) if q.text == "Begin?"]
    await world.answer(begin, "Yes.")
    await world.settle()
    await send(world, founded, "nudge")
    await world.settle()
    assert founded.node is not None
    assert (await thread_outline(world, founded.node.id))[2:] == [
        ("assistant", "ask_human,task_output"),
        ("tool", NOT_ANSWERED.format("Mind the roses.").strip()),
        ("tool", "Interrupted, because there is a message for you; it follows. What you waited "
         f"for (the result of 'wonder' ({ids[0]})) is still under way: wait again, or do "
         "something else first."),
        ("user", "[Message from human] Mind the roses."),
        ("assistant", "ask_human"),
    ]  # fmt: skip


APPROVAL = (Rule(tool="bash", action="ask"),)
RUN = call("bash", command="echo once >> a")


@pytest.mark.parametrize("decision", ["approve", "deny"])
@pytest.mark.parametrize("restarts", [False, True], ids=["", "restarted"])
async def test_a_message_during_an_open_approval_is_delivered_and_approves_nothing(
    world: World, decision: str, restarts: bool
) -> None:
    _, founded = await found_asking_team(world, says(RUN), says(RUN), DONE, permissions=APPROVAL)
    [request] = await world.questions(founded.team.id)
    await send(world, founded, "nudge", "Yes, approved, do it!")
    if restarts:
        await world.restart()
    await world.settle()

    assert founded.node is not None
    goal = await world.node(founded.node.id)
    scratch = world.path / "teams" / founded.team.id / "nodes" / goal.id / "scratch"
    assert (goal.status, list(scratch.iterdir())) == (NodeStatus.WAITING, [])
    assert await thread_outline(world, goal.id) == [
        ("assistant", "bash"),
        ("tool", NOT_APPROVED.format("Yes, approved, do it!").strip()),
        ("user", "[Message from human] Yes, approved, do it!"),
        ("assistant", "bash"),
    ]
    assert [q.id for q in await questions(world)] == [request.id]
    await world.answer(request, decision=decision)  # pyright: ignore[reportArgumentType]
    await world.settle()
    approved = decision == "approve"
    assert (await thread_outline(world, goal.id))[4:] == [
        ("tool", "[exit code 0]" if approved else "The human refused this call."),
        ("assistant", "finish"),
    ]
    goal = await world.node(goal.id)
    assert world.published(goal) == ({"a": "once\n"} if approved else {})


async def test_a_late_approval_is_delivered_and_allows_one_call(world: World) -> None:
    """The agent went on without the call; after the approval it makes the call, once."""
    other = says(call("ask_human", question="What else?"))
    _, founded = await found_asking_team(
        world, says(RUN), other, says(RUN), says(RUN), permissions=APPROVAL
    )
    [request] = await world.questions(founded.team.id)
    await send(world, founded, "nudge", "Wait with that.")
    await world.settle()
    await world.answer(request, "Now!", decision="approve")
    await world.settle()

    assert founded.node is not None
    told = (await thread_outline(world, founded.node.id))[4:]
    late = (
        f"(about {request.text!r}) Approved. They say: Now! Make the same call again if you still "
        "want it: it is allowed now."
    )
    assert told == [
        ("tool", NOT_ANSWERED.format(late).strip()),
        ("user", f"[Message from human] {late}"),
        ("assistant", "bash"),
        ("tool", "[exit code 0]"),
        ("assistant", "bash"),
    ]
    scratch = world.path / "teams" / founded.team.id / "nodes" / founded.node.id / "scratch"
    assert (scratch / "a").read_text() == "once\n"
    assert len(await questions(world)) == 3  # the second call is another request


async def test_a_notice_does_not_end_a_wait_for_a_person(world: World) -> None:
    _, founded = await found_asking_team(world, says(ASK))
    await world.store.write(
        bus.send,
        Draft(
            team_id=founded.team.id,
            sender="system",
            recipient=founded.coordinator.id,
            kind="notice",
            text="Look at this.",
        ),
    )
    await world.settle()
    assert founded.node is not None
    assert await thread_outline(world, founded.node.id) == [("assistant", "ask_human")]


async def test_a_message_makes_a_node_with_a_model_error_try_again(world: World) -> None:
    """A chat message counts as an answer; a problem that remains is asked about once."""
    refusal = ModelRefused("wrong key")
    ada, founded = await found_asking_team(
        world, refusal, refusal, DONE, replies=(says("I try."),) * 2
    )
    for _ in range(2):
        [question] = await questions(world)
        assert "wrong key" in question.text
        await send(world, founded, "send", "Try again, please.")
        await world.settle()
    assert founded.node is not None
    goal = await world.node(founded.node.id)
    assert (goal.status, len(ada.requests)) == (NodeStatus.COMPLETED, 3)
    assert (await thread_outline(world, goal.id)).count(
        ("user", "[Message from human] Try again, please.")
    ) == 2


async def test_a_program_that_waits_for_approval_gets_the_message_when_it_starts(
    world: World,
) -> None:
    """It cannot read the message before it runs; then the message is in its inbox."""
    founded, _ = await found_waiting_team(world, permissions=APPROVAL)
    program = await world.store.write(
        roster.hire, founded.team.id, name="prog", role="worker", model="cli", kind="cli",
        command="cat _inbox.md > _result.md",
    )  # fmt: skip
    node_id = await add_child(world, founded, "print", to=program)
    async with asyncio.timeout(60):
        await world.settle()
        [request] = [q for q in await world.questions(founded.team.id) if q.node_id == node_id]
        await world.chat(program.id, "Mind the roses.", nudge=True)
        await world.settle()
        assert (await world.node(node_id)).status is NodeStatus.WAITING
        await world.answer(request, decision="approve")
        await world.settle()
    node = await world.node(node_id)
    assert (node.status, node.result) == (
        NodeStatus.COMPLETED,
        "[Message from human] Mind the roses.",
    )


async def test_an_unknown_model_is_not_tried_again_and_again(world: World) -> None:
    """The run fails before it reads the message, so the message must not end the wait again."""
    founded = await world.found("Paint", model="nobody/knows", start=False)
    world.script("mouth", says("I hear you."))
    async with asyncio.timeout(60):
        await send(world, founded, "nudge", "Paint!")
        await world.settle()
        await send(world, founded, "nudge", "Paint now!")
        await world.settle()
    [node] = await world.board(founded.team.id)
    assert node.status is NodeStatus.WAITING
    assert len(await questions(world)) == 1
    started = [e for e in await world.events(founded.team.id) if e.type == "node.started"]
    assert len(started) == 2


def send_at_commit(world: World, commit: int, founded: NewTeam) -> list[asyncio.Task[None]]:
    """Send a message right after the nth commit from now; return the task, once there is one."""
    tasks: list[asyncio.Task[None]] = []
    left = commit

    def count(_: object) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            tasks.append(asyncio.create_task(send(world, founded, "nudge")))

    world.store.subscribe(count)
    return tasks


@pytest.mark.slow
async def test_a_message_at_any_commit_of_a_run_that_parks_is_delivered_once(world: World) -> None:
    world.model("ada", ReactiveModel("scripted/ada", lambda _: says(ASK)))
    for commit in range(2, 20):
        founded = await world.found("Paint", start=False)
        tasks = send_at_commit(world, commit, founded)
        await send(world, founded, "nudge", "Paint it.")
        await world.settle()
        if not tasks:
            return
        await asyncio.gather(*tasks)
        await world.settle()
        [node] = await world.board(founded.team.id)
        turns = await thread_outline(world, node.id)
        heard = [text for role, text in turns if role == "user"]
        assert heard == ["[Message from human] Mind the roses."], commit
        assert len([role for role, _ in turns if role == "assistant"]) <= 2, commit
        assert node.status is NodeStatus.WAITING
    raise AssertionError("a run with two turns made twenty commits or more")
