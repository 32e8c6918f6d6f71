"""SQLite files: opens a database file, and watches it, its WAL and its shared memory while open.

The first connection checks and upgrades the database. A process can go on writing to a file that
was removed, and SQLite does not notice. So the open files are compared, by device and inode, with
the files at their paths. Rows that only this process can still read are copied to a new file.
"""

import contextlib
import errno
import fcntl
import logging
import os
import sqlite3
import struct
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from agiraph.core.domain.errors import HomeInUse, StoreDamaged, StoreGone, StoreUnavailable
from agiraph.core.domain.value import dataclass
from agiraph.core.store.engine import migrate
from agiraph.core.store.engine.sqlite_errors import damaged, explain, full, is_environment_error

BUSY_SECONDS = 5.0
"""How long a connection waits for another program's lock on the file."""
PAGE_BYTES = 1024
"""A commit writes whole pages and a turn is small: 18 KiB per turn, against 34 with 4096 bytes."""
WORDS = {"dialect": "sqlite", "serial": "integer", "bigint": "integer"}
"""What migrations write for this database."""
CHECKED_BYTES = 256 * 2**20
"""Databases up to this size are checked whole when opened."""


def connect(path: Path, *, create: bool) -> sqlite3.Connection:
    """Open a connection. Without `create`, a missing file is an error and is not created."""
    connection = sqlite3.connect(
        f"file:{quote(os.fsencode(path))}?mode={'rwc' if create else 'rw'}",
        uri=True,
        timeout=BUSY_SECONDS,
        # None: sqlite3 begins no transaction by itself; the store begins and commits its own.
        isolation_level=None,
        # The event loop and the writer thread use one connection, never at the same time: `_busy`
        # passes it from one to the other.
        check_same_thread=False,
        cached_statements=512,
    )
    # SQLite's own `lower` knows the letters A to Z only. No index may hold it: other programs that
    # open the file have the original one.
    connection.create_function("lower", 1, _lower, deterministic=True)
    return connection


def _lower(value: object) -> str | None:
    return None if value is None else str(value).lower()


def ready(path: Path) -> sqlite3.Connection:
    """Open the writer's connection: create the file if needed, check it and migrate its schema.

    Raise `StoreDamaged`, `StoreFull`, `StoreLocked` or `StoreUnavailable` with the reason.
    """
    with contextlib.ExitStack() as opening:
        try:
            connection = connect(path, create=True)
            # Closed if anything fails: it would hold its locks against the next attempt.
            opening.callback(connection.close)
            _set_up(connection, path)
        except (sqlite3.Error, UnicodeDecodeError) as error:
            if not is_environment_error(error):  # what is there is not what its version says
                raise damaged(path, str(error)) from error
            raise explain(error, path) from error
        opening.pop_all()
        return connection


def _set_up(connection: sqlite3.Connection, path: Path) -> None:
    # Only before the first table and before WAL mode; later it changes nothing.
    connection.execute(f"pragma page_size = {PAGE_BYTES}")
    connection.execute("pragma journal_mode = wal")
    # In WAL mode NORMAL does not sync at a commit: a power cut would lose
    # acknowledged transactions.
    connection.execute("pragma synchronous = full")
    # Off by default, and a setting of the connection, not of the file.
    connection.execute("pragma foreign_keys = on")
    connection.execute("pragma cache_size = -16000")
    # 4000 pages of 1 KiB are as much as SQLite's default, 1000 pages of 4 KiB.
    connection.execute("pragma wal_autocheckpoint = 4000")
    _check(connection, path)
    connection.execute("begin immediate")
    # Under the write lock: of two processes that open an old file, the second
    # waits and finds it migrated.
    current = connection.execute("pragma user_version").fetchone()[0]
    if current > migrate.newest():
        raise StoreDamaged(
            f"{path} was written by a newer agiraph (schema {current}, this one "
            f"knows {migrate.newest()}). Upgrade agiraph; nothing was changed."
        )
    migrate.upgrade(
        connection.execute,
        current=current,
        words=WORDS,
        record=lambda version: connection.execute(f"pragma user_version = {version}"),
    )
    connection.execute("commit")
    connection.execute("pragma busy_timeout = 0")  # the loop must not wait for a lock


