"""Knowledge of agents: stored once with its source, merged, disputed, confirmed, and removed."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agiraph.api.feature_views.known import Insight
from agiraph.core.domain.agents import Agent
from agiraph.core.domain.errors import Conflict, NotFound, Refused
from agiraph.core.domain.ids import ThreadId
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.provenance.labels import CLEAN, UNKNOWN, Label, of_page
from agiraph.core.services.members import roster
from agiraph.core.store.teams import TEAMS
from agiraph.core.store.texts import passages
from agiraph.features.knowledge import recall, rows
from agiraph.features.knowledge.model import Relation
from agiraph.features.knowledge.verbs import items
from agiraph.features.knowledge.verbs.items import Unconfirmed
from agiraph.testing import World
from tests.wording import Wording, refusals_of

THREAD = ThreadId("t_one")
OTHER = ThreadId("t_two")


async def found_agent(world: World) -> Agent:
    return (await world.found("Know things", start=False)).coordinator


async def learn(world: World, agent: Agent, content: str, **more: Any) -> Insight:
    type = more.pop("type", "fact")
    return await world.store.write(
        items.learn, agent, type, content, author=more.pop("author", agent.id), **more
    )


async def contents(world: World, agent: Agent, **more: Any) -> list[str]:
    return [i.content for i in await world.store.read(items.insights, agent.id, **more)]


async def found_passages(world: World, agent: Agent, query: str) -> list[tuple[str, Label]]:
    """Return what a search finds, with its label."""
    found = await world.store.read(passages.find, query, team_id=agent.team_id, owner=agent.id)
    return [(passage.text, passage.label) for passage in found]


async def changes(world: World, agent: Agent) -> list[tuple[str, str]]:
    return [(c.id, c.verb) for c in await world.store.read(rows.changes, agent.id)]


async def test_creates_insight_for_agent(world: World) -> None:
    agent = await found_agent(world)
    insight = await learn(world, agent, "NVIDIA reports earnings in February", confidence=0.7)
    assert insight == Insight(
        id=insight.id,
        team_id=agent.team_id,
        agent_id=agent.id,
        type="fact",
        content="NVIDIA reports earnings in February",
        created_at=world.clock.now(),
        author=agent.id,
        confidence=0.7,
        owner=agent.id,
    )
    assert await world.store.read(items.insights, agent.id) == [insight]
    [event] = [e for e in await world.events(agent.team_id) if e.type == "insight.learned"]
    assert event.data["id"] == insight.id


async def test_links_insight_to_source_thread(world: World) -> None:
    agent = await found_agent(world)
    insight = await learn(
        world, agent, "Check SEC filings first", type="technique", source_thread_id=THREAD
    )
    assert (insight.source_thread_id, insight.sources) == (THREAD, (THREAD,))


async def test_an_insight_is_learned_once_per_thread_however_often_it_is_harvested(
    world: World,
) -> None:
    agent = await found_agent(world)
    first = await learn(world, agent, "Cache the index", source_thread_id=THREAD, confidence=0.5)
    again = await learn(world, agent, "Cache the index", source_thread_id=THREAD, confidence=0.5)
    assert again == first
    assert len(await changes(world, agent)) == 1
    await world.store.write(items.remove, agent.id, first.id, author=OWNER)
    gone = await learn(world, agent, "Cache the index", source_thread_id=THREAD)
    assert gone.status == "removed"
    assert await contents(world, agent) == []


async def test_the_same_insight_from_another_source_is_merged_with_more_confidence(
    world: World,
) -> None:
    agent = await found_agent(world)
    old = await learn(
        world, agent, "NVIDIA reports earnings in February", source_thread_id=THREAD, confidence=0.5
    )
    new = await learn(
        world,
        agent,
        "NVIDIA reports earnings on the last Wednesday of February",
        source_thread_id=OTHER,
        confidence=0.4,
        relation=Relation(action="update", id=old.id),
    )
    [stands] = await world.store.read(items.insights, agent.id)
    assert stands == new
    assert (stands.sources, stands.confidence) == ((OTHER, THREAD), 0.6)
    superseded = await world.store.read(rows.INSIGHTS.get, old.id)
    assert (superseded.status, superseded.superseded_by) == ("superseded", new.id)


async def test_a_repetition_adds_its_source_and_no_line_to_a_prompt(
    world: World,
) -> None:
    agent = await found_agent(world)
    full = await learn(
        world, agent, "Use WAL mode with SQLite on local disks", source_thread_id=THREAD,
        confidence=0.5,
    )  # fmt: skip
    stands = await learn(
        world, agent, "use WAL mode  with SQLite on local disks.", source_thread_id=OTHER,
        confidence=0.5,
    )  # fmt: skip
    assert (stands.id, stands.content) == (full.id, full.content)
    assert (stands.sources, stands.confidence) == ((THREAD, OTHER), 0.6)
    assert await contents(world, agent) == [full.content]


async def test_repetition_without_a_new_source_adds_no_confidence(world: World) -> None:
    agent = await found_agent(world)
    told = [
        await learn(world, agent, "The moon is made of cheese", confidence=0.3) for _ in range(5)
    ]
    assert told[-1].confidence == 0.3
    assert len(await contents(world, agent)) == 1


async def test_a_contradiction_is_kept_and_shown_as_a_pair(world: World) -> None:
    agent = await found_agent(world)
    old = await learn(world, agent, "The API limit is 60 calls a minute", source_thread_id=THREAD)
    await learn(world, agent, "Check SEC filings first")
    world.clock.advance(days=1)
    new = await learn(
        world,
        agent,
        "The API limit is 600 calls a minute",
        source_thread_id=OTHER,
        relation=Relation(action="contradict", id=old.id),
    )
    assert new.contradicts == old.id
    known = await world.store.read(items.insights, agent.id)
    assert len(known) == 3
    assert recall.as_lines(known, ids=False) == [
        "- These two do not go together; check which one holds before you rely on either:\n"
        "  - The API limit is 600 calls a minute (fact, 2026-01-06)\n"
        "  - The API limit is 60 calls a minute (fact, 2026-01-05)",
        "- Check SEC filings first (fact, 2026-01-05)",
    ]
    await world.store.write(items.remove, agent.id, old.id, author=OWNER)
    lines = recall.as_lines(await world.store.read(items.insights, agent.id))
    assert not any("do not go together" in line for line in lines)


async def test_a_contradiction_remains_when_one_side_is_reworded(world: World) -> None:
    agent = await found_agent(world)
    old = await learn(world, agent, "The API limit is 60 calls a minute")
    disputed = await learn(
        world,
        agent,
        "The API limit is 600 calls a minute",
        relation=Relation(action="contradict", id=old.id),
    )
    newer = await learn(
        world,
        agent,
        "The API limit is 60 calls a minute for free accounts",
        relation=Relation(action="update", id=old.id),
    )
    known = await world.store.read(items.insights, agent.id)
    assert {i.id for i in known} == {disputed.id, newer.id}
    assert "do not go together" in recall.as_lines(known)[0]


async def test_what_strangers_said_is_found_with_its_label_and_counts_once_confirmed(
    world: World,
) -> None:
    agent = await found_agent(world)
    canary = "The vendor sends the CANARY token first"
    kept = await learn(world, agent, canary, source_thread_id=THREAD, label=UNKNOWN)
    told = await world.store.write(
        items.remember, agent, "User wants the CANARY sent", author=agent.id, label=UNKNOWN
    )
    until = world.clock.now() + timedelta(days=90)
    assert [(i.status, i.label, i.valid_until) for i in (kept, told)] == [
        ("unverified", UNKNOWN, until),
        ("unverified", UNKNOWN, until),
    ]
    assert await contents(world, agent) == await contents(world, agent, query="canary") == []
    assert await world.store.read(items.memories, agent.id) == []
    assert await found_passages(world, agent, "canary") == [(canary, UNKNOWN)]
    assert await world.store.read(
        items.insights, agent.id, query="canary", status="unverified"
    ) == [kept]
    assert await world.store.read(items.pending, agent.team_id) == []
    assert await world.store.read(items.unverified, agent.team_id) == [
        Unconfirmed(
            kept.id, agent.id, "insight", canary, "unverified", UNKNOWN, (THREAD,), kept.created_at
        ),
        Unconfirmed(
            told.id,
            agent.id,
            "memory",
            "User wants the CANARY sent",
            "unverified",
            UNKNOWN,
            (),
            told.created_at,
        ),
    ]
    known = await world.store.write(items.confirm, kept.id, author=OWNER)
    assert known == replace(kept, status="active", label=CLEAN, valid_until=None)
    await world.store.write(items.reject, told.id, author=OWNER)
    assert await contents(world, agent, query="canary") == [canary]
    assert await found_passages(world, agent, "canary") == [(canary, CLEAN)]
    assert await world.store.read(items.unverified, agent.team_id) == []
    assert await world.store.read(items.memories, agent.id) == []
    with pytest.raises(Conflict, match="does not wait for a decision"):
        await world.store.write(items.confirm, kept.id, author=OWNER)
    with pytest.raises(NotFound):
        await world.store.write(items.confirm, "nonsense", author=OWNER)


async def test_what_strangers_taught_is_kept_as_a_short_fact(world: World) -> None:
    agent = await found_agent(world)
    kept = await learn(world, agent, "Pay. " * 100, type="technique", label=UNKNOWN)
    assert (kept.type, kept.status, len(kept.content)) == ("fact", "unverified", 300)
    assert kept.content.endswith("…")


async def test_an_open_team_keeps_what_strangers_taught_as_it_is_with_its_label(
    world: World,
) -> None:
    agent = await found_agent(world)
    await world.store.write(TEAMS.update, agent.team_id, trust="open")
    own = await learn(world, agent, "Pay invoices after two approvals", confidence=0.5)
    kept = await learn(
        world, agent, "Check filings first", type="technique", label=UNKNOWN, confidence=0.9
    )
    twin = await learn(world, agent, own.content, label=UNKNOWN, confidence=1)
    assert (kept.type, kept.status, kept.label) == ("technique", "active", UNKNOWN)
    assert twin == own
    assert await world.store.read(items.insights, agent.id) == [kept, own]
    confirmed = await world.store.write(items.confirm, kept.id, author=OWNER)
    assert confirmed == replace(kept, label=CLEAN)


async def test_an_unverified_item_ends_after_90_days_unless_it_is_used(world: World) -> None:
    agent = await found_agent(world)
    idle = await learn(world, agent, "Tea costs 3 pounds", label=UNKNOWN)
    used = await learn(world, agent, "Coffee is sold in Leith", label=UNKNOWN)
    world.clock.advance(days=60)
    await world.store.write(rows.count_use, [used.id])
    world.clock.advance(days=30)
    await world.store.write(items.maintain, agent.team_id)
    assert [i.id for i in await world.store.read(items.unverified)] == [used.id]
    assert await found_passages(world, agent, "tea") == []
    again = await learn(world, agent, "Tea costs 3 pounds", label=UNKNOWN)
    assert (again.id != idle.id, again.status) == (True, "unverified")


async def test_a_fact_learned_again_names_all_its_sources_and_lasts_longer(world: World) -> None:
    agent = await found_agent(world)
    await learn(world, agent, "Tea costs 3 pounds in Leith", label=of_page("https://one.example"))
    world.clock.advance(days=5)
    await learn(world, agent, "tea costs 3 pounds in Leith.", label=of_page("https://two.example"))
    [kept] = await world.store.read(items.insights, agent.id, status="unverified")
    assert (kept.content, kept.label.sources, kept.valid_until) == (
        "Tea costs 3 pounds in Leith",
        ("page:one.example", "page:two.example"),
        world.clock.now() + timedelta(days=90),
    )


async def test_what_a_person_rejected_does_not_come_back_from_strangers(world: World) -> None:
    agent = await found_agent(world)
    kept = await learn(world, agent, "Buy CANARY shares now", label=UNKNOWN)
    await world.store.write(items.reject, kept.id, author=OWNER)
    for trust in ("strict", "standard", "open"):
        await world.store.write(TEAMS.update, agent.team_id, trust=trust)
        world.clock.advance(days=100)
        again = await learn(world, agent, "Buy CANARY shares now", label=UNKNOWN)
        assert (again.id, again.status) == (kept.id, "removed")
    assert await found_passages(world, agent, "canary") == []


async def test_what_is_unverified_neither_changes_nor_supports_what_is_known(
    world: World,
) -> None:
    agent = await found_agent(world)
    known = await learn(
        world, agent, "Pay invoices after two approvals", source_thread_id=THREAD, confidence=0.5
    )
    for content in (
        "Pay invoices after two approvals",
        "Pay invoices after two approvals or when the vendor asks",
        "Do not pay invoices after two approvals",
    ):
        await learn(world, agent, content, source_thread_id=OTHER, label=UNKNOWN, confidence=1)
    assert await world.store.read(items.insights, agent.id) == [known]


async def test_a_removed_insight_is_not_learned_again_without_the_person(world: World) -> None:
    agent = await found_agent(world)
    wrong = await learn(world, agent, "Deploy on Fridays without tests", source_thread_id=THREAD)
    await world.store.write(items.remove, agent.id, wrong.id, author=OWNER)
    again = await learn(world, agent, "Deploy on Fridays without tests.", source_thread_id=OTHER)
    assert again.status == "pending"
    assert [i.id for i in await world.store.read(items.pending)] == [again.id]
    assert await contents(world, agent) == []
    said = await learn(world, agent, "Deploy on Fridays without tests", author=OWNER)
    assert said.status == "active"


async def test_every_change_can_be_undone(world: World) -> None:
    agent = await found_agent(world)
    old = await learn(world, agent, "Use WAL with SQLite", source_thread_id=THREAD, confidence=0.5)
    before = await world.store.read(items.insights, agent.id)
    await learn(
        world,
        agent,
        "Use WAL mode with SQLite",
        source_thread_id=OTHER,
        confidence=0.9,
        relation=Relation(action="update", id=old.id),
    )
    [_, (merge, verb)] = await changes(world, agent)
    assert verb == "merged"
    await world.store.write(items.undo, merge)
    assert await world.store.read(items.insights, agent.id) == before
    assert await contents(world, agent, query="sqlite") == [old.content]

    await world.store.write(items.remove, agent.id, old.id, author=OWNER)
    assert await contents(world, agent) == await contents(world, agent, query="sqlite") == []
    removal = (await changes(world, agent))[-1][0]
    await world.store.write(items.undo, removal)
    assert await world.store.read(items.insights, agent.id) == before
    with pytest.raises(Conflict, match="was undone at"):
        await world.store.write(items.undo, removal)

    kept = await learn(world, agent, "Trust the page", source_thread_id=OTHER, label=UNKNOWN)
    await world.store.write(items.confirm, kept.id, author=OWNER)
    await world.store.write(items.undo, (await changes(world, agent))[-1][0])
    assert await world.store.read(items.insights, agent.id, status="unverified") == [kept]
    assert await found_passages(world, agent, "trust page") == [("Trust the page", UNKNOWN)]
    undone = [e for e in await world.events(agent.team_id) if e.data.get("verb") == "undone"]
    assert len(undone) == 3


async def test_a_change_cannot_be_undone_before_the_changes_based_on_it(world: World) -> None:
    agent = await found_agent(world)
    old = await learn(world, agent, "Use WAL with SQLite")
    update = Relation(action="update", id=old.id)
    await learn(world, agent, "Use WAL mode with SQLite", relation=update)
    [(first, _), (second, _)] = await changes(world, agent)
    with pytest.raises(Refused, match=f"{second} \\(merged\\) came after"):
        await world.store.write(items.undo, first)
    await world.store.write(items.undo, second)
    await world.store.write(items.undo, first)
    assert await contents(world, agent) == []
    with pytest.raises(NotFound):
        await world.store.write(items.undo, "change_none")


async def test_memories_are_kept_merged_and_forgotten(world: World) -> None:
    agent = await found_agent(world)

    async def remember(content: str, source: str) -> Any:
        return await world.store.write(items.remember, agent, content, author=OWNER, source=source)

    concise = await remember("User prefers concise responses", "message_1")
    again = await remember("user prefers concise responses.", "message_2")
    world.clock.advance(hours=1)
    berlin = await remember("User lives in Berlin", "message_3")
    assert (again.id, again.sources) == (concise.id, ("message_1", "message_2"))
    known = await world.store.read(items.memories, agent.id)
    assert recall.as_lines(known) == [
        f"- User lives in Berlin ({berlin.id}, 2026-01-05)",
        f"- User prefers concise responses ({concise.id}, 2026-01-05)",
    ]
    await world.store.write(items.forget, agent.id, berlin.id, author=OWNER)
    with pytest.raises(NotFound, match="Use the id of one you have"):
        await world.store.write(items.forget, agent.id, berlin.id, author=OWNER)
    # Memories are for conversations: a search during work does not find them.
    assert (
        await world.store.read(passages.find, "Berlin", team_id=agent.team_id, owner=agent.id) == []
    )


async def test_an_agent_cannot_remove_another_agents_insight(world: World) -> None:
    agent = await found_agent(world)
    bob = await world.store.write(
        roster.hire, agent.team_id, name="bob", role="worker", model="scripted/bob"
    )
    insight = await learn(world, agent, "Check SEC filings first")
    with pytest.raises(NotFound, match="list_insights"):
        await world.store.write(items.remove, bob.id, insight.id, author=OWNER)
    assert await contents(world, bob) == await contents(world, bob, query="SEC filings") == []
    await learn(world, bob, "Check SEC filings first")
    assert len(await contents(world, agent)) == len(await contents(world, bob)) == 1


WRONG_INSIGHTS = [
    ("fact", "   "),
    ("fact", "x" * 2001),
    ("fact", "Sure", 1.5),
    ("rumour", "Something"),
]


async def test_an_invalid_insight_is_refused_with_advice(world: World, wording: Wording) -> None:
    agent = await found_agent(world)

    async def keep(kind: Any, content: str, confidence: float = 1.0) -> None:
        await world.store.write(
            items.learn, agent, kind, content, author=agent.id, confidence=confidence
        )

    wording(await refusals_of(WRONG_INSIGHTS, keep))
    assert await changes(world, agent) == []


async def test_maintenance_prunes_expired_insights_and_merges_duplicates(
    world: World,
) -> None:
    agent = await found_agent(world)
    until = world.clock.now() + timedelta(days=3)
    await learn(world, agent, "The fair is in hall seven", valid_until=until)
    await learn(world, agent, "Use WAL with SQLite", source_thread_id=THREAD)
    world.clock.advance(minutes=1)
    twin = await learn(world, agent, "use WAL with SQLite.", source_thread_id=OTHER, label=UNKNOWN)
    # A duplicate that was never compared, as an older version could leave it.
    await world.store.write(rows.INSIGHTS.update, twin.id, status="active")
    assert not await world.store.read(items.needs_maintenance, agent.team_id)
    world.clock.advance(days=1)
    assert await world.store.read(items.needs_maintenance, agent.team_id)
    assert await world.store.write(items.maintain, agent.team_id) == (0, 1, 0)
    assert not await world.store.read(items.needs_maintenance, agent.team_id)
    world.clock.advance(days=3)
    assert await contents(world, agent) == ["Use WAL with SQLite"]
    assert await world.store.read(items.needs_maintenance, agent.team_id)
    done = await world.store.write(items.maintain, agent.team_id)
    assert (done.expired, done.merged) == (1, 0)
    verbs = [verb for _, verb in await changes(world, agent)]
    assert verbs[-4:] == ["merged", "maintained", "expired", "maintained"]


@pytest.mark.slow
async def test_a_prompt_gets_the_relevant_insights_first_and_a_limited_number(
    world: World,
) -> None:
    agent = await found_agent(world)
    await learn(world, agent, "Asyncio tasks need strong references")
    for number in range(120):
        filler = f"Subject{number} concerns matter{number} and thing{number} " + "padding " * 20
        await learn(world, agent, filler)
    chosen = await world.store.read(recall.for_work, agent.id, "Write an asyncio scraper")
    assert chosen[0].content == "Asyncio tasks need strong references"
    assert len(chosen) <= recall.MAX_INSIGHTS
    assert sum(len(i.content) for i in chosen) <= recall.MAX_CHARS
    assert chosen[1].content.startswith("Subject119")


@pytest.mark.slow
async def test_a_prompt_never_shows_only_one_side_of_a_contradiction(world: World) -> None:
    agent = await found_agent(world)
    old = await learn(world, agent, "The API limit is 60 calls a minute")
    for number in range(recall.MAX_INSIGHTS * 3):
        await learn(world, agent, f"Subject{number} concerns matter{number} and thing{number}")
    contradicts = Relation(action="contradict", id=old.id)
    new = await learn(world, agent, "The API limit is 600 calls a minute", relation=contradicts)
    chosen = await world.store.read(recall.for_work, agent.id, "Something else entirely")
    assert [i.id for i in chosen[:2]] == [new.id, old.id]
    # Enough others fit, and the words of the other side do not.
    old = await learn(world, agent, "The quota of storage is five gigabytes")
    contradicts = Relation(action="contradict", id=old.id)
    new = await learn(world, agent, "Ten times more may lie there", relation=contradicts)
    subjects = " ".join(f"Subject{number} matter{number}" for number in range(50))
    chosen = await world.store.read(recall.for_work, agent.id, f"Quota gigabytes {subjects}")
    assert {old.id, new.id} <= {i.id for i in chosen}
    assert len(chosen) == recall.MAX_INSIGHTS


async def test_knowledge_survives_a_restart(tmp_path: Path, database_url: str) -> None:
    async with World(tmp_path / "home", database_url=database_url, easy_endings=True) as world:
        agent = await found_agent(world)
        await learn(world, agent, "Check SEC filings first", source_thread_id=THREAD)
        known = await world.store.read(items.insights, agent.id)
        await world.restart()
        assert await world.store.read(items.insights, agent.id, query="filings") == known
