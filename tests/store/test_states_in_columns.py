"""States in columns: found in the words in which an earlier release stored them."""

from dataclasses import replace
from string import Template
from typing import Any

import orjson
import pytest

from agiraph.core.domain.ids import MessageId, NodeId, ThreadId, TriggerId, new_id
from agiraph.core.domain.messages import Draft
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.provenance.labels import CLEAN, UNKNOWN, of_program
from agiraph.core.domain.records.deliveries import StoredDelivery
from agiraph.core.domain.work import WaitingOn
from agiraph.core.domain.work_kinds import LINK_READER, TASK
from agiraph.core.prompts import prompt
from agiraph.core.services import access
from agiraph.core.services.board import planning
from agiraph.core.services.lifecycle import teams
from agiraph.core.services.mail import bus
from agiraph.core.services.triggers import firing
from agiraph.core.store import threads, waits
from agiraph.core.store.deliveries import DELIVERIES
from agiraph.core.store.messages import MESSAGES
from agiraph.core.store.triggers import TRIGGERS
from agiraph.core.store.tx import Tx
from agiraph.testing import World, call, says
from tests.services.triggers import create_trigger, found_idle_team
from tests.store.earlier import to_schema, upgrade

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


async def test_a_migration_finds_what_each_trigger_ended_with(
    world: World, database_url: str
) -> None:
    founded = await found_idle_team(world)
    trigger = await create_trigger(world, founded, "scheduled", {"cron": "@hourly"})
    ids = {why: TriggerId(new_id("trigger")) for why in ENDED}

    def add(tx: Tx) -> None:
        for why, id in ids.items():
            TRIGGERS.insert(tx, replace(trigger, id=id, status="expired", ended=why))
        to_schema(tx, 38)

    await upgrade(world, database_url, add)
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
        to_schema(tx, 38)

    await upgrade(world, database_url, add)
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
        to_schema(tx, 38)

    await upgrade(world, database_url, add)
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
    await upgrade(world, database_url, lambda tx: to_schema(tx, 38))
    nodes = await world.board(founded.team.id)
    assert {node.id: node.address for node in nodes if node.address} == {reader: ADDRESS}


HASH = "0123456789abcdef0123456789abcdef"
REFS: dict[str, tuple[str | None, str | None, str | None]] = {
    "late:msg_1": ("late_answer", "msg_1", None),
    "burn:node_1": ("spending", "node_1", None),
    "stage:stage_1": ("stage", "stage_1", None),
    "digest:team_1": ("digest", "team_1", None),
    "said in agent_1": ("mention", "agent_1", None),
    "stopped:model": ("model", None, None),
    "stopped:crash": ("crash", None, None),
    "takes back": ("taken_back", None, None),
    "rerun:NODE:run_1": ("rerun", "run_1", None),
    f"NODE:call_1:{HASH}": ("call", "call_1", HASH),
    f"NODE:a:b:{HASH}": ("call", "a:b", HASH),
    f"NODE::{HASH}": ("call", None, HASH),
    f"closed::{HASH}": (None, None, HASH),
    "closed::run_1": (None, None, None),
}
"""Topic, id and fingerprint, by the `ref` that the release before stored; NODE is its node."""
KEYS = {
    "answer:msg_1": WaitingOn("answer", "msg_1"),
    "approval:msg_2": WaitingOn("approval", "msg_2"),
    "reply:msg_3": WaitingOn("reply", "msg_3"),
    "node:node_1": WaitingOn("node", "node_1"),
    "stage:stage_1": WaitingOn("stage", "stage_1"),
    "tasks:node_2": WaitingOn("tasks", "node_2"),
    "time:timer_1": WaitingOn("time", "timer_1"),
    "time:day:2026-01-05": WaitingOn("day", "2026-01-05"),
}
"""What is waited for, by the key that the release before stored."""


