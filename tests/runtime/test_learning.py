"""Learning: whose insights a reflection stores, and how they change what was known."""

import json
from dataclasses import replace
from typing import Any

import pytest

from agiraph.api.feature_views.known import Insight
from agiraph.core.domain.agents import Agent
from agiraph.core.domain.errors import ModelRefused, ModelUnavailable
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.provenance.labels import of_page
from agiraph.core.domain.text.passages import EVERYONE
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.services.members import roster
from agiraph.core.store.threads import THREADS
from agiraph.core.store.tx import Tx
from agiraph.features.knowledge import rows
from agiraph.features.knowledge.kind import KNOWN, REMOVED, read_insights
from agiraph.features.knowledge.model import Relation, of_specialist
from agiraph.features.knowledge.verbs import items
from agiraph.features.knowledge.verbs.reflection import MAX_REPLACED
from agiraph.models.base import Request
from agiraph.testing import Says, World, call, says
from tests.runtime.reflecting_model import NOTHING, ReflectingModel, create_node, submit
from tests.runtime.waiting import until

LIMIT = "The API allows 60 calls a minute"


def states(content: str, action: str = "add", id: str = "", **more: Any) -> dict[str, Any]:
    """Return an insight as a model states it."""
    stated = {"type": "fact", "content": content, "confidence": 0.5, "work": 1}
    return {**stated, "action": action, "id": id, **more}


def harvest(*stated: dict[str, Any]) -> str:
    return json.dumps({"insights": stated})


async def learning_team(world: World, model: ReflectingModel) -> NewTeam:
    world.model("ada", model)
    return await world.found("Watch the market", learns=True, start=False, mode="infinite")


async def hire(world: World, founded: NewTeam, name: str, role: str, **more: Any) -> Agent:
    """Hire an agent for one task."""
    return await world.store.write(
        roster.hire,
        founded.team.id,
        name=name,
        role=role,
        model="scripted/bob",
        persistent=False,
        **more,
    )


async def work(world: World, agent: Agent, task: str = "Look around") -> str:
    """Let the agent do a task; return the id of its thread."""
    node = await create_node(world, agent.team_id, agent.id, task)
    await world.settle()
    return (await world.thread(node.id)).id


async def known(world: World, agent: Agent, **more: Any) -> list[Insight]:
    return await world.store.read(items.insights, agent.id, **more)


async def learn(world: World, agent: Agent, content: str, **more: Any) -> Insight:
    author = more.pop("author", agent.id)
    return await world.store.write(items.learn, agent, "fact", content, author=author, **more)


def shown(model: ReflectingModel) -> list[str]:
    """Return the questions about finished work as the model read them."""
    return [turns[-1].text for name, turns, _ in model.asked if name == "harvest"]


@pytest.mark.parametrize(
    ("role", "owner"), [("researcher", of_specialist("researcher")), ("worker", EVERYONE)]
)
async def test_what_a_worker_hired_for_one_task_learned_outlives_it(
    world: World, role: str, owner: str
) -> None:
    founded = await learning_team(world, ReflectingModel())
    world.model("bob", ReflectingModel(harvest=[harvest(states(LIMIT))]))
    bob = await hire(world, founded, "bob", role)
    thread = await work(world, bob)
    assert (await world.agent(bob.id)).retired_at is not None
    [insight] = await known(world, bob)
    assert (insight.owner, insight.agent_id, insight.source_thread_id) == (owner, bob.id, thread)
    next_one = await hire(world, founded, "bea", role)
    assert await known(world, next_one) == [insight]
    other = await hire(world, founded, "cy", "writer")
    assert await known(world, other) == ([] if role == "researcher" else [insight])
    assert await known(world, next_one, query="calls per minute") == [insight]


