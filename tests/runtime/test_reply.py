"""Replies: a person's message is answered at once, and becomes a node if it asks for work."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agiraph.core.domain.agents import Agent
from agiraph.core.domain.chat import Attachment
from agiraph.core.domain.errors import Conflict, ModelRefused, ModelUnavailable, Refused
from agiraph.core.domain.messages import Message
from agiraph.core.domain.work import NodeStatus, WorkNode
from agiraph.core.runtime.dispatcher import MAX_RUNNING
from agiraph.core.runtime.replies.reply import DECISION
from agiraph.core.services.board import planning
from agiraph.core.services.lifecycle import teams
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.services.members import roster
from agiraph.models.base import Request
from agiraph.testing import Says, World, call, says
from agiraph.testing.scripted import ReactiveModel
from tests.runtime.waiting import Gate, until

FINISH = says(call("finish", summary="NVIDIA is up 3 %."))
ACK = says("I'll look into NVIDIA's latest figures.")


@pytest.fixture
async def world(tmp_path: Path, database_url: str) -> AsyncIterator[World]:
    """A runtime with a separate model for replies to people."""
    opened = World(
        tmp_path / "home",
        database_url=database_url,
        reply_model="scripted/mouth",
        easy_endings=True,
    )
    async with opened:
        yield opened


async def idle_team(world: World, **more: Any) -> tuple[NewTeam, Agent]:
    founded = await world.found("Track tech stocks", start=False, **more)
    return founded, founded.coordinator


def texts(messages: list[Message]) -> list[str]:
    return [f"{'human' if m.sender == 'human' else 'agent'}: {m.text}" for m in messages]


async def replies(world: World, agent: Agent) -> list[WorkNode]:
    from agiraph.core.store.nodes import NODES

    where = "assignee_id = :agent and lane = 'reply' order by id"
    return await world.store.read(NODES.select, where, agent=agent.id)


# ---- a message becomes an answer and a node ---------------------------------------------------


async def test_queues_task_and_returns_contextual_acknowledgment(world: World) -> None:
    world.script("mouth", ACK)
    work = world.script("ada", FINISH)
    gate = work.gate = Gate()
    founded, ada = await idle_team(world)
    sent = await world.chat(ada.id, "Research NVIDIA stock")
    await gate.reached()

    assert texts(await world.conversation(ada)) == [
        "human: Research NVIDIA stock",
        "agent: I'll look into NVIDIA's latest figures.",
    ]
    [node] = await world.board(founded.team.id)
    assert (node.task, node.source, node.assignee_id) == ("Research NVIDIA stock", "user", ada.id)
    assert (await world.conversation(ada))[1].in_reply_to == sent.id
    gate.set()
    await world.settle()
    assert texts(await world.conversation(ada))[2:] == ["agent: NVIDIA is up 3 %."]


async def test_adds_user_message_to_conversation(world: World) -> None:
    world.script("mouth", says("Hello!", call("no_work_needed")))
    _, ada = await idle_team(world)
    await world.chat(ada.id, "Hello agent")
    await world.settle()
    assert texts(await world.conversation(ada)) == ["human: Hello agent", "agent: Hello!"]


async def test_returns_only_user_conversation_messages(world: World) -> None:
    world.script("mouth", says("Hi there."))
    world.script("ada", says(call("checkpoint", summary="an internal step")), FINISH)
    _, ada = await idle_team(world)
    await world.chat(ada.id, "Hello")
    await world.settle()
    assert not any("internal" in m.text for m in await world.conversation(ada))


async def test_creates_team_and_queues_bootstrap_task_for_team_lead(world: World) -> None:
    world.script("ada", FINISH).gate = Gate()
    founded = await world.found("Track tech stocks")
    [node] = await world.board(founded.team.id)
    assert (node.source, node.task) == ("system", "Track tech stocks")
    assert node.assignee_id == founded.coordinator.id


async def test_small_talk_is_answered_and_creates_no_node(world: World) -> None:
    world.script("mouth", says("You're welcome.", call("no_work_needed", reason="thanks")))
    founded, ada = await idle_team(world)
    await world.chat(ada.id, "Thanks!")
    await world.settle()
    assert await world.board(founded.team.id) == []
    assert [m.seen_at is None for m in await world.conversation(ada)] == [False, True]


async def test_a_reply_can_word_the_task_differently_than_the_message(world: World) -> None:
    task = "Research NVIDIA's stock; the human wants no more than two sentences."
    world.script("mouth", says("On it.", call("start_work", task=task)))
    world.script("ada", FINISH)
    founded, ada = await idle_team(world)
    await world.chat(ada.id, "NVIDIA, the usual")
    await world.settle()
    assert [n.task for n in await world.board(founded.team.id)] == [task]


async def test_a_reply_without_text_is_asked_for_one(world: World) -> None:
    mouth = world.script("mouth", says(call("no_work_needed")), says(""), says("Gladly."))
    _, ada = await idle_team(world)
    await world.chat(ada.id, "Nice work")
    await world.settle()
    assert texts(await world.conversation(ada))[1:] == ["agent: Gladly."]
    assert "reads only what you write" in mouth.heard


async def test_a_lookup_is_read_before_the_person_is_answered(world: World) -> None:
    mouth = world.script(
        "mouth",
        says("Let me see.", call("check_board")),
        says("Nothing is going on.", call("no_work_needed")),
    )
    _, ada = await idle_team(world)
    await world.chat(ada.id, "What are you doing?")
    await world.settle()
    assert texts(await world.conversation(ada))[1:] == ["agent: Nothing is going on."]
    assert len(mouth.requests) == 2


async def test_a_refused_call_is_read_before_the_person_is_answered(world: World) -> None:
    mouth = world.script(
        "mouth",
        says("Done.", call("start_work", job="x")),
        says("Right, now it is queued.", call("start_work", task="Count the beans")),
    )
    world.script("ada", FINISH)
    founded, ada = await idle_team(world)
    await world.chat(ada.id, "Count them")
    await world.settle()
    assert "start_work" in mouth.heard
    assert [n.task for n in await world.board(founded.team.id)] == ["Count the beans"]
    assert "agent: Done." not in texts(await world.conversation(ada))


# ---- the reply's prompt -------------------------------------------------------------------------


async def test_a_reply_sees_the_conversation_and_the_board_and_no_thread(world: World) -> None:
    mouth = world.script("mouth", says("Will do."), says("Sure.", call("no_work_needed")))
    world.script("ada", says(call("checkpoint", summary="secret-thread-word")), FINISH)
    _, ada = await idle_team(world)
    await world.chat(ada.id, "Research NVIDIA stock")
    await world.settle()
    await world.chat(ada.id, "And thanks")
    await world.settle()
    shown = mouth.requests[1]
    assert "Human: Research NVIDIA stock" in shown.system
    assert "coordinator: Will do." in shown.system
    assert "NVIDIA is up 3 %." in shown.system
    assert "Research NVIDIA stock (node_" in shown.system
    assert "secret-thread-word" not in shown.system
    assert shown.turns[-1].text == "And thanks"
    assert "bash" not in shown.tools


async def test_a_replys_text_is_streamed(tmp_path: Path) -> None:
    heard: list[tuple[str, str]] = []
    world = World(
        tmp_path,
        reply_model="scripted/mouth",
        on_delta=lambda ctx, words: heard.append((ctx.node.lane, words)),
        easy_endings=True,
    )
    async with world:
        world.script("mouth", says("Hello there.", call("no_work_needed")))
        _, ada = await idle_team(world)
        await world.chat(ada.id, "Hi")
        await world.settle()
    assert heard == [("reply", "Hello there.")]


async def test_what_a_message_asks_for_is_said_to_the_runtime_and_not_streamed(
    tmp_path: Path,
) -> None:
    heard: list[str] = []

    def react(request: Request) -> Says:
        is_asked = [*request.transcript.spoken()][-1].ref == DECISION
        return says('{"parts": [{"what": "chat"}]}' if is_asked else "Hello there.")

    world = World(
        tmp_path,
        reply_model="scripted/mouth",
        on_delta=lambda _, words: heard.append(words),
        easy_endings=True,
    )
    async with world:
        world.model("mouth", ReactiveModel("scripted/mouth", react))
        _, ada = await idle_team(world)
        await world.chat(ada.id, "Hi")
        await world.settle()
        told = await world.conversation(ada)
    assert ([m.text for m in told], heard) == (["Hi", "Hello there."], ["Hello there."])


@pytest.mark.parametrize(
    ("words", "title"),
    [
        ("What does this show?", "What does this show?"),
        ("", "File: chart.png"),
        (".", "File: chart.png"),
    ],
)
async def test_pictures_reach_the_reply_and_the_work(world: World, words: str, title: str) -> None:
    mouth = world.script("mouth", says("I see."))
    work = world.script("ada", FINISH)
    founded, ada = await idle_team(world)
    picture = Attachment(name="chart.png", media_type="image/png", data="iVBORw0KGgo=")
    await world.chat(ada.id, words, attachments=(picture,))
    await world.settle()
    assert title in [node.title for node in await world.board(founded.team.id)]
    assert mouth.requests[0].turns[-1].attachments == (picture,)
    assert work.requests[0].turns[0].attachments == (picture,)


async def test_a_replys_cost_is_recorded(world: World) -> None:
    world.script("mouth", says("Hi.", call("no_work_needed"), input_tokens=70, output_tokens=5))
    founded, ada = await idle_team(world)
    await world.chat(ada.id, "Hi")
    await world.settle()
    [row] = await world.ledger(founded.team.id)
    assert (row.purpose, row.input_tokens, row.output_tokens) == ("reply", 70, 5)


# ---- while work is running --------------------------------------------------------------------


async def test_a_busy_agent_replies_at_once_and_its_work_gets_the_message_next_step(
    world: World,
) -> None:
    world.script("mouth", says("I'll add Qualcomm."))
    work = world.script("ada", says(call("check_messages")), FINISH)
    gate = work.gate = Gate()
    founded = await world.found("Compare NVIDIA, AMD and Intel")
    ada = founded.coordinator
    await gate.reached()
    await world.chat(ada.id, "Also include Qualcomm")
    await until(world, lambda: has_reply(world, ada))
    assert texts(await world.conversation(ada))[1:] == ["agent: I'll add Qualcomm."]
    gate.set()
    await world.settle()
    assert any("Also include Qualcomm" in t.text for t in work.requests[-1].turns)
    assert len(await world.board(founded.team.id)) == 1


async def has_reply(world: World, ada: Agent) -> bool:
    return len(await world.conversation(ada)) >= 2


async def test_a_persons_request_ends_a_wait_for_teammates(world: World) -> None:
    world.script("mouth", says("Noted: pricing too."))
    lead = world.script(
        "ada",
        says(call("assign_task", agent="bob", task="wonder", description="x")),
        lambda request: says(call("finish", summary="with pricing")),
    )
    world.model(
        "hand", ReactiveModel("scripted/hand", lambda r: says(call("ask_human", question="?")))
    )
    founded, ada = await idle_team(world)
    await world.store.write(
        roster.hire, founded.team.id, name="bob", role="worker", model="scripted/hand"
    )
    await world.store.write(
        planning.create, team_id=founded.team.id, task="Report", source="user", assignee_id=ada.id
    )
    await world.settle()
    await world.chat(ada.id, "Include pricing")
    await world.settle()
    assert any("Include pricing" in t.text for t in lead.requests[-1].turns)


async def test_small_talk_does_not_end_a_wait(world: World) -> None:
    world.script("mouth", says("You too!", call("no_work_needed")))
    lead = world.script("ada", says(call("ask_human", question="Which one?")), FINISH)
    founded = await world.found("Choose")
    await world.settle()
    await world.chat(founded.coordinator.id, "Have a nice day")
    await world.settle()
    [node] = await world.board(founded.team.id)
    assert node.status is NodeStatus.WAITING
    assert len(lead.requests) == 1
    # Whatever the reply decided, the work gets the message before it continues.
    [question] = await world.questions(founded.team.id)
    await world.answer(question, "This one.")
    await world.settle()
    heard = [t.text for t in lead.requests[-1].turns[-2:]]
    assert heard == [
        "This one.",
        "[Message from human] Have a nice day\n[Runtime] You have replied to them: 'You too!'."
        " Your reply says that it needs no work.",
    ]


async def test_a_nudge_goes_to_the_work_and_is_not_answered(world: World) -> None:
    mouth = world.script("mouth")
    work = world.script("ada", says(call("check_messages")), FINISH)
    gate = work.gate = Gate()
    founded = await world.found("Compare")
    await gate.reached()
    await world.chat(founded.coordinator.id, "Hurry up", nudge=True)
    gate.set()
    await world.settle()
    assert mouth.requests == []
    assert any("Hurry up" in t.text for t in work.requests[-1].turns)


async def test_a_person_can_send_a_message_to_any_worker(world: World) -> None:
    mouth = world.script("mouth", says("Data centre only, then."))
    hand = world.script("hand", says(call("publish", summary="ok")))
    founded, _ = await idle_team(world)
    alice = await world.store.write(
        roster.hire, founded.team.id, name="alice", role="worker", model="scripted/hand"
    )
    await world.chat(alice.id, "Data centre only")
    await world.settle()
    assert "You are alice." in mouth.requests[0].system
    assert hand.requests[0].turns[0].text == "Data centre only"


async def test_people_are_answered_while_all_work_slots_are_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(MAX_RUNNING, "work", 1)
    async with World(tmp_path, reply_model="scripted/mouth", easy_endings=True) as world:
        world.script("mouth", ACK)
        busy = world.script("ada", FINISH, FINISH)
        gate = busy.gate = Gate()
        await world.found("Reservation on")
        await gate.reached()
        _, other = await idle_team(world)
        await world.chat(other.id, "Are you there?")
        await until(world, lambda: has_reply(world, other))
        assert texts(await world.conversation(other))[1:] == [
            "agent: I'll look into NVIDIA's latest figures."
        ]
        assert len(busy.requests) == 1
        gate.set()
        await world.settle()


# ---- when the model fails --------------------------------------------------------------------


@pytest.mark.parametrize(
    "error", [ModelUnavailable("overloaded."), ModelRefused("the key is wrong.")]
)
async def test_when_the_reply_model_fails_the_person_is_told_and_the_work_is_queued(
    world: World, error: Exception
) -> None:
    world.script("mouth", error)
    world.script("ada", FINISH)
    founded, ada = await idle_team(world)
    await world.chat(ada.id, "Research NVIDIA stock")
    await world.settle()
    _, reply, *_ = await world.conversation(ada)
    assert str(error) in reply.text
    assert [(act.kind, act.name) for act in reply.acts] == [("started", "Research NVIDIA stock")]
    [node] = await world.board(founded.team.id)
    assert (node.task, node.status) == ("Research NVIDIA stock", NodeStatus.COMPLETED)


async def test_an_unknown_reply_model_is_reported_and_the_work_is_queued(
    tmp_path: Path,
) -> None:
    async with World(tmp_path, reply_model="nosuch/model", easy_endings=True) as world:
        world.script("ada", FINISH)
        founded, ada = await idle_team(world)
        await world.chat(ada.id, "Research NVIDIA stock")
        await world.settle()
        assert "nosuch" in (await world.conversation(ada))[1].text
        assert len(await world.board(founded.team.id)) == 1


async def test_an_exception_in_a_reply_is_reported_and_the_work_is_done(world: World) -> None:
    def breaks(request: Request) -> Says:
        raise ZeroDivisionError("a bug")

    world.model("mouth", ReactiveModel("scripted/mouth", breaks))
    world.script("ada", FINISH)
    founded, ada = await idle_team(world)
    await world.chat(ada.id, "Research NVIDIA stock")
    await world.settle()
    assert "went wrong" in (await world.conversation(ada))[1].text
    assert [n.status for n in await world.board(founded.team.id)] == [NodeStatus.COMPLETED]


async def test_a_reply_that_only_makes_lookups_is_ended(world: World) -> None:
    world.model("mouth", ReactiveModel("scripted/mouth", lambda r: says(call("check_board"))))
    world.script("ada", FINISH)
    _, ada = await idle_team(world)
    await world.chat(ada.id, "Research NVIDIA stock")
    await world.settle()
    assert len(await world.conversation(ada)) == 3


# ---- once and in order -----------------------------------------------------------------------


async def test_messages_sent_before_a_reply_starts_are_answered_together(world: World) -> None:
    mouth = world.script("mouth", says("All three, gladly.", call("no_work_needed")))
    _, ada = await idle_team(world)
    await asyncio.gather(*(world.chat(ada.id, f"Message {n}") for n in range(3)))
    await world.settle()
    assert len(mouth.requests) == 1
    assert [f"Message {n}" in mouth.requests[0].turns[-1].text for n in range(3)] == [True] * 3
    assert len(await world.conversation(ada)) == 4


async def test_the_same_message_sent_again_is_answered_once(world: World) -> None:
    mouth = world.script("mouth", ACK)
    world.script("ada", FINISH)
    _, ada = await idle_team(world)
    first = await world.chat(ada.id, "Research NVIDIA", client_id="c1")
    again = await world.chat(ada.id, "Research NVIDIA", client_id="c1")
    await world.settle()
    assert first.id == again.id
    assert len(mouth.requests) == 1
    with pytest.raises(Conflict, match="new client_id"):
        await world.chat(ada.id, "Something else", client_id="c1")


@pytest.mark.parametrize("text", ["", "  \n"])
async def test_an_empty_message_is_refused(world: World, text: str) -> None:
    _, ada = await idle_team(world)
    with pytest.raises(Refused, match="empty"):
        await world.chat(ada.id, text)
    assert await replies(world, ada) == []


async def test_a_paused_team_replies_and_does_the_work_after_it_resumes(world: World) -> None:
    world.script("mouth", ACK)
    world.script("ada", FINISH)
    founded, ada = await idle_team(world)
    await world.store.write(teams.pause, founded.team.id)
    await world.chat(ada.id, "Research NVIDIA stock")
    await world.settle()
    [node] = await world.board(founded.team.id)
    assert (len(await world.conversation(ada)), node.status) == (2, NodeStatus.ASSIGNED)
    await world.store.write(teams.resume, founded.team.id)
    await world.settle()
    assert (await world.node(node.id)).status is NodeStatus.COMPLETED


async def test_a_completed_team_does_what_it_is_asked_next(world: World) -> None:
    world.script("mouth", says("Gladly."))
    world.script("ada", FINISH, says(call("finish", summary="And AMD too.")))
    founded = await world.found("NVIDIA")
    await world.settle()
    await world.chat(founded.coordinator.id, "Now AMD")
    await world.settle()
    assert (await world.conversation(founded.coordinator))[-1].text == "And AMD too."
    assert (await world.team(founded.team.id)).status == "completed"


async def test_a_persons_side_request_is_done_although_the_goal_is_reached(world: World) -> None:
    world.script("mouth", says("Queued.", call("start_work", task="Water the plants")))
    work = world.script("ada", FINISH, FINISH, says(call("finish", summary="Watered.")))
    gate = work.gate = Gate()
    founded = await world.found("NVIDIA")
    await gate.reached()
    await world.chat(founded.coordinator.id, "And water the plants")
    await until(world, lambda: has_reply(world, founded.coordinator))
    gate.set()
    await world.settle()
    assert (await world.conversation(founded.coordinator))[-1].text.startswith("Watered.")


async def test_a_message_is_queued_once_however_often_the_model_asks_for_it(world: World) -> None:
    again = [says(call("start_work")) for _ in range(7)]
    world.script("mouth", *again, says("I see to it."))
    world.script("ada", FINISH)
    founded, ada = await idle_team(world)
    await world.chat(ada.id, "Count the beans")
    await world.settle()
    assert [n.task for n in await world.board(founded.team.id)] == ["Count the beans"]
