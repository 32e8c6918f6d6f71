"""SQLite's errors, translated into ours: each says who must do what."""

import os
from pathlib import Path

from agiraph.domain.errors import (
    AgiraphError,
    StoreDamaged,
    StoreFull,
    StoreLocked,
    StoreUnavailable,
)

_DAMAGE = ("SQLITE_CORRUPT", "SQLITE_NOTADB")
_ENVIRONMENT = (
    *_DAMAGE, "SQLITE_FULL", "SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_IOERR", "SQLITE_CANTOPEN",
    "SQLITE_READONLY", "SQLITE_PROTOCOL", "SQLITE_NOMEM",
)  # fmt: skip
LEAST_ROOM = 64 * 1024
"""With less than this many bytes free, an I/O error of SQLite is taken for a full disk: the shared
memory file and the journal report ENOSPC as a plain I/O error."""


def name_of(error: BaseException) -> str:
    # SQLite quotes what it finds; if that is no text, the complaint is about damage.
    if isinstance(error, UnicodeDecodeError) or "Could not decode to UTF-8" in str(error):
        return "SQLITE_CORRUPT"
    return getattr(error, "sqlite_errorname", "") or ""


def is_environment_error(error: BaseException) -> bool:
    """Whether the disk, a lock or the file is at fault, and not the statement."""
    return name_of(error).startswith(_ENVIRONMENT)


def explain(error: BaseException, path: Path) -> AgiraphError:
    """SQLite's error as one that says who must do what."""
    name = name_of(error)
    if name == "SQLITE_FULL":
        return full(path)
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return StoreLocked(f"Another program holds {path}: close it; work goes on by itself.")
    if name.startswith(_DAMAGE):
        return damaged(path, str(error))
    if name.startswith(("SQLITE_IOERR", "SQLITE_CANTOPEN")) and _has_no_room(path.parent):
        return full(path)
    return StoreUnavailable(f"{path}: {error}")


def full(path: Path) -> StoreFull:
    return StoreFull(f"No room left for {path}: free some disk space; work goes on by itself.")


def damaged(path: Path, what: str) -> StoreDamaged:
    return StoreDamaged(
        f"{path} is damaged ({what}). Nothing was written to it. "
        "Put a backup in its place, or move it away to start anew."
    )


def _has_no_room(folder: Path) -> bool:
    try:
        disk = os.statvfs(folder)
    except OSError:
        return False
    has_no_inode = disk.f_files > 0 and disk.f_favail == 0
    return disk.f_bavail * disk.f_frsize < LEAST_ROOM or has_no_inode
