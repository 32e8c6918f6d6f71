"""Messages between teammates arrive at once, and a chain of them ends at the hop limit."""

from dataclasses import dataclass

import pytest

from agiraph.core.domain.agents import Agent, Limits
from agiraph.core.domain.ids import AgentId
from agiraph.core.domain.messages import MAX_HOPS, Draft
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.work import NodeStatus
from agiraph.core.services.board import planning
from agiraph.core.services.lifecycle import endings
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.services.mail import bus
from agiraph.core.services.members import roster
from agiraph.core.store import messages
from agiraph.core.store.messages import MESSAGES
from agiraph.models.base import OnDelta, Reply, Request
from agiraph.testing import Call, World, call, says
from agiraph.testing.scripted import as_reply
from tests.fences import opened
from tests.services.teams import add_child, found_waiting_team

S = NodeStatus


@dataclass(slots=True)
class PoliteModel:
    """A model that sends thanks to a teammate, whatever it is told."""

    thanks: Call
    tireless: bool = False
    """Keep sending thanks instead of submitting."""
    replies: int = 0
    refusals: int = 0

    @property
    def name(self) -> str:
        return "scripted/polite"

    async def reply(self, request: Request, on_delta: OnDelta | None = None) -> Reply:
        self.replies += 1
        turns = list(request.transcript.spoken())
        refused = [t for t in turns if "answered each other" in t.text]
        self.refusals += bool(refused)
        # A message may come before it has submitted; then it thanks once more.
        has_thanked = turns[-1].role == "tool"
        if has_thanked and not self.tireless:
            return as_reply(says(call("publish", summary="thanked")))
        return as_reply(says(self.thanks))


async def run_polite_team(world: World, thanks: dict[str, Call], **more: bool) -> list[PoliteModel]:
    """Hire agents that send these thanks, greet the first one, and let them all run to the end."""
    founded, _ = await found_waiting_team(world)
    models = [PoliteModel(each, **more) for each in thanks.values()]
    workers: list[Agent] = []
    for name, model in zip(thanks, models, strict=True):
        world.model(name, model)
        workers.append(await hire(world, founded, name))
    await world.say(workers[0].id, "Welcome!", team_id=founded.team.id)
    await world.settle()
    board = await world.board(founded.team.id)
    assert all(node.status.is_final for node in board[1:])
    paid = await world.ledger(founded.team.id)
    assert sum(row.calls for row in paid) == 1 + sum(m.replies for m in models)
    return models


async def hire(world: World, founded: NewTeam, name: str) -> Agent:
    return await world.store.write(
        roster.hire, founded.team.id, name=name, role="worker", model=f"scripted/{name}"
    )


async def hops_of_thanks(world: World) -> set[int]:
    """Return the hops of all thanks that were sent."""
    where = "text like 'Thank you%'"
    sent = await world.store.read(lambda tx: messages.MESSAGES.select(tx, where))
    return {message.hops for message in sent}


def thank(to: str) -> Call:
    return call("send_message", to=to, content="Thank you!")


@pytest.mark.slow
@pytest.mark.parametrize(
    "circle", [{"ann": "ben", "ben": "ann"}, {"ann": "ben", "ben": "cyd", "cyd": "ann"}]
)
async def test_a_cycle_of_messages_ends_at_the_hop_limit(
    world: World, circle: dict[str, str]
) -> None:
    await run_polite_team(world, {who: thank(to) for who, to in circle.items()})
    assert await hops_of_thanks(world) == {*range(1, MAX_HOPS + 1)}


@pytest.mark.slow
@pytest.mark.parametrize(
    "circle", [{"ann": "ben", "ben": "ann"}, {"ann": "ben", "ben": "cyd", "cyd": "ann"}]
)
async def test_a_cycle_of_messages_ends_even_if_the_models_never_submit(
    world: World, circle: dict[str, str]
) -> None:
    models = await run_polite_team(world, {w: thank(to) for w, to in circle.items()}, tireless=True)
    assert sum(m.replies for m in models) <= 50 * MAX_HOPS


async def test_broadcasts_that_answer_broadcasts_end_at_the_hop_limit(world: World) -> None:
    models = await run_polite_team(
        world, {w: thank("everyone") for w in ("ann", "ben", "cyd", "dee")}
    )
    assert sum(m.replies for m in models) <= 2 * 4 * (MAX_HOPS + 2)


