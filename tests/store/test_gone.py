"""The database file removed, replaced or moved while it is open: refused, rescued, and said."""

import asyncio
import logging
import shutil
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from agiraph.domain.errors import HomeInUse, StoreGone
from agiraph.domain.ids import MessageId
from agiraph.services.lifecycle.teams import NewTeam
from agiraph.store import sqlite
from agiraph.store import teams as rows
from agiraph.store.sqlite import SqliteStore
from agiraph.testing import ManualClock, World
from tests.runtime.waiting import PatientClock
from tests.store.test_surroundings import every, found, is_whole, pauses_and_goes_on, tell


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
async def store(folder: Path) -> AsyncIterator[SqliteStore]:
    opened = SqliteStore(folder / "agiraph.db", ManualClock(), sole=True)
    yield opened
    await opened.close()


async def three(store: SqliteStore) -> tuple[NewTeam, list[MessageId]]:
    team = await found(store)
    return team, [await tell(store, team) for _ in range(3)]


def kept(path: Path) -> list[str]:
    is_whole(path)
    with closing(sqlite3.connect(path)) as connection:
        return [row[0] for row in connection.execute("select id from messages order by seq")]


def rescued(folder: Path) -> list[Path]:
    return sorted(folder.glob("agiraph.db.rescued-*"))


def remove(path: Path) -> None:
    path.unlink()


def replace_by_empty(path: Path) -> None:
    path.unlink()
    path.touch()


def replace_by_older(path: Path) -> None:
    older = path.with_name("older.db")
    shutil.copy(path, older)
    older.replace(path)


@pytest.mark.parametrize("harm", [remove, replace_by_empty, replace_by_older])
@pytest.mark.parametrize("suffix", ["", "-wal", "-shm"])
async def test_a_write_is_refused_and_everything_acknowledged_is_saved(
    store: SqliteStore, folder: Path, harm: object, suffix: str
) -> None:
    team, told = await three(store)
    harm(Path(f"{store.path}{suffix}"))  # type: ignore[operator]
    with pytest.raises(StoreGone, match="was removed or replaced") as refusal:
        await tell(store, team)
    [saved] = rescued(folder)
    assert f"All that was acknowledged is in {str(saved)!r}" in str(refusal.value)
    assert (kept(saved), saved.stat().st_mode & 0o777) == (told, 0o600)
    with pytest.raises(StoreGone):
        await tell(store, team)
    assert rescued(folder) == [saved]  # once is enough


async def test_a_saved_file_put_in_its_place_goes_on_after_a_restart(
    store: SqliteStore, folder: Path
) -> None:
    team, told = await three(store)
    store.path.unlink()
    with pytest.raises(StoreGone):
        await tell(store, team)
    [saved] = rescued(folder)
    await store.close()
    for name in ("agiraph.db-wal", "agiraph.db-shm"):
        (folder / name).unlink(missing_ok=True)
    saved.rename(store.path)
    again = SqliteStore(store.path, ManualClock(), sole=True)
    told.append(await tell(again, team))
    assert await every(again, told) == told
    await again.close()
    is_whole(store.path)


async def test_a_commit_into_a_file_removed_meanwhile_is_not_acknowledged(
    store: SqliteStore, folder: Path
) -> None:
    team, told = await three(store)
    connection = store._connection  # pyright: ignore[reportPrivateUsage]
    away = folder.with_name("away.db")
    connection.set_trace_callback(lambda sql: sql == "commit" and store.path.rename(away))
    with pytest.raises(StoreGone):
        await tell(store, team)
    connection.set_trace_callback(None)
    [saved] = rescued(folder)
    assert (kept(saved)[:3], len(kept(saved))) == (told, 4)
    away.rename(store.path)  # too late: whoever asked was told that nothing was written
    with pytest.raises(StoreGone):
        await tell(store, team)


async def test_a_whole_folder_removed_leaves_the_rows_where_it_was(
    store: SqliteStore, folder: Path
) -> None:
    team, told = await three(store)
    shutil.rmtree(folder)
    with pytest.raises(StoreGone):
        await tell(store, team)
    [saved] = rescued(folder)
    assert (kept(saved), folder.stat().st_mode & 0o777) == (told, 0o700)


async def test_a_folder_moved_and_moved_back_goes_on_by_itself(
    store: SqliteStore, folder: Path
) -> None:
    team, told = await three(store)
    moved = folder.rename(folder.with_name("moved"))
    folder.mkdir()  # another one in its place
    with pytest.raises(StoreGone, match="was moved to") as refusal:
        await tell(store, team)
    assert str(moved) in str(refusal.value)
    assert (rescued(folder), rescued(moved)) == ([], [])  # nothing is missing there
    folder.rmdir()
    moved.rename(folder)
    told.append(await tell(store, team))
    assert await every(store, told) == told


async def test_a_reader_opened_late_makes_no_new_database(
    folder: Path,
) -> None:
    store = SqliteStore(folder / "agiraph.db", ManualClock())
    store.path.unlink()
    with pytest.raises(StoreGone):
        await store.read(rows.every)
    assert not store.path.exists()
    await store.close()


async def test_an_idle_store_notices_by_itself(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "FILE_CHECK_S", 0.01)
    store = SqliteStore(folder / "agiraph.db", ManualClock())
    _, told = await three(store)
    said, loop = asyncio.Event(), asyncio.get_running_loop()
    heard = logging.Handler(logging.ERROR)
    heard.emit = lambda record: loop.call_soon_threadsafe(said.set) and None  # type: ignore[method-assign]
    logging.getLogger("agiraph.store").addHandler(heard)
    store.path.unlink()
    await said.wait()
    logging.getLogger("agiraph.store").removeHandler(heard)
    assert [kept(file) for file in rescued(folder)] == [told]
    await store.close()


async def test_a_store_that_is_closed_saves_what_was_lost_unnoticed(folder: Path) -> None:
    store = SqliteStore(folder / "agiraph.db", ManualClock())
    _, told = await three(store)
    store.path.unlink()
    await store.close()
    [saved] = rescued(folder)
    assert kept(saved) == told


async def test_a_database_has_one_runtime_whatever_their_homes(
    store: SqliteStore, tmp_path: Path
) -> None:
    with pytest.raises(HomeInUse, match="already works on"):
        SqliteStore(store.path, ManualClock(), sole=True)
    onlooker = SqliteStore(store.path, ManualClock())  # who only looks may
    assert await onlooker.read(rows.every) == []
    await onlooker.close()


async def test_a_team_pauses_while_its_home_is_away(tmp_path: Path) -> None:

    clock, home = PatientClock(), tmp_path / "home"
    async with World(home, clock=clock) as world:
        await pauses_and_goes_on(
            world,
            clock,
            take=lambda: home.rename(tmp_path / "moved"),
            give=lambda: (tmp_path / "moved").rename(home),
        )
    is_whole(home / "agiraph.db")
