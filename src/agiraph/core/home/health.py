"""Health: checks a home's permissions, disk space and leftovers of crashes."""

import contextlib
import os
import shutil
import stat
import tempfile
from pathlib import Path
from typing import NamedTuple

from agiraph.core.home.layout import Home
from agiraph.core.home.safe_folder import Folder
from agiraph.sandbox import commands

PRIVATE = {"": 0o700, "token": 0o600, "mcp-tokens.json": 0o600, "lock": 0o600}
"""Paths in a home that only the owner may access, with their modes."""
STAGE = "_stage"


class LoosePermission(NamedTuple):
    """A file or folder that other users may access."""

    name: str
    mode: int
    wanted: int

    def __str__(self) -> str:
        where = self.name or "the home itself"
        return f"{where} has mode {self.mode:o}; it should be {self.wanted:o}."


def loose_permissions(path: Path) -> list[LoosePermission]:
    found: list[LoosePermission] = []
    for name, wanted in PRIVATE.items():
        try:
            mode = stat.S_IMODE((path / name).stat(follow_symlinks=False).st_mode)
        except FileNotFoundError:
            continue
        if mode & ~wanted:
            found.append(LoosePermission(name, mode, wanted))
    return found


def tighten(path: Path, found: LoosePermission) -> str:
    (path / found.name).chmod(found.wanted)
    return f"Set the mode of {found.name or 'the home'} to {found.wanted:o}."


def why_not_writable(path: Path) -> str | None:
    """Return why nothing can be written to or created at this path; None if it can."""
    nearest = next(place for place in (path, *path.parents) if os.path.lexists(place))
    try:
        # Tested by writing: permission bits do not apply to root and do not show a read-only disk.
        with tempfile.TemporaryFile(dir=nearest):
            return None
    except OSError as error:
        return f"{nearest}: {error.strerror}"


def free_bytes(path: Path) -> int:
    return shutil.disk_usage(path).free


def spool_bytes(path: Path) -> int:
    """Return the disk space that the output of commands takes."""
    total = 0
    for folder, _, names in os.walk(path / "spool"):
        for name in names:
            with contextlib.suppress(FileNotFoundError):  # a deletion may remove it meanwhile
                found = (Path(folder) / name).lstat()
                total += found.st_size if stat.S_ISREG(found.st_mode) else 0
    return total


def orphaned_commands(path: Path) -> list[Path]:
    """Return the output folders (spools) of commands that still run.

    The caller treats them as orphans if no runtime runs.
    """
    begun = (path / "spool").glob("*/started.json")
    spools = (file.parent for file in begun if not (file.parent / "result.json").exists())
    return [spool for spool in spools if commands.is_alive(spool)]


def kill_orphans(spool: Path) -> str:
    commands.resolve(spool)
    return f"Killed the remaining processes of the command in {spool.name}."


def unfinished_publications(home: Home) -> list[str]:
    """Return the copies for publishing that a crash left unfinished."""
    if not home.folder.exists("teams"):
        return []
    found: list[str] = []
    for team in _folders(home.folder, "teams"):
        if not home.folder.exists(f"{team}/nodes"):
            continue
        nodes = _folders(home.folder, f"{team}/nodes")
        found += [f"{node}/{STAGE}" for node in nodes if home.folder.exists(f"{node}/{STAGE}")]
    return found


def _folders(folder: Folder, rel: str) -> list[str]:
    return [f"{rel}/{entry.name}" for entry in folder.list(rel) if entry.kind == "folder"]


def remove_unfinished(home: Home, stage: str) -> str:
    home.folder.remove(stage)
    return f"Removed {stage}, which was never finished."
