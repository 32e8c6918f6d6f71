"""Reflection: what an agent learned from its work is stored once, with its source thread."""

import json
from typing import Any

import pytest

from agiraph.core.domain.errors import ContextExceeded, ModelGarbled, ModelRefused, ModelUnavailable
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.provenance.labels import of_page
from agiraph.core.domain.work import Budget, NodeStatus
from agiraph.core.runtime.structured_question import value_in
from agiraph.core.services.lifecycle import teams
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.services.members import roster
from agiraph.core.store.threads import THREADS
from agiraph.core.store.tx import Tx
from agiraph.features.knowledge.kind import _closed_work, read_insights, read_verdict, record
from agiraph.features.knowledge.verbs import items
from agiraph.models.base import Request
from agiraph.testing import Says, World, call, says
from tests.runtime.reflecting_model import (
    HARVEST,
    INSIGHT,
    ReflectingModel,
    briefing,
    create_node,
    submit,
)
from tests.runtime.waiting import until


def insights(tx: Tx) -> list[tuple[str, str, str | None, str]]:
    """Return all insights: type, content, source thread and status."""
    rows = tx.all("select type, content, source_thread_id, status from insights order by content")
    return [tuple(row) for row in rows]  # type: ignore[misc]


def reflections(tx: Tx) -> list[tuple[str, str | None]]:
    rows = tx.all("select status, result from nodes where lane = 'reflection' order by id")
    return [tuple(row) for row in rows]  # type: ignore[misc]


async def reflection_is(world: World, status: NodeStatus) -> bool:
    return [row[0] for row in await world.store.read(reflections)] == [status]


async def found_learning_team(world: World, model: ReflectingModel, **more: Any) -> NewTeam:
    """Found a team that reflects on its work and has nothing to do yet."""
    world.model("ada", model)
    return await world.found("Watch the market", learns=True, start=False, mode="infinite", **more)


async def do_task(world: World, founded: NewTeam, task: str = "Look around") -> str:
    """Let the coordinator do a task that nobody asked for; return the id of its thread."""
    node = await create_node(world, founded.team.id, founded.coordinator.id, task)
    await world.settle()
    return (await world.thread(node.id)).id


async def test_extracts_insights_after_clearing_queue(world: World) -> None:
    model = ReflectingModel()
    founded = await found_learning_team(world, model)
    first = await create_node(world, founded.team.id, founded.coordinator.id, "First")
    await create_node(world, founded.team.id, founded.coordinator.id, "Second")
    await world.settle()

    assert model.questions() == ["harvest", "briefing"]  # once, when nothing was left to do
    told = model.asked[0][1][-1].text
    assert told.index("Work 1: First (completed)") < told.index("Work 2: Second (completed)")
    source = (await world.thread(first.id)).id
    assert await world.store.read(insights) == [
        ("technique", "Check filings first", source, "active")
    ]


async def test_insight_linked_to_the_thread(world: World) -> None:
    second = {**INSIGHT, "type": "fact", "content": "Shops close at six", "work": 2}
    lost = {**INSIGHT, "type": "lesson", "content": "Ask earlier", "work": 7}
    model = ReflectingModel(harvest=[json.dumps({"insights": [INSIGHT, second, lost]})])
    founded = await found_learning_team(world, model)
    nodes_ = [
        await create_node(world, founded.team.id, founded.coordinator.id, task)
        for task in ("A", "B")
    ]
    await world.settle()
    one, two = [(await world.thread(node.id)).id for node in nodes_]
    assert [row[1:3] for row in await world.store.read(insights)] == [
        ("Ask earlier", two),
        ("Check filings first", one),
        ("Shops close at six", two),
    ]


async def test_thread_marked_completed_after_extraction(world: World) -> None:
    founded = await found_learning_team(world, ReflectingModel())
    thread = await world.store.read(THREADS.get, await do_task(world, founded))
    assert thread.closed_at is not None
    assert thread.harvested_at is not None
    [harvested] = [e for e in await world.events(founded.team.id) if e.type == "thread.harvested"]
    assert harvested.data == {
        "thread_id": thread.id,
        "agent_id": founded.coordinator.id,
        "insights": 1,
    }


async def test_a_briefing_is_asked_for_as_the_person_wants_it(world: World) -> None:
    model = ReflectingModel()
    founded = await found_learning_team(world, model)
    ada = founded.coordinator
    await world.store.write(items.remember, ada, "Reads only numbers, in German", author=OWNER)
    await do_task(world, founded)
    asked = {name: turns[-1].text for name, turns, _ in model.asked}
    known = "What you know of them:\n- Reads only numbers, in German"
    assert (known in asked["briefing"], known in asked["harvest"]) == (True, False)
    assert "in the language they want, else the goal's." in asked["briefing"]


async def test_each_thread_is_reflected_on_once(world: World) -> None:
    model = ReflectingModel()
    founded = await found_learning_team(world, model)
    await do_task(world, founded, "One")
    await do_task(world, founded, "Two")
    records = [turns[-1].text for name, turns, _ in model.asked if name == "harvest"]
    assert [("One" in r, "Two" in r) for r in records] == [(True, False), (False, True)]


