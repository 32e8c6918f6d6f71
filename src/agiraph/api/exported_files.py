"""Exported files: copies the folder of a team, as its agents and their commands left it."""

import os
import stat
from pathlib import Path
from typing import BinaryIO

from agiraph.redaction import Redactor, redact


def copy_files(source: Path, target: Path) -> list[dict[str, str]]:
    """Copy a folder with its content; return the path and the error of what cannot be read.

    Links stay links: one may lead out of the folder. Known keys in files are overwritten. Names
    that contain a key are left out, and so are pipes and sockets.
    """
    left_out: list[dict[str, str]] = []

    def leave_out(error: OSError, path: Path) -> None:
        shown = os.fsencode(os.path.relpath(path, source)).decode(errors="replace")
        left_out.append({"path": shown, "error": error.strerror or str(error)})

    if not source.is_dir():
        return left_out
    # With the modes of new folders: those of the source may forbid writing to them.
    for at, folders, names in os.walk(source, onerror=lambda e: leave_out(e, Path(e.filename))):
        to = target / os.path.relpath(at, source)
        to.mkdir(parents=True, exist_ok=True)
        folders[:] = [name for name in folders if redact(name) == name]
        for name in (*folders, *(name for name in names if redact(name) == name)):
            try:
                _copy(Path(at) / name, to / name)
            except _Unreadable as error:
                leave_out(error, Path(at) / name)
    return left_out


class _Unreadable(OSError):
    """A file of the source that cannot be read. Errors of the target are raised as they are."""


def _copy(source: Path, target: Path) -> None:
    """Copy a link, or a file with its mode; leave out anything else."""
    try:
        mode = source.lstat().st_mode
        link = source.readlink() if stat.S_ISLNK(mode) else None
        file = _open(source) if stat.S_ISREG(mode) else None
    except OSError as error:
        raise _Unreadable(error.errno, error.strerror) from error
    if link is not None:
        target.symlink_to(link)
    if file is None:
        return
    with file, target.open("xb") as copy:
        for piece in Redactor().stream(file):
            copy.write(piece)
        os.fchmod(copy.fileno(), stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o777)


def _open(path: Path) -> BinaryIO:
    """Open a file. A running command may put a link or a pipe in its place: neither is followed."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags), "rb")
