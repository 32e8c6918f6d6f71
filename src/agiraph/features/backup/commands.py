"""`agiraph backup`, `restore`, `export`: the database and the files of a home, in and out."""

import asyncio
import contextlib
import os
import shutil
import tempfile
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

import click
import orjson

from agiraph import config, redaction
from agiraph.app import open_store
from agiraph.cli.session import clean, command, opened, remember_secrets
from agiraph.config import Settings
from agiraph.core.domain.errors import Misconfigured, Refused, StoreFull
from agiraph.core.domain.text.plurals import counted
from agiraph.core.domain.times.time import SystemClock
from agiraph.core.home import last_backup
from agiraph.core.home.layout import Home
from agiraph.core.home.safe_folder import PARTIAL, Folder
from agiraph.core.store import teams as team_rows
from agiraph.core.store.engine import dump, migrate
from agiraph.core.store.engine.dump_validation import LONGEST_LINE
from agiraph.features.backup import archive, archive_reading
from agiraph.features.backup.archive import CHUNK, Manifest, belongs_to_one_home
from agiraph.features.backup.archive_reading import Archive
from agiraph.features.backup.team_export import write_export
from agiraph.redaction import environment

ASIDE = "restored-settings"
"""The folder of a home for settings from a backup that are not applied."""
_PREFIX = f"{PARTIAL}restore-"
_HARMLESS = {"token", "lock", "agiraph.toml"}
_LONGEST_START = 64 * 1024


def is_setting(name: str) -> bool:
    """Return whether a file decides what runs: programs, prompts, tools, models."""
    is_pin = name.startswith("mcp/") and name.count("/") == 1
    is_ours = name in ("agiraph.toml", ".mcp.json", "keys.json")
    return is_ours or name.startswith("agents/") or is_pin


@contextlib.contextmanager
def prepared(path: Path) -> Generator[Home]:
    """Yield an empty, locked home; remove what was created for it if restoring fails."""
    path = path.expanduser().absolute()
    missing = [place for place in (path, *path.parents) if not os.path.lexists(place)]
    home = Home.open(path)
    had_lock = (path / "lock").exists()
    try:
        with home.lock():
            _refuse_full(home)
            for left in path.glob(f"{_PREFIX}*"):  # by a restore that was killed
                shutil.rmtree(left)
            yield home
    except BaseException:
        if not had_lock:
            (path / "lock").unlink(missing_ok=True)
        # rmdir removes only empty folders: a file that somebody else has put there meanwhile stays.
        for place in missing:
            with contextlib.suppress(OSError):
                place.rmdir()
        raise
    finally:
        home.folder.close()


def _refuse_full(home: Home) -> None:
    taken = {entry.name for entry in home.folder.list()} - _HARMLESS
    if taken:
        raise Refused(
            f"{str(home.path)!r} is not empty; nothing was changed. Set AGIRAPH_HOME to a new "
            "folder."
        )


@contextlib.contextmanager
def stage(near: Path) -> Generator[Path]:
    """Yield a staging folder on the same disk, so that renames are atomic; remove it at the end."""
    near.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=near))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def unpack(archive: Archive, staged: Path, *, with_settings: bool) -> int:
    """Unpack the files of the archive into the staging folder; return how many."""
    count = 0
    with Folder.open(staged) as folder:
        for name, member in archive.files.items():
            if belongs_to_one_home(name):
                continue
            # Settings name programs, servers and prompts: a backup from a stranger would choose
            # what runs here.
            place = f"{ASIDE}/{name}" if is_setting(name) and not with_settings else name
            # Of the mode in the archive only "executable" counts: no setuid bit, no access for
            # others.
            mode = 0o700 if member.mode & 0o100 else 0o600
            with archive.file(name) as source, folder.create_file(place, mode=mode) as copy:
                _copy(name, source, copy)
            count += 1
    return count


def _copy(name: str, source: IO[bytes], copy: IO[bytes]) -> None:
    if name.startswith("spool/") and name.endswith("/started.json"):
        copy.write(_without_processes(name, source.read(_LONGEST_START)))
    while piece := source.read(CHUNK):
        copy.write(piece)
    copy.flush()
    os.fsync(copy.fileno())


def _without_processes(name: str, data: bytes) -> bytes:
    """Return started.json with another boot id, so that it refers to no process of this machine.

    Otherwise `commands.resolve` could kill a process of the home from which the backup was made.
    """
    try:
        started = orjson.loads(data)
    except orjson.JSONDecodeError:
        started = None
    if not isinstance(started, dict):
        raise Refused(f"{name!r} in the backup cannot be read; nothing was changed.")
    return orjson.dumps({**cast(dict[str, Any], started), "boot": "restored"})


