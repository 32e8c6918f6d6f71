"""Home lock: keeps a second runtime off a home.

Two locks are taken: on the home folder itself, which cannot be removed while it has files, and on
the file `lock` in it, which contains the process id and which older versions check.
"""

import errno
import fcntl
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Self

from agiraph.core.domain.errors import HomeInUse

NAME = "lock"
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


class HomeLock:
    """The lock on a home. The kernel releases it when the process ends, however it ends."""

    def __init__(self, path: Path, folder: int, file: int) -> None:
        self._path = path
        self._folder = folder
        self._file = file

    @classmethod
    def take(cls, path: Path) -> Self:
        """Lock the home, or raise `HomeInUse`; OSError if the folder cannot be written to."""
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            # The folder first: a process that is refused leaves no lock file behind.
            _lock(folder, path)
            file = _lock_file(folder, path)
        except BaseException:
            os.close(folder)
            raise
        return cls(path, folder, file)

    def release(self) -> None:
        file, self._file = self._file, -1
        folder, self._folder = self._folder, -1
        if file < 0:
            return
        with suppress(OSError):
            # Before the unlock: afterwards the file belongs to the next process, with its id in it.
            os.ftruncate(file, 0)
        for fd in (file, folder):
            # Closing is not enough: a child process between fork and exec holds a copy.
            fcntl.flock(fd, fcntl.LOCK_UN)
            os.close(fd)

    def tampering(self) -> str:
        """Return a sentence if the folder or the lock file was moved or removed; empty if not.

        A missing lock file is created and locked again.
        """
        if self._file < 0:
            return ""
        if not _is_same(self._folder, self._path, through_links=True):
            return (
                f"The folder {str(self._path)!r} was moved, removed or replaced while agiraph "
                f"works on it (it is now {_current_path(self._folder)}). Move it back, or stop "
                "agiraph and start it with AGIRAPH_HOME set to the new path."
            )
        if _is_same(self._file, self._path / NAME):
            return ""
        said = (
            f"The lock file {str(self._path / NAME)!r} was removed or replaced while agiraph works "
            "on this home. The folder itself is still locked, so no second agiraph can start on "
            "it; leave the lock file where it is."
        )
        with suppress(HomeInUse, OSError):  # a foreign file is in its place: leave it
            made = _lock_file(self._folder, self._path)
            os.close(self._file)
            self._file = made
        return said

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def _lock(fd: int, path: Path) -> None:
    try:
        # flock and not lockf: a POSIX lock is lost as soon as the process closes any descriptor of
        # the file, as `_holder` does.
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise HomeInUse(
            f"Process {_holder(path) or '(not known yet)'} already works on {str(path)!r}. "
            "Stop it first, or set AGIRAPH_HOME to another folder."
        ) from error


def _lock_file(folder: int, path: Path) -> int:
    """Create and lock the lock file; return its descriptor."""
    while True:
        fd = os.open(NAME, _FLAGS, 0o600, dir_fd=folder)
        try:
            _lock(fd, path)
            if _is_same(fd, path / NAME):
                _write_pid(fd)
                return fd
        except BaseException:
            os.close(fd)
            raise
        # It was removed between open and flock: a lock on an unlinked file keeps nobody out.
        os.close(fd)


def _write_pid(fd: int) -> None:
    os.ftruncate(fd, 0)
    try:
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
    except OSError as error:
        if error.errno not in _NO_ROOM:  # the process id is only for people; the lock holds
            raise


def _holder(path: Path) -> str:
    """Return the process id in the lock file; empty if there is none."""
    try:
        fd = os.open(path / NAME, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return ""
        return os.pread(fd, 32, 0).decode(errors="replace").strip()
    finally:
        os.close(fd)


def _is_same(fd: int, path: Path, *, through_links: bool = False) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), path.stat(follow_symlinks=through_links))
    except OSError:
        return False


def _current_path(folder: int) -> str:
    """Return the current path of an open folder, as the kernel knows it."""
    try:
        return repr(str(Path(f"/proc/self/fd/{folder}").readlink()))
    except OSError:
        return "not known where"
