"""Doubts: found as points in the one text in which an earlier release stored them."""

from typing import Any

import orjson
import pytest

from agiraph.core.domain.events.work import NodeCompleted
from agiraph.core.domain.ids import MessageId
from agiraph.core.domain.messages import Draft
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.records.doubts import Doubt
from agiraph.core.domain.work import StopReason
from agiraph.core.services.mail import bus
from agiraph.core.store.messages import MESSAGES
from agiraph.core.store.nodes import NODES
from agiraph.core.store.tx import Tx
from agiraph.testing import World, call, says
from tests.store.earlier import to_schema, upgrade

NO_LINES = "nobody said what must be true when the goal is reached"
LONG = 'the reviewer objects: "' + 500 * "x" + '"'
POINTS: dict[str | None, tuple[str, ...]] = {
    None: (),
    NO_LINES: (),
    "`a.md` does not exist": ("`a.md` does not exist",),
    f"'Count' has failed; {NO_LINES}; it says \"no\"": ("'Count' has failed", 'it says "no"'),
    f"{NO_LINES}; \\ and {{}}": ("\\ and {}",),
    "'Count' (node_1m7qab) is not done yet; 'Sum' (node_1m7qac) was cancelled": (
        "'Count' is not done yet",
        "'Sum' was cancelled",
    ),
    "cut off in 'Count' (node_1m7q": ("cut off in 'Count' (node_1m7q",),
    LONG: (LONG,),
}
"""What is not confirmed, by the text of the release before."""


def points(told: tuple[str, ...]) -> tuple[Doubt, ...]:
    return tuple(Doubt(kind="earlier", words=words) for words in told)


def shown(stored: str) -> str:
    """Return a text as the release before told it in a report."""
    return stored if len(stored) <= 400 else f"{stored[:399]}…"


@pytest.mark.parametrize("stored", POINTS, ids=range(len(POINTS)))
async def test_a_migration_parts_doubts_into_points_and_out_of_reports(
    world: World, database_url: str, stored: str | None
) -> None:
    world.script("ada", says(call("ask_human", question="What?")))
    founded = await world.found("Count the beans")
    await world.settle()
    [goal] = await world.board(founded.team.id)
    told = "" if stored is None else shown(stored)
    reports = {
        "plain": "All beans: 62.",
        "at the end": f"All beans: 62.\n\nNot confirmed: {told}",
        "behind a verdict": f"All beans: 62.\n\nReached only in part. Not confirmed: {told}",
        "at the start": f"Done, with doubts. Not confirmed: {stored}\n\nAll beans: 62.",
        "of another": "All beans: 62.\n\nNot confirmed: something else",
    }

    def add(tx: Tx) -> dict[str, MessageId]:
        about: dict[str, Any] = {"team_id": goal.team_id, "node_id": goal.id, "recipient": OWNER}
        about |= {"sender": founded.coordinator.id, "kind": "result"}
        sent = {name: bus.send(tx, Draft(**about, text=text)) for name, text in reports.items()}
        tx.emit(
            goal.team_id,
            NodeCompleted(node_id=goal.id, reason=StopReason.FINISHED, result="All beans: 62."),
        )
        return {name: message.id for name, message in sent.items()}

    sent = await world.store.write(add)

    def to_text(tx: Tx) -> None:
        tx.run("update nodes set doubts = :stored where id = :id", stored=stored, id=goal.id)
        if stored is not None:
            [(place, data)] = tx.all("select place, data from events where type = 'node.completed'")
            data = orjson.dumps({**orjson.loads(data), "doubts": stored}).decode()
            tx.run("update events set data = :data where place = :at", data=data, at=place)
        to_schema(tx, 43)

    await upgrade(world, database_url, to_text)
    expected = points(POINTS[stored])
    node = await world.store.read(NODES.get, goal.id)
    assert node.doubts == expected
    [ended] = [e for e in await world.events(goal.team_id) if e.type == "node.completed"]
    in_event = [
        {"kind": "earlier", "words": words, "node_id": None, "title": ""}
        for words in POINTS[stored]
    ]
    assert ended.data.get("doubts", []) == in_event

    found = {name: await world.store.read(MESSAGES.get, id) for name, id in sent.items()}
    texts = {name: (message.text, message.doubts) for name, message in found.items()}
    if stored is None:
        assert texts == {name: (text, ()) for name, text in reports.items()}
        return
    assert texts == {
        "plain": ("All beans: 62.", ()),
        "at the end": ("All beans: 62.", expected),
        "behind a verdict": ("All beans: 62.\n\nReached only in part.", expected),
        "at the start": ("All beans: 62.", expected),
        "of another": (reports["of another"], ()),
    }
    events = await world.events(goal.team_id)
    told_by = {e.data["message_id"]: e.data["text"] for e in events if e.type == "message.sent"}
    assert {name: told_by[id] for name, id in sent.items()} == {
        name: text for name, (text, _) in texts.items()
    }