@contextlib.contextmanager
def in_place(staged: Path, home: Path) -> Generator[None]:
    """Move all staged files into the home; move them back if the body fails."""
    moved: list[Path] = []
    try:
        for entry in sorted(staged.iterdir()):
            target = home / entry.name
            # The home was empty when it was locked, but the lock does not stop people who copy
            # files into it.
            if os.path.lexists(target):
                raise Refused(f"{str(target)!r} is there already; nothing was changed.")
            entry.rename(target)
            moved.append(target)
        _sync(home)
        yield
    except BaseException:
        for target in moved:
            target.rename(staged / target.name)
        raise


def put_database(staged: Path, target: Path) -> None:
    """Move a closed database file into place and sync the folder."""
    staged.replace(target)
    _sync(target.parent)


def _sync(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


SHOWN_FILES = 20
NO_KEYS = (
    "No API key is set in this environment, so the files were not searched for keys. If an agent "
    "may have written a key to a file, run this command with the server's environment."
)


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@command
async def backup(file: Path) -> None:
    """Write the database and all files to FILE, a .tar.gz archive.

    The access token is left out, and API keys that are set in this environment are overwritten.
    Agents can keep working meanwhile.
    """
    settings = config.load(environment())
    if not settings.home.is_dir():
        raise Refused(
            f"The home {str(settings.home)!r} does not exist, so there is nothing to back up."
        )
    # Before `remember_secrets`, which adds the home's own token: the warning is about API keys.
    if not redaction.known():
        click.echo(NO_KEYS, err=True)
    remember_secrets(settings.home, settings.database_url)
    target = file.expanduser().absolute()
    async with opened() as (_, store):
        with tempfile.TemporaryFile() as rows:
            # Rows first: a file is on disk before the row that refers to it is committed, and is
            # never deleted. The other way round, a row could refer to a missing file.
            count = await store.read(dump.write, rows)
            rows.seek(0)
            about = Manifest(
                schema=migrate.newest(),
                made_at=SystemClock().now().isoformat(),
                made_by=f"agiraph {version('agiraph')}",
                rows=count,
            )
            home = Home.open(settings.home)
            made = await asyncio.to_thread(archive.pack, target, home, rows, about)
            last_backup.write(home, target, at=SystemClock().now())
    click.echo(
        f"Wrote {target}: {counted(made.rows, 'row')} and {counted(len(made.files) - 1, 'file')}."
    )
    _list_files("Left out", made.left_out)
    _list_files("Overwrote an API key in", made.redacted)


def _list_files(what: str, names: list[str]) -> None:
    for name in names[:SHOWN_FILES]:
        click.echo(f"{what} {clean(name)}", err=True)
    if len(names) > SHOWN_FILES:
        click.echo(f"{what} {len(names) - SHOWN_FILES:,} more; see manifest.json in it.", err=True)


@click.command()
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option(
    "--with-settings",
    is_flag=True,
    help="Use agiraph.toml and agents/*.md of the backup, and print them. Without this option they "
    "are put into a folder of their own, because they decide which programs are run.",
)
@command
async def restore(file: Path, with_settings: bool) -> None:
    """Restore the backup FILE into an empty home and an empty database.

    Set AGIRAPH_HOME (and AGIRAPH_DATABASE_URL) to the target. Existing data is never overwritten,
    and a failed restore leaves nothing behind. Restore only backups that you trust: unfinished work
    continues when you start agiraph, including the commands that it was about to run.
    """
    settings = config.load(environment())
    with archive_reading.opened(file, room=_free_bytes(settings.home)) as found:
        if not 0 < found.manifest.schema <= migrate.newest():
            raise Refused(
                f"The backup was made by {found.manifest.made_by[:60]!r} (schema "
                f"{found.manifest.schema}); this one has schema {migrate.newest()}. Restore it "
                "with that version."
            )
        restorer = Restorer(settings, found, with_settings=with_settings)
        with prepared(settings.home) as home:
            files = await restorer.restore(home)
        what = f"{counted(found.manifest.rows, 'row')} and {counted(files, 'file')}"
        click.echo(f"Restored {what} to {settings.home}.")
        _list_settings(settings.home, found, with_settings=with_settings)
    click.echo("Start it with: agiraph up")


def _free_bytes(home: Path) -> int:
    """Return the free bytes of the disk that holds the home, or will hold it."""
    nearest = next(p for p in (home, *home.absolute().parents) if p.exists())
    return shutil.disk_usage(nearest).free


class Restorer:
    """One restore: builds files and database in a staging folder, then moves both into place."""

    def __init__(self, settings: Settings, found: Archive, *, with_settings: bool) -> None:
        self._settings = settings
        self._archive = found
        self._with_settings = with_settings

    async def restore(self, home: Home) -> int:
        """Fill the locked, empty home and its database. Return the number of files."""
        with ExitStack() as stages:
            staged = stages.enter_context(stage(home.path))
            files = await asyncio.to_thread(
                unpack, self._archive, staged, with_settings=self._with_settings
            )
            if self._with_settings:
                self._check_settings(staged)
            rows = await self._rows(home, stages)
            url = self._settings.database_url
            if url.startswith("sqlite:///"):
                target = Path(url.removeprefix("sqlite:///"))
                if target.exists():
                    await self._refuse_teams(url)
                near = stages.enter_context(stage(target.parent))
                await self._load(f"sqlite:///{near / target.name}", rows)
                with in_place(staged, home.path):
                    put_database(near / target.name, target)
            else:
                with in_place(staged, home.path):
                    # Last and in one transaction: if it fails, the files are removed again.
                    await self._into_server(url, rows)
        with contextlib.suppress(StoreFull):  # on a full disk, the first start makes the token
            home.token()
        return files

    def _check_settings(self, staged: Path) -> None:
        try:
            config.load({**environment(), "AGIRAPH_HOME": str(staged)})
        except Misconfigured as error:
            reason = str(error).replace(str(staged), "the backup")
            raise Refused(
                f"{reason} Nothing was changed; restore without --with-settings."
            ) from error

    async def _into_server(self, url: str, rows: "_Rows") -> None:
        from agiraph.core.store.engine.postgres_errors import (
            refuse_rejected_rows,  # loaded only where used
        )

        await self._refuse_teams(url)
        with refuse_rejected_rows():
            await self._load(url, rows)

    async def _refuse_teams(self, url: str) -> None:
        store = await open_store(url, SystemClock())
        try:
            if not await store.read(dump.is_empty):
                raise Refused(
                    "The database holds teams already; nothing was changed. Use an empty database."
                )
        finally:
            await store.close()

    async def _rows(self, home: Home, stages: ExitStack) -> "_Rows":
        """Return the rows in today's schema; those of an older one are migrated beside the home."""
        file, about = stages.enter_context(self._archive.rows), self._archive.manifest
        if about.schema == migrate.newest():
            return _Rows(file, about.rows)
        near = stages.enter_context(stage(home.path))
        upgraded = stages.enter_context((near / "rows.jsonl").open("w+b"))
        more: dict[str, Any] = {"schema": about.schema, "expected": about.rows}
        count = await asyncio.to_thread(
            dump.upgrade, _Lines(file), upgraded, place=near / "older.db", **more
        )
        return _Rows(upgraded, count)

    async def _load(self, url: str, rows: "_Rows") -> None:
        store = await open_store(url, SystemClock())
        try:
            await store.write(dump.load, _Lines(rows.file), expected=rows.total)
        finally:
            await store.close()


class _Rows(NamedTuple):
    file: IO[bytes]
    total: int


class _Lines:
    """The lines of a file; each iteration starts at its beginning, as a write can be retried."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def __iter__(self) -> Iterator[bytes]:
        self._file.seek(0)
        while line := self._file.readline(LONGEST_LINE + 1):
            yield line


def _list_settings(home: Path, found: Archive, *, with_settings: bool) -> None:
    own = [name for name in found.files if archive.belongs_to_one_home(name)]
    _list_files("Not taken from the backup:", own)
    names = sorted(name for name in found.files if is_setting(name))
    if not names:
        return
    if not with_settings:
        click.echo(f"Not used, but put into {home / ASIDE}:")
        for name in names[:SHOWN_FILES]:
            click.echo(f"  {clean(name)}")
        click.echo("They decide which programs are run: read them, and move those that you trust.")
        return
    click.echo("Used from the backup:")
    for name in names:
        click.echo(f"  {clean(name)}:")
        with found.file(name) as file:
            for line in _Lines(file):
                click.echo(f"    {clean(line.decode(errors='replace').rstrip())}")


# A team, and the schema


@click.command()
@click.argument("team")
@click.argument("folder", type=click.Path(path_type=Path))
@command
async def export(team: str, folder: Path) -> None:
    """Write all data and files of a TEAM (its id or name) to FOLDER, as readable files.

    API keys that are set in this environment are overwritten.
    """
    async with opened() as (settings, store):
        remember_secrets(settings.home, settings.database_url)
        found = await store.read(team_rows.find, team)
        try:
            await write_export(store, settings.home, found, folder)
        except OSError as error:
            raise Refused(f"The export to {str(folder)!r} is incomplete: {error}") from error
    click.echo(f"Wrote {found.name!r} to {folder}.")
