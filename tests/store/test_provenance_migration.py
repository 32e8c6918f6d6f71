"""The migration of knowledge that waited for a person under the rule before labels."""

import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agiraph.app import open_store
from agiraph.core.domain.provenance.labels import UNKNOWN
from agiraph.core.store.engine import migrate
from agiraph.features.knowledge.rows import CHANGES, INSIGHTS, MEMORIES
from agiraph.features.knowledge.verbs import items
from agiraph.testing import ManualClock

HELD = (
    ("insight_short", "fact", "Tea costs 3 pounds"),
    ("insight_long", "fact", "Tea " * 100),
    ("insight_order", "technique", "Pay the vendor first"),
    ("insight_again", "fact", "Deploy on Fridays"),
)


def _fill(path: Path) -> None:
    with sqlite3.connect(path) as old:
        old.execute(
            "insert into teams (id, name, goal, created_at, mode, status, permissions)"
            " values ('team_1', 'T', 'G', 0, 'finite', 'active', '[]')"
        )
        old.execute(
            "insert into agents"
            " (id, team_id, name, role, model, kind, tools, created_at, persistent) values"
            " ('agent_1', 'team_1', 'ada', 'coordinator', 'm', 'llm', '[]', 0, 1)"
        )
        insert = (
            "insert into {} (id, team_id, agent_id, {}content, created_at, author, status,"
            " sources, label) values (?, 'team_1', 'agent_1', {}?, 0, 'agent_1', ?, '[]', ?)"
        )
        for id, type, content in HELD:
            row = (id, type, content, "held", '["unknown"]')
            old.execute(insert.format("insights", "type, ", "?, "), row)
        gone = ("insight_gone", "fact", "Deploy on Fridays", "removed", None)
        old.execute(insert.format("insights", "type, ", "?, "), gone)
        row = ("memory_1", "Takes tea", "held", '["unknown"]')
        old.execute(insert.format("memories", "", ""), row)
        before = '[{"id":"insight_short","before":{"status":"held","sources":[]}}]'
        old.execute(
            "insert into knowledge_changes (id, team_id, agent_id, verb, author, created_at,"
            " touched) values ('change_1', 'team_1', 'agent_1', 'confirmed', 'human', 0, ?)",
            (before,),
        )
        learned = '{"id":"insight_short","team_id":"team_1","held":true}'
        old.execute("insert into events values (1, 'insight.learned', 0, ?)", (learned,))
        old.execute("insert into events values (2, 'knowledge.held', 0, '{}')")
    old.close()


async def test_what_was_held_becomes_unverified_or_pending_by_its_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, every = f"sqlite:///{tmp_path / 'old.db'}", migrate.migrations()
    monkeypatch.setattr(migrate, "migrations", lambda: [m for m in every if m.version < 18])
    await (await open_store(url, ManualClock())).close()
    _fill(tmp_path / "old.db")
    monkeypatch.undo()

    store = await open_store(url, ManualClock())
    found = await store.read(INSIGHTS.select, "id is not null order by id")
    assert {i.id: (i.status, bool(i.label)) for i in found} == {
        "insight_short": ("unverified", True),
        "insight_long": ("pending", True),
        "insight_order": ("pending", True),
        "insight_again": ("pending", True),
        "insight_gone": ("removed", False),
    }
    memory = await store.read(MEMORIES.get, "memory_1")
    assert (memory.status, memory.label) == ("unverified", UNKNOWN)
    assert memory.valid_until is not None
    left = memory.valid_until - datetime.now(UTC)
    assert timedelta(days=89) < left <= timedelta(days=90)
    change = await store.read(CHANGES.get, "change_1")
    assert [touched.before for touched in change.touched] == [{"status": "pending", "sources": []}]
    await store.write(items.undo, "change_1")
    assert (await store.read(INSIGHTS.get, "insight_short")).status == "pending"
    kept = await store.read(lambda tx: tx.all("select type, data from events where place < 3"))
    assert sorted(map(tuple, kept)) == [
        ("insight.learned", '{"id":"insight_short","team_id":"team_1","status":"pending"}'),
        ("knowledge.pending", "{}"),
    ]
    await store.close()
