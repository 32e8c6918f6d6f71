"""A full disk or a lock: acknowledged rows are kept, work pauses and resumes by itself."""

import asyncio
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from agiraph.core.domain.errors import (
    StoreFull,
    StoreLocked,
    StoreUnavailable,
)
from agiraph.core.domain.ids import MessageId
from agiraph.core.domain.messages import Draft
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.work import NodeStatus
from agiraph.core.services.lifecycle import removal, teams
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.services.mail import bus
from agiraph.core.store import teams as rows
from agiraph.core.store.database import Store
from agiraph.core.store.engine import sqlite_files
from agiraph.core.store.engine.sqlite import SqliteStore
from agiraph.core.store.messages import MESSAGES
from agiraph.models.base import OnDelta, Reply, Request
from agiraph.testing import Call, ManualClock, World, call, says
from agiraph.testing.world import prepare_database
from tests.runtime.waiting import Gate, PatientClock


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    prepare_database(tmp_path / "agiraph.db")
    opened = SqliteStore(tmp_path / "agiraph.db", ManualClock())
    yield opened
    await opened.close()


async def found_team(store: Store) -> NewTeam:
    return await store.write(
        teams.create, owner_id=OWNER, goal="Fill the disk", model="scripted/ada", start=False
    )


async def send_message(store: Store, team: NewTeam) -> MessageId:
    """Store a message of a few pages; return its id."""
    said = await store.write(
        bus.send,
        Draft(
            team_id=team.team.id,
            sender=team.coordinator.id,
            recipient=OWNER,
            text="word " * 2000,
        ),
    )
    return said.id


async def send_until_refused(store: Store, team: NewTeam) -> tuple[list[MessageId], Exception]:
    acknowledged: list[MessageId] = []
    while True:
        try:
            acknowledged.append(await send_message(store, team))
        except StoreUnavailable as error:
            return acknowledged, error


def check_integrity(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]


async def read_back(store: Store, acknowledged: list[MessageId]) -> list[MessageId]:
    return [(await store.read(MESSAGES.get, message)).id for message in acknowledged]


# ---- a full disk -----------------------------------------------------------------------------


async def limit_growth(store: Store, *, more: int) -> None:
    """Limit the growth of the database to this many pages."""

    def set_limit(tx: object) -> None:
        [pages] = tx.one("pragma page_count")  # type: ignore[attr-defined]
        tx.one(f"pragma max_page_count = {pages + more}")  # type: ignore[attr-defined]

    await store.write(set_limit)


async def test_a_full_database_refuses_writes_and_keeps_everything_acknowledged(
    store: SqliteStore,
) -> None:
    team = await found_team(store)
    await limit_growth(store, more=200)
    acknowledged, refusal = await send_until_refused(store, team)

    assert (type(refusal), str(refusal)) == (
        StoreFull,
        f"No room left for {store.path}: free some disk space; work then resumes by itself.",
    )
    assert len(acknowledged) >= 5
    assert await read_back(store, acknowledged) == acknowledged
    check_integrity(store.path)
    await limit_growth(store, more=50)
    acknowledged.append(await send_message(store, team))
    assert await read_back(store, acknowledged) == acknowledged
    check_integrity(store.path)


async def test_of_concurrent_writes_without_room_only_the_acknowledged_are_stored(
    store: SqliteStore,
) -> None:
    team = await found_team(store)
    await limit_growth(store, more=30)
    outcomes = await asyncio.gather(
        *(send_message(store, team) for _ in range(64)), return_exceptions=True
    )
    acknowledged = [o for o in outcomes if isinstance(o, str)]
    assert {type(o) for o in outcomes} <= {str, StoreFull}
    assert StoreFull in {type(o) for o in outcomes}
    with closing(sqlite3.connect(store.path)) as connection:
        kept = [row[0] for row in connection.execute("select id from messages order by seq")]
    assert kept == acknowledged
    check_integrity(store.path)


@contextmanager
def small_disk(path: Path, *, kilobytes: int, inodes: int = 0) -> Iterator[Path]:
    """Mount a small tmpfs; skip the test where mounting is not permitted."""
    path.mkdir()
    options = f"size={kilobytes}k,nr_inodes={inodes}" if inodes else f"size={kilobytes}k"
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", path], check=False)
    if mounted.returncode != 0:
        pytest.skip("needs the right to mount; max_page_count covers the same path without it")
    try:
        yield path
    finally:
        subprocess.run(["umount", "--lazy", path], check=True)


def fill_disk(disk: Path) -> Path:
    ballast = disk / "ballast"
    try:
        with ballast.open("wb", buffering=0) as file:
            while file.write(b"\0" * 4096):
                pass
    except OSError:
        return ballast
    raise AssertionError("the disk never became full")