@pytest.mark.slow
async def test_messages_between_a_program_and_an_agent_end_at_the_hop_limit(world: World) -> None:
    founded, _ = await found_waiting_team(world)
    ann = PoliteModel(thank("thanker"))
    world.model("ann", ann)
    await hire(world, founded, "ann")
    program = await world.store.write(
        roster.hire, founded.team.id, name="thanker", role="worker", model="cli", kind="cli",
        # Without the end of the line, so that it is sent when the program has ended: a program
        # that still runs is given ann's reply, and does not answer it.
        command="echo thanked > _result.md; printf '@ann: Thank you all!' >> _outbox.md",
    )  # fmt: skip
    await world.say(AgentId(program.id), "Welcome!", team_id=founded.team.id)
    await world.settle()
    assert await hops_of_thanks(world) == {*range(1, MAX_HOPS + 1)}


async def test_a_sender_is_told_whether_its_message_was_read(world: World) -> None:
    lead = (
        says(call("ask_human", question="Begin?")),
        says(
            call("send_message", to="bob", content="First."),
            call("send_message", to="bob", content="Second."),
            call("check_messages"),
            call("send_message", to="everyone", content="Third."),
            call("ask_human", question="Done?"),
        ),
    )
    founded, workers = await found_waiting_team(world, "bob", "cyd", lead=lead)
    [question] = await world.questions(founded.team.id)
    await world.answer(question, "Yes.")
    await world.settle()
    assert founded.node is not None
    answers = [t.text for t in await world.turns(founded.node.id) if t.role == "tool"]
    assert answers[1:] == [
        "Sent to bob. Seen: they had nothing to do and take it up now.",
        "Sent to bob. Queued: they hear it at their next step.",
        "No new messages.\nNot heard yet by bob: 'Second.'",
        "Sent to bob, cyd.",
    ]
    assert await world.store.read(messages.unseen, workers["bob"].id) == []


INTERRUPTED = "Interrupted, because there is a message for you"


@pytest.mark.parametrize(
    ("said", "interrupts"),
    [
        (call("suggest_next", suggestion="Look into costs."), True),
        (call("send_message", to="coordinator", content="Half is done?"), False),
        (call("send_message", to="everyone", content="Half is done."), False),
        (call("send_message", to="everyone", content="Stop.", kind="urgent"), True),
        (call("send_message", to="coordinator", content="Stop.", kind="urgent"), True),
        (call("send_message", to="coordinator", content="Go on.", kind="question"), True),
        (call("publish", summary="done early"), False),
    ],
)
async def test_what_asks_nothing_does_not_end_a_wait_for_teammates(
    world: World, said: Call, interrupts: bool
) -> None:
    ids: list[str] = []
    lead = (
        says(call("ask_human", question="Begin?")),
        lambda _: says(call("task_output", id=ids[0], blocking=True)),
        says(call("ask_human", question="Now?")),
    )
    world.script("tom", says(said), says(call("publish", summary="done")))
    founded, workers = await found_waiting_team(world, "bob", lead=lead)
    tom = await hire(world, founded, "tom")
    ids.append(await add_child(world, founded, "wonder", to=workers["bob"]))
    await world.settle()
    [question] = [q for q in await world.questions(founded.team.id) if q.text == "Begin?"]
    await world.answer(question, "Yes.")
    await world.settle()
    await add_child(world, founded, "talk", to=tom)
    await world.settle()

    assert founded.node is not None
    goal = await world.node(founded.node.id)
    asked = [t.text for t in await world.turns(goal.id) if t.text.startswith(INTERRUPTED)]
    assert len(asked) == interrupts
    assert goal.waiting_reason == (
        "asked the human: Now?" if interrupts else f"the result of 'wonder' ({ids[0]})"
    )
    if interrupts and said.name == "send_message":
        heard = "\n".join(t.text for t in await world.turns(goal.id) if t.role == "user")
        kind = said.arguments["kind"]
        assert f"[Message from tom ({kind})]" in heard
        told = "tom waits for your answer: send it as a message to tom."
        assert (told in heard) == (kind == "question")