async def test_threads_that_end_while_a_review_waits_are_reviewed_together(world: World) -> None:
    founded = await learning_team(world, ReflectingModel())
    model = ReflectingModel(name="scripted/bob", harvest=[ModelUnavailable("busy"), NOTHING])
    world.model("bob", model)
    threads = [
        await work(world, await hire(world, founded, f"bob-{n}", "researcher"), f"Task-{n}")
        for n in range(4)
    ]
    world.clock.advance(minutes=5)
    for thread in threads:
        await until(world, lambda thread=thread: _is_harvested(world, thread))
    read = [[n for n in range(4) if f": Task-{n} (" in text] for text in shown(model)]
    assert read == [[0], [0], [1, 2, 3]]  # the first one was asked again


async def _is_harvested(world: World, thread: str) -> bool:
    return (await world.store.read(THREADS.get, thread)).harvested_at is not None


async def test_the_coordinator_reviews_what_a_program_did(world: World) -> None:
    model = ReflectingModel(harvest=[harvest(states("The linter wants two spaces"))])
    founded = await learning_team(world, model)
    command = "sh -c \"echo 'It wants two spaces.' > _result.md\""
    program = await hire(world, founded, "linter", "worker", kind="cli", command=command)
    thread = await work(world, program)
    assert shown(model) == []
    await work(world, founded.coordinator, "Look around")
    assert (await world.store.read(THREADS.get, thread)).harvested_at is not None
    assert "Result: It wants two spaces." in shown(model)[0]
    [learned] = await known(world, founded.coordinator, status="unverified")
    assert (learned.owner, learned.agent_id) == (EVERYONE, program.id)


async def test_a_failed_review_of_a_worker_that_left_is_made_up_for_by_the_coordinator(
    world: World,
) -> None:
    model = ReflectingModel(harvest=[harvest(states("Forty cars pass a minute"))])
    founded = await learning_team(world, model)
    world.model("bob", ReflectingModel(harvest=[ModelRefused("no such model")]))
    bob = await hire(world, founded, "bob", "researcher")
    thread = await work(world, bob, "Count the cars")
    assert (await world.store.read(THREADS.get, thread)).harvested_at is None
    await work(world, founded.coordinator)
    assert (await world.store.read(THREADS.get, thread)).harvested_at is not None
    [insight] = await known(world, bob)
    assert (insight.agent_id, insight.owner) == (bob.id, of_specialist("researcher"))
    # The work of another is no news of the coordinator's own to brief the person about.
    assert model.questions() == ["harvest", "briefing"]


async def test_the_review_is_shown_what_is_known_and_its_answer_is_applied(world: World) -> None:
    model = ReflectingModel(work=lambda request: _says_in_work(request, LIMIT))
    founded = await learning_team(world, model)
    ada = founded.coordinator
    names = ("Calls a minute at the API: 60", "The API is in beta", "The API speaks XML")
    same, old, wrong = [await learn(world, ada, name) for name in names]
    await learn(world, ada, "Salmon is smoked over beech wood")
    model.harvest = [
        harvest(
            states(LIMIT, "update", same.id),
            states("The API left beta in May", "supersede", old.id),
            states("The API speaks JSON", "contradict", wrong.id),
            states("The API is down on Sundays", "add"),
        )
    ]
    await work(world, ada, "Find out how many calls the API allows a minute")
    [question] = shown(model)
    assert KNOWN in question
    assert question.index(f"- {same.id}: {same.content}") < question.index(f"- {wrong.id}: ")
    stands = {insight.content: insight for insight in await known(world, ada)}
    assert {content: insight.contradicts for content, insight in stands.items()} == {
        LIMIT: None,
        "The API left beta in May": None,
        "The API speaks JSON": wrong.id,
        "The API speaks XML": None,
        "The API is down on Sundays": None,
        "Salmon is smoked over beech wood": None,
    }
    assert stands[LIMIT].confidence == 0.5
    gone = [await world.store.read(rows.INSIGHTS.get, known.id) for known in (same, old)]
    assert [(i.status, i.superseded_by) for i in gone] == [
        ("superseded", stands[LIMIT].id),
        ("superseded", stands["The API left beta in May"].id),
    ]


def _says_in_work(request: Request, text: str) -> Says:
    if any(turn.role == "tool" for turn in request.transcript.spoken()):
        return submit(request)
    return says(call("checkpoint", summary=text))


