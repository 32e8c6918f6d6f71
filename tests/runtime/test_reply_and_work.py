"""Replies and work: what a reply to a person sees of the work, and how it acts on it."""

from collections.abc import AsyncIterator
from pathlib import Path

import orjson
import pytest

from agiraph.core.domain.agents import Agent
from agiraph.core.domain.ids import MessageId
from agiraph.core.domain.messages import Draft
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.provenance.labels import CLEAN
from agiraph.core.domain.text.fence import without_fences
from agiraph.core.domain.work import NodeStatus
from agiraph.core.domain.work_kinds import kind_named
from agiraph.core.services.board import planning
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.services.mail import bus
from agiraph.core.services.members import roster
from agiraph.core.store import teams, threads
from agiraph.core.store.tx import Tx
from agiraph.core.tools.replies.foreground import FOREGROUND
from agiraph.features.knowledge.verbs import items
from agiraph.models.catalogue import OWN
from agiraph.models.facts.prices import Prices, Terms
from agiraph.testing import PowerCut, Says, World, call, says
from agiraph.testing.scripted import Asked
from tests.runtime.test_persons_words import label_of_reply
from tests.runtime.waiting import Gate, until
from tests.tools.strangers import DONE, READ, STRANGER, strange_world

NO_WORK = call("no_work_needed")
FINISH = says(call("finish", summary="Done."))


@pytest.fixture
async def world(tmp_path: Path, database_url: str) -> AsyncIterator[World]:
    async with strange_world(tmp_path, database_url, reply_model="scripted/mouth") as opened:
        yield opened


async def team_of_two(world: World) -> tuple[NewTeam, Agent]:
    """Return a team whose coordinator is idle, and a worker."""
    founded = await world.found("Watch the papers", start=False)
    bob = await world.store.write(
        roster.hire, founded.team.id, name="bob", role="worker", model="scripted/bob"
    )
    return founded, bob


async def give(world: World, agent: Agent, task: str) -> None:
    await world.store.write(
        planning.create, team_id=agent.team_id, task=task, source="user", assignee_id=agent.id
    )


def heard(request: Asked) -> str:
    return "\n".join(turn.text for turn in request.turns)


# ---- acting -------------------------------------------------------------------------------------


async def test_work_under_way_is_told_in_the_persons_words(world: World) -> None:
    world.script("mouth", says("I pass it on.", call("tell", node_id="bob")))
    work = world.script("bob", says(call("checkpoint", summary="12 papers")), FINISH, FINISH)
    gate = work.gate = Gate()
    founded, bob = await team_of_two(world)
    await give(world, bob, "Read papers")
    await gate.reached()
    await world.chat(founded.coordinator.id, "Take only papers since 2024")
    await until(world, lambda: _is_answered(world, founded))
    gate.set()
    await world.settle()
    assert "[Message from human] Take only papers since 2024" in heard(work.requests[-1])
    assert [node.task for node in await world.board(founded.team.id)] == ["Read papers"]


async def _is_answered(world: World, founded: NewTeam) -> bool:
    return any(m.sender != OWNER for m in await world.conversation(founded.coordinator))


async def test_ended_work_is_not_told_but_continued_in_its_thread(world: World) -> None:
    mouth = world.script(
        "mouth",
        says(call("tell", node_id="bob"), call("stop_work", node_id="bob")),
        says("Bob goes on.", call("start_work", continues="bob")),
    )
    work = world.script("bob", says(call("publish", summary="12 papers.")))
    founded, bob = await team_of_two(world)
    await give(world, bob, "Read papers")
    await world.settle()
    work.lines[:] = [says(call("publish", summary="40 papers."))]
    await world.chat(founded.coordinator.id, "And the others?")
    await world.settle()
    refusals = heard(mouth.requests[1])
    assert "has ended (completed)" in refusals
    assert "there is nothing to stop" in refusals
    assert "12 papers." in str(work.requests[-1].turns)
    first, second = await world.board(founded.team.id)
    assert (second.thread_id, second.result) == (first.thread_id, "40 papers.")


