"""`agiraph restore` of untrusted archives: all or nothing, without settings or tokens in them."""

import gzip
import random
import sys
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import psycopg
import pytest

from agiraph import cli
from agiraph.app import open_store
from agiraph.core.domain.errors import Refused
from agiraph.core.domain.times.time import SystemClock
from agiraph.core.store.engine import dump
from agiraph.core.store.tx import Tx
from agiraph.testing.world import prepare_database
from tests.cli.archives import MANIFEST, ROWS, Change, Parts
from tests.cli.shell import Ended, Shell

PLANTED_SETTINGS = '[commands.backdoor]\ncommand = "touch /tmp/planted"\n'
Restore = Callable[..., Ended]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import asyncio

    folder = tmp_path_factory.mktemp("saved")
    agiraph = Shell(folder / "home").prepared()
    assert asyncio.run(agiraph("run", "Show it")).code == 0
    (agiraph.home / "agiraph.toml").write_text(PLANTED_SETTINGS)
    (agiraph.home / "agents").mkdir()
    (agiraph.home / "agents" / "spy.md").write_text("---\nname: spy\ndescription: x\n---\nSpy.")
    ended = asyncio.run(agiraph("backup", str(folder / "b.tar.gz")))
    assert ended.code == 0, ended.err
    return folder / "b.tar.gz"


