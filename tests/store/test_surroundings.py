"""A full disk or a lock: what was acknowledged is kept, work waits, and goes on by itself."""

import asyncio
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from agiraph.domain.errors import (
    StoreFull,
    StoreLocked,
    StoreUnavailable,
)
from agiraph.domain.ids import MessageId
from agiraph.domain.persons import OWNER
from agiraph.domain.work import NodeStatus
from agiraph.services.lifecycle import teams
from agiraph.services.lifecycle.teams import NewTeam
from agiraph.services.mail import bus
from agiraph.store import sqlite_connection as module
from agiraph.store import teams as rows
from agiraph.store.database import Store
from agiraph.store.messages import MESSAGES
from agiraph.store.sqlite import SqliteStore
from agiraph.testing import Call, ManualClock, World, call, says
from tests.runtime.waiting import Gate, PatientClock


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    opened = SqliteStore(tmp_path / "agiraph.db", ManualClock())
    yield opened
    await opened.close()


async def found(store: Store) -> NewTeam:
    return await store.write(
        teams.create, owner_id=OWNER, goal="Fill the disk", model="scripted/ada", start=False
    )


async def tell(store: Store, team: NewTeam) -> MessageId:
    """Something to keep, a few pages long."""
    said = await store.write(
        bus.send,
        team_id=team.team.id,
        sender=team.coordinator.id,
        recipient=OWNER,
        text="word " * 2000,
    )
    return said.id


async def tell_until_refused(store: Store, team: NewTeam) -> tuple[list[MessageId], Exception]:
    told: list[MessageId] = []
    while True:
        try:
            told.append(await tell(store, team))
        except StoreUnavailable as error:
            return told, error


def is_whole(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]


async def every(store: Store, told: list[MessageId]) -> list[MessageId]:
    return [(await store.read(MESSAGES.get, message)).id for message in told]


# ---- a full disk -----------------------------------------------------------------------------


async def limit(store: Store, *, more: int) -> None:
    """Let the database grow by so many pages and no further."""

    def set_limit(tx: object) -> None:
        [pages] = tx.one("pragma page_count")  # type: ignore[attr-defined]
        tx.one(f"pragma max_page_count = {pages + more}")  # type: ignore[attr-defined]

    await store.write(set_limit)


async def test_a_full_database_refuses_and_keeps_all_it_acknowledged(store: SqliteStore) -> None:
    team = await found(store)
    await limit(store, more=200)
    told, refusal = await tell_until_refused(store, team)

    assert (type(refusal), str(refusal)) == (
        StoreFull,
        f"No room left for {store.path}: free some disk space; work then resumes by itself.",
    )
    assert len(told) >= 5
    assert await every(store, told) == told
    is_whole(store.path)
    await limit(store, more=50)
    told.append(await tell(store, team))
    assert await every(store, told) == told
    is_whole(store.path)


async def test_a_group_that_finds_no_room_is_refused_whole(store: SqliteStore) -> None:
    team = await found(store)
    await limit(store, more=30)
    outcomes = await asyncio.gather(*(tell(store, team) for _ in range(64)), return_exceptions=True)
    told = [o for o in outcomes if isinstance(o, str)]
    assert {type(o) for o in outcomes} <= {str, StoreFull}
    assert StoreFull in {type(o) for o in outcomes}
    with closing(sqlite3.connect(store.path)) as connection:
        kept = [row[0] for row in connection.execute("select id from messages order by seq")]
    assert kept == told
    is_whole(store.path)


@contextmanager
def small_disk(path: Path, *, kilobytes: int) -> Iterator[Path]:
    """A disk of its own, where the machine lets us have one."""
    path.mkdir()
    options = f"size={kilobytes}k"
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", path], check=False)
    if mounted.returncode != 0:
        pytest.skip("needs the right to mount; max_page_count covers the same path without it")
    try:
        yield path
    finally:
        subprocess.run(["umount", "--lazy", path], check=True)


def fill(disk: Path) -> Path:
    ballast = disk / "ballast"
    try:
        with ballast.open("wb", buffering=0) as file:
            while file.write(b"\0" * 4096):
                pass
    except OSError:
        return ballast
    raise AssertionError("a disk without an end")


