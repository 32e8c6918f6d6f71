"""`agiraph backup` and `restore`: a consistent copy of working teams, which continue from it."""

import asyncio
import io
import re
import shutil
import signal
import tarfile
from pathlib import Path
from typing import Any

import orjson
import psycopg
import pytest

from agiraph.app import open_store
from agiraph.core.domain.times.time import SystemClock
from agiraph.core.domain.work import NodeStatus
from agiraph.core.home.layout import Home
from agiraph.core.store import events, nodes, teams
from agiraph.core.store.database import Store
from agiraph.core.store.engine import dump
from agiraph.core.store.texts.passages import put
from agiraph.core.store.tx import Tx
from agiraph.testing import ModelServer, World, call, says
from agiraph.testing.script import Says, Seen
from tests.cli.shell import Ended, Shell
from tests.up_process import TOKEN, up, use_model_server

STEPS = 8
SECRET = "sk-canary-canary"


def writes_notes(seen: Seen) -> Says:
    done = sum(message.role == "assistant" for message in seen.messages)
    if done < STEPS:
        return says(call("write_file", path=f"note-{done}.md", content=f"note {done}\n" * 50))
    return says(call("finish", summary="All notes are written."))


async def check_rows_and_files(store: Store, home: Path, *, finished: int) -> None:
    """Check that all nodes are completed, and that rows, files and events agree."""
    opened = Home.open(home)
    found = await store.read(teams.page)
    board = [node for team in found for node in await store.read(nodes.board, team.id)]
    assert [node.status for node in board] == [NodeStatus.COMPLETED] * finished
    for node in board:
        folder = opened.team(node.team_id).node(node.id)
        assert folder.verify() == []
        assert folder.manifest().files == node.manifest
        assert len(node.manifest) == STEPS
    for team in found:
        told = await store.read(events.after, team.id, 0)
        assert [event.seq for event in told] == list(range(1, len(told) + 1))
        assert [event.type for event in told].count("node.completed") == 1


@pytest.mark.slow
async def test_a_backup_of_working_teams_is_restored_and_completed_in_another_home(
    tmp_path: Path, is_lean: bool
) -> None:
    agiraph, elsewhere = [Shell(tmp_path / name, is_forked=is_lean) for name in ("home", "other")]
    file = tmp_path / "backup.tar.gz"
    async with ModelServer(writes_notes) as server:
        async with up(use_model_server(agiraph, server)) as running:
            made = [
                await running.ask("POST", "/teams", {"goal": f"Goal {n}", "learns": False})
                for n in range(3)
            ]
            await running.wait_for_event(made[0]["id"], "turn.added")
            ended = await agiraph("backup", str(file))
            running.process.signal(signal.SIGKILL)
            await running.process.ends()
        assert (ended.code, ended.err) == (0, "")
        assert re.fullmatch(r"Wrote \S+: [\d,]+ rows and [\d,]+ files\.\n", ended.out)
        shutil.rmtree(agiraph.home)

        restored = await elsewhere("restore", str(file))
        assert (restored.code, restored.err) == (0, "")
        async with up(use_model_server(elsewhere, server)) as running:
            for team in made:
                await running.wait_for_event(team["id"], "node.completed")
            running.process.signal(signal.SIGTERM)
            assert (await running.process.ends()).code == 0
        visit = await elsewhere("doctor", "--json")  # it asks whether the model's server answers
    store = await open_store(f"sqlite:///{elsewhere.home / 'agiraph.db'}", SystemClock())
    await check_rows_and_files(store, elsewhere.home, finished=3)
    await store.close()
    assert [f for f in orjson.loads(visit.out)["findings"] if f["verdict"] == "problem"] == []