@pytest.mark.slow
async def test_of_many_threads_all_are_reflected_on_several_at_a_time(world: World) -> None:
    model = ReflectingModel()
    founded = await found_learning_team(world, model)
    tasks = [f"Task-{letter}" for letter in "ABCDEFGHIJKL"]
    for task in tasks:
        await create_node(world, founded.team.id, founded.coordinator.id, task)
    await world.settle()
    records = [turns[-1].text for name, turns, _ in model.asked if name == "harvest"]
    read = [[task for task in tasks if f": {task} (" in record] for record in records]
    assert read == [tasks[:5], tasks[5:10], tasks[10:]]
    events = [e.data for e in await world.events(founded.team.id) if e.type == "thread.harvested"]
    assert [data.get("passed_over") for data in events] == [None] * 12


def ask_first(request: Request) -> Says:
    """Ask the person, then submit."""
    if any(turn.role == "tool" for turn in request.transcript.spoken()):
        return submit(request)
    return says(call("ask_human", question="May I?"))


async def test_what_comes_from_words_of_strangers_is_an_unverified_fact(world: World) -> None:
    founded = await found_learning_team(world, ReflectingModel(work=ask_first))
    thread = await do_task(world, founded)
    await world.store.write(THREADS.update, thread, label=of_page("https://example.org"))
    [question] = await world.questions(founded.team.id)
    await world.answer(question, "Yes")
    await world.settle()
    assert await world.store.read(insights) == [
        ("fact", "Check filings first", thread, "unverified")
    ]


def write_long_notes(request: Request) -> Says:
    """Write nine long checkpoints, then submit."""
    made = sum(turn.role == "tool" for turn in request.transcript.spoken())
    return submit(request) if made == 9 else says(call("checkpoint", summary=f"{made} " * 900))


async def test_a_long_thread_is_shortened_for_reflection(world: World) -> None:
    model = ReflectingModel(work=write_long_notes)
    founded = await found_learning_team(world, model)
    thread = await world.store.read(THREADS.get, await do_task(world, founded, "Toil " * 5000))
    assert thread.reflection_id is not None
    ended = await world.store.read(_closed_work, thread.reflection_id)
    reflection_thread = (await world.thread(thread.reflection_id)).id
    whole = record(ended, 1_000_000, reflection_thread)
    short = record(ended, 5000, reflection_thread)
    assert "Told: Toil" in model.asked[0][1][-1].text
    assert model.asked[0][1][-1].text.startswith(whole)
    assert 18_000 < len(whole) < 25_000
    assert len(short) < 5200
    assert short.count("checkpoint(") == 9
    assert "finish(Found what there is.)" in short


async def test_a_record_that_exceeds_the_context_window_is_sent_again_shorter(world: World) -> None:
    model = ReflectingModel(harvest=[ContextExceeded("too long"), HARVEST])
    founded = await found_learning_team(world, model)
    await do_task(world, founded, "Read this: " + "x" * 5000)
    assert model.questions() == ["harvest", "harvest:short", "briefing"]
    long, short = (turns for _, turns, _ in model.asked[:2])
    assert len(short) == 1
    assert len(short[-1].text) < len(long[-1].text)
    assert len(await world.store.read(insights)) == 1


@pytest.mark.parametrize(
    "first", ["I learned a lot.", ModelGarbled("not JSON"), ModelRefused("no schemas here")]
)
async def test_an_answer_that_cannot_be_parsed_is_asked_for_once_more(
    world: World, first: str | Exception
) -> None:
    model = ReflectingModel(harvest=[first, f"Here you are:\n```json\n{HARVEST}\n```"])
    founded = await found_learning_team(world, model)
    await do_task(world, founded)
    assert model.questions() == ["harvest", "harvest:again", "briefing"]
    assert [schema is None for _, _, schema in model.asked] == [False, True, False]
    assert len(await world.store.read(insights)) == 1


async def test_a_second_answer_that_cannot_be_parsed_ends_the_reflection(world: World) -> None:
    model = ReflectingModel(harvest=["I learned a lot."], verdict=["Perhaps."])
    founded = await found_learning_team(world, model)
    thread = await do_task(world, founded)
    assert model.questions() == ["harvest", "harvest:again", "briefing", "briefing:again"]
    assert await world.store.read(insights) == []
    assert (await world.store.read(THREADS.get, thread)).harvested_at is not None
    assert await world.inbox() == []


async def test_a_reflection_waits_for_an_unavailable_model(world: World) -> None:
    model = ReflectingModel(harvest=[ModelUnavailable("overloaded"), HARVEST])
    founded = await found_learning_team(world, model)
    await do_task(world, founded)
    [(status, _)] = await world.store.read(reflections)
    assert status == NodeStatus.WAITING
    world.clock.advance(minutes=5)
    await until(world, lambda: reflection_is(world, NodeStatus.COMPLETED))
    assert len(await world.store.read(insights)) == 1
    assert await world.inbox() == []


