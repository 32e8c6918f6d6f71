"""An export contains all rows of a team, also those of agents that have left."""

from pathlib import Path
from typing import Any

import orjson

from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.services.members import roster
from agiraph.core.store import teams
from agiraph.core.store.engine import dump, dump_validation
from agiraph.core.store.tx import Tx
from agiraph.features.backup.team_export import write_export
from agiraph.testing import World, call, says
from tests.services.teams import add_child, found_waiting_team

NOT_EXPORTED = {"passages", "deliveries", "turns", "events", "errands", "waits", "spend"}
"""Tables written in another form (turns, events, costs), derived, or needed only at run time."""


async def test_an_export_contains_threads_and_messages_of_agents_that_have_left(
    world: World, tmp_path: Path
) -> None:
    founded, _ = await found_waiting_team(world)
    world.script(
        "temp",
        says(call("send_message", to="human", content="Half of it is done.")),
        says(call("send_message", to="coordinator", content="I need a hammer.")),
        says(call("publish", summary="Built.")),
    )
    temp = await world.store.write(
        roster.hire, founded.team.id, name="temp", role="worker", model="scripted/temp",
        persistent=False,
    )  # fmt: skip
    node_id = await add_child(world, founded, "build", to=temp)
    await world.settle()
    [gone] = await world.store.read(teams.AGENTS.select, "retired_at is not null")
    assert gone.id == temp.id

    await write_export(world.store, world.path, founded.team, tmp_path / "out")

    thread = await world.thread(node_id)
    turns = _lines(tmp_path / "out" / "threads" / f"{thread.id}.jsonl")
    assert [t["seq"] for t in turns] == [t.seq for t in await world.turns(node_id)]
    said = _lines(tmp_path / "out" / "conversation.jsonl")
    assert [(m["from"], m["to"], m["text"]) for m in said if m["from"] == "temp"][:2] == [
        ("temp", "human", "Half of it is done."),
        ("temp", "coordinator", "I need a hammer."),
    ]
    assert {a["name"] for a in _lines(tmp_path / "out" / "agents.jsonl")} == {
        "coordinator",
        "temp",
    }
    missing = await world.store.read(_missing_ids, founded, tmp_path / "out")
    assert missing == set[str]()


def _missing_ids(tx: Tx, founded: NewTeam, target: Path) -> set[str]:
    """Return the ids of the team's rows, of any table, that are in no file of the export."""
    written = b"".join(p.read_bytes() for p in target.rglob("*.json*")).decode()
    ids: set[str] = set()
    for table in dump.TABLES.keys() - NOT_EXPORTED:
        if {"id", "team_id"} <= set(dump_validation.columns_of(tx, table)):
            where = f"select id from {table} where team_id = :id"
            ids |= {str(row[0]) for row in tx.all(where, id=founded.team.id)}
    assert ids
    return {identity for identity in ids if f'"{identity}"' not in written}


def _lines(path: Path) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]