@pytest.mark.slow
async def test_no_secret_is_in_a_backup(tmp_path: Path) -> None:
    agiraph = Shell(tmp_path / "home", {"OPENAI_API_KEY": SECRET})
    async with up(agiraph) as running:
        pass_ = await running.ask("POST", "/tokens", {"name": "a program", "scope": "read"})
        ended = await agiraph("backup", str(tmp_path / "b.tar.gz"))
        running.process.signal(signal.SIGTERM)
        await running.process.ends()
    (agiraph.home / "token").write_text(TOKEN)
    (agiraph.home / "agiraph.toml").write_text('database_url = "postgresql://me:pw-pw-pw@db/x"\n')
    environment = {"AGIRAPH_DATABASE_URL": f"sqlite:///{agiraph.home / 'agiraph.db'}"}
    second = await Shell(agiraph.home, environment)("backup", str(tmp_path / "c.tar.gz"))
    assert (ended.code, second.code) == (0, 0)
    assert second.err.endswith("Left out agiraph.toml: it holds a password\n")
    issued = next(value for value in pass_.values() if isinstance(value, str) and len(value) > 30)
    for name in ("b.tar.gz", "c.tar.gz"):
        with tarfile.open(tmp_path / name) as tar:
            members = {m.name: tar.extractfile(m) for m in tar.getmembers()}
            text = b"".join(file.read() for file in members.values() if file is not None)
        assert {"manifest.json", "rows.jsonl"} <= set(members)
        assert not {"home/token", "home/lock", "home/agiraph.db"} & set(members)
        for secret in (SECRET, TOKEN, issued, "pw-pw-pw"):
            assert secret.encode() not in text
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o600


async def test_rows_are_the_same_after_restoring_to_postgresql_and_back_to_sqlite(
    tmp_path: Path, postgres: Any
) -> None:
    """The dumps of all three databases have the same lines."""
    async with World(tmp_path / "home", clock=SystemClock(), easy_endings=True) as world:
        world.script(
            "ada",
            says(call("ask_human", question="Which \N{SNOWMAN}?")),
            says(call("finish", summary="done")),
        )
        founded = await world.found("Try it", heartbeat=3600.0)
        await world.settle()

        def more(tx: Tx) -> None:
            about: dict[str, Any] = {"team_id": founded.team.id, "kind": "note"}
            put(tx, ref="a.md", text="The heron stands in the shallows.", title="Birds", **about)

        await world.store.write(more)
    first = f"sqlite:///{tmp_path / 'home' / 'agiraph.db'}"
    second, third = postgres.fresh(), f"sqlite:///{tmp_path / 'third.db'}"
    dumps = [await dumped(first)]
    for url in (second, third):
        store = await open_store(url, SystemClock())
        await store.write(dump.load, io.BytesIO(dumps[-1]))
        await store.close()
        dumps.append(await dumped(url))
    assert sorted(dumps[1].splitlines()) == sorted(dumps[0].splitlines())
    assert sorted(dumps[2].splitlines()) == sorted(dumps[0].splitlines())
    async with World(
        tmp_path / "home", database_url=second, clock=SystemClock(), easy_endings=True
    ) as world:
        world.script("ada", says(call("finish", summary="done")))
        [question] = await world.questions(founded.team.id)
        await world.answer(question, "The second.")
        await world.settle()
        [node] = await world.board(founded.team.id)
        later = await world.found("Another", start=False)  # its number must not be taken
    assert (node.status, later.team.id > founded.team.id) == (NodeStatus.COMPLETED, True)


async def dumped(url: str) -> bytes:
    store = await open_store(url, SystemClock())
    out = io.BytesIO()
    await store.read(dump.write, out)
    await store.close()
    return out.getvalue()


async def test_every_table_is_either_dumped_or_listed_as_left_out(
    tmp_path: Path, postgres: Any
) -> None:
    store = await open_store(f"sqlite:///{tmp_path / 'a.db'}", SystemClock())

    def tables(tx: Tx) -> set[str]:
        rows = tx.all("select name from sqlite_master where type = 'table'")
        return {row[0] for row in rows if not row[0].startswith(("sqlite_", "passage_words_"))}

    found = await store.read(tables)
    await store.close()
    assert found | {"schema_version"} == set(dump.TABLES) | dump.LEFT_OUT
    with psycopg.connect(postgres.fresh()) as connection:
        sql = "select table_name from information_schema.tables where table_schema = 'public'"
        rows = connection.execute(sql).fetchall()
    on_postgres = {row[0] for row in rows if not row[0].startswith("pgqueuer")}
    assert on_postgres == set(dump.TABLES) | dump.LEFT_OUT