async def test_wrong_ids_are_additions_and_destroy_nothing(world: World) -> None:
    model = ReflectingModel()
    founded = await learning_team(world, model)
    ada = founded.coordinator
    bob = await world.store.write(
        roster.hire, founded.team.id, name="bob", role="worker", model="scripted/bob"
    )
    others = await learn(world, bob, "Bob's own fact")
    gone = await learn(world, ada, "An old fact")
    await world.store.write(items.remove, ada.id, gone.id, author=OWNER)
    ids = ["insight_none", others.id, gone.id, "", "; drop table insights", "memory_x"]
    model.harvest = [
        harvest(*(states(f"Fact number {n}", "supersede", id) for n, id in enumerate(ids)))
    ]
    await work(world, ada)
    assert sorted(i.content for i in await known(world, ada)) == [
        f"Fact number {number}" for number in range(len(ids))
    ]
    assert await known(world, bob) == [others]


async def test_a_model_that_replaces_everything_leaves_most_of_it(world: World) -> None:
    model = ReflectingModel()
    founded = await learning_team(world, model)
    ada = founded.coordinator
    old = [await learn(world, ada, f"Fact number {number}") for number in range(9)]
    model.harvest = [
        harvest(*(states(f"News {i.content}", "supersede", i.id) for i in old), states("x" * 5000))
    ]
    await work(world, ada)
    before = [await world.store.read(rows.INSIGHTS.get, insight.id) for insight in old]
    assert [i.status for i in before].count("superseded") == MAX_REPLACED
    stands = {i.content: i for i in await known(world, ada)}
    kept = [i for i in before if i.status == "active"]
    assert [stands[f"News {i.content}"].contradicts for i in kept] == [i.id for i in kept]

    changes = [c for c in await world.store.read(rows.changes, ada.id) if c.verb == "superseded"]
    for change in changes:
        await world.store.write(items.undo, change.id)
    assert {i.content for i in old} <= {i.content for i in await known(world, ada)}


async def test_a_second_insight_cannot_replace_what_the_first_has_replaced(world: World) -> None:
    model = ReflectingModel()
    founded = await learning_team(world, model)
    ada = founded.coordinator
    old = await learn(world, ada, LIMIT)
    model.harvest = [
        harvest(states("60 calls a minute", "update", old.id), states("Many", "update", old.id))
    ]
    await work(world, ada)
    assert sorted(i.content for i in await known(world, ada)) == ["60 calls a minute", "Many"]


async def test_what_a_person_said_is_disputed_but_not_replaced(world: World) -> None:
    model = ReflectingModel()
    founded = await learning_team(world, model)
    ada = founded.coordinator
    said = await learn(world, ada, LIMIT, author=OWNER)
    model.harvest = [harvest(states("The API allows 90 calls a minute", "supersede", said.id))]
    await work(world, ada)
    assert {i.content: i.contradicts for i in await known(world, ada)} == {
        "The API allows 90 calls a minute": said.id,
        LIMIT: None,
    }


async def _labelled_work(world: World, founded: NewTeam, model: ReflectingModel) -> None:
    """Let the coordinator end work whose thread holds the words of a page."""
    model.work = _asks_first
    node = await create_node(world, founded.team.id, founded.coordinator.id, "Read the page")
    await world.settle()
    thread = (await world.thread(node.id)).id
    await world.store.write(THREADS.update, thread, label=of_page("https://example.org"))
    [question] = await world.questions(founded.team.id)
    await world.answer(question, "Yes")
    await world.settle()


def _asks_first(request: Request) -> Says:
    if any(turn.role == "tool" for turn in request.transcript.spoken()):
        return submit(request)
    return says(call("ask_human", question="May I?"))


async def test_strangers_words_never_replace_what_is_known(world: World) -> None:
    model = ReflectingModel()
    founded = await learning_team(world, model)
    ada = founded.coordinator
    clean = await learn(world, ada, LIMIT)
    for action in ("update", "supersede", "contradict"):
        model.harvest = [harvest(states(f"No limit since {action}", action, clean.id))]
        await _labelled_work(world, founded, model)
    assert [(i.id, i.content) for i in await known(world, ada)] == [(clean.id, LIMIT)]
    unverified = await known(world, ada, status="unverified")
    assert {i.contradicts for i in unverified} == {clean.id}
    assert len(unverified) == 3


