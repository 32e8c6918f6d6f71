"""The open database file is removed, replaced or moved: writes are refused, the rows rescued."""

import asyncio
import logging
import shutil
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from agiraph.core.domain.errors import HomeInUse, StoreGone
from agiraph.core.domain.ids import MessageId
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.store import teams as rows
from agiraph.core.store.engine import sqlite, sqlite_files
from agiraph.core.store.engine.sqlite import SqliteStore
from agiraph.testing import ManualClock, World
from agiraph.testing.world import prepare_database
from tests.runtime.waiting import PatientClock
from tests.store.test_full_disk_and_locks import (
    check_integrity,
    check_pause_and_resume,
    found_team,
    read_back,
    send_message,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    prepare_database(tmp_path / "home" / "agiraph.db")
    return tmp_path / "home"


@pytest.fixture(params=["new", "settled"])
async def store(
    folder: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[SqliteStore]:
    """A store whose folder has changed just now; or so long ago that the next change must show."""
    opened = SqliteStore(folder / "agiraph.db", ManualClock(), sole=True)
    if request.param == "settled":
        monkeypatch.setattr(sqlite_files, "_TICK_NS", 0)
        changed, probe = folder.stat().st_ctime_ns, folder.parent / "probe"
        probe.touch()
        while probe.stat().st_ctime_ns <= changed:  # the file system's clock goes in steps
            probe.touch()
    yield opened
    await opened.close()


async def send_three_messages(store: SqliteStore) -> tuple[NewTeam, list[MessageId]]:
    team = await found_team(store)
    return team, [await send_message(store, team) for _ in range(3)]


def stored_messages(path: Path) -> list[str]:
    check_integrity(path)
    with closing(sqlite3.connect(path)) as connection:
        return [row[0] for row in connection.execute("select id from messages order by seq")]


def rescued_files(folder: Path) -> list[Path]:
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


@pytest.mark.parametrize("damage", [remove, replace_by_empty, replace_by_older])
@pytest.mark.parametrize("suffix", ["", "-wal", "-shm"])
async def test_after_a_file_is_removed_or_replaced_writes_are_refused_and_rows_rescued(
    store: SqliteStore, folder: Path, damage: object, suffix: str
) -> None:
    team, acknowledged = await send_three_messages(store)
    damage(Path(f"{store.path}{suffix}"))  # type: ignore[operator]
    with pytest.raises(StoreGone, match="was removed or replaced") as refusal:
        await send_message(store, team)
    [saved] = rescued_files(folder)
    assert f"All that was acknowledged is in {str(saved)!r}" in str(refusal.value)
    assert (stored_messages(saved), saved.stat().st_mode & 0o777) == (acknowledged, 0o600)
    with pytest.raises(StoreGone):
        await send_message(store, team)
    assert rescued_files(folder) == [saved]  # rescued only once


async def test_a_rescued_file_moved_back_works_after_a_restart(
    store: SqliteStore, folder: Path
) -> None:
    team, acknowledged = await send_three_messages(store)
    store.path.unlink()
    with pytest.raises(StoreGone):
        await send_message(store, team)
    [saved] = rescued_files(folder)
    await store.close()
    for name in ("agiraph.db-wal", "agiraph.db-shm"):
        (folder / name).unlink(missing_ok=True)
    saved.rename(store.path)
    again = SqliteStore(store.path, ManualClock(), sole=True)
    acknowledged.append(await send_message(again, team))
    assert await read_back(again, acknowledged) == acknowledged
    await again.close()
    check_integrity(store.path)


async def test_a_commit_to_a_file_that_was_just_removed_is_not_acknowledged(
    store: SqliteStore, folder: Path
) -> None:
    team, acknowledged = await send_three_messages(store)
    connection = store._connection  # pyright: ignore[reportPrivateUsage]
    away = folder.with_name("away.db")
    connection.set_trace_callback(lambda sql: sql == "commit" and store.path.rename(away))
    with pytest.raises(StoreGone):
        await send_message(store, team)
    connection.set_trace_callback(None)
    [saved] = rescued_files(folder)
    assert (stored_messages(saved)[:3], len(stored_messages(saved))) == (acknowledged, 4)
    away.rename(store.path)  # too late: the caller was told that nothing was written
    with pytest.raises(StoreGone):
        await send_message(store, team)


async def test_after_the_folder_is_removed_the_rows_are_rescued_to_the_same_path(
    store: SqliteStore, folder: Path
) -> None:
    team, acknowledged = await send_three_messages(store)
    shutil.rmtree(folder)
    with pytest.raises(StoreGone):
        await send_message(store, team)
    [saved] = rescued_files(folder)
    assert (stored_messages(saved), folder.stat().st_mode & 0o777) == (acknowledged, 0o700)


async def test_a_folder_moved_away_and_back_accepts_writes_again(
    store: SqliteStore, folder: Path
) -> None:
    team, acknowledged = await send_three_messages(store)
    moved = folder.rename(folder.with_name("moved"))
    folder.mkdir()  # another folder in its place
    with pytest.raises(StoreGone, match="was moved to") as refusal:
        await send_message(store, team)
    assert str(moved) in str(refusal.value)
    assert (rescued_files(folder), rescued_files(moved)) == (
        [],
        [],
    )  # no rows are lost, so none are rescued
    folder.rmdir()
    moved.rename(folder)
    acknowledged.append(await send_message(store, team))
    assert await read_back(store, acknowledged) == acknowledged


async def test_a_read_after_the_file_was_removed_creates_no_new_database(
    folder: Path,
) -> None:
    store = SqliteStore(folder / "agiraph.db", ManualClock())
    store.path.unlink()
    with pytest.raises(StoreGone):
        await store.read(rows.every)
    assert not store.path.exists()
    await store.close()


async def test_an_idle_store_notices_that_its_file_was_removed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "FILE_CHECK_S", 0.01)
    store = SqliteStore(folder / "agiraph.db", ManualClock())
    _, acknowledged = await send_three_messages(store)
    said, loop = asyncio.Event(), asyncio.get_running_loop()
    heard = logging.Handler(logging.ERROR)
    heard.emit = lambda record: loop.call_soon_threadsafe(said.set) and None  # type: ignore[method-assign]
    logging.getLogger("agiraph.core.store").addHandler(heard)
    store.path.unlink()
    await said.wait()
    logging.getLogger("agiraph.core.store").removeHandler(heard)
    assert [stored_messages(file) for file in rescued_files(folder)] == [acknowledged]
    await store.close()


async def test_closing_a_store_rescues_the_rows_of_a_removed_file(folder: Path) -> None:
    store = SqliteStore(folder / "agiraph.db", ManualClock())
    _, acknowledged = await send_three_messages(store)
    store.path.unlink()
    await store.close()
    [saved] = rescued_files(folder)
    assert stored_messages(saved) == acknowledged


async def test_a_second_runtime_on_the_same_database_is_refused(
    store: SqliteStore, tmp_path: Path
) -> None:
    with pytest.raises(HomeInUse, match="already works on"):
        SqliteStore(store.path, ManualClock(), sole=True)
    reader = SqliteStore(store.path, ManualClock())  # a reader is allowed
    assert await reader.read(rows.every) == []
    await reader.close()


async def test_a_team_pauses_while_its_home_is_moved_away(tmp_path: Path) -> None:

    clock, home = PatientClock(), tmp_path / "home"
    async with World(home, clock=clock, easy_endings=True) as world:
        await check_pause_and_resume(
            world,
            clock,
            take=lambda: home.rename(tmp_path / "moved"),
            give=lambda: (tmp_path / "moved").rename(home),
        )
    check_integrity(home / "agiraph.db")