@pytest.mark.slow
async def test_after_space_is_freed_on_a_full_disk_writes_succeed_again(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", kilobytes=2048) as disk:
        store = SqliteStore(disk / "agiraph.db", ManualClock())
        team = await found_team(store)
        (disk / "ballast").write_bytes(b"\0" * 512 * 1024)
        acknowledged, refusal = await send_until_refused(store, team)
        assert isinstance(refusal, StoreFull)
        assert len(acknowledged) > 10
        assert await read_back(store, acknowledged) == acknowledged

        (disk / "ballast").unlink()
        acknowledged.append(await send_message(store, team))
        assert await read_back(store, acknowledged) == acknowledged
        await store.close()
        check_integrity(disk / "agiraph.db")


async def check_pause_and_resume(
    world: World, clock: PatientClock, *, take: Callable[[], object], give: Callable[[], object]
) -> None:
    """Check that a team whose store breaks while it works pauses, resumes and completes."""
    ada = world.script(
        "ada",
        says(call("checkpoint", summary="lost")),  # it cannot be stored
        says(call("checkpoint", summary="under way")),
        says(call("finish", summary="done")),
    )
    ada.gate = gate = Gate()
    founded = await world.found("Work on")
    await gate.reached()
    take()
    gate.set()
    await clock.paused.wait()
    give()  # a read needs the files, unless a connection is open already
    [node] = await world.board(founded.team.id)
    assert node.status in (NodeStatus.ASSIGNED, NodeStatus.RUNNING)

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
        async with World(
            tmp_path / "home", database_url=url, clock=clock, easy_endings=True
        ) as world:
            ballast = disk / "ballast"
            await check_pause_and_resume(
                world, clock, take=lambda: fill_disk(disk), give=ballast.unlink
            )
        check_integrity(disk / "agiraph.db")


async def test_a_team_whose_home_is_on_a_full_disk_pauses_and_resumes(tmp_path: Path) -> None:
    clock = PatientClock()
    with small_disk(tmp_path / "disk", kilobytes=4096) as disk:
        async with World(disk / "home", clock=clock, easy_endings=True) as world:
            ballast = disk / "ballast"
            await check_pause_and_resume(
                world, clock, take=lambda: fill_disk(disk), give=ballast.unlink
            )
        check_integrity(disk / "home" / "agiraph.db")


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
async def test_a_team_whose_files_do_not_fit_on_the_disk_pauses_and_resumes(
    tmp_path: Path, made: Call
) -> None:
    clock = PatientClock()
    with small_disk(tmp_path / "disk", kilobytes=1024) as disk:
        url = f"sqlite:///{tmp_path / 'agiraph.db'}"
        async with World(disk / "home", database_url=url, clock=clock, easy_endings=True) as world:
            ada = world.script("ada", says(made), says(call("finish", summary="done")))
            ada.gate = gate = Gate()
            founded = await world.found("Leave files")
            await gate.reached()
            ballast = fill_disk(disk)
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
def locked(path: Path, *seconds: str) -> Iterator[subprocess.Popen[str]]:
    """Run a program that locks the database, for some seconds or until its stdin is closed."""
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
def no_lock_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait for a lock."""
    monkeypatch.setattr(sqlite_files, "BUSY_SECONDS", 0.05)


async def test_a_write_waits_for_a_short_lock(store: SqliteStore) -> None:
    team = await found_team(store)
    with locked(store.path, "1"):
        acknowledged = [await send_message(store, team)]
    assert await read_back(store, acknowledged) == acknowledged
    check_integrity(store.path)


@pytest.mark.usefixtures("no_lock_wait")
async def test_a_long_lock_is_reported_and_reads_still_work(store: SqliteStore) -> None:
    team = await found_team(store)
    with locked(store.path):
        with pytest.raises(
            StoreLocked, match=r"Another program has locked .*agiraph\.db: close it"
        ):
            await send_message(store, team)
        assert await store.read(rows.every) == [team.team]
    acknowledged = [await send_message(store, team)]
    assert await read_back(store, acknowledged) == acknowledged
    check_integrity(store.path)


@pytest.mark.usefixtures("no_lock_wait")
async def test_opening_a_locked_file_is_refused(store: SqliteStore) -> None:
    with locked(store.path), pytest.raises(StoreLocked, match=r"agiraph\.db"):
        SqliteStore(store.path, ManualClock())
    await SqliteStore(store.path, ManualClock()).close()


@pytest.mark.usefixtures("no_lock_wait")
async def test_a_team_pauses_at_a_lock_and_resumes_by_itself(tmp_path: Path) -> None:
    clock = PatientClock()
    async with World(tmp_path / "home", clock=clock, easy_endings=True) as world:
        lock = locked(tmp_path / "home" / "agiraph.db")
        await check_pause_and_resume(
            world, clock, take=lock.__enter__, give=lambda: lock.__exit__(None, None, None)
        )
    check_integrity(tmp_path / "home" / "agiraph.db")


@dataclass(slots=True)
class LockedWhenCancelled:
    """A model that never answers; when its run is cancelled, another program locks the database."""

    path: Path
    called: asyncio.Event = field(default_factory=asyncio.Event)
    lock: sqlite3.Connection | None = None
    name: str = "scripted/ada"

    async def reply(self, request: Request, on_delta: OnDelta | None = None) -> Reply:
        self.called.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.lock = sqlite3.connect(self.path, isolation_level=None)
            self.lock.execute("begin immediate")
        raise AssertionError("it was not cancelled")


@pytest.mark.usefixtures("no_lock_wait")
async def test_a_deleted_team_is_removed_although_its_run_could_not_be_recorded_as_ended(
    tmp_path: Path,
) -> None:
    clock = PatientClock()
    async with World(tmp_path / "home", clock=clock, easy_endings=True) as world:
        ada = LockedWhenCancelled(tmp_path / "home" / "agiraph.db")
        world.model("ada", ada)
        founded = await world.found("Count the beans", name="Beans")
        await ada.called.wait()
        by = {"who": "admin", "person_id": OWNER}
        begin = partial(removal.delete_team, name="Beans", stop=True, **by)
        await world.store.write(begin, founded.team.id)
        await clock.paused.wait()  # the release has failed, and so has the next claim
        assert ada.lock is not None
        ada.lock.close()
        clock.over.set()
        async with asyncio.timeout(20):
            await world.runtime.removal.idle()
        assert await world.teams() == []