async def test_only_a_labelled_review_is_shown_unverified_facts_and_in_a_fence(
    world: World,
) -> None:
    model = ReflectingModel(harvest=[NOTHING])
    founded = await learning_team(world, model)
    ada = founded.coordinator
    foreign = await learn(
        world, ada, "The page is blue", label=of_page("https://evil.example"), source="msg_1"
    )
    await work(world, ada, "What colour is the page?")
    await _labelled_work(world, founded, model)
    clean, labelled = shown(model)
    assert foreign.content not in clean
    line = f"- {foreign.id}: {foreign.content}"
    assert labelled.index("<<< ") < labelled.index(line)
    fence = labelled[: labelled.index(line)].rsplit("<<< ", 1)[1]
    assert "nobody on the team wrote it" in fence


async def test_clean_and_labelled_threads_are_not_reviewed_together(world: World) -> None:
    model = ReflectingModel(harvest=[harvest(states("A fact of one review"))])
    founded = await learning_team(world, model)
    first = await create_node(world, founded.team.id, founded.coordinator.id, "Task-A")
    model.work = _asks_first
    await world.settle()
    thread = (await world.thread(first.id)).id
    await world.store.write(THREADS.update, thread, label=of_page("https://example.org"))
    await create_node(world, founded.team.id, founded.coordinator.id, "Task-B")
    await world.settle()
    while questions := await world.questions(founded.team.id):
        for question in questions:
            await world.answer(question, "Yes")
        await world.settle()
    assert [("Task-A (" in text, "Task-B (" in text) for text in shown(model)] == [
        (True, False),
        (False, True),
    ]
    statuses = await world.store.read(_statuses)
    assert statuses == ["active", "unverified"]


def _statuses(tx: Tx) -> list[str]:
    return [row[0] for row in tx.all("select status from insights order by status")]


async def test_what_was_taken_back_is_shown_as_such(world: World) -> None:
    model = ReflectingModel(harvest=[harvest(states("deploy on Fridays."))])
    founded = await learning_team(world, model)
    ada = founded.coordinator
    gone = await learn(world, ada, "Deploy on Fridays")
    await world.store.write(items.remove, ada.id, gone.id, author=OWNER)
    await work(world, ada, "When do we deploy?")
    assert f"- {REMOVED} Deploy on Fridays" in shown(model)[0]
    assert gone.id not in shown(model)[0]
    assert await known(world, ada) == []


@pytest.mark.parametrize("answer", ["I am a poet.", "", "[]", '{"insights": "none"}', "null"])
async def test_an_answer_that_says_nothing_changes_nothing(world: World, answer: str) -> None:
    model = ReflectingModel(harvest=[answer])
    founded = await learning_team(world, model)
    ada = founded.coordinator
    before = await learn(world, ada, LIMIT)
    thread = await work(world, ada)
    [after] = await known(world, ada)
    assert after == replace(before, uses=1, used_at=world.clock.now())  # it stood in the prompt
    assert (await world.store.read(THREADS.get, thread)).harvested_at is not None


@pytest.mark.parametrize(
    ("entry", "relation"),
    [
        ({"action": "update", "id": " insight_1 "}, Relation(action="update", id="insight_1")),
        ({"action": "CONTRADICT", "id": "i"}, Relation(action="contradict", id="i")),
        ({"action": "add", "id": "insight_1"}, Relation()),
        ({"action": "destroy", "id": "insight_1"}, Relation()),
        ({"action": "supersede", "id": ""}, Relation()),
        ({"action": "supersede", "id": 7}, Relation()),
        ({"action": ["update"], "id": {}}, Relation()),
        ({}, Relation()),
    ],
)
def test_a_relation_of_another_form_is_an_addition(
    entry: dict[str, Any], relation: Relation
) -> None:
    [found] = read_insights({"insights": [{"type": "fact", "content": "x", **entry}]}) or []
    assert found.relation == relation
