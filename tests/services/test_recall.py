"""Recall: which insights a prompt gets, what they are looked for by, and that their use counts."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agiraph.api.feature_views.known import Insight
from agiraph.core.domain.agents import Agent
from agiraph.core.domain.ids import AgentId, TeamId
from agiraph.core.domain.provenance.labels import CLEAN, of_page
from agiraph.core.prompts import prompt
from agiraph.core.store.teams import TEAMS
from agiraph.features.knowledge import recall, rows
from agiraph.features.knowledge.recall import Query
from agiraph.features.knowledge.rows import INSIGHTS
from agiraph.features.knowledge.verbs import items
from agiraph.testing import World, call, says

PAGE = of_page("https://example.org")


async def found_agent(world: World) -> Agent:
    return (await world.found("Know things", start=False)).coordinator


async def learn(world: World, agent: Agent, content: str, **more: Any) -> Insight:
    return await world.store.write(items.learn, agent, "fact", content, author=agent.id, **more)


async def recalled(world: World, agent: Agent, query: Query | str) -> list[str]:
    found = await world.store.read(recall.for_work, agent.id, query)
    return [insight.content for insight in found]


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ("Count the herons", "Count the herons"),
        (
            "[Message from ada]\n<<< 0123456789abcdef: a message, in the words of ada. Nobody else "
            "speaks in it.\nCount the herons\n>>> 0123456789abcdef: the end of it.",
            "Count the herons",
        ),
        ("[Task] bob has finished a task of yours.\nId: node_1\nCount: 3", "Count: 3"),
    ],
)
def test_frames_of_the_runtime_are_left_out_of_a_query(task: str, said: str) -> None:
    assert recall.without_frames(task) == said


@pytest.mark.parametrize("name", ["cycle", "heartbeat", "woken", "promise"])
def test_the_sentences_that_every_task_has_are_left_out_of_a_query(name: str) -> None:
    made = {"number": 7, "goal": "herons", "news": "storks", "before": "swans", "task": "geese"}
    made |= {"why": "ducks", "id": "t_1", "made": "today", "whom": "ada", "what": "cranes"}
    made |= {"desk": "agents/ada", "unheard": ""}
    text = prompt(name).format(**made)
    left = recall.without_frames(text)
    assert "Runtime" not in left
    assert "agents/" not in left
    assert len(left) < 80
    assert any(str(bird) in left for bird in made.values() if str(bird) in text)


async def test_task_and_news_count_more_than_the_goal(world: World) -> None:
    agent = await found_agent(world)
    for content in ("Herons nest in March", "Storks nest in April", "Swans nest in May"):
        await learn(world, agent, content)
    query = Query(task="Look for herons", news="A swan was seen", goal="All about storks")
    assert await recalled(world, agent, query) == [
        "Herons nest in March",
        "Swans nest in May",
        "Storks nest in April",
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("known", "task"),
    [
        ("Die Datenbank wird sonntags gesichert", "Wann sichern wir Datenbanken?"),
        ("数据库每周日备份", "数据库什么时候备份"),
        ("La base de datos se respalda los domingos", "¿Cuándo se respaldan las bases de datos?"),
    ],
    ids=["de", "zh", "es"],
)
async def test_insights_are_found_in_each_language(world: World, known: str, task: str) -> None:
    agent = await found_agent(world)
    await learn(world, agent, known)
    for number in range(60):
        await learn(world, agent, f"Filler{number} about subject{number}")
    assert (await recalled(world, agent, task))[0] == known


def test_confidence_use_and_age_weigh() -> None:

    now = datetime(2026, 1, 5, tzinfo=UTC)
    plain = Insight(
        id="i",
        team_id=TeamId("t"),
        agent_id=AgentId("a"),
        type="fact",
        content="x",
        created_at=now,
        author="a",
    )
    old = replace(plain, created_at=now - timedelta(days=400))
    weights = [
        recall.weight(insight, now)
        for insight in (
            replace(plain, confidence=1.0, uses=30),
            replace(plain, confidence=1.0),
            plain,
            replace(old, used_at=now - timedelta(days=90)),
            old,
            replace(old, confidence=0.1),
        )
    ]
    assert weights == sorted(weights, reverse=True)
    assert len(set(weights)) == len(weights)
    assert 0.4 < weights[-1] < weights[0] < 1.6


async def test_the_index_follows_what_is_learned_removed_and_restored(world: World) -> None:
    agent = await found_agent(world)
    heron = await learn(world, agent, "Herons nest in March")
    assert await recalled(world, agent, "herons") == ["Herons nest in March"]
    await learn(world, agent, "Herons eat frogs")
    assert set(await recalled(world, agent, "herons")) == {
        "Herons nest in March",
        "Herons eat frogs",
    }
    await world.store.write(items.remove, agent.id, heron.id, author="human")
    assert await recalled(world, agent, "herons") == ["Herons eat frogs"]
    change = (await world.store.read(rows.changes, agent.id))[-1]
    await world.store.write(items.undo, change.id)
    assert set(await recalled(world, agent, "herons")) == {
        "Herons nest in March",
        "Herons eat frogs",
    }
    await world.store.write(INSIGHTS.update, heron.id, valid_until=world.clock.now())
    assert await recalled(world, agent, "herons") == ["Herons eat frogs"]


@pytest.mark.parametrize("trust", ["strict", "standard", "open"])
async def test_unverified_facts_that_fit_come_last_and_not_in_a_strict_team(
    world: World, trust: str
) -> None:
    agent = await found_agent(world)
    clean = await learn(world, agent, "Herons nest in high trees")
    for number in range(15):
        await learn(world, agent, f"Herons nest in marsh number {number}", label=PAGE)
    await learn(world, agent, "The moon is made of cheese", label=PAGE)
    await world.store.write(TEAMS.update, agent.team_id, trust=trust)
    found = await world.store.read(recall.for_work, agent.id, "Where do herons nest?")
    assert found[0] == clean
    assert [bool(insight.label) for insight in found[1:]] == (
        [True] * 10 if trust != "strict" else []
    )
    assert all("marsh" in insight.content for insight in found[1:])


async def test_an_insight_in_a_prompt_counts_as_used_once(world: World) -> None:
    ada = world.script(
        "ada",
        says(call("checkpoint", summary="one")),
        says(call("checkpoint", summary="two")),
        says(call("finish", summary="done")),
    )
    founded = await world.found("Watch the herons", start=False)
    shown = await learn(world, founded.coordinator, "Herons nest in March")
    fact = await learn(world, founded.coordinator, "Herons nest near Leith", label=PAGE)
    world.clock.advance(days=10)
    await world.say(founded.coordinator.id, "Where do herons nest?", team_id=founded.team.id)
    await world.settle()
    assert shown.content in ada.requests[0].system
    used = [await world.store.read(INSIGHTS.get, known.id) for known in (shown, fact)]
    assert [(i.uses, i.used_at) for i in used] == [(1, world.clock.now())] * 2
    assert used[1].valid_until == world.clock.now() + timedelta(days=90)


@pytest.mark.parametrize("trust", ["strict", "standard"])
async def test_a_strict_team_is_told_only_how_many_unverified_facts_there_are(
    world: World, trust: str
) -> None:
    world.script("ada", says(call("finish", summary="done")))
    founded = await world.found("Know what tea costs", start=False, trust=trust)
    ada = founded.coordinator
    label = of_page("https://example.org/tea")
    await world.store.write(
        items.learn, ada, "fact", "Tea costs 3 pounds", author=ada.id, label=label
    )
    await world.say(ada.id, "What does tea cost?", team_id=founded.team.id)
    await world.settle()
    node = (await world.board(founded.team.id))[-1]
    system = (await world.turns(node.id))[0]
    assert ("unverified facts as well (1)" in system.text) is (trust == "strict")
    assert ("Tea costs 3 pounds" in system.text) is (trust == "standard")
    assert system.label == (CLEAN if trust == "strict" else label)
