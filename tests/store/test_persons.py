"""People in the database: the owner of new and migrated databases, and people in a dump."""

import io
import sqlite3
from pathlib import Path

import pytest

from agiraph.app import open_store
from agiraph.core.domain.errors import Refused
from agiraph.core.domain.ids import PersonId, TeamId
from agiraph.core.domain.persons import OWNER, Person
from agiraph.core.services.lifecycle import teams
from agiraph.core.store import teams as rows
from agiraph.core.store.access import AUDIT, PASSES
from agiraph.core.store.database import Store
from agiraph.core.store.engine import dump, migrate
from agiraph.core.store.teams import TEAMS
from agiraph.core.store.tx import Tx
from agiraph.testing import ManualClock

BEA = PersonId("person_0bea")


async def test_a_database_has_its_owner_from_the_start(store: Store) -> None:
    owner = await store.read(rows.owner)
    assert (owner.id, owner.name, owner.role) == (OWNER, "human", "owner")
    assert owner.created_at.year >= 2026


async def test_all_rows_of_an_older_database_belong_to_the_owner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, every = f"sqlite:///{tmp_path / 'old.db'}", migrate.migrations()
    monkeypatch.setattr(migrate, "migrations", lambda: [m for m in every if m.version < 11])
    await (await open_store(url, ManualClock())).close()
    with sqlite3.connect(tmp_path / "old.db") as old:
        old.execute(
            "insert into teams (id, name, goal, created_at, mode, status, permissions)"
            " values ('team_1', 'T', 'G', 0, 'finite', 'active', '[]')"
        )
        old.execute(
            "insert into passes (id, kind, name, digest, scope, created_at)"
            " values ('pass_1', 'token', 'n', 'd', 'read', 0)"
        )
        old.execute("insert into audit values ('deed_1', 0, 'admin', 'POST', '/api/teams', 201)")
    old.close()
    monkeypatch.undo()

    store = await open_store(url, ManualClock())
    assert await store.read(rows.owner_of, TeamId("team_1")) == OWNER
    assert (await store.read(PASSES.get, "pass_1")).person_id == OWNER
    assert (await store.read(AUDIT.get, "deed_1")).person_id == OWNER
    await store.close()


def _add_bea(tx: Tx) -> None:
    rows.PERSONS.insert(tx, Person(id=BEA, name="Bea", role="owner", created_at=tx.now))
    teams.create(tx, owner_id=BEA, goal="Watch", model="scripted/ada", start=False)


async def test_people_and_their_teams_are_in_a_dump(store: Store, tmp_path: Path) -> None:
    await store.write(_add_bea)
    out = io.BytesIO()
    await store.read(dump.write, out)
    lines = out.getvalue().splitlines(keepends=True)

    other = await open_store(f"sqlite:///{tmp_path / 'other.db'}", ManualClock())
    with pytest.raises(Refused, match="the owner is not among the persons"):
        await other.write(dump.load, [line for line in lines if not line.startswith(b'["human"')])
    await other.write(dump.load, lines)
    assert await other.read(rows.owner) == await store.read(rows.owner)
    assert (await other.read(rows.PERSONS.get, BEA)).name == "Bea"
    [team] = await other.read(TEAMS.select, "true")
    assert team.owner_id == BEA
    await other.close()