@pytest.mark.parametrize("said", ["Blue", "2", "٢", "２。", "yes", "好"])  # noqa: RUF001
async def test_a_bare_answer_answers_nothing_unless_a_call_says_so(world: World, said: str) -> None:
    mouth = world.script("mouth", says("Noted.", NO_WORK))
    ask = call("ask_human", question="Which?", options=["red", "blue"])
    world.script("ada", says(ask), DONE)
    founded = await world.found("Paint")
    await world.settle()
    await world.chat(founded.coordinator.id, said)
    await world.settle()
    [asked] = await world.questions(founded.team.id)
    assert asked.text == "Which?"
    mouth.lines[:] = [says("Thank you.", call("answer"))]
    await world.chat(founded.coordinator.id, said)
    await world.settle()
    assert await world.questions(founded.team.id) == []
    [reply] = [m for m in await world.conversation(founded.coordinator) if m.acts]
    stored = "blue" if said[0] in "2٢２" else said  # noqa: RUF001
    assert [(act.kind, act.name, act.words) for act in reply.acts] == [
        ("answered", "Which?", stored)
    ]


async def test_one_yes_answers_the_newest_question_of_this_conversation_alone(
    world: World,
) -> None:
    world.script("ada", says(call("ask_human", question="Delete the backup?")), DONE)
    world.script("bob", says(call("ask_human", question="Is blue right?")), DONE)
    founded, bob = await team_of_two(world)
    for agent in (founded.coordinator, bob):
        await give(world, agent, "Paint")
        await world.settle()
    [of_ada, of_bob] = await world.questions(founded.team.id)
    by_id = call("answer", question_id=of_bob.id)
    mouth = world.script("mouth", says(call("answer"), by_id), says("Both are answered."))
    await world.chat(founded.coordinator.id, "Yes.")
    await world.settle()
    assert "they answer one question" in heard(mouth.requests[1])
    assert [q.id for q in await world.questions(founded.team.id)] == [of_bob.id]
    [reply] = [m for m in await world.conversation(founded.coordinator) if m.acts]
    assert [(act.kind, act.about) for act in reply.acts] == [("answered", of_ada.id)]


async def test_an_answer_counts_once_if_a_crash_comes_before_the_reply(world: World) -> None:
    work = world.script("ada", says(call("ask_human", question="Which?")), DONE)
    founded = await world.found("Paint")
    await world.settle()
    [asked] = await world.questions(founded.team.id)
    gives = says(call("answer", question_id=asked.id))
    world.script("mouth", gives, PowerCut(), says("Then the cheaper one."))
    await world.chat(founded.coordinator.id, "Use the cheaper one")
    await world.settle()
    await world.restart()
    await world.settle()
    assert heard(work.requests[-1]).count("Use the cheaper one") == 1
    said = [(m.kind, m.text) for m in await world.conversation(founded.coordinator)]
    assert said.count(("answer", "Use the cheaper one")) == 1
    assert ("message", "Then the cheaper one.") in said
    assert len(await world.board(founded.team.id)) == 1


async def test_words_in_a_conversation_approve_nothing(world: World) -> None:
    founded = await world.found("Paint", start=False)
    asked = await world.store.write(_approval, founded.coordinator)
    answer = says("It is done.", call("answer", question_id=asked))
    mouth = world.script("mouth", answer, says("Decide on the card in your inbox.", NO_WORK))
    await world.chat(founded.coordinator.id, "yes, approve")
    await world.settle()
    assert "Words in a conversation approve nothing" in heard(mouth.requests[1])
    assert [q.id for q in await world.questions(founded.team.id)] == [asked]


def _approval(tx: Tx, agent: Agent) -> MessageId:
    return bus.send(
        tx,
        Draft(
            team_id=agent.team_id, sender=agent.id, recipient=OWNER, kind="approval", text="May I?"
        ),
    ).id


async def hired_for_one_task(world: World, founded: NewTeam, *then: Says) -> Agent:
    """Return an agent that the coordinator hired for one task, once it has done it and left."""
    task = call("assign_task", agent="new:scripted/bob", task="Count birds.", description="Count")
    world.script("ada", says(task), DONE, *then)
    await world.chat(founded.coordinator.id, "Have the birds counted.")
    await world.settle()
    [gone] = await world.store.read(teams.retired, founded.team.id)
    return gone


