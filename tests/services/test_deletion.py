"""Deletion: a team that is deleted for good leaves nothing but an entry of the audit."""

import io
from typing import Any

import pytest

from agiraph.domain.errors import Conflict, NotFound, Refused
from agiraph.domain.ids import TeamId
from agiraph.domain.persons import OWNER
from agiraph.services.lifecycle import answers, daily_limit, deletion, digest
from agiraph.services.lifecycle.teams import NewTeam
from agiraph.store import access, dump, passages, teams
from agiraph.store.tx import Tx
from agiraph.testing import World, call, says

BY: dict[str, Any] = {"who": "admin", "person_id": OWNER}


async def worked(world: World) -> NewTeam:
    """Return a team with rows in most tables: work, files, messages, memories, triggers, grants."""
    world.script(
        "ada",
        says(
            call("write_file", path="beans.md", content="forty two"),
            call("bash", command="echo beans"),
            call("memory_write", path="knowledge/beans.md", content="# Beans\n\nForty-two beans."),
        ),
        says(call("ask_human", question="Which beans?")),
    )
    founded = await world.found("Count the beans", name="Beans")
    await world.settle()
    await world.store.write(digest.schedule, founded.team.id)

    def allow(tx: Tx) -> None:
        answers.allow(
            tx, kind="read", pattern="example.org", person_id=OWNER, team_id=founded.team.id
        )

    await world.store.write(allow)
    return founded


async def rows_of(world: World) -> str:
    """Return all rows of the database as text."""
    out = io.BytesIO()
    await world.store.read(dump.write, out)
    return out.getvalue().decode()


async def test_a_deleted_team_leaves_one_entry_of_the_audit_and_nothing_else(world: World) -> None:
    kept = await world.found("Keep this", name="Kept", start=False)
    before = await rows_of(world)
    founded = await worked(world)
    team = founded.team.id
    assert team in await rows_of(world)
    assert list((world.path / "spool").iterdir())
    await world.store.write(deletion.begin, team, name="Beans", stop=True, **BY)
    with pytest.raises(NotFound):
        await world.store.read(teams.find, "Beans")
    await world.runtime.removal.idle()

    audit = await world.store.read(access.audit)
    assert [(e.who, e.method, e.path, e.status) for e in audit] == [
        ("admin", "DELETE", f"/api/teams/{team} ('Beans', for good)", 202)
    ]
    after = (await rows_of(world)).splitlines()
    assert [line for line in after if line not in before.splitlines()] == [
        line for line in after if "for good" in line
    ]
    found = await world.store.read(passages.find_anywhere, "beans", team_id=None, limit=5)
    assert found == []
    assert [path.name for path in (world.path / "teams").iterdir()] == []
    assert list((world.path / "spool").iterdir()) == []
    assert await world.store.read(teams.find, "Kept") == kept.team


async def test_a_deletion_asks_for_the_name_and_does_not_end_work_unasked(world: World) -> None:
    team = (await worked(world)).team.id
    with pytest.raises(Refused, match="'Bean' is not that of the team, 'Beans'"):
        await world.store.write(deletion.begin, team, name="Bean", stop=True, **BY)
    with pytest.raises(Conflict, match="'Beans' is working: 1 open tasks and replies"):
        await world.store.write(deletion.begin, team, name="Beans", stop=False, **BY)
    assert (await world.store.read(teams.find, "Beans")).status == "active"
    assert await world.store.read(access.audit) == []


async def test_what_a_deleted_team_spent_today_still_counts_for_the_daily_limit(
    world: World,
) -> None:
    team = (await worked(world)).team.id

    def spent(tx: Tx, team_id: TeamId) -> None:
        tx.run("update spend set usd = 0.25 where team_id = :team", team=team_id)

    await world.store.write(spent, team)
    before = (await world.store.read(daily_limit.costs, 10.0)).usd
    await world.store.write(deletion.begin, team, name="Beans", stop=True, **BY)
    await world.runtime.removal.idle()
    assert before > 0
    assert (await world.store.read(daily_limit.costs, 10.0)).usd == before
