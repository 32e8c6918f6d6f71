"""Deletion: a team that is deleted for good leaves nothing but an entry of the audit."""

import asyncio
import io
from datetime import timedelta
from typing import Any

import pytest

from agiraph.core.domain.chat import Attachment
from agiraph.core.domain.errors import Conflict, NotFound, Refused
from agiraph.core.domain.ids import TeamId
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.records.deletions import Deletion
from agiraph.core.domain.work import Timer
from agiraph.core.services import health
from agiraph.core.services.lifecycle import answers, digest, overspending, removal
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.services.mail import filing
from agiraph.core.store import access, teams, waits
from agiraph.core.store.deletions import DELETIONS
from agiraph.core.store.engine import dump
from agiraph.core.store.texts import passages
from agiraph.core.store.tx import Tx
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
    beans = Attachment(name="beans.csv", media_type="text/csv", data="eCw2Mg==")
    founded = await world.found("Count the beans", name="Beans", attachments=(beans,))
    await world.settle()
    await world.store.write(digest.schedule, founded.team.id)

    def allow(tx: Tx) -> None:
        answers.allow(
            tx, kind="read", pattern="example.org", person_id=OWNER, team_id=founded.team.id
        )

    await world.store.write(allow)
    [question] = await world.inbox()
    tomorrow = world.clock.now() + timedelta(days=1)
    await world.store.write(filing.file, OWNER, [question.id], "snooze", until=tomorrow)
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
    await world.store.write(removal.delete_team, team, name="Beans", stop=True, **BY)
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
        await world.store.write(removal.delete_team, team, name="Bean", stop=True, **BY)
    with pytest.raises(Conflict, match=r"'Beans' is working on 1 task or reply\."):
        await world.store.write(removal.delete_team, team, name="Beans", stop=False, **BY)
    assert (await world.store.read(teams.find, "Beans")).status == "active"
    assert await world.store.read(access.audit) == []


async def test_what_a_deleted_team_spent_today_still_counts_for_the_daily_limit(
    world: World,
) -> None:
    team = (await worked(world)).team.id

    def spent(tx: Tx, team_id: TeamId) -> None:
        tx.run("update spend set usd = 0.25 where team_id = :team", team=team_id)

    await world.store.write(spent, team)
    before = (await world.store.read(overspending.costs_of_day, 10.0)).usd
    await world.store.write(removal.delete_team, team, name="Beans", stop=True, **BY)
    await world.runtime.removal.idle()
    assert before > 0
    assert (await world.store.read(overspending.costs_of_day, 10.0)).usd == before


async def test_the_timer_of_a_day_stays_for_the_other_teams(world: World) -> None:
    team = (await worked(world)).team.id

    def sleep_until_midnight(tx: Tx) -> None:
        tx.run("update waits set kind = 'day', subject = '2026-01-05'")
        waits.set_timer(tx, Timer("day", "2026-01-05"), tx.now + timedelta(days=1))

    await world.store.write(sleep_until_midnight)
    while await world.store.write(removal.drop_rows, team):
        pass
    assert await world.store.read(waits.is_set, Timer("day", "2026-01-05"))


async def test_a_team_at_work_does_not_delay_the_removal_of_another(world: World) -> None:
    busy = (await worked(world)).team
    idle = (await world.found("Rest", name="Idle", start=False)).team

    def run(tx: Tx, owner: str | None) -> None:
        tx.run("update nodes set owner = :owner, status = 'running'", owner=owner)

    await world.store.write(run, "a process")
    for number, team in enumerate((busy, idle)):
        at = world.clock.now() + timedelta(seconds=number)
        begun = Deletion(team_id=team.id, name=team.name, person_id=OWNER, created_at=at)
        await world.store.write(DELETIONS.insert, begun)
    await world.runtime.removal.stop()
    await world.runtime.removal.start()
    async with asyncio.timeout(10):
        while [each.name for each in await world.store.read(removal.pending_deletions)] != [
            "Beans"
        ]:
            pass
    assert await world.store.read(health.unremoved) == []
    world.clock.advance(minutes=11)
    [stuck] = await world.store.read(health.unremoved)
    assert stuck.startswith("The data of the team 'Beans', deleted at ")
    await world.store.write(run, None)
    await world.runtime.removal.idle()
