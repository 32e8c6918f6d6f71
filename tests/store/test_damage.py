"""A damaged database is refused by name or told as it is; nothing is mended in silence."""

import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from agiraph.domain.errors import StoreDamaged
from agiraph.domain.events import Event
from agiraph.domain.persons import OWNER
from agiraph.store import events, messages, nodes, threads
from agiraph.store import teams as rows
from agiraph.store.database import Store
from agiraph.store.sqlite import SqliteStore
from agiraph.store.sqlite_connection import PAGE_BYTES
from agiraph.testing import ManualClock, World, call, says
from tests.store.test_surroundings import is_whole


async def story(store: Store) -> list[Event]:
    [team] = await store.read(rows.every)
    return await store.read(events.after, team.id, 0, limit=10_000)


async def everything(store: Store) -> list[object]:
    """Every row of the one team there is."""
    [team] = await store.read(rows.every)
    everyone = await store.read(rows.members, team.id)
    found: list[object] = [team, *everyone, *await store.read(messages.inbox, OWNER)]
    found += await store.read(nodes.board, team.id)
    for agent in everyone:
        for thread in await store.read(threads.of_agent, agent.id):
            found += [thread, *await store.read(threads.turns, thread.id)]
    return found + await story(store)


@pytest.fixture
async def written(tmp_path: Path) -> Path:
    """A database with a team's work in it, at rest."""
    async with World(tmp_path / "home") as world:
        files = [call("write_file", path=f"{n}.md", content="x" * 500) for n in range(6)]
        world.script("ada", *(says(made) for made in files), says(call("finish", summary="done")))
        await world.found("Write files")
        await world.settle()
    path = tmp_path / "home" / "agiraph.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("pragma wal_checkpoint(truncate)")
    return path


async def opens(path: Path) -> list[object] | None:
    """All that is in the database; None if it is refused by name. It stays as it is either way."""
    before = path.read_bytes()
    try:
        store = SqliteStore(path, ManualClock())
    except StoreDamaged as refusal:
        is_named = str(path) in str(refusal)
        assert (is_named, path.read_bytes()) == (True, before)
        return None
    try:
        return await everything(store)
    finally:
        await store.close()
        assert path.read_bytes() == before


async def test_a_page_of_garbage_is_never_taken_for_data(written: Path) -> None:
    whole, told = written.read_bytes(), await opens(written)
    chance = random.Random(4711)
    refused = 0
    pages = range(1, len(whole) // PAGE_BYTES)
    for page in pages:
        damaged = bytearray(whole)
        start = page * PAGE_BYTES
        damaged[start : start + PAGE_BYTES] = chance.randbytes(PAGE_BYTES)
        written.write_bytes(damaged)
        seen = await opens(written)
        refused += seen is None
        assert seen in (None, told), f"page {page + 1}"
    assert refused >= 0.9 * len(pages)


async def test_flipped_bytes_are_refused_or_left_as_they_are(written: Path) -> None:
    """SQLite has no checksums: a letter may change unseen, but nothing is mended in silence."""
    whole = written.read_bytes()
    chance = random.Random(4711)
    refused = 0
    for _ in range(100):
        damaged = bytearray(whole)
        place = chance.randrange(100, len(whole))
        damaged[place] ^= 1 << chance.randrange(8)
        written.write_bytes(damaged)
        try:
            refused += await opens(written) is None
        except (StoreDamaged, ValueError, sqlite3.Error):  # found when it was read
            refused += 1
    assert refused > 0


@pytest.mark.parametrize("place", [0, 7, 15, 16, 17, 100, 103])
async def test_a_garbled_header_is_refused(written: Path, place: int) -> None:
    damaged = bytearray(written.read_bytes())
    damaged[place] ^= 0xFF
    written.write_bytes(damaged)
    assert await opens(written) is None


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
async def test_a_file_that_was_cut_off_is_refused(written: Path, share: float) -> None:
    whole = written.read_bytes()
    written.write_bytes(whole[: int(len(whole) * share)])
    assert await opens(written) is None


async def test_text_that_is_no_text_is_damage(written: Path) -> None:
    damaged = written.read_bytes().replace(b"Write files", b"Wr\xfftefiles")
    written.write_bytes(damaged)
    try:
        seen = await opens(written)
    except StoreDamaged:  # found when it was read
        seen = None
    assert seen is None


async def test_a_complaint_that_quotes_garbage_is_understood(written: Path) -> None:
    damaged = written.read_bytes().replace(b"CREATE TABLE waits", b"CRE\xc1TE TABLE wa\xc1ts")
    written.write_bytes(damaged)
    assert await opens(written) is None


async def test_a_file_that_lost_its_version_is_refused(written: Path) -> None:
    with closing(sqlite3.connect(written)) as connection:
        connection.execute("pragma user_version = 0")
        connection.execute("pragma wal_checkpoint(truncate)")
    assert await opens(written) is None


async def test_a_journal_cut_off_anywhere_leaves_a_beginning_of_the_story(tmp_path: Path) -> None:
    """What was committed before the cut is there, and nothing by halves."""
    async with World(tmp_path / "home") as world:
        world.script("ada", says(call("checkpoint", summary="half way")), says("Bye."))
        await world.found("Be cut off")
        await world.settle()
        told = await story(world.store)
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
            seen = await story(store) if await store.read(rows.every) else []
            await store.close()
            is_whole(path)
            assert seen == told[: len(seen)]
            lengths.add(len(seen))
    assert len(lengths) > 3
    assert max(lengths) == len(told)
