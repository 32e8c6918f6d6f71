"""Attached files: their names and sizes are kept apart from their bytes."""

import base64
from typing import Any

from agiraph.core.domain.chat import Attachment
from agiraph.core.domain.messages import Draft
from agiraph.core.domain.persons import OWNER
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.services.mail import bus
from agiraph.core.store.texts import attached_files
from agiraph.core.store.tx import Tx
from agiraph.testing import World
from tests.store.earlier import to_schema, upgrade


def a_file(name: str, data: bytes) -> Attachment:
    return Attachment(name=name, media_type="text/csv", data=base64.b64encode(data).decode())


BEANS = (a_file("beans.csv", b"x,62"), a_file("Größe “a/b”.csv", b"y"))


async def sent(world: World) -> NewTeam:
    """Return a team with three messages: two with the same files, and one whose file differs from
    theirs in its bytes alone."""
    founded = await world.found("Count", start=False, acceptance=())

    def send(tx: Tx) -> None:
        about: dict[str, Any] = {"team_id": founded.team.id, "sender": OWNER}
        about |= {"recipient": founded.coordinator.id, "text": "See it."}
        for files in (BEANS, BEANS, (a_file("beans.csv", b"x,63"),), ()):
            bus.send(
                tx,
                Draft(
                    **about,
                    attachments=files,
                ),
                sets_to_work=False,
            )

    await world.store.write(send)
    return founded


def listed(tx: Tx) -> list[Any]:
    columns = "message_id, place, team_id, first_id, name, size"
    return list(tx.all(f"select {columns} from attached_files order by message_id, place"))


async def test_a_list_of_files_needs_no_bytes_of_them(world: World) -> None:
    team = (await sent(world)).team.id
    found = await world.store.read(attached_files.newest, team, limit=9)
    assert [(one.path.split("/", 3)[3], one.size) for one in found] == [
        ("0/beans.csv", 4),
        ("0/beans.csv", 4),
        ("1/Größe “a_b”.csv", 1),
    ]
    [newest] = await world.store.read(attached_files.newest, team, limit=1)
    assert newest == found[0]
    await world.store.write(lambda tx: tx.run("update messages set attachments = '[]'"))
    assert await world.store.read(attached_files.newest, team, limit=9) == found


def to_schema_24(tx: Tx) -> None:
    """Make the database one from before the table of attached files, with an old name."""
    to_schema(tx, 24)
    old = "replace(attachments, 'Größe', 'Gr' || :nul || 'e')"
    tx.run(f"update messages set attachments = {old}", nul=r"\u0000")


async def test_a_migration_lists_the_files_of_older_messages(
    world: World, database_url: str
) -> None:
    founded = await sent(world)
    await sent(world)  # the same files of another team count for themselves
    kept = await world.store.read(listed)
    assert len(kept) == 10
    await upgrade(world, database_url, to_schema_24)
    name = BEANS[1].name
    odd = name.replace("ö", "\N{REPLACEMENT CHARACTER}").replace("ß", "")
    found = await world.store.read(listed)
    assert [[name if column == odd else column for column in row] for row in found] == [
        list(row) for row in kept
    ]
    assert sum(odd in row for row in found) == 4
    data = await world.store.read(attached_files.data_of, founded.team.id, kept[0][0], 1)
    assert data == b"y"