async def test_a_teammates_message_does_not_end_a_wait_for_the_person(world: World) -> None:
    world.script(
        "tom",
        says(call("send_message", to="coordinator", content="Hello.")),
        says(call("publish", summary="done")),
    )
    founded, _ = await found_waiting_team(world)
    await add_child(world, founded, "talk", to=await hire(world, founded, "tom"))
    await world.settle()

    assert founded.node is not None
    goal = await world.node(founded.node.id)
    assert (goal.status, goal.waiting_reason) == (S.WAITING, "asked the human: Shall we?")
    [question] = await world.questions(founded.team.id)
    await world.answer(question, "Yes.")
    await world.settle()
    heard = [t.text for t in await world.turns(goal.id) if t.role in ("tool", "user")]
    assert [opened(text) for text in heard[1:3]] == ["Yes.", "[Message from tom] Hello."]


async def test_a_late_answer_to_an_agent_that_has_left_goes_to_the_coordinator(
    world: World,
) -> None:
    """Even in a full team, which cannot take the agent back."""
    founded, _ = await found_waiting_team(world, limits=Limits(agents=2))
    temp = await world.store.write(
        roster.hire, founded.team.id, name="temp", role="worker", model="scripted/hand",
        persistent=False,
    )  # fmt: skip
    node_id = await add_child(world, founded, "wonder", to=temp)
    await world.settle()
    [question] = [q for q in await world.questions(founded.team.id) if q.node_id == node_id]
    await world.store.write(endings.cancel, node_id)
    await hire(world, founded, "successor")
    await world.answer(question, "Yes, you may.")
    [*_, offer] = await world.questions(founded.team.id)
    await world.answer(offer, offer.options[0])

    late = await world.store.read(MESSAGES.select, "in_reply_to is not null and kind = 'message'")
    assert [(m.recipient, m.text) for m in late] == [
        (founded.coordinator.id, "(answering 'May I?') Yes, you may.")
    ]


@pytest.mark.parametrize(("hops", "starts"), [(MAX_HOPS - 1, True), (MAX_HOPS, False)])
async def test_mail_that_a_cancelled_agent_has_not_read_starts_work_below_the_hop_limit(
    world: World, hops: int, starts: bool
) -> None:
    founded, workers = await found_waiting_team(world, "bob")
    node_id = await add_child(world, founded, "wonder", to=workers["bob"])
    await world.settle()
    thanks = await world.store.write(
        bus.send,
        Draft(
            team_id=founded.team.id,
            sender=founded.coordinator.id,
            recipient=workers["bob"].id,
            text="Thank you!",
            hops=hops,
        ),
    )
    await world.store.write(endings.cancel, node_id)
    await world.settle()

    started = [n for n in await world.board(founded.team.id) if n.title.startswith("Message from")]
    assert [node.status for node in started] == [S.COMPLETED] * starts
    assert ((await world.store.read(MESSAGES.get, thanks.id)).seen_at is not None) == starts


@pytest.mark.parametrize(("hops", "asked"), [(MAX_HOPS - 2, "bob"), (MAX_HOPS - 1, OWNER)])
async def test_a_question_in_words_that_would_start_no_work_goes_to_the_person(
    world: World, hops: int, asked: str
) -> None:
    founded, workers = await found_waiting_team(world, "bob")
    world.script("tom", says("Red or blue?"), *[says(call("publish", summary="done"))] * 2)
    tom = await hire(world, founded, "tom")
    await world.store.write(
        planning.create,
        team_id=founded.team.id,
        task="Paint it",
        source="delegation",
        creator_id=workers["bob"].id,
        assignee_id=tom.id,
        hops=hops,
    )
    await world.settle()

    [question] = [
        message
        for message in await world.store.read(MESSAGES.select, "kind = 'question'")
        if message.sender == tom.id
    ]
    assert question.recipient == (OWNER if asked == OWNER else workers[asked].id)


async def test_what_belongs_to_a_task_neither_wakes_nor_interrupts(world: World) -> None:
    founded, _ = await found_waiting_team(world)
    assert founded.node is not None
    text, team_id = "This file belongs to the goal.", founded.team.id
    said = await world.say(
        founded.coordinator.id, text, team_id=team_id, kind="nudge", is_mail=False
    )
    await world.settle()
    [node] = await world.board(founded.team.id)
    assert (node.status, said.seen_at is not None) == (NodeStatus.WAITING, True)
    assert text not in str(await world.turns(node.id))
