"""Pairs: 200 pairs of statements in four languages, found by the pre-filter and applied as told.

Each line of pairs.jsonl has a known statement, and one that says the same, one that updates it, one
that says the opposite and one about something else.
"""

import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest

from agiraph.api.feature_views.known import Insight
from agiraph.core.domain.agents import Agent
from agiraph.core.domain.ids import AgentId, TeamId, ThreadId
from agiraph.core.domain.provenance.labels import CLEAN
from agiraph.core.domain.text.similarity import Statements, segments
from agiraph.core.store.tx import Tx
from agiraph.features.knowledge import recall
from agiraph.features.knowledge.kind import MAX_KNOWN, read_insights
from agiraph.features.knowledge.model import Action
from agiraph.features.knowledge.rows import INSIGHTS
from agiraph.features.knowledge.verbs import items, reflection
from agiraph.models.embeddings import embeddings
from agiraph.testing import World

FLOOR = 0.98
"""Share of the related pairs whose known statement the harvest is shown."""
FLOOR_FIRST = 0.9
"""Share of them whose known statement is the nearest of all by words and letters alone."""
KINDS = ("same", "updated", "opposite", "other")
ACTIONS: dict[str, Action] = {
    "same": "update",
    "updated": "supersede",
    "opposite": "contradict",
    "other": "add",
}


class Fact(NamedTuple):
    language: str
    known: str
    same: str
    updated: str
    opposite: str
    other: str


FACTS = [
    Fact(*json.loads(line))
    for line in (Path(__file__).parent / "pairs.jsonl").read_text().splitlines()
]


def as_insight(id: str, content: str) -> Insight:
    return Insight(
        id=id,
        team_id=TeamId("t"),
        agent_id=AgentId("a"),
        type="fact",
        content=content,
        created_at=datetime(2026, 1, 5, tzinfo=UTC),
        author="a",
    )


def test_there_are_fifty_pairs_of_each_kind_in_four_languages() -> None:
    assert len(FACTS) == 50
    assert Counter(fact.language for fact in FACTS) == {"en": 13, "de": 13, "zh": 12, "es": 12}
    said = [text for fact in FACTS for text in fact[1:]]
    assert len(set(said)) == len(said) == 250


def test_the_harvest_is_shown_the_statement_that_a_new_one_is_about(
    capsys: pytest.CaptureFixture[str],
) -> None:
    model = embeddings()
    assert model is not None
    ways = ("shown", "nearest by words", "nearest by embeddings")
    found: dict[str, Counter[tuple[str, str]]] = {way: Counter() for way in ways}
    for number, fact in enumerate(FACTS):
        others = [f for f in FACTS if f is not fact]
        base = {f"{n}.{k}": text for n, f in enumerate(others) for k, text in enumerate(f[1:])}
        base["known"] = fact.known
        insights = [as_insight(id, content) for id, content in base.items()]
        statements = Statements(base)
        for kind in KINDS[:3]:
            new = getattr(fact, kind)
            first = [id for id, _ in statements.nearest(new, limit=1)]
            near = model.nearest_to_any([new], base, each=1, limit=1)
            shown = recall.candidates(f"We looked.\n{new}.", insights, limit=MAX_KNOWN)
            for way, ids in zip(ways, (shown, first, near), strict=True):
                found[way][fact.language, kind] += "known" in ids
        assert segments(f"We looked.\n{fact.known}.")[-1] == f"{fact.known}.", number
    size = Counter(fact.language for fact in FACTS)
    with capsys.disabled():
        print()
        for way, hits in found.items():
            shares = ", ".join(
                f"{language} {sum(hits[language, k] for k in KINDS[:3]) / 3 / size[language]:.0%}"
                for language in size
            )
            kinds = ", ".join(f"{k} {sum(hits[n, k] for n in size) / 50:.0%}" for k in KINDS[:3])
            print(f"  {way}: {hits.total() / 150:.1%} of 150 ({shares}; {kinds})")
    assert found["shown"].total() / 150 >= FLOOR
    assert found["nearest by words"].total() / 150 >= FLOOR_FIRST


@pytest.mark.parametrize("kind", KINDS)
async def test_what_the_harvest_answers_is_done(world: World, kind: str) -> None:
    agent = (await world.found("Know things", start=False)).coordinator

    def apply(tx: Tx) -> list[tuple[Insight, Insight]]:
        return [_apply(tx, agent, fact, kind) for fact in FACTS]

    applied = await world.store.write(apply)
    for (known, new), fact in zip(applied, FACTS, strict=True):
        assert (new.content, new.status) == (getattr(fact, kind), "active")
        replaced = ("superseded", new.id) if kind in ("same", "updated") else ("active", None)
        assert (known.status, known.superseded_by) == replaced
        assert new.contradicts == (known.id if kind == "opposite" else None)
        # Only the same statement is confirmed by its first source.
        assert new.confidence == (0.6 if kind == "same" else 0.5)
        assert (known.sources[0] in new.sources) is (kind == "same")


def _apply(tx: Tx, agent: Agent, fact: Fact, kind: str) -> tuple[Insight, Insight]:
    """Learn a statement, then apply a model's answer about another one. Return both, as they are
    afterwards."""
    known = items.learn(
        tx, agent, "fact", fact.known, author=agent.id, confidence=0.5, source="message_1"
    )
    stated = {
        "type": "fact",
        "content": getattr(fact, kind),
        "confidence": 0.5,
        "work": 1,
        "action": ACTIONS[kind],
        "id": known.id,
    }
    [learned] = read_insights(json.loads(json.dumps({"insights": [stated]}))) or []
    relation = reflection.checked(
        tx, learned.relation, agent.team_id, known.owner, CLEAN, may_replace=True
    )
    new = items.learn(
        tx,
        agent,
        learned.type,
        learned.content,
        author=agent.id,
        confidence=learned.confidence,
        source_thread_id=ThreadId("t_1"),
        relation=relation,
    )
    return INSIGHTS.get(tx, known.id), new