async def test_a_reflection_that_the_model_refuses_fails_without_a_message_to_the_person(
    world: World,
) -> None:
    model = ReflectingModel(harvest=[ModelRefused("no such model")])
    founded = await found_learning_team(world, model)
    thread = await do_task(world, founded)
    assert await world.store.read(reflections) == [(NodeStatus.FAILED, None)]
    assert (await world.inbox(), await world.questions(founded.team.id)) == ([], [])
    failed = [e for e in await world.events(founded.team.id) if e.type == "model.failed"]
    assert len(failed) == 2

    model.harvest = [HARVEST]  # the next task makes the agent reflect again
    await do_task(world, founded, "More")
    sources = [row[2] for row in await world.store.read(insights)]
    assert sources == [thread]


async def test_a_reflection_is_paid_from_the_envelope_of_the_work(world: World) -> None:
    model = ReflectingModel()
    world.model("ada", model)
    founded = await world.found("Watch", learns=True, budget=Budget(model_calls=1))
    await world.settle()
    assert founded.node is not None
    assert model.asked == []  # its envelope is empty: no call is made
    [(status, _)] = await world.store.read(reflections)
    assert status == NodeStatus.FAILED


async def test_workers_reflect_too(world: World) -> None:
    model = ReflectingModel(name="scripted/bob", verdict=[briefing("Look", "At me.")])
    founded = await found_learning_team(world, ReflectingModel())
    world.model("bob", model)
    bob = await world.store.write(
        roster.hire, founded.team.id, name="bob", role="worker", model="scripted/bob"
    )
    node = await create_node(world, founded.team.id, bob.id)
    await world.settle()
    assert [row[2] for row in await world.store.read(insights)] == [
        (await world.thread(node.id)).id
    ]


async def test_worker_agents_cannot_send_briefings(world: World) -> None:
    model = ReflectingModel(name="scripted/bob", verdict=[briefing("Look", "At me.")])
    founded = await found_learning_team(world, ReflectingModel())
    world.model("bob", model)
    bob = await world.store.write(
        roster.hire, founded.team.id, name="bob", role="worker", model="scripted/bob"
    )
    await create_node(world, founded.team.id, bob.id)
    await world.settle()
    assert model.questions() == ["harvest"]
    assert await world.inbox() == []


async def test_a_team_that_does_not_learn_does_not_reflect(world: World) -> None:
    model = ReflectingModel()
    world.model("ada", model)
    await world.found("Watch", learns=False)
    await world.settle()
    assert (model.asked, await world.store.read(reflections)) == ([], [])


async def test_a_stopped_team_does_not_reflect(world: World) -> None:
    model = ReflectingModel(work=ask_first)
    founded = await found_learning_team(world, model)
    await do_task(world, founded)
    await world.store.write(teams.stop, founded.team.id)
    await world.settle()
    assert (model.asked, await world.store.read(reflections)) == ([], [])


async def test_a_paused_team_reflects_after_it_resumes(world: World) -> None:
    model = ReflectingModel(harvest=[ModelUnavailable("overloaded"), HARVEST])
    founded = await found_learning_team(world, model)
    await do_task(world, founded)
    await world.store.write(teams.pause, founded.team.id)
    world.clock.advance(minutes=5)
    await until(world, lambda: reflection_is(world, NodeStatus.ASSIGNED))
    assert len(model.asked) == 1
    await world.store.write(teams.resume, founded.team.id)
    await until(world, lambda: reflection_is(world, NodeStatus.COMPLETED))
    assert len(await world.store.read(insights)) == 1


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ('Sure! {"a": 1} Anything else?', {"a": 1}),
        ('```json\n{"a": [1]}\n```', {"a": [1]}),
        ('{"a": 1', None),
        ('{broken} {"a": 2}', {"a": 2}),
        ("nothing", None),
        ("", None),
        ("[" * 100_000, None),
        ("{" * 100_000, None),
    ],
)
def test_a_json_object_is_found_within_other_text(text: str, value: object) -> None:
    assert value_in(text) == value


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (None, None),
        ("insights", None),
        ({"insights": "many"}, None),
        ({"insights": []}, []),
        ([INSIGHT], ["Check filings first"]),
        ({"insights": [{"type": "rumour", "content": "x"}, 3, {"type": "fact"}]}, []),
        ({"insights": [{"type": " Fact ", "content": " Six. ", "work": "2"}]}, ["Six."]),
        ({"insights": [INSIGHT] * 50}, ["Check filings first"] * 10),
    ],
)
def test_invalid_insights_are_dropped(value: object, found: list[str] | None) -> None:
    read = read_insights(value)
    assert (None if read is None else [learned.content for learned in read]) == found


@pytest.mark.parametrize(
    ("value", "score"),
    [
        ({"score": 0.7}, 0.7),
        ({"score": "0.7"}, 0.7),
        ({"score": 7}, 1.0),
        ({"score": -1}, 0.0),
        ({"score": float("nan")}, None),
        ({"score": [1]}, None),
        ({"title": "x"}, None),
        ([], None),
    ],
)
def test_a_score_is_clamped_between_zero_and_one(value: object, score: float | None) -> None:
    read = read_verdict(value)
    assert (None if read is None else read.score) == score