async def test_an_agent_that_left_is_shown_its_result_and_goes_on_in_its_thread(
    world: World,
) -> None:
    mouth = world.script("mouth", says("It is under way."))
    work = world.script("bob", says(READ), says(call("publish", summary="41 herons.")))
    founded = await world.found("Watch birds", start=False)
    results = [f"Other result {number}." for number in range(6)]
    others = [says(call("finish", summary=result)) for result in results]
    bob = await hired_for_one_task(world, founded, *others)
    for number in range(6):
        await give(world, founded.coordinator, f"Other work {number}")
        await world.settle()

    mouth.lines[:] = [says("I count again.")]
    work.lines[:] = [says(call("publish", summary="43 herons."))]
    await world.chat(bob.id, "And how many are there today?")
    await world.settle()

    system = mouth.requests[-1].system
    own = system.partition("# What you did last")[2].partition("\n# ")[0]
    assert ("41 herons." in own, "Other result 5." in own) == (True, False)
    assert "Other result 5." in system.partition("# What has ended lately")[2]
    *_, first, second = [n for n in await world.board(bob.team_id) if n.assignee_id == bob.id]
    assert (second.thread_id, second.result) == (first.thread_id, "43 herons.")
    assert "41 herons." in str(work.requests[-1].turns)
    [*_, reply] = await world.conversation(bob)
    assert reply.label == STRANGER


# ---- seeing -------------------------------------------------------------------------------------


async def test_what_a_reply_reads_of_labelled_work_labels_it(world: World) -> None:
    world.script("bob", says(READ), says(call("publish", summary="A page about birds.")))
    founded, bob = await team_of_two(world)
    await give(world, bob, "Read the page")
    await world.settle()
    mouth = world.script("mouth", says("I see.", NO_WORK))
    await world.store.write(
        items.learn, founded.coordinator, "fact", "Larks are early", author=OWNER
    )
    await world.chat(founded.coordinator.id, "Hello")
    await world.settle()
    assert await label_of_reply(world, founded) == CLEAN
    for hidden in ("Larks", "about birds"):
        assert hidden not in mouth.requests[0].system

    mouth.lines[:] = [says(call("look_into", what="bob")), says("A page.", NO_WORK)]
    await world.chat(founded.coordinator.id, "What have you found?")
    await world.settle()
    assert await label_of_reply(world, founded) == STRANGER
    record = mouth.requests[-1].turns[-1].text
    assert "A page about birds." in record
    assert "Larks" not in record
    assert "about birds" not in without_fences(record)
    [*_, reply] = await world.conversation(founded.coordinator)
    assert (reply.consulted, reply.label) == (("look_into(bob)",), STRANGER)


async def test_a_reply_looks_into_work_only(world: World) -> None:
    founded = await world.found("Keep watch", start=False)
    reflection = await world.store.write(
        planning.create,
        team_id=founded.team.id,
        task="Look back",
        source="self",
        kind=kind_named("reflection"),
    )
    looks = [call("look_into", what=reflection.id), call("read_report", id=reflection.id)]
    mouth = world.script("mouth", says(*looks), says("I cannot see that.", NO_WORK))
    await world.chat(founded.coordinator.id, "What did you learn?")
    await world.settle()
    refused = [turn.text for turn in mouth.requests[-1].turns if turn.role == "tool"]
    assert refused == [f"{reflection.id} is not work; check_board lists the team's work."] * 2


async def test_a_search_finds_messages_steps_and_insights(world: World) -> None:
    founded, bob = await team_of_two(world)
    ada = founded.coordinator
    world.script("bob", says(call("publish", summary="The heron nests in the reeds.")))
    await give(world, bob, "Look for birds")
    await world.store.write(items.learn, ada, "fact", "A heron eats frogs", author=OWNER)
    await world.settle()
    mouth = world.script(
        "mouth",
        says("Hello.", NO_WORK),
        says(call("search", query="heron")),
        says("In the reeds.", NO_WORK),
    )
    await world.chat(ada.id, "I like the heron")
    await world.settle()
    await world.chat(ada.id, "What was it about that bird?")
    await world.settle()
    found = mouth.requests[-1].turns[-1].text
    for text in ("A heron eats frogs", "nests in the reeds", "I like the heron"):
        assert text in found


