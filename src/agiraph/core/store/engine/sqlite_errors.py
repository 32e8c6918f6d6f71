"""SQLite errors: sqlite3's exceptions, translated into the project's own."""

import os
from pathlib import Path

from agiraph.core.domain.errors import (
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
"""With fewer bytes free than this, an I/O error of SQLite counts as a full disk: for the shared
memory file and the WAL, SQLite reports ENOSPC as a plain I/O error."""


def name_of(error: BaseException) -> str:
    # SQLite quotes the bytes it finds. If they are not UTF-8, the file is damaged.
    if isinstance(error, UnicodeDecodeError) or "Could not decode to UTF-8" in str(error):
        return "SQLITE_CORRUPT"
    return getattr(error, "sqlite_errorname", "") or ""


def is_environment_error(error: BaseException) -> bool:
    """Return whether the disk, a lock or the file is at fault, and not the statement."""
    return name_of(error).startswith(_ENVIRONMENT)


def explain(error: BaseException, path: Path) -> AgiraphError:
    """Return the project's error for one of sqlite3."""
    name = name_of(error)
    if name == "SQLITE_FULL":
        return full(path)
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return StoreLocked(
            f"Another program has locked {path}: close it; work then resumes by itself."
        )
    if name.startswith(_DAMAGE):
        return damaged(path, str(error))
    if name.startswith(("SQLITE_IOERR", "SQLITE_CANTOPEN")) and _has_no_room(path.parent):
        return full(path)
    return StoreUnavailable(f"{path}: {error}")


def full(path: Path) -> StoreFull:
    return StoreFull(f"No room left for {path}: free some disk space; work then resumes by itself.")


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