async def test_a_small_disk_fills_up_and_work_goes_on_when_there_is_room(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", kilobytes=2048) as disk:
        store = SqliteStore(disk / "agiraph.db", ManualClock())
        team = await found(store)
        (disk / "ballast").write_bytes(b"\0" * 512 * 1024)
        told, refusal = await tell_until_refused(store, team)
        assert isinstance(refusal, StoreFull)
        assert len(told) > 10
        assert await every(store, told) == told

        (disk / "ballast").unlink()
        told.append(await tell(store, team))
        assert await every(store, told) == told
        await store.close()
        is_whole(disk / "agiraph.db")


async def pauses_and_goes_on(
    world: World, clock: PatientClock, *, take: Callable[[], object], give: Callable[[], object]
) -> None:
    """A team at work loses its store under its hands, waits, and ends as if nothing had been."""
    ada = world.script(
        "ada",
        says(call("checkpoint", summary="lost")),  # it cannot be written down
        says(call("checkpoint", summary="under way")),
        says(call("finish", summary="done")),
    )
    ada.gate = gate = Gate()
    founded = await world.found("Work on")
    await gate.reached()
    take()
    gate.set()
    await clock.paused.wait()
    [node] = await world.board(founded.team.id)
    assert node.status in (NodeStatus.ASSIGNED, NodeStatus.RUNNING)

    give()
    clock.over.set()
    await world.settle()
    [node] = await world.board(founded.team.id)
    turns = await world.turns(node.id)
    assert (node.status, node.result, node.crashes) == (NodeStatus.COMPLETED, "done", 0)
    assert [t.seq for t in turns] == list(range(1, len(turns) + 1))
    assert [t.text for t in turns if t.role == "tool"] == ["Noted.", "Published: no files."]


async def test_a_team_pauses_on_a_full_disk_and_resumes_by_itself(tmp_path: Path) -> None:
    clock = PatientClock()
    with small_disk(tmp_path / "disk", kilobytes=4096) as disk:
        url = f"sqlite:///{disk / 'agiraph.db'}"
        async with World(tmp_path / "home", database_url=url, clock=clock) as world:
            ballast = disk / "ballast"
            await pauses_and_goes_on(world, clock, take=lambda: fill(disk), give=ballast.unlink)
        is_whole(disk / "agiraph.db")


async def test_a_team_whose_home_is_on_the_full_disk_resumes_too(tmp_path: Path) -> None:
    clock = PatientClock()
    with small_disk(tmp_path / "disk", kilobytes=4096) as disk:
        async with World(disk / "home", clock=clock) as world:
            ballast = disk / "ballast"
            await pauses_and_goes_on(world, clock, take=lambda: fill(disk), give=ballast.unlink)
        is_whole(disk / "home" / "agiraph.db")


@pytest.mark.parametrize(
    "made",
    [
        call("write_file", path="big.md", content="word " * 20_000),
        pytest.param(
            call("finish", summary="at once"),
        ),
    ],
    ids=["write_file", "finish"],
)
async def test_a_team_whose_files_find_no_room_pauses_too(tmp_path: Path, made: Call) -> None:
    clock = PatientClock()
    with small_disk(tmp_path / "disk", kilobytes=1024) as disk:
        url = f"sqlite:///{tmp_path / 'agiraph.db'}"
        async with World(disk / "home", database_url=url, clock=clock) as world:
            ada = world.script("ada", says(made), says(call("finish", summary="done")))
            ada.gate = gate = Gate()
            founded = await world.found("Leave files")
            await gate.reached()
            ballast = fill(disk)
            gate.set()
            settled = asyncio.create_task(world.settle())
            paused = asyncio.create_task(clock.paused.wait())
            await asyncio.wait({settled, paused}, return_when=asyncio.FIRST_COMPLETED)
            ballast.unlink()
            clock.over.set()
            await settled
            [node] = await world.board(founded.team.id)
            assert (node.status, paused.done()) == (NodeStatus.COMPLETED, True)


# ---- a lock ----------------------------------------------------------------------------------

HOLDER = """
import sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("begin immediate")
print("held", flush=True)
time.sleep(float(sys.argv[2])) if len(sys.argv) > 2 else sys.stdin.readline()
connection.execute("rollback")
"""


@contextmanager
def held(path: Path, *seconds: str) -> Iterator[subprocess.Popen[str]]:
    """Another program in the middle of a transaction: for so long, or until its input ends."""
    command = [sys.executable, "-c", HOLDER, str(path), *seconds]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, text=True, stdin=pipe, stdout=pipe) as holder:
        assert holder.stdout is not None
        assert holder.stdin is not None
        assert holder.stdout.readline() == "held\n"
        yield holder
        holder.stdin.close()
        assert holder.wait(30) == 0


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock is not waited for."""
    monkeypatch.setattr(module, "BUSY_SECONDS", 0.05)


async def test_a_short_lock_is_waited_out(store: SqliteStore) -> None:
    team = await found(store)
    with held(store.path, "1"):
        told = [await tell(store, team)]
    assert await every(store, told) == told
    is_whole(store.path)


@pytest.mark.usefixtures("impatient")
async def test_a_long_lock_is_named_and_reading_goes_on(store: SqliteStore) -> None:
    team = await found(store)
    with held(store.path):
        with pytest.raises(
            StoreLocked, match=r"Another program has locked .*agiraph\.db: close it"
        ):
            await tell(store, team)
        assert await store.read(rows.every) == [team.team]
    told = [await tell(store, team)]
    assert await every(store, told) == told
    is_whole(store.path)


@pytest.mark.usefixtures("impatient")
async def test_a_locked_file_is_not_opened(store: SqliteStore) -> None:
    with held(store.path), pytest.raises(StoreLocked, match=r"agiraph\.db"):
        SqliteStore(store.path, ManualClock())
    await SqliteStore(store.path, ManualClock()).close()


@pytest.mark.usefixtures("impatient")
async def test_a_team_pauses_at_a_lock_and_resumes_by_itself(tmp_path: Path) -> None:
    clock = PatientClock()
    async with World(tmp_path / "home", clock=clock) as world:
        lock = held(tmp_path / "home" / "agiraph.db")
        await pauses_and_goes_on(
            world, clock, take=lock.__enter__, give=lambda: lock.__exit__(None, None, None)
        )
    is_whole(tmp_path / "home" / "agiraph.db")
