"""A damaged database is refused with its path or read as it is; nothing is repaired silently."""

import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from agiraph.core.domain.errors import StoreDamaged
from agiraph.core.domain.events import Event
from agiraph.core.domain.persons import OWNER
from agiraph.core.store import events, messages, nodes, threads
from agiraph.core.store import teams as rows
from agiraph.core.store.database import Store
from agiraph.core.store.engine.sqlite import SqliteStore
from agiraph.core.store.engine.sqlite_files import PAGE_BYTES
from agiraph.testing import ManualClock, World, call, says
from tests.store.test_full_disk_and_locks import check_integrity


async def all_events(store: Store) -> list[Event]:
    [team] = await store.read(rows.every)
    return await store.read(events.after, team.id, 0, limit=10_000)


async def all_rows(store: Store) -> list[object]:
    """Return every row of the only team."""
    [team] = await store.read(rows.every)
    everyone = await store.read(rows.members, team.id)
    found: list[object] = [team, *everyone, *await store.read(messages.inbox, OWNER)]
    found += await store.read(nodes.board, team.id)
    for agent in everyone:
        for thread in await store.read(threads.of_agent, agent.id):
            found += [thread, *await store.read(threads.turns, thread.id)]
    return found + await all_events(store)


@pytest.fixture
async def database_file(tmp_path: Path) -> Path:
    """The closed database of a team that has done some work."""
    async with World(tmp_path / "home", easy_endings=True) as world:
        files = [call("write_file", path=f"{n}.md", content="x" * 500) for n in range(6)]
        world.script("ada", *(says(made) for made in files), says(call("finish", summary="done")))
        await world.found("Write files")
        await world.settle()
    path = tmp_path / "home" / "agiraph.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("pragma wal_checkpoint(truncate)")
    return path


async def read_or_refuse(path: Path) -> list[object] | None:
    """Return all rows, or None if the file is refused with its path. The file must not change."""
    before = path.read_bytes()
    try:
        store = SqliteStore(path, ManualClock())
    except StoreDamaged as refusal:
        is_named = str(path) in str(refusal)
        assert (is_named, path.read_bytes()) == (True, before)
        return None
    try:
        return await all_rows(store)
    finally:
        await store.close()
        assert path.read_bytes() == before


async def test_a_page_of_random_bytes_is_never_read_as_data(database_file: Path) -> None:
    whole, expected = database_file.read_bytes(), await read_or_refuse(database_file)
    chance = random.Random(4711)
    refused = 0
    pages = range(1, len(whole) // PAGE_BYTES)
    for page in pages:
        damaged = bytearray(whole)
        start = page * PAGE_BYTES
        damaged[start : start + PAGE_BYTES] = chance.randbytes(PAGE_BYTES)
        database_file.write_bytes(damaged)
        seen = await read_or_refuse(database_file)
        refused += seen is None
        assert seen in (None, expected), f"page {page + 1}"
    assert refused >= 0.9 * len(pages)


@pytest.mark.slow
@pytest.mark.parametrize("flips", [30, pytest.param(400, marks=pytest.mark.long)])
async def test_flipped_bits_are_refused_or_left_unchanged(database_file: Path, flips: int) -> None:
    """SQLite has no checksums: a changed letter may go unnoticed; nothing is repaired silently."""
    whole = database_file.read_bytes()
    chance = random.Random(4711)
    refused = 0
    for _ in range(flips):
        damaged = bytearray(whole)
        place = chance.randrange(100, len(whole))
        damaged[place] ^= 1 << chance.randrange(8)
        database_file.write_bytes(damaged)
        try:
            refused += await read_or_refuse(database_file) is None
        except (StoreDamaged, ValueError, sqlite3.Error):  # noticed only when the row is read
            refused += 1
    assert refused > 0


@pytest.mark.parametrize("place", [0, 7, 15, 16, 17, 100, 103])
async def test_a_file_with_a_damaged_header_is_refused(database_file: Path, place: int) -> None:
    damaged = bytearray(database_file.read_bytes())
    damaged[place] ^= 0xFF
    database_file.write_bytes(damaged)
    assert await read_or_refuse(database_file) is None


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
async def test_a_truncated_file_is_refused(database_file: Path, share: float) -> None:
    whole = database_file.read_bytes()
    database_file.write_bytes(whole[: int(len(whole) * share)])
    assert await read_or_refuse(database_file) is None


async def test_invalid_utf8_in_a_text_is_reported_as_damage(database_file: Path) -> None:
    damaged = database_file.read_bytes().replace(b"Write files", b"Wr\xfftefiles")
    database_file.write_bytes(damaged)
    try:
        seen = await read_or_refuse(database_file)
    except StoreDamaged:  # noticed only when the row is read
        seen = None
    assert seen is None


async def test_an_sqlite_error_that_quotes_invalid_utf8_is_reported_as_damage(
    database_file: Path,
) -> None:
    damaged = database_file.read_bytes().replace(
        b"CREATE TABLE stages", b"CRE\xc1TE TABLE st\xc1ges"
    )
    database_file.write_bytes(damaged)
    assert await read_or_refuse(database_file) is None


async def test_a_file_without_a_schema_version_is_refused(database_file: Path) -> None:
    with closing(sqlite3.connect(database_file)) as connection:
        connection.execute("pragma user_version = 0")
        connection.execute("pragma wal_checkpoint(truncate)")
    assert await read_or_refuse(database_file) is None


async def test_a_truncated_wal_leaves_a_prefix_of_the_events(tmp_path: Path) -> None:
    """Everything committed before the cut is there, and no partial transaction."""
    async with World(tmp_path / "home", easy_endings=True) as world:
        world.script("ada", says(call("checkpoint", summary="half way")), says("Bye."))
        await world.found("Be cut off")
        await world.settle()
        expected = await all_events(world.store)
        shutil.copytree(tmp_path / "home", tmp_path / "seen")  # as a power cut would leave it
    journal = (tmp_path / "seen" / "agiraph.db-wal").read_bytes()
    frame = 24 + PAGE_BYTES
    frames = (len(journal) - 32) // frame
    lengths: set[int] = set()
    for kept in range(frames, 0, -5):
        for torn in (0, 12, frame // 2):
            path = tmp_path / f"cut{kept}.{torn}.db"
            shutil.copyfile(tmp_path / "seen" / "agiraph.db", path)
            Path(f"{path}-wal").write_bytes(journal[: 32 + kept * frame + torn])
            store = SqliteStore(path, ManualClock())
            seen = await all_events(store) if await store.read(rows.every) else []
            await store.close()
            check_integrity(path)
            assert seen == expected[: len(seen)]
            lengths.add(len(seen))
    assert len(lengths) > 3
    assert max(lengths) == len(expected)
