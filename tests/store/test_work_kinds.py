"""Kinds of work and of timers: found for the rows of an earlier release, and refused if unknown."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from types import MappingProxyType
from typing import Any, get_args

import pytest

from agiraph.core.domain.errors import StoreDamaged
from agiraph.core.domain.ids import NodeId
from agiraph.core.domain.work import Timer, TimerKind, WorkNode
from agiraph.core.services.board import planning
from agiraph.core.store import waits
from agiraph.core.store.nodes import NODES
from agiraph.core.store.tx import Tx
from agiraph.testing import World
from tests.store.earlier import to_schema, upgrade

SUMMARY = "Write the summary of the older part of your conversation with the person."
LINKS = "Read the links of a page"
BEFORE: dict[str, dict[str, Any]] = {
    "task": {"is_below": True},
    "single_answer": {"is_below": True, "budget": '{"turns":1}'},
    "task of one turn that was retried": {
        "is_below": True,
        "budget": '{"turns":4,"given":{"turns":1.0}}',
        "kind": "single_answer",
    },
    "goal of one turn": {"budget": '{"turns":1}', "kind": "task"},
    "review": {"is_below": True, "reviews_call": "call_1", "is_step": 1},
    "public_task": {"is_below": True, "is_public": 1},
    "link_reader": {"is_below": True, "is_public": 1, "title": LINKS},
    "reply": {"lane": "reply"},
    "reflection": {"lane": "reflection"},
    "conversation_summary": {"lane": "reflection", "task": SUMMARY},
    "research": {"research": "job"},
    "reader": {"is_below": True, "research": "reader", "is_public": 1, "is_step": 1},
    "labelled_writing": {"is_below": True, "research": "writing", "is_step": 1},
}
"""Nodes as the release before stored them, by what they become."""


async def pending(world: World) -> WorkNode:
    """Return a task that nobody has begun."""
    founded = await world.found("Count", start=False, acceptance=())
    about: dict[str, Any] = {"team_id": founded.team.id, "source": "delegation"}
    return await world.store.write(planning.create, task="Count beans", **about)


def to_schema_36(tx: Tx, ids: Mapping[str, NodeId] = MappingProxyType({}), goal: str = "") -> None:
    """Make the database one from before the column `kind`, with these nodes."""
    to_schema(tx, 36)
    for name in ids:
        before = BEFORE[name]
        sets = {k: v for k, v in before.items() if k not in ("kind", "is_step", "is_below")}
        sets["parent_id"] = goal if before.get("is_below") else None
        assigned = ", ".join(f"{column} = :{column}" for column in sets)
        tx.run(f"update nodes set {assigned} where id = :id", id=ids[name], **sets)


@pytest.mark.needs("knowledge", "research", "reviews")
async def test_a_migration_finds_the_kind_of_each_node(world: World, database_url: str) -> None:
    goal = await pending(world)
    ids = {name: NodeId(f"node_{place}") for place, name in enumerate(BEFORE)}

    def add(tx: Tx) -> None:
        for node_id in ids.values():
            NODES.insert(tx, replace(goal, id=node_id, title="", assignee_id=None))
        to_schema_36(tx, ids, goal.id)

    await upgrade(world, database_url, add)
    found = {name: await world.node(node_id) for name, node_id in ids.items()}
    expected = {
        name: (before.get("kind", name), bool(before.get("is_step")))
        for name, before in BEFORE.items()
    }
    assert {name: (n.kind.name, n.is_step) for name, n in found.items()} == expected
    assert {name: n.lane for name, n in found.items()} == {
        name: before.get("lane", "work") for name, before in BEFORE.items()
    }


async def test_a_migration_finds_what_each_timer_is_about(world: World, database_url: str) -> None:
    await pending(world)
    set_before = {Timer(kind, f"{kind}_1") for kind in get_args(TimerKind)}

    def add(tx: Tx) -> None:
        for timer in set_before:
            waits.set_timer(tx, timer, tx.now + timedelta(days=9))
        to_schema_36(tx)

    await upgrade(world, database_url, add)
    rows = await world.store.read(lambda tx: tx.all("select id, kind, subject from timers"))
    assert set_before <= {Timer(kind, subject) for _, kind, subject in rows}
    assert [Timer(kind, subject).id for _, kind, subject in rows] == [id for id, _, _ in rows]


async def test_a_kind_that_nothing_brings_is_named(world: World) -> None:
    goal = await pending(world)
    await world.store.write(lambda tx: tx.run("update nodes set kind = 'dream'"))
    with pytest.raises(StoreDamaged, match="dream"):
        await world.node(goal.id)
