"""A transaction is a plain function: atomic, and subscribers are called after its commit."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import asyncpg
import psycopg
import pytest
from pgqueuer.db import AsyncpgPoolDriver
from pgqueuer.qm import QueueManager

from agiraph.app import open_store
from agiraph.core.domain.chat import Thread
from agiraph.core.domain.errors import Refused, StoreDamaged
from agiraph.core.domain.events import Event
from agiraph.core.domain.events.team import TeamResumed
from agiraph.core.domain.events.work import NodeCheckpoint, NodeOutput
from agiraph.core.domain.ids import AgentId, TeamId, ThreadId
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.work import Queue
from agiraph.core.services.lifecycle import teams
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.store import events, threads
from agiraph.core.store import teams as rows
from agiraph.core.store.database import Store
from agiraph.core.store.engine import migrate, sqlite
from agiraph.core.store.engine.pgqueuer_queue import JobQueries, install
from agiraph.core.store.engine.postgres import POOL, upgrade
from agiraph.core.store.engine.sqlite import SqliteStore
from agiraph.core.store.teams import TEAMS
from agiraph.core.store.threads import THREADS
from agiraph.core.store.tx import Aftermath, Tx
from agiraph.testing import ManualClock
from tests.postgres_server import Server

WRITERS = 16
WRITES = 20


def query_outside(database_url: str, sql: str) -> list[tuple[Any, ...]]:
    """Run a query on another connection: return what other processes see."""
    if not database_url.startswith("sqlite:"):
        with psycopg.connect(database_url) as connection:
            return connection.execute(sql.encode()).fetchall()
    with closing(sqlite3.connect(database_url.removeprefix("sqlite:///"))) as file:
        return file.execute(sql).fetchall()


def rename(tx: Tx, team_id: TeamId, name: str) -> str:
    TEAMS.update(tx, team_id, name=name)
    tx.emit(team_id, TeamResumed(goal=name))
    return name


class VerbError(Exception):
    """An error of the verb."""


def rename_and_fail(tx: Tx, team_id: TeamId) -> None:
    rename(tx, team_id, "never seen")
    tx.wake(AgentId("agent_never"))
    raise VerbError


# ---- one verb, one transaction ---------------------------------------------------------------


async def test_a_verb_that_raises_leaves_nothing_behind(
    store: Store, founded: NewTeam, database_url: str
) -> None:
    before = await store.read(events.head, founded.team.id)
    with pytest.raises(VerbError):
        await store.write(rename_and_fail, founded.team.id)
    assert await store.read(TEAMS.get, founded.team.id) == founded.team
    assert await store.read(events.head, founded.team.id) == before


async def test_a_verb_and_its_events_have_the_clocks_time(store: Store, founded: NewTeam) -> None:
    clock = store.clock
    assert isinstance(clock, ManualClock)
    clock.advance(days=3)

    def look(tx: Tx) -> Any:
        tx.emit(founded.team.id, TeamResumed())
        return tx.now

    assert await store.write(look) == clock.now()
    assert await store.read(lambda tx: tx.now) == clock.now()
    head = await store.read(events.head, founded.team.id)
    [event] = await store.read(events.after, founded.team.id, head - 1)
    assert event == Event(team_id=founded.team.id, seq=head, type="team.resumed", at=clock.now())


async def test_a_read_cannot_write(store: Store, founded: NewTeam) -> None:
    with pytest.raises(Exception, match=r"(?i)read-?\s?only"):
        await store.read(rename, founded.team.id, "changed by a reader")
    assert await store.read(TEAMS.get, founded.team.id) == founded.team
    assert await store.write(rename, founded.team.id, "changed by a writer")


async def test_subscribers_are_called_after_the_commit_and_not_after_a_rollback(
    store: Store, founded: NewTeam, database_url: str
) -> None:
    heard: list[tuple[Aftermath, str]] = []
    name = f"select name from teams where id = '{founded.team.id}'"
    store.subscribe(lambda after: heard.append((after, query_outside(database_url, name)[0][0])))
    head = await store.read(events.head, founded.team.id)

    def act(tx: Tx) -> None:
        rename(tx, founded.team.id, "renamed")
        tx.wake(founded.coordinator.id)
        tx.cancel(founded.coordinator.id)
        tx.alarm()
        assert heard == []

    with pytest.raises(VerbError):
        await store.write(rename_and_fail, founded.team.id)
    assert heard == []
    await store.write(act)

    event = Event(
        team_id=founded.team.id,
        seq=head + 1,
        type="team.resumed",
        at=store.clock.now(),
        data={"goal": "renamed"},
    )
    queue = Queue(founded.coordinator.id)
    expected = Aftermath(events=[event], wakes=[queue], cancels=[queue], alarm=True)
    assert heard == [(expected, "renamed")]


async def test_on_postgres_a_wake_commits_together_with_its_transaction(postgres: Server) -> None:
    url = postgres.fresh()
    store = await open_store(url, ManualClock())

    def wake(tx: Tx, *, fail: bool) -> None:
        tx.wake(AgentId("agent_1"))
        tx.wake(AgentId("agent_1"))
        if fail:
            raise VerbError

    with pytest.raises(VerbError):
        await store.write(wake, fail=True)
    assert query_outside(url, "select payload from pgqueuer") == []
    await store.write(wake, fail=False)
    assert query_outside(url, "select payload from pgqueuer") == [(b"agent_1",)]
    await store.close()


# ---- groups ----------------------------------------------------------------------------------


@pytest.fixture
async def sqlite_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[SqliteStore]:
    """A store whose write groups never end early, even on a busy machine."""
    monkeypatch.setattr(sqlite, "SHORT", 60.0)
    monkeypatch.setattr(sqlite, "LONG", 60.0)
    store = SqliteStore(tmp_path / "agiraph.db", ManualClock())
    await store.write(
        lambda tx: tx.run("create table noted (place integer primary key, what text unique)")
    )
    yield store
    await store.close()


async def write_together(store: Store, *verbs: Callable[[Tx], Any]) -> list[Any]:
    """Queue these verbs at once, so that they form one group."""
    return await asyncio.gather(*map(store.write, verbs), return_exceptions=True)


def note(what: str) -> Callable[[Tx], int]:
    return lambda tx: tx.run("insert into noted (what) values (:what)", what=what)


async def test_verbs_queued_together_commit_as_one_group(sqlite_store: SqliteStore) -> None:
    url = f"sqlite:///{sqlite_store.path}"
    seen: list[tuple[int, int]] = []

    def look(tx: Tx) -> None:
        row = tx.one("select count(*) from noted")
        assert row is not None
        seen.append((row[0], query_outside(url, "select count(*) from noted")[0][0]))

    await write_together(sqlite_store, note("a"), look, note("b"), look)
    assert seen == [(1, 0), (2, 0)]
    assert query_outside(url, "select what from noted") == [("a",), ("b",)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statement", "complaint"),
    [
        ("insert into noted (what) values ('a')", sqlite3.IntegrityError),
        ("insert into nowhere values (1)", sqlite3.OperationalError),
        ("insert into noted (what) values (:missing)", sqlite3.ProgrammingError),
    ],
)
async def test_a_verb_that_fails_in_a_group_rolls_back_only_itself(
    sqlite_store: SqliteStore, statement: str, complaint: type[Exception]
) -> None:
    def fail(tx: Tx) -> None:
        note("undone")(tx)
        tx.run(statement)

    def refuse(tx: Tx) -> None:
        note("undone")(tx)
        raise Refused("no")

    first, failed, refused, last = await write_together(
        sqlite_store, note("a"), fail, refuse, note("b")
    )
    assert (first, type(failed), type(refused), last) == (1, complaint, Refused, 1)
    kept = await sqlite_store.read(lambda tx: tx.all("select what from noted"))
    assert kept == [("a",), ("b",)]


# ---- what a person waits for -----------------------------------------------------------------


async def noted(store: Store) -> list[str]:
    rows = await store.read(lambda tx: tx.all("select what from noted order by place"))
    return [what for (what,) in rows]


async def test_what_a_person_waits_for_is_written_before_all_that_waits(
    sqlite_store: SqliteStore,
) -> None:
    await asyncio.gather(
        *(sqlite_store.write(note(what)) for what in "ab"),
        *(sqlite_store.write_first(note(what)) for what in "xy"),
    )
    assert await noted(sqlite_store) == ["x", "y", "a", "b"]


async def test_however_many_persons_write_the_turns_of_agents_go_on(
    sqlite_store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "SHORT", 0.0)
    monkeypatch.setattr(sqlite, "LONG", 0.0)
    await asyncio.gather(
        *(sqlite_store.write(note(what)) for what in "ab"),
        *(sqlite_store.write_first(note(what)) for what in "xyz"),
    )
    assert await noted(sqlite_store) == ["x", "a", "y", "b", "z"]


async def test_a_person_waits_for_no_group_that_was_rolled_back(sqlite_store: SqliteStore) -> None:
    async def write_then_say() -> None:
        await sqlite_store.write(note("a"))
        await sqlite_store.write_first(note("x"))

    def fail(tx: Tx) -> None:
        raise VerbError

    failed = asyncio.gather(
        write_then_say(), *map(sqlite_store.write, (note("b"), fail, note("c"), note("d")))
    )
    with pytest.raises(VerbError):
        await failed
    await sqlite_store.write(note("last"))
    written = await noted(sqlite_store)
    assert [what for what in written if what != "x"] == ["a", "b", "c", "d", "last"]
    assert written.index("x") < written.index("d")


async def test_on_postgres_a_free_connection_is_first_for_what_a_person_waits_for(
    postgres: Server,
) -> None:
    store = await open_store(postgres.fresh(), ManualClock())
    ran: list[str] = []
    go_on, last = threading.Event(), threading.Event()

    def wait(tx: Tx, event: threading.Event) -> None:
        event.wait()

    def run(tx: Tx, name: str) -> None:
        ran.append(name)

    # All threads but one are held until the end, so that the one runs what waits, in its order.
    held = [asyncio.ensure_future(store.write(wait, last)) for _ in range(POOL - 1)]
    held.append(asyncio.ensure_future(store.write(wait, go_on)))
    waiting = [asyncio.ensure_future(store.write(run, name)) for name in "ab"]
    waiting += [asyncio.ensure_future(store.write_first(run, name)) for name in "xy"]
    asyncio.get_running_loop().call_soon(go_on.set)
    await asyncio.gather(*waiting)
    last.set()
    await asyncio.gather(*held)
    assert ran == ["x", "y", "a", "b"]
    await store.close()


# ---- events ----------------------------------------------------------------------------------


ODD: dict[str, BaseException] = {
    "StopIteration": StopIteration(),
    "StopAsyncIteration": StopAsyncIteration(),
    "GeneratorExit": GeneratorExit(),
    "CancelledError": asyncio.CancelledError(),
}


@pytest.mark.parametrize("name", ODD)
async def test_a_verb_that_raises_an_odd_exception_is_answered_and_so_are_the_others(
    store: Store, founded: NewTeam, name: str
) -> None:
    """asyncio gives a StopIteration to nobody, and takes the others for an end of the caller."""

    def raises(_: Tx) -> None:
        raise ODD[name]

    team_id = founded.team.id
    async with asyncio.timeout(30):
        answers = await asyncio.gather(
            store.write(rename, team_id, "before"),
            store.write(raises),
            store.write(rename, team_id, "after"),
            store.read(raises),
            return_exceptions=True,
        )
        assert await store.write(rename, team_id, "later") == "later"
    assert [str(answer) for answer in answers] == [
        "before",
        f"The verb raises raised {ODD[name]!r}.",
        "after",
        f"The verb raises raised {ODD[name]!r}.",
    ]


async def test_a_verb_that_recurses_without_end_is_answered(store: Store) -> None:
    def recurse(tx: Tx) -> None:
        recurse(tx)

    async with asyncio.timeout(30):
        with pytest.raises(RecursionError):
            await store.write(recurse)
        with pytest.raises(RecursionError):
            await store.read(recurse)


async def test_a_listener_that_fails_leaves_no_write_unanswered_and_no_other_listener_untold(
    store: Store, founded: NewTeam
) -> None:
    told: list[str] = []

    def fails(_: Aftermath) -> None:
        raise VerbError

    def hears(aftermath: Aftermath) -> None:
        told.extend(str(event.data["goal"]) for event in aftermath.events)

    store.subscribe(fails)
    store.subscribe(hears)
    names = ["one", "two", "three"]
    async with asyncio.timeout(30):
        writes = (store.write(rename, founded.team.id, name) for name in names)
        assert await asyncio.gather(*writes) == names
    assert sorted(told) == sorted(names)


async def test_event_numbers_stay_dense_after_a_rollback(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "agiraph.db", ManualClock())
    team_id = (
        await store.write(teams.create, owner_id=OWNER, goal="Go", model="scripted/ada")
    ).team.id
    await write_together(
        store,
        lambda tx: rename(tx, team_id, "a"),
        lambda tx: rename_and_fail(tx, team_id),
        lambda tx: rename(tx, team_id, "b"),
    )
    await store.write(rename, team_id, "c")
    story = await store.read(events.after, team_id, 0)
    assert [event.seq for event in story] == [*range(1, len(story) + 1)]
    assert [event.data["goal"] for event in story[-3:]] == ["a", "b", "c"]
    await store.close()


async def test_event_numbers_continue_after_those_of_another_process(tmp_path: Path) -> None:
    store, other = (SqliteStore(tmp_path / "agiraph.db", ManualClock()) for _ in range(2))
    team_id = (
        await store.write(teams.create, owner_id=OWNER, goal="Go", model="scripted/ada")
    ).team.id
    for name, writer in (("a", store), ("b", other), ("c", store), ("d", other)):
        await writer.write(rename, team_id, name)
    story = await store.read(events.after, team_id, 0)
    assert [event.seq for event in story] == [*range(1, len(story) + 1)]
    assert [event.data["goal"] for event in story[-4:]] == ["a", "b", "c", "d"]
    await store.close()
    await other.close()


@pytest.mark.slow
async def test_event_numbers_are_dense_and_a_reader_with_a_cursor_misses_none(
    store: Store, founded: NewTeam, database_url: str
) -> None:
    """Many writers, on PostgreSQL through two stores; some fail after they have emitted events."""
    embedded = database_url.startswith("sqlite:")
    other = store if embedded else await open_store(database_url, store.clock)
    team_id = founded.team.id
    start = await store.read(events.head, team_id)

    def emit_two(tx: Tx, writer: int, number: int) -> None:
        tx.emit(team_id, NodeCheckpoint(node_id=str(writer), summary=str(number)))
        tx.emit(team_id, NodeOutput(node_id=str(writer), text=str(number), bytes=number))

    async def write(writer: int) -> None:
        mine = (store, other)[writer % 2]
        for number in range(WRITES):
            await mine.write(emit_two, writer, number)
            if number % 4 == writer % 4:
                with pytest.raises(VerbError):
                    await mine.write(rename_and_fail, team_id)

    async def follow() -> list[Event]:
        seen: list[Event] = []
        while len(seen) < 2 * WRITERS * WRITES:
            after = seen[-1].seq if seen else start
            seen += await other.read(events.after, team_id, after, limit=7)
        return seen

    reading = asyncio.create_task(follow())
    await asyncio.gather(*(write(writer) for writer in range(WRITERS)))
    seen = await reading
    assert [e.seq for e in seen] == list(range(start + 1, start + 1 + len(seen)))
    assert seen == await store.read(events.after, team_id, start, limit=10_000)
    for writer in range(WRITERS):
        mine = [e for e in seen if e.data["node_id"] == str(writer)]
        said = [(e.type, e.data.get("summary", e.data.get("text"))) for e in mine]
        kinds = ("node.checkpoint", "node.output")
        pairs = [(kind, str(n)) for n in range(WRITES) for kind in kinds]
        assert said == pairs
    if other is not store:
        await other.close()


async def test_concurrent_appends_to_a_thread_get_consecutive_places(
    store: Store, founded: NewTeam
) -> None:
    """Of two concurrent appends to a thread, the second must see what the first has written."""
    thread = Thread(
        id=ThreadId("t_1"),
        team_id=founded.team.id,
        agent_id=founded.coordinator.id,
        created_at=store.clock.now(),
    )
    await store.write(THREADS.insert, thread)

    def write(tx: Tx, text: str) -> int:
        page = threads.append_point(tx, thread.id)
        return threads.append(tx, page, node_id=None, role="tool", text=text)[1].seq

    texts = [f"answer {number}" for number in range(5 * WRITERS)]
    places = await asyncio.gather(*(store.write(write, text) for text in texts))
    turns = await store.read(threads.turns, thread.id)
    assert sorted(places) == list(range(1, len(texts) + 1))
    assert [t.text for t in turns] == [text for _, text in sorted(zip(places, texts, strict=True))]


async def test_a_closed_database_is_one_file(tmp_path: Path) -> None:
    """A copy of agiraph.db, made while nothing runs, has everything."""
    store = SqliteStore(tmp_path / "agiraph.db", ManualClock())
    await store.write(teams.create, owner_id=OWNER, goal="Be copied", model="scripted/ada")
    await store.read(rows.every)
    await store.close()
    assert [file.name for file in tmp_path.iterdir()] == ["agiraph.db"]


# ---- migrations ------------------------------------------------------------------------------

NAMES = [m.name for m in migrate.migrations()]
TABLES = [
    *("about", "agents", "answered", "attached_files", "audit", "channels", "client_turns"),
    *("conversation_summaries", "daily_limits", "deletions", "deliveries", "dependencies"),
    *("errands", "events", "evidence", "file_labels", "firings", "folder_changes", "grants"),
    "insights",
    "knowledge_changes",
    *("link_fetches", "memories", "messages"),
    *(
        "nodes",
        "notes",
        "passage_words",
        "passages",
        "passes",
        "persons",
        "received",
        "research_jobs",
        "research_pages",
        "shares",
        "spend",
        "stages",
        "teams",
    ),
    *("threads", "timers", "triggers", "turns", "waits", "workers"),
]


async def test_a_fresh_sqlite_file_gets_todays_tables_and_keeps_them(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'new.db'}"
    shape = "select name, sql from sqlite_master where type = 'table' order by name"
    await (await open_store(url, ManualClock())).close()
    made = query_outside(url, shape)
    await (await open_store(url, ManualClock())).close()
    ours = [name for name, _ in made if not name.startswith("passage_words_")]  # FTS5's own
    assert ours == TABLES
    assert (query_outside(url, shape), query_outside(url, "pragma user_version")) == (
        made,
        [(migrate.newest(),)],
    )


async def test_a_sqlite_file_of_a_newer_version_is_refused_and_left_unchanged(
    tmp_path: Path,
) -> None:
    path = tmp_path / "newer.db"
    await (await open_store(f"sqlite:///{path}", ManualClock())).close()
    query_outside(f"sqlite:///{path}", "pragma user_version = 999")
    before = path.read_bytes()
    with pytest.raises(StoreDamaged, match=r"newer\.db was written by a newer agiraph .*999"):
        await open_store(f"sqlite:///{path}", ManualClock())
    assert path.read_bytes() == before


def empty_database(postgres: Server, name: str) -> str:
    with psycopg.connect(postgres.url("postgres"), autocommit=True) as connection:
        connection.execute(f"create database {name}".encode())
    return postgres.url(name)


async def test_concurrent_upgrades_of_postgres_apply_each_migration_once(postgres: Server) -> None:
    url = empty_database(postgres, "fresh_upgrade")
    applied = await asyncio.gather(*(asyncio.to_thread(upgrade, url) for _ in range(4)))
    await install(url)
    await install(url)
    assert sorted(applied) == [[], [], [], NAMES]
    assert upgrade(url) == []
    tables = "select table_name from information_schema.tables where table_schema = 'public'"
    ours = {name for (name,) in query_outside(url, tables) if not name.startswith("pgqueuer")}
    assert ours == {*TABLES, "schema_version"}
    await (await open_store(url, ManualClock())).close()


async def test_a_job_queue_with_older_tables_is_not_started(postgres: Server) -> None:
    url = postgres.fresh()
    dropped = {
        "drop index pgqueuer_picked_slot_idx": "index 'pgqueuer_picked_slot_idx' is missing",
        "alter table pgqueuer drop column headers": "column 'headers' is missing",
        "drop table pgqueuer_statistics": "table 'pgqueuer_statistics' is missing",
    }
    async with asyncpg.create_pool(url, min_size=0) as pool:
        driver = AsyncpgPoolDriver(pool)
        await QueueManager(JobQueries(driver)).verify_structure()
        for drop, complaint in dropped.items():
            await pool.execute(drop)
            with pytest.raises(RuntimeError, match=complaint):
                await QueueManager(JobQueries(driver)).verify_structure()


async def test_a_schema_whose_name_needs_quotes_has_its_queue(postgres: Server) -> None:
    url = empty_database(postgres, "quoted_schema")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute('create schema "Agiraph-prod"')
        connection.execute('alter database quoted_schema set search_path = "Agiraph-prod"')
    await install(url)
    async with asyncpg.create_pool(url, min_size=0) as pool:
        await QueueManager(JobQueries(AsyncpgPoolDriver(pool))).verify_structure()
        assert await pool.fetchval("select current_schema()") == "Agiraph-prod"


async def test_a_postgres_without_an_upgrade_is_refused_with_the_command_to_run(
    postgres: Server,
) -> None:
    url = empty_database(postgres, "never_upgraded")
    with pytest.raises(StoreDamaged) as refused:
        await open_store(url, ManualClock())
    assert str(refused.value) == (
        f"The database has schema 0, this agiraph needs {migrate.newest()}: "
        "run `agiraph db upgrade`."
    )


async def test_a_postgres_of_a_newer_version_is_refused_and_left_unchanged(
    postgres: Server,
) -> None:
    url = postgres.fresh()
    with psycopg.connect(url) as connection:
        connection.execute("insert into schema_version values (999)")
    sentence = "written by a newer agiraph .schema 999.*Upgrade agiraph"
    with pytest.raises(StoreDamaged, match=sentence):
        await open_store(url, ManualClock())
    with pytest.raises(StoreDamaged, match=sentence):
        upgrade(url)
