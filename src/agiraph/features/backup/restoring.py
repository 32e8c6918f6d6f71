"""Restoring: unpacks a backup into a staging folder and moves it into place, all or nothing."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import IO, Any, cast

import orjson

from agiraph.core.domain.errors import Refused
from agiraph.core.home.layout import Home
from agiraph.core.home.safe_folder import Folder
from agiraph.core.home.safe_open import PARTIAL
from agiraph.features.backup.archive import CHUNK, belongs_to_one_home
from agiraph.features.backup.archive_reading import Archive

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