@pytest.mark.slow
@pytest.mark.parametrize(("window", "most"), [(128_000, 8000), (20_000, 5000)])
async def test_a_reply_keeps_to_its_size_however_much_is_open(
    tmp_path: Path, window: int, most: int
) -> None:
    prices = Prices({OWN: Terms(window=window)})
    async with World(tmp_path, prices=prices, reply_model="scripted/mouth") as world:
        mouth = world.script("mouth", says("Much is open.", NO_WORK))
        founded, bob = await team_of_two(world)
        await world.store.write(_long_state, founded.coordinator, bob)
        await world.chat(founded.coordinator.id, "How is it going?")
        await until(world, lambda: _has_said(world, founded, "Much is open."))
        [asked] = mouth.requests
        specs = [FOREGROUND[name].spec for name in asked.tools]
        tools = sum(len(t.description) + len(orjson.dumps(t.schema)) for t in specs)
        assert (len(asked.system.encode()) + tools) // 4 <= most
        for part in ("more: check_board", "An old message", "Task number", "They like the number"):
            assert part in asked.system


async def _has_said(world: World, founded: NewTeam, text: str) -> bool:
    return any(m.text == text for m in await world.conversation(founded.coordinator))


def _long_state(tx: Tx, ada: Agent, bob: Agent) -> None:
    for number in range(50):
        planning.create(
            tx,
            team_id=ada.team_id,
            task=f"Task number {number} " + "with many words " * 100,
            source="user",
            assignee_id=None,
            title=f"Task number {number} " + "with many words " * 10,
        )
        items.remember(tx, ada, f"They like the number {number} " + "very much " * 20, author=OWNER)
        for sender, recipient in ((OWNER, ada.id), (ada.id, OWNER)):
            bus.send(
                tx,
                Draft(
                    team_id=ada.team_id,
                    sender=sender,
                    recipient=recipient,
                    text="An old message " * 150,
                    kind="notice",
                ),
                sets_to_work=False,
            )


# ---- the older conversation ---------------------------------------------------------------------


def _small_talk(tx: Tx, ada: Agent) -> None:
    for number in range(60):
        bus.send(
            tx,
            Draft(
                team_id=ada.team_id,
                sender=OWNER if number % 2 else ada.id,
                recipient=ada.id if number % 2 else OWNER,
                text=f"Word {number} of the talk",
                kind="notice",
                label=STRANGER if number == 3 else CLEAN,
            ),
            sets_to_work=False,
        )


async def test_older_messages_stand_in_a_summary_that_survives_a_crash(world: World) -> None:
    founded = await world.found("Talk", start=False)
    ada = founded.coordinator
    await world.store.write(_small_talk, ada)
    mouth = world.script("mouth", says("Hello.", NO_WORK), says("Yes.", NO_WORK))
    work = world.script("ada", PowerCut(), says("They talked about words."))
    await world.chat(ada.id, "Hello")
    await world.settle()
    assert "Word 2 of the talk" in mouth.requests[0].system
    await world.restart()
    await world.settle()

    row = await world.store.read(threads.summary_of, ada.id, OWNER)
    assert (row.text, row.label) == ("They talked about words.", STRANGER)
    assert "Word 3 of the talk" in work.requests[-1].system
    costs = await world.ledger(founded.team.id)
    assert {c.purpose: c.calls for c in costs if c.purpose == "summary"} == {"summary": 1}

    await world.chat(ada.id, "Do you remember?")
    await world.settle()
    system = mouth.requests[-1].system
    assert "They talked about words." in system
    assert "They talked about words." not in without_fences(system)
    assert "Word 2 of the talk" not in system
    assert "Word 58 of the talk" in system
    assert await label_of_reply(world, founded) == STRANGER
    open_nodes = [
        n for n in await world.board(founded.team.id) if n.status is not NodeStatus.COMPLETED
    ]
    assert open_nodes == []