async def test_a_migration_finds_what_each_message_is_about(
    world: World, database_url: str
) -> None:
    founded = await found_idle_team(world)
    about: dict[str, Any] = {"recipient": OWNER, "kind": "approval", "text": "May I?"}

    def add(tx: Tx) -> dict[str, MessageId]:
        team: dict[str, Any] = {"team_id": founded.team.id}
        node = planning.create(tx, source="delegation", task="Count", **team)
        draft = Draft(sender=founded.coordinator.id, node_id=node.id, **team, **about)
        ids = {ref: bus.send(tx, draft).id for ref in REFS}
        to_schema(tx, 39)
        for ref, id in ids.items():
            stored = ref.replace("NODE", node.id)
            tx.run("update messages set ref = :ref where id = :id", ref=stored, id=id)
        return ids

    ids = await upgrade(world, database_url, add)
    found = {ref: await world.store.read(MESSAGES.get, id) for ref, id in ids.items()}
    assert {ref: (m.topic, m.ref, m.fingerprint) for ref, m in found.items()} == REFS


async def test_a_migration_finds_what_each_wait_is_for(world: World, database_url: str) -> None:
    world.script("ada", says(call("ask_human", question="What?")))
    founded = await world.found("Look", acceptance=())
    await world.settle()
    [goal] = await world.board(founded.team.id)

    def add(tx: Tx) -> None:
        [wait] = waits.of_node(tx, goal.id)
        to_schema(tx, 39)
        for key in KEYS:
            tx.run(
                "insert into waits (waiting_on, node_id, thread_id, call_id, reason, created_at)"
                " select :key, node_id, thread_id, :key, reason, created_at from waits"
                " where call_id = :call",
                key=key,
                call=wait.call_id,
            )

    await upgrade(world, database_url, add)
    found = await world.store.read(waits.of_node, goal.id)
    assert {w.call_id: w.waiting_on for w in found if w.call_id in KEYS} == KEYS
    assert {WaitingOn.parse(key): key for key in KEYS} == {on: key for key, on in KEYS.items()}
    assert {str(on) for on in KEYS.values()} == {*KEYS}


async def test_a_migration_counts_what_each_trigger_has_missed(
    world: World, database_url: str
) -> None:
    founded = await found_idle_team(world)
    trigger = await create_trigger(world, founded, "scheduled", {"cron": "@hourly"})

    def add(tx: Tx) -> None:
        firing.skip(tx, trigger, "1", "misfire", count=3, last="3")
        firing.skip(tx, trigger, "4", "misfire")
        firing.skip(tx, trigger, "5", "overlap")
        to_schema(tx, 39)

    await upgrade(world, database_url, add)
    assert (await world.store.read(TRIGGERS.get, trigger.id)).missed == 4


@pytest.mark.parametrize("name", ["admin", "phone (old)"])
async def test_a_migration_finds_the_token_that_has_stopped_all_work(
    world: World, database_url: str, name: str
) -> None:
    def add(tx: Tx) -> str | None:
        issued = access.issue(tx, OWNER, kind="token", name="phone (old)", scope="admin")
        token_id = None if name == "admin" else issued.token.id
        teams.stop_all(tx, by=name if token_id is None else f"{name} ({token_id})")
        to_schema(tx, 39)
        return token_id

    token_id = await upgrade(world, database_url, add)
    stop = await world.store.read(teams.found_stop)
    assert stop is not None
    assert stop.token_id == token_id


TAINTS = {
    "the program Bo's": of_program("Bo's"),
    "the program " + "b" * 300: of_program("b" * 300),
    "a page of example.org": UNKNOWN,
    "": CLEAN,
}
"""Labels, by the sentence that a release before labels stored for a turn."""


async def test_a_migration_makes_labels_of_the_sentences_about_turns(
    world: World, database_url: str
) -> None:
    world.script("ada", says(call("ask_human", question="What?")))
    founded = await world.found("Look", acceptance=())
    await world.settle()
    [goal] = await world.board(founded.team.id)
    thread = ThreadId((await world.thread(goal.id)).id)

    def add(tx: Tx) -> None:
        at = threads.append_point(tx, thread)
        for said in TAINTS:
            at, _ = threads.append(tx, at, role="user", node_id=goal.id, text=f"({said})")
            tx.run(
                "update turns set extra = :extra where text = :text",
                extra=orjson.dumps({"tainted_by": said, "x": "\0"}).decode(),
                text=f"({said})",
            )
        to_schema(tx, 39)

    await upgrade(world, database_url, add)
    found = {turn.text: turn.label for turn in await world.turns(goal.id)}
    assert {said: found[f"({said})"] for said in TAINTS} == TAINTS
