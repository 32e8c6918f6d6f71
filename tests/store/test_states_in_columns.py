"""States in columns: found in the words in which an earlier release stored them."""

import asyncio
from dataclasses import replace
from string import Template
from typing import Any

from agiraph.core.domain.ids import NodeId, ThreadId, TriggerId, new_id
from agiraph.core.domain.messages import Draft
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.records.deliveries import StoredDelivery
from agiraph.core.domain.work_kinds import LINK_READER, TASK
from agiraph.core.prompts import prompt
from agiraph.core.services.board import planning
from agiraph.core.services.mail import bus
from agiraph.core.store import threads
from agiraph.core.store.deliveries import DELIVERIES
from agiraph.core.store.engine import postgres
from agiraph.core.store.triggers import TRIGGERS
from agiraph.core.store.tx import Tx
from agiraph.testing import World, call, says
from tests.services.triggers import create_trigger, found_idle_team

ENDED: dict[str, str | None] = {
    "the team was completed": "completed",
    "the team was stopped": "stopped",
    "the team was archived": "archived",
    "a person stopped the team's goal": "goal",
    "it was switched off": None,
    "it has fired 2 times": None,
}
"""What a trigger ended with, by the reason that the release before stored."""
RECEIPTS: dict[str, tuple[str | None, tuple[str, str] | None]] = {
    '["7","r1"]': ('["7","r1"]', None),
    'revoked ["7","r1"]': (None, ("7", "r1")),
}
"""Receipt, and what is left of a revoked one, by the receipt that the release before stored."""


ADDRESS = "https://a.example/menu?x=1"
TURNS: dict[str, tuple[int | None, bool]] = {
    "[exit code 0]\nfine": (0, False),
    "[exit code 12, 40 s]\nbad": (12, False),
    "[exit code -9: too much memory.]": (-9, False),
    "[exit code 123456789]": (123456, False),
    "[exit code unknown]": (None, False),
    "[ended after 9 s: it ran out of time]": (None, False),
    "Unchanged since you read it: the text stands above, in the answer to your call c": (
        None,
        True,
    ),
    "Unchanged since you read it: not a word": (None, False),
}
"""Exit code, and whether it repeats another one, of answers that the release before stored."""


def to_schema_38(tx: Tx) -> None:
    """Make the database one from before these columns."""
    for column in ("triggers.ended_with", "deliveries.revoked", "nodes.address"):
        table, name = column.split(".")
        tx.run(f"alter table {table} drop column {name}")
    match tx.dialect:
        case "sqlite":
            tx.run("pragma user_version = 38")
        case "postgres":
            tx.run("delete from schema_version where version > 38")


async def upgrade(world: World, database_url: str) -> None:
    await world.store.write(to_schema_38)
    await world.stop()
    if database_url.startswith("postgresql"):
        await asyncio.to_thread(postgres.upgrade, database_url)
    await world.start()


async def test_a_migration_finds_what_each_trigger_ended_with(
    world: World, database_url: str
) -> None:
    founded = await found_idle_team(world)
    trigger = await create_trigger(world, founded, "scheduled", {"cron": "@hourly"})
    ids = {why: TriggerId(new_id("trigger")) for why in ENDED}

    def add(tx: Tx) -> None:
        for why, id in ids.items():
            TRIGGERS.insert(tx, replace(trigger, id=id, status="expired", ended=why))

    await world.store.write(add)
    await upgrade(world, database_url)
    found = {why: await world.store.read(TRIGGERS.get, id) for why, id in ids.items()}
    assert {why: ended.ended_with for why, ended in found.items()} == ENDED


async def test_a_migration_parts_revoked_receipts_from_others(
    world: World, database_url: str
) -> None:
    founded = await found_idle_team(world)
    sender: dict[str, Any] = {"team_id": founded.team.id, "sender": founded.coordinator.id}

    def add(tx: Tx) -> None:
        message = bus.send(tx, Draft(**sender, recipient=OWNER, text="Done.", kind="result"))
        for receipt in RECEIPTS:
            delivery = StoredDelivery(
                id=receipt,
                team_id=founded.team.id,
                message_id=message.id,
                channel=receipt[:4],
                created_at=tx.now,
                due_at=tx.now,
                status="sent",
                receipt=receipt,
            )
            DELIVERIES.insert(tx, delivery)

    await world.store.write(add)
    await upgrade(world, database_url)
    found = {receipt: await world.store.read(DELIVERIES.get, receipt) for receipt in RECEIPTS}
    assert {name: (row.receipt, row.revoked) for name, row in found.items()} == RECEIPTS


async def test_a_migration_finds_what_answers_told_in_their_first_words(
    world: World, database_url: str
) -> None:
    world.script("ada", says(call("ask_human", question="What?")))
    founded = await world.found("Look", acceptance=())
    await world.settle()
    [goal] = await world.board(founded.team.id)
    thread = ThreadId((await world.thread(goal.id)).id)

    def add(tx: Tx) -> None:
        at = threads.append_point(tx, thread)
        for text in TURNS:
            given: dict[str, Any] = {"node_id": goal.id, "text": text}
            at, _ = threads.append(tx, at, role="tool", failed=True, **given)
            at, _ = threads.append(tx, at, role="tool", **given)
            at, _ = threads.append(tx, at, role="user", **given)

    await world.store.write(add)
    await upgrade(world, database_url)
    turns = [turn for turn in await world.turns(goal.id) if turn.text in TURNS]
    found = [(t.text, t.role, t.failed, t.exit_code, t.is_repeated) for t in turns]
    assert found == [
        row
        for text, told in TURNS.items()
        for row in (
            (text, "tool", True, *told),
            (text, "tool", False, *told),
            (text, "user", False, None, False),
        )
    ]


async def test_a_migration_finds_the_page_of_each_reader(world: World, database_url: str) -> None:
    founded = await found_idle_team(world)
    task = Template(prompt("reader")).substitute(url=ADDRESS, pages=7)

    def add(tx: Tx) -> NodeId:
        kept: dict[str, Any] = {"team_id": founded.team.id, "source": "delegation", "task": task}
        ids = [planning.create(tx, kind=kind, **kept).id for kind in (LINK_READER, TASK)]
        return ids[0]

    reader = await world.store.write(add)
    await upgrade(world, database_url)
    nodes = await world.board(founded.team.id)
    assert {node.id: node.address for node in nodes if node.address} == {reader: ADDRESS}