def _check(connection: sqlite3.Connection, path: Path) -> None:
    if path.stat().st_size > CHECKED_BYTES:
        return
    [verdict] = connection.execute("pragma quick_check(1)").fetchone()
    if verdict != "ok":
        raise damaged(path, verdict)


log: logging.Logger = logging.getLogger("agiraph.core.store")

SUFFIXES = ("", "-wal", "-shm")
_OWNER_BYTE = 1 << 62
"""The byte of the database file that the runtime locks; SQLite locks none beyond 2^31."""
_TICK_NS, _COARSE_TICK_NS = 20_000_000, 4_000_000_000
"""More than the ticks in which file systems count the times of changes: those of the kernel take 10
ms at most, and some file systems count whole seconds, or every other one."""
_WHOLE_NS = 10_000_000
"""A time that is a multiple of it may be one of a file system that counts in coarse ticks."""
_Identity = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Loss:
    """A file or folder that is no longer where it was when the database was opened."""

    name: str
    """The path of the missing file; empty if only the folder that holds all files was moved."""

    @property
    def is_folder_moved(self) -> bool:
        return not self.name


class SqliteFiles:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._real = Path(os.path.realpath(path))
        self._identities: dict[str, _Identity] = {}
        self._owner = -1
        self._said = ""
        self._settled_ns = 0
        """When the folder had last changed as all files were found in it; 0: look at them."""
        self.lost: Loss | None = None
        """Set when a commit went into an unlinked file; from then on every write is refused."""
        self.saved: Path | None = None
        """The copy of the rows, made after the file was lost."""
        try:
            flags = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
            self._folder = os.open(self._real.parent, flags)
        except OSError as error:
            raise StoreUnavailable(
                f"{path}: the folder of the database cannot be opened ({error.strerror}). "
                "Make the folder, or set AGIRAPH_DATABASE_URL to another file."
            ) from error

    def own(self) -> None:
        """Lock this file against runtimes with another home, or raise `HomeInUse`."""
        try:
            fd = os.open(self._real, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise full(self.path) from error
            raise StoreUnavailable(f"{self.path}: {error.strerror}.") from error
        try:
            # An open-file-description lock: a plain fcntl lock would be dropped as soon as SQLite,
            # in this process, closes any descriptor of the same file.
            fcntl.fcntl(fd, fcntl.F_OFD_SETLK, _range(fcntl.F_WRLCK))
        except (BlockingIOError, PermissionError) as error:
            os.close(fd)
            raise HomeInUse(
                f"Another agiraph, with another home, already works on {str(self.path)!r}. "
                "Stop it first, or set AGIRAPH_DATABASE_URL to another file."
            ) from error
        except OSError as error:  # no such locks on this file system: the home's lock remains
            log.info("%s cannot be locked: %s", self.path, error)
        self._owner = fd

    def remember(self) -> None:
        """Record the identities of the files at the paths, which SQLite has just opened."""
        found = {path: _identity(path) for path in (f"{self._real}{s}" for s in SUFFIXES)}
        self._identities = {path: known for path, known in found.items() if known}

    def disown(self) -> None:
        """Release the lock while the file stays open."""
        if self._owner >= 0:
            # Closing is not enough: a child process between fork and exec holds a copy.
            with contextlib.suppress(OSError):
                fcntl.fcntl(self._owner, fcntl.F_OFD_SETLK, _range(fcntl.F_UNLCK))

    def close(self) -> None:
        """Close the files. SQLite must have closed its own first: closing ours drops its locks."""
        self.disown()
        if self._owner >= 0:
            os.close(self._owner)
        if self._folder >= 0:
            os.close(self._folder)
        self._owner = self._folder = -1

    def forget(self) -> None:
        """Have the next `loss` look at every file again."""
        self._settled_ns = 0

    def loss(self) -> Loss | None:
        """Return the first file that is not in place, or None.

        No file is created, renamed or removed without a change of its folder: while the folder is
        as it was, this costs one `fstat` call. A folder above it that is moved is found after
        `forget`.
        """
        if self.lost is not None:
            return self.lost
        changed_ns = os.fstat(self._folder).st_ctime_ns
        if changed_ns == self._settled_ns:
            return None
        known = self._identities.items()
        if {path: _identity(path) for path, _ in known} == self._identities:
            if self._said:
                log.warning("%s is in place again; work resumes", self.path)
                self._said = ""
            # A second change in the same tick of the file system's clock would not be seen.
            tick_ns = _TICK_NS if changed_ns % _WHOLE_NS else _COARSE_TICK_NS
            if time.time_ns() - changed_ns > tick_ns:
                self._settled_ns = changed_ns
            return None
        # The same names through the folder's descriptor, which follows the folder if it is moved.
        for path, identity in known:
            if _identity(os.path.basename(path), self._folder) != identity:  # noqa: PTH119
                return Loss(path)
        return Loss("")

    def error(self, loss: Loss) -> StoreGone:
        """Return the error for every write from now on; log it the first time."""
        if loss.is_folder_moved:
            text = (
                f"The folder {str(self.path.parent)!r} was moved to {str(self._place())!r} while "
                "agiraph was running; nothing is written until it is back. Move it back, and "
                "work resumes by itself; or stop agiraph and start it with the new path."
            )
        else:
            text = (
                f"The file {loss.name!r} was removed or replaced while agiraph was running; "
                f"nothing more is written. {self._rescue_text()}"
            )
        if text != self._said:
            self._said = text
            log.error("%s", text)
        return StoreGone(text)

    def _rescue_text(self) -> str:
        if self.saved is None:
            return (
                "Its rows could not be copied to another file yet: do not stop agiraph before "
                "there is room on the disk; it retries every few seconds."
            )
        return (
            f"All that was acknowledged is in {str(self.saved)!r}: stop agiraph, move that file to "
            f"{str(self.path)!r}, remove its -wal and -shm if they are there, and start agiraph."
        )

    def rescue(self, connection: sqlite3.Connection) -> None:
        """Copy all rows to a new file, once. No transaction may be open on the connection."""
        if self.saved is not None:
            return
        # The temporary folder second: a reboot may empty it.
        for folder in (self._place(), Path(tempfile.gettempdir())):
            try:
                self.saved = self._copy(connection, folder)
                return
            except (OSError, sqlite3.Error) as error:
                log.error("the rows of %s cannot be copied to %s: %s", self.path, folder, error)

    def _copy(self, connection: sqlite3.Connection, folder: Path) -> Path:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        at = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
        # A new name for each rescue: an earlier copy must not be overwritten.
        fd, name = tempfile.mkstemp(prefix=f"{self._real.name}.rescued-{at}-", dir=folder)
        os.close(fd)
        target = Path(name)
        try:
            with contextlib.closing(sqlite3.connect(target)) as copy:
                # The person is told to move this file, so it must survive a power cut.
                copy.execute("pragma synchronous = full")
                connection.backup(copy)
        except BaseException:
            target.unlink(missing_ok=True)
            raise
        return target

    def _place(self) -> Path:
        """Return the current path of the database's folder; its old path if it was removed."""
        with contextlib.suppress(OSError):
            if os.fstat(self._folder).st_nlink > 0:
                return Path(f"/proc/self/fd/{self._folder}").readlink()
        return self._real.parent


def _range(kind: int) -> bytes:
    return struct.pack("hhqqi4x", kind, os.SEEK_SET, _OWNER_BYTE, 1, 0)


def _identity(path: str, folder: int | None = None) -> _Identity | None:
    try:
        found = os.stat(path, dir_fd=folder)
    except OSError:
        return None
    return found.st_dev, found.st_ino