@pytest.fixture(scope="module")
def backed_up(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a home and a backup of it. Tests use a copy."""

    async def back_up(folder: Path) -> None:
        agiraph = Shell(folder / "home")
        assert (await agiraph("run", "Show it")).code == 0
        ended = await agiraph("backup", str(folder / "b.tar.gz"))
        assert ended.code == 0, ended.err

    folder = tmp_path_factory.mktemp("backed-up")
    asyncio.run(back_up(folder))
    return folder


@pytest.fixture
def saved(backed_up: Path, tmp_path: Path) -> Path:
    """The backup, beside its home in `tmp_path`."""
    shutil.copytree(backed_up, tmp_path, dirs_exist_ok=True)
    return tmp_path / "b.tar.gz"


def assert_refused(ended: Ended, words: str) -> None:
    assert (ended.code, ended.out) == (1, "")
    assert words in ended.err


async def test_backup_and_restore_overwrite_nothing(saved: Path, tmp_path: Path) -> None:
    before = saved.read_bytes()
    assert_refused(await Shell(tmp_path / "home")("backup", str(saved)), "exists already")
    assert saved.read_bytes() == before
    assert_refused(
        await Shell(tmp_path / "home")("restore", str(saved)), "is not empty; nothing was"
    )
    other = Shell(tmp_path / "other")
    assert (await other("restore", str(saved))).code == 0
    assert_refused(await other("restore", str(saved)), "is not empty; nothing was changed")
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".b.tar.gz")] == []


async def test_restore_refuses_a_database_that_contains_teams(
    saved: Path, tmp_path: Path, postgres: Any
) -> None:
    url = postgres.fresh()
    first = Shell(tmp_path / "first", {"AGIRAPH_DATABASE_URL": url})
    assert (await first("restore", str(saved))).code == 0
    second = Shell(tmp_path / "second", {"AGIRAPH_DATABASE_URL": url})
    assert_refused(await second("restore", str(saved)), "holds teams already; nothing was changed")
    assert not (tmp_path / "second" / "teams").exists()


@pytest.mark.parametrize("harm", ["cut", "flipped", "without", "not_one", "newer", "outside"])
async def test_a_damaged_backup_is_refused_before_anything_is_written(
    saved: Path, tmp_path: Path, harm: str
) -> None:
    damaged = tmp_path / "damaged.tar.gz"
    damage(saved, damaged, harm)
    other = Shell(tmp_path / "other")
    ended = await other("restore", str(damaged))
    assert (ended.code, ended.out) == (1, "")
    words = "Restore it with that version" if harm == "newer" else "is damaged or no backup"
    assert words in ended.err
    assert not (tmp_path / "other" / "agiraph.db").exists()
    assert not (tmp_path / "outside").exists()


def damage(source: Path, target: Path, harm: str) -> None:
    if harm == "cut":
        target.write_bytes(source.read_bytes()[:-200])
        return
    if harm == "not_one":
        target.write_bytes(b"not a backup at all")
        return
    with tarfile.open(source) as tar, tarfile.open(target, "w:gz") as copy:
        for member in tar:
            file = tar.extractfile(member)
            assert file is not None
            data = file.read()
            if harm == "flipped" and member.name.endswith("note.md"):
                data = data.replace(b"demo", b"emod")
            if harm == "without" and member.name == "manifest.json":
                continue
            if harm == "newer" and member.name == "manifest.json":
                data = data.replace(b'"schema":', b'"schema":9')
            if harm == "outside" and member.name.endswith("note.md"):
                member.name = "home/../../outside"
            member.size = len(data)
            copy.addfile(member, io.BytesIO(data))


async def test_a_missing_home_file_or_folder_is_reported(tmp_path: Path) -> None:
    agiraph = Shell(tmp_path / "nowhere")
    assert_refused(await agiraph("backup", str(tmp_path / "b.tar.gz")), "nothing to back up")
    assert not (tmp_path / "nowhere").exists()
    missing = await agiraph("restore", str(tmp_path / "no.tar.gz"))
    assert (missing.code, "does not exist" in missing.err) == (2, True)
    (tmp_path / "home").mkdir()
    lost = await Shell(tmp_path / "home")("backup", str(tmp_path / "no" / "b.tar.gz"))
    assert_refused(lost, "There is no folder")