@pytest.fixture
def restore(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Restore:
    """Run the command in this process, with the home `tmp_path/new/home`."""
    monkeypatch.delenv("AGIRAPH_DATABASE_URL", raising=False)
    monkeypatch.setenv("AGIRAPH_HOME", str(tmp_path / "new" / "home"))

    def run(file: Path, *flags: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["agiraph", "restore", str(file), *flags])
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            cli.main()
        code = left.value.code
        printed = capsys.readouterr()
        return Ended(code if isinstance(code, int) else 0, printed.out, printed.err)

    return run


def assert_refused(ended: Ended, tmp_path: Path, why: object = "") -> None:
    assert (ended.code, ended.out) in ((1, ""), (2, "")), why
    assert ended.err.startswith("agiraph: "), why
    assert (ended.err.count("\n"), len(ended.err) < 1000) == (1, True), (why, ended.err)
    assert "Traceback" not in ended.err
    assert not (tmp_path / "new").exists(), why


# ---- members that are not restored --------------------------------------------------------------


def test_settings_in_a_backup_are_put_aside_and_listed(
    saved: Path, tmp_path: Path, restore: Restore
) -> None:
    ended, home = restore(saved), tmp_path / "new" / "home"
    assert (ended.code, ended.err) == (0, "")
    assert not (home / "agiraph.toml").exists()
    assert not (home / "agents").exists()
    aside = home / "restored-settings"
    assert (aside / "agiraph.toml").read_text() == PLANTED_SETTINGS
    assert (aside / "agents" / "spy.md").exists()
    assert f"Not used, but put into {aside}:" in ended.out
    assert "  agents/spy.md\n  agiraph.toml\n" in ended.out
    assert sorted(p.name for p in home.iterdir() if p.name.startswith(".")) == []


def test_with_the_option_with_settings_they_take_effect_and_are_shown(
    saved: Path, tmp_path: Path, restore: Restore
) -> None:
    ended, home = restore(saved, "--with-settings"), tmp_path / "new" / "home"
    assert (ended.code, ended.err) == (0, "")
    assert (home / "agiraph.toml").read_text() == PLANTED_SETTINGS
    assert (home / "agents" / "spy.md").exists()
    assert 'command = "touch /tmp/planted"' in ended.out
    assert not (home / "restored-settings").exists()


def test_tokens_locks_and_databases_in_a_backup_are_ignored(
    saved: Path, tmp_path: Path, restore: Restore
) -> None:
    parts = Parts.of(saved)
    for name in ("home/token", "home/lock", "home/agiraph.db", "home/agiraph.db-wal"):
        parts.set(name, b"planted-planted-planted-planted-")
    ended, home = restore(parts.write(tmp_path / "x.tar.gz")), tmp_path / "new" / "home"
    assert ended.code == 0
    assert ended.err.splitlines() == [
        f"Not taken from the backup: {name}"
        for name in ("token", "lock", "agiraph.db", "agiraph.db-wal")
    ]
    token = home / "token"
    assert (len(token.read_text().strip()) > 30, token.stat().st_mode & 0o777) == (True, 0o600)
    assert b"planted" not in b"".join(p.read_bytes() for p in home.iterdir() if p.is_file())


def test_a_home_keeps_its_own_token_and_settings(
    saved: Path, tmp_path: Path, restore: Restore
) -> None:
    home = tmp_path / "new" / "home"
    home.mkdir(parents=True)
    (home / "token").write_text("my-own-token-my-own-token-my-own\n")
    (home / "agiraph.toml").write_text('model = "demo"\n')
    refused = restore(saved, "--with-settings")
    assert (refused.code, "agiraph.toml' is there already" in refused.err) == (1, True)
    assert sorted(p.name for p in home.iterdir()) == ["agiraph.toml", "token"]
    assert restore(saved).code == 0
    assert (home / "token").read_text() == "my-own-token-my-own-token-my-own\n"
    assert (home / "agiraph.toml").read_text() == 'model = "demo"\n'


def test_a_command_in_a_backup_is_not_mistaken_for_a_running_process(
    saved: Path, tmp_path: Path, restore: Restore
) -> None:
    parts = Parts.of(saved)
    [started, *_] = [name for name in parts.members if name.endswith("/started.json")]
    assert restore(parts.write(tmp_path / "x.tar.gz")).code == 0
    path = tmp_path / "new" / "home" / started.removeprefix("home/")
    assert '"boot":"restored"' in path.read_text()
    assert b'"boot":"restored"' not in parts.members[started]


# ---- archives that were changed -----------------------------------------------------------------


def test_a_backup_with_a_changed_or_missing_byte_is_refused(
    saved: Path, tmp_path: Path, restore: Restore
) -> None:
    whole, plain = saved.read_bytes(), gzip.decompress(saved.read_bytes())
    chance = random.Random(4711)
    step = max(len(whole) // 60, 1)
    damaged = [whole[:n] for n in (0, 1, 9, 10, 11, *range(20, len(whole), 4 * step))]
    damaged += [whole[:-1], whole[:-4], whole[:-8], whole + b"x", whole + whole, whole[10:]]
    for place in (*range(10), *range(10, len(whole), step), *range(len(whole) - 8, len(whole))):
        changed = bytearray(whole)
        changed[place] ^= chance.randint(1, 255)
        damaged.append(bytes(changed))
    file = tmp_path / "x.tar.gz"
    tried = 0
    for number, data in enumerate(damaged):
        if decompressed(data) == plain:
            continue  # only the gzip header changed, such as its time stamp
        file.write_bytes(data)
        assert_refused(restore(file), tmp_path, number)
        tried += 1
    assert tried > 60


def decompressed(data: bytes) -> bytes | None:
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, ValueError, zlib.error):
        return None


def with_member(name: str) -> Change:
    return lambda parts: parts.set(name, b"outside")


def without(name: str) -> Change:
    def change(parts: Parts) -> None:
        del parts.members[name]

    return change


def with_manifest(**fields: Any) -> Change:
    return lambda parts: parts.set_manifest(**fields)


def with_link(name: str, type: bytes, target: str = "", size: int = 0) -> Change:
    def change(parts: Parts) -> None:
        parts.set(name, b"")
        del parts.members[name]
        parts.link(name, type, target, size)

    return change


def file_and_folder(parts: Parts) -> None:
    parts.set("home/a", b"")
    parts.set("home/a/b", b"")


def changed_rows(parts: Parts) -> None:
    parts.members[ROWS] += b"\n"


def unlisted(parts: Parts) -> None:
    parts.members["home/teams/extra"] = b"x"


CHANGES: dict[str, Change] = {
    "up": with_member("home/../../outside"),
    "up at once": with_member("../outside"),
    "absolute": with_member("/tmp/outside"),
    "absolute in it": with_member("home//tmp/outside"),
    "dots": with_member("home/./a"),
    "no name": with_member("home/"),
    "elsewhere": with_member("other/a"),
    "long name": with_member("home/" + "x" * 300),
    "deep": with_member("home/" + "x/" * 3000 + "x"),
    "half written": with_member("home/teams/.agiraph-part-1"),
    "a file and a folder": file_and_folder,
    "over the rows": with_member("rows.jsonl/a"),
    "symbolic link": with_link("home/teams/link", tarfile.SYMTYPE, "/etc"),
    "hard link": with_link("home/teams/link", tarfile.LNKTYPE, "rows.jsonl"),
    "hard link outside": with_link("home/teams/link", tarfile.LNKTYPE, "/etc/hostname"),
    "device": with_link("home/teams/device", tarfile.CHRTYPE),
    "block device": with_link("home/teams/device", tarfile.BLKTYPE),
    "pipe": with_link("home/teams/pipe", tarfile.FIFOTYPE),
    "folder": with_link("home/teams/folder", tarfile.DIRTYPE),
    "huge": with_link("home/teams/huge", tarfile.REGTYPE, size=1 << 50),
    "sparse": with_link("home/teams/sparse", tarfile.GNUTYPE_SPARSE, size=1 << 40),
    "huge header": with_link("home/teams/x", tarfile.XHDTYPE, size=1 << 33),
    "huge long name": with_link("home/teams/x", tarfile.GNUTYPE_LONGNAME, size=1 << 33),
    "negative": with_link("home/teams/x", tarfile.REGTYPE, size=-512),
    "unlisted": unlisted,
    "without rows": without(ROWS),
    "without manifest": without(MANIFEST),
    "rows changed": changed_rows,
    "form": with_manifest(form=2),
    "form is text": with_manifest(form="1"),
    "schema": with_manifest(schema=9999),
    "schema is text": with_manifest(schema="8"),
    "schema is a list": with_manifest(schema=[8]),
    "rows": with_manifest(rows=1),
    "rows is null": with_manifest(rows=None),
    "made by a list": with_manifest(made_by=["\n"]),
    "files is a list": with_manifest(files=[]),
    "files are numbers": with_manifest(files={ROWS: 1}),
    "no hash": with_manifest(files={ROWS: "x"}),
    "left out is text": with_manifest(left_out="x"),
    "unknown field": with_manifest(more=1),
    "manifest is a list": lambda p: p.members.update({MANIFEST: b"[]"}),
    "manifest is not JSON": lambda p: p.members.update({MANIFEST: b"\xff{"}),
    "manifest is deep": lambda p: p.members.update({MANIFEST: b"[" * 100_000}),
    "rows are not JSON": lambda p: p.set(ROWS, b"\xff\n"),
    "rows are deep": lambda p: p.set(ROWS, b"[" * 100_000),
    "rows are empty": lambda p: p.set(ROWS, b""),
    "rows end early": lambda p: p.set_rows(p.rows[:-1]),
    "rows twice": lambda p: p.set_rows(p.rows * 2),
    "rows without a table": lambda p: p.set_rows(p.rows[1:]),
    "an unknown table": lambda p: p.set_rows([{"table": "x", "columns": []}, *p.rows]),
    "a table that is left out": lambda p: p.set_rows([*p.rows, {"table": "passes", "columns": []}]),
    "a bad started.json": lambda p: p.set("home/spool/x/started.json", b"nothing"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_manipulated_backup_is_refused_in_one_line_and_leaves_no_files(
    saved: Path, tmp_path: Path, restore: Restore, change: str
) -> None:
    parts = Parts.of(saved)
    CHANGES[change](parts)
    assert_refused(restore(parts.write(tmp_path / "x.tar.gz")), tmp_path)
    assert {p.name for p in tmp_path.iterdir()} == {"x.tar.gz"}


def test_a_backup_larger_than_the_free_disk_is_refused(
    tmp_path: Path, restore: Restore, monkeypatch: pytest.MonkeyPatch, saved: Path
) -> None:
    from agiraph.features.backup import commands as backup

    monkeypatch.setattr(backup, "_free_bytes", lambda home: 10_000)
    ended = restore(saved)
    assert_refused(ended, tmp_path)
    assert "takes more than the 10,000 bytes that are free" in ended.err


def test_a_refused_restore_does_not_change_an_existing_home(
    saved: Path, tmp_path: Path, restore: Restore
) -> None:
    home = tmp_path / "new" / "home"
    home.mkdir(parents=True)
    (home / "token").write_text("mine")
    parts = Parts.of(saved)
    parts.set_rows(parts.rows[:-1])  # this error is found only after the files are unpacked
    assert restore(parts.write(tmp_path / "x.tar.gz")).code == 1
    assert [p.name for p in home.iterdir()] == ["token"]


# ---- rows that were changed ---------------------------------------------------------------------

WRONG: tuple[Any, ...] = (None, True, [], {"a": 1}, "x\0y", 2**63, 1.5, "not of this", -1)


@pytest.mark.slow
async def test_a_value_of_the_wrong_type_in_any_column_is_refused(
    saved: Path, tmp_path: Path
) -> None:
    """Put each wrong value into every column of the first row of each table."""
    parts = Parts.of(saved)
    prepare_database(tmp_path / "a.db")
    store = await open_store(f"sqlite:///{tmp_path / 'a.db'}", SystemClock())
    tried = accepted = 0
    rows, names, table, seen = parts.rows, list[str](), "", set[str]()
    lines = parts.members[ROWS].splitlines(keepends=True)
    for number, row in enumerate(rows):
        if isinstance(row, dict):
            names, table = row["columns"], row["table"]
            continue
        if table in seen:
            continue
        seen.add(table)
        for column, name in enumerate(names):
            for wrong in WRONG:
                changed = [*row]
                changed[column] = wrong
                line = orjson.dumps(changed) + b"\n"
                tried += 1
                if await accepts(store, [*lines[:number], line, *lines[number + 1 :]]):
                    accepted += 1
                    assert fits(row[column], wrong), (table, name, wrong)
    await store.close()
    assert (len(seen) > 6, tried > 500, accepted < tried // 2) == (True, True, True)


class Loaded(Exception):
    """The rows were accepted; the transaction is rolled back, so that the database stays empty."""


def load(tx: Tx, lines: list[bytes]) -> None:
    dump.load(tx, lines)
    raise Loaded


async def accepts(store: Any, lines: list[bytes]) -> bool:
    """Whether these lines can be loaded. The database is empty before and after."""
    try:
        await store.write(load, lines)
    except Loaded:
        return True
    except Refused as refusal:
        refused = str(refusal)
        assert refused.endswith("Nothing was changed; use another backup.")
        assert ("\n" in refused, await store.read(dump.is_empty)) == (False, True)
        return False
    raise AssertionError("neither loaded nor refused")


def fits(was: Any, wrong: Any) -> bool:
    """Return whether a value may replace another: it has the same type, or one of them is null."""
    return wrong is None or was is None or isinstance(wrong, type(was)) or isinstance(was, float)


def wrong_columns(known: list[str]) -> list[Any]:
    return [known[:-1], [*known, "more"], [*known[:-1], 'a"; drop table teams'], "id"]


@pytest.mark.slow
async def test_a_header_that_names_other_columns_is_refused(saved: Path, tmp_path: Path) -> None:
    prepare_database(tmp_path / "a.db")
    store = await open_store(f"sqlite:///{tmp_path / 'a.db'}", SystemClock())
    lines = Parts.of(saved).members[ROWS].splitlines(keepends=True)
    headers = [number for number, row in enumerate(Parts.of(saved).rows) if isinstance(row, dict)]
    assert len(headers) > 20
    for number in headers:
        header = orjson.loads(lines[number])
        for columns in wrong_columns(header["columns"]):
            changed = orjson.dumps({**header, "columns": columns}) + b"\n"
            changed_lines = [*lines[:number], changed, *lines[number + 1 :]]
            assert not await accepts(store, changed_lines), (header["table"], columns)
    assert await accepts(store, lines)
    await store.close()


@pytest.mark.slow
def test_a_backup_whose_header_names_other_columns_is_refused_by_the_command(
    saved: Path, tmp_path: Path, restore: Restore
) -> None:
    parts = Parts.of(saved)
    first, *others = parts.rows
    for columns in wrong_columns(first["columns"]):
        parts.set_rows([{**first, "columns": columns}, *others])
        assert_refused(restore(parts.write(tmp_path / "x.tar.gz")), tmp_path)


async def test_postgresql_gets_all_rows_or_none(saved: Path, tmp_path: Path, postgres: Any) -> None:
    url = postgres.fresh()
    parts = Parts.of(saved)
    rows = parts.rows
    last = max(number for number, row in enumerate(rows) if isinstance(row, list))
    rows[last] = rows[last][:-1]
    parts.set_rows(rows)
    bad = parts.write(tmp_path / "x.tar.gz")
    agiraph = Shell(tmp_path / "new" / "home", {"AGIRAPH_DATABASE_URL": url})
    assert_refused(await agiraph("restore", str(bad)), tmp_path)
    with psycopg.connect(url) as connection:
        assert connection.execute("select count(*) from teams").fetchone() == (0,)
    ended = await agiraph("restore", str(saved))
    assert (ended.code, ended.err) == (0, "")
    with psycopg.connect(url) as connection:
        assert connection.execute("select count(*) from teams").fetchone() == (1,)
