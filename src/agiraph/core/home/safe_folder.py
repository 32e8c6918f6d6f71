"""Safe folder: opens everything below a directory descriptor, so that no path leads outside.

A command of an agent may swap a folder for a symbolic link between a check and an open. So no path
is checked first and opened later: the kernel refuses links during the open itself.
"""

import ctypes
import errno
import os
import secrets
import shutil
import stat
import sys
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache, lru_cache
from io import BufferedReader, BufferedWriter
from pathlib import Path
from typing import Literal, NoReturn, Self

from agiraph.core.domain.errors import NotFound, OutOfScope, Refused, StoreFull
from agiraph.core.domain.value import dataclass
from agiraph.faultpoints import fault

Opener = Callable[[int, Sequence[str], int], int]
"""Opens the path `names` below a folder's descriptor with these flags; returns a descriptor."""

PARTIAL = ".agiraph-part-"
"""The prefix of temporary files: they are never listed and never opened by name."""

FOLDER = os.O_RDONLY | os.O_DIRECTORY

_LONGEST_NAME = 255
_LONGEST_PATH = 4095
# The system call has this number on every architecture. Python has no wrapper for it.
_OPENAT2 = 437
_BENEATH_WITHOUT_LINKS = 0x08 | 0x04 | 0x02  # RESOLVE_BENEATH, _NO_SYMLINKS, _NO_MAGICLINKS


class _OpenHow(ctypes.Structure):
    _fields_ = (
        ("flags", ctypes.c_uint64),
        ("mode", ctypes.c_uint64),
        ("resolve", ctypes.c_uint64),
    )


_syscall = ctypes.CDLL(None, use_errno=True).syscall
_syscall.restype = ctypes.c_long
_syscall.argtypes = (
    ctypes.c_long,
    ctypes.c_int,
    ctypes.c_char_p,
    ctypes.POINTER(_OpenHow),
    ctypes.c_size_t,
)


@lru_cache(4096)
def split(path: str) -> tuple[str, ...]:
    """Return the names in a relative path; raise `OutOfScope` for `..`, absolute or odd paths."""
    if "\0" in path:
        raise OutOfScope("A path cannot hold a NUL character; leave it out.")
    if path.startswith("/"):
        raise OutOfScope(f"{path[:200]!r} is absolute; give a path relative to your own folder.")
    names = tuple([name for name in path.split("/") if name not in ("", ".")])
    if ".." in names:
        raise OutOfScope(f"{path[:200]!r} goes up with '..'; name the file from its folder down.")
    if PARTIAL in path and any(name.startswith(PARTIAL) for name in names):
        raise OutOfScope(f"Names that begin with {PARTIAL!r} are taken; choose another name.")
    _measure(path, names)
    return names


def _measure(path: str, names: Sequence[str]) -> None:
    try:
        sizes = [len(name.encode()) for name in names]
    except UnicodeEncodeError:
        raise OutOfScope(f"{path[:200]!r} is not valid text; use plain characters.") from None
    if sizes and max(sizes) > _LONGEST_NAME:
        raise OutOfScope(f"A name in {path[:60]!r}… is longer than {_LONGEST_NAME} bytes.")
    if sum(sizes) + len(sizes) > _LONGEST_PATH:
        raise OutOfScope(f"The path {path[:60]!r}… is longer than {_LONGEST_PATH} bytes.")


def by_kernel(folder: int, names: Sequence[str], flags: int) -> int:
    """Open with one `openat2` call: the kernel refuses links and paths that lead outside."""
    path = os.fsencode("/".join(names) or ".")
    how = _OpenHow(flags | os.O_CLOEXEC, 0, _BENEATH_WITHOUT_LINKS)
    while True:
        fd = _syscall(_OPENAT2, folder, path, ctypes.byref(how), ctypes.sizeof(how))
        if fd >= 0:
            return fd
        match ctypes.get_errno():
            case errno.EINTR:
                continue
            case errno.EAGAIN:  # a rename during the call; walking name by name needs no retry
                return by_walk(folder, names, flags)
            case number:
                raise OSError(number, os.strerror(number), os.fsdecode(path))


def by_walk(folder: int, names: Sequence[str], flags: int) -> int:
    """Open name by name, where the kernel lacks `openat2` or a sandbox forbids it."""
    # Safe against races too: a descriptor stays on its folder when the folder is renamed, so a link
    # can only be swapped in at the next name, and there O_NOFOLLOW refuses it.
    *parents, last = names or (".",)
    at = folder
    try:
        for name in parents:
            above, at = at, step(at, name, FOLDER)
            if above != folder:
                os.close(above)
        return step(at, last, flags)
    finally:
        if at != folder:
            os.close(at)


def step(folder: int, name: str, flags: int) -> int:
    """Open one name in a folder; raise ELOOP if it is a link."""
    try:
        return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    except NotADirectoryError:
        # With O_DIRECTORY the kernel reports ENOTDIR for a link; openat2 reports ELOOP.
        if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name) from None
        raise


def open_real_folder(path: str) -> int:
    """Open a folder by an absolute path that was resolved before; raise ELOOP if a name on the way
    is a link by now."""
    top = os.open("/", FOLDER | os.O_CLOEXEC)
    try:
        return best_opener()(top, [name for name in path.split("/") if name], FOLDER)
    finally:
        os.close(top)


@cache
def best_opener() -> Opener:
    """Return `by_kernel` if openat2 works here, else `by_walk`; tested once."""
    if not sys.platform.startswith("linux"):
        return by_walk
    here = os.open(".", FOLDER)
    try:
        os.close(by_kernel(here, (), FOLDER))
    # ENOSYS before Linux 5.6; EPERM from a container whose seccomp filter does not know the call.
    except OSError:
        return by_walk
    finally:
        os.close(here)
    return by_kernel


def remove_folder(parent: int, name: str) -> None:
    """Remove a folder of an open directory, with its content."""
    try:
        # With a descriptor rmtree follows no link, even if a command swaps a folder for one
        # meanwhile.
        shutil.rmtree(name, dir_fd=parent)
    except PermissionError:
        _let_owner_in(parent, name)
        for _, folders, _, at in os.fwalk(name, dir_fd=parent):
            for folder in folders:  # before the walk opens it
                _let_owner_in(at, folder)
        shutil.rmtree(name, dir_fd=parent)


def _let_owner_in(parent: int, name: str) -> None:
    """Give the owner all rights to a folder. A link is left alone, and so is what it leads to."""
    with suppress(OSError):
        # O_PATH opens a folder that its owner may not read; only a path leads chmod to it.
        fd = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
        try:
            mode = stat.S_IMODE(os.fstat(fd).st_mode)
            Path(f"/proc/self/fd/{fd}").chmod(mode | stat.S_IRWXU)
        finally:
            os.close(fd)


Kind = Literal["file", "folder", "other"]

MOST_ENTRIES = 10_000
"""The most entries of one listing, or of one walk over a tree."""

_ENTRIES_PER_FILE = 10
"""A walk stops after this many entries for each file that it may return."""

_LONGEST_APPENDED = 64 * 1024 * 1024
_LATEST = datetime.max.replace(tzinfo=UTC).timestamp() - 1

_appending = threading.Lock()

_REFUSALS: dict[int, tuple[type[Refused], str]] = {
    errno.ENOTDIR: (Refused, "{0!r} uses a file as a folder; list_files shows what there is."),
    errno.EISDIR: (Refused, "{0!r} is a folder; name a file in it, or use list_files."),
    errno.ELOOP: (OutOfScope, "{0!r} leads through a symbolic link; name the file itself."),
    errno.EXDEV: (OutOfScope, "{0!r} leads out of its folder; name a file inside."),
    errno.ENAMETOOLONG: (OutOfScope, "{0!r} is too long; use shorter names."),
    errno.ENXIO: (Refused, "{0!r} is not a regular file; only regular files can be opened."),
    errno.EACCES: (Refused, "{0!r} may not be opened; its permissions forbid it."),
    errno.EPERM: (Refused, "{0!r} may not be changed; its permissions forbid it."),
    errno.EROFS: (Refused, "{0!r} is on a read-only disk."),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    name: str
    kind: Kind
    size: int
    modified: datetime


class Folder:
    """An open directory. All paths are relative to it and follow no symbolic link; close it."""

    __slots__ = ("_fd", "_opener", "is_private", "name")

    def __init__(self, fd: int, *, name: str, opener: Opener) -> None:
        self._fd = fd
        self._opener = opener
        self.name: str = name
        """Its name in error messages; empty for the folder from which all paths start."""
        self.is_private: bool = True
        """Whether what is written in it is for its owner only; else files keep their mode."""

    @classmethod
    def open(cls, path: Path, *, opener: Opener | None = None) -> Self:
        """Open a folder by a trusted path: from configuration, never from a model."""
        fd = os.open(path, FOLDER)
        return cls(fd, name="", opener=opener or best_opener())

    def close(self) -> None:
        # -1 first: a second close, as by `__del__`, would close a descriptor that is somebody
        # else's by now.
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def sub(self, rel: str, *, create: bool = False) -> "Folder":
        names = split(rel)
        try:
            fd = self._descend(names, create=create)
        except OSError as error:
            _explain(self, rel, error, "folder")
        name = "/".join((self.name, *names) if self.name else names)
        return Folder(fd, name=name, opener=self._opener)

    def exists(self, rel: str) -> bool:
        """Return whether there is a regular file or folder at this path; links do not count."""
        found = self.find(rel)
        return not split(rel) or (found is not None and found.kind != "other")

    def find(self, rel: str) -> Entry | None:
        """Return what is known of a file or folder; None if there is none, or a link instead."""
        names = split(rel)
        if not names:
            return None
        try:
            with self._parent(names) as parent:
                return _entry(names[-1], os.stat(names[-1], dir_fd=parent, follow_symlinks=False))
        except OSError as error:
            with suppress(Refused):
                _explain(self, rel, error)
        return None

    def open_file(self, rel: str) -> BufferedReader:
        """Open a regular file for reading."""
        return os.fdopen(self._open(rel)[0], "rb")

    def _open(self, rel: str) -> tuple[int, int]:
        # O_NONBLOCK: opening a FIFO would block the runtime.
        names = split(rel)
        try:
            fd = self._opener(self._fd, names, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
            # Checked on the descriptor: a command may have put something else at the path since.
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode):
                os.close(fd)
                raise OSError(errno.EISDIR if stat.S_ISDIR(found.st_mode) else errno.ENXIO, "")
        except OSError as error:
            _explain(self, rel, error)
        return fd, found.st_size

    def read(self, rel: str, *, offset: int = 0, limit: int) -> bytes:
        """Return at most `limit` bytes from `offset` on."""
        fd, size = self._open(rel)
        try:
            start = min(max(offset, 0), size)
            return os.pread(fd, max(min(limit, size - start), 0), start)
        finally:
            os.close(fd)

    def write(self, rel: str, data: bytes, *, synced: bool = True) -> None:
        """Replace a file atomically, creating its folders: a crash leaves old or new content.

        Without `synced` a power cut may lose it: only for content that the rows can restore.
        """
        names = split(rel)
        fault("fx:before:write")
        try:
            with self._parent(names, create=True) as parent:
                _replace(parent, names[-1], data, synced=synced, private=self.is_private)
        except OSError as error:
            _explain(self, rel, error)
        if synced:
            self.sync_path("/".join(names[:-1]))
        fault("fx:after:write")

    def write_if_empty(self, rel: str, data: bytes) -> bool:
        """Write a small file unless it has content; return whether it was written.

        It is written in place, without a rename: a crash leaves it empty, and the next call writes
        it again.
        """
        names = split(rel)
        try:
            with self._parent(names, create=True) as parent:
                return _begin(parent, names[-1], data)
        except OSError as error:
            _explain(self, rel, error)

    def update(self, rel: str, data: bytes) -> bool:
        """Write a file unless it has exactly this content; return whether it was written.

        It does not sync, so a power cut may lose the write: use it only for content that can be
        written again from the database.
        """
        if self.write_if_empty(rel, data):
            return True
        if self.read(rel, limit=len(data) + 1) == data:
            return False
        self.write(rel, data, synced=False)
        return True

    def make_folders(self, *names: str) -> bool:
        """Create the folders of these names that are missing; return whether one was created."""
        try:
            return any([_make_folder(self._fd, name) for name in names])
        except OSError as error:
            _explain(self, "", error)

    def append(self, rel: str, data: bytes) -> None:
        """Append by replacing the whole file: a crash leaves no half of an entry.

        The lock orders the threads of this process only.
        """
        with _appending:
            old = self.read(rel, limit=_LONGEST_APPENDED) if self.exists(rel) else b""
            if len(old) + len(data) > _LONGEST_APPENDED:
                raise Refused(f"{rel!r} is too large to append to; begin a new file.")
            self.write(rel, old + data)

    def create_file(self, rel: str, *, mode: int = 0o600) -> BufferedWriter:
        """Create a file for writing, not crash-safe: for trees that are renamed when complete."""
        names = split(rel)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            with self._parent(names, create=True) as parent:
                fd = os.open(names[-1], flags, mode, dir_fd=parent)
            os.fchmod(fd, mode)
        except OSError as error:
            _explain(self, rel, error)
        return os.fdopen(fd, "wb")

    def rename(self, old: str, new: str) -> None:
        before, after = split(old), split(new)
        try:
            with self._parent(before) as source, self._parent(after) as target:
                os.rename(before[-1], after[-1], src_dir_fd=source, dst_dir_fd=target)
                # The target first: a power cut between the two may leave two names, never none.
                os.fsync(target)
                if before[:-1] != after[:-1]:
                    os.fsync(source)
        except OSError as error:
            _explain(self, old, error)

    def remove(self, rel: str) -> None:
        """Remove a file or link, or a folder with its content."""
        names = split(rel)
        try:
            with self._parent(names) as parent:
                mode = os.stat(names[-1], dir_fd=parent, follow_symlinks=False).st_mode
                if stat.S_ISDIR(mode):
                    remove_folder(parent, names[-1])
                else:
                    os.unlink(names[-1], dir_fd=parent)
                os.fsync(parent)
        except OSError as error:
            _explain(self, rel, error)

    def sync(self, rel: str = "") -> None:
        """Make the names in a folder durable: fsync of a file does not cover its name."""
        with self.sub(rel) as folder:
            os.fsync(folder._fd)

    def sync_path(self, rel: str, *, above: int | None = None) -> None:
        """Make durable that a folder exists: sync it and every folder above it, or so many."""
        names = split(rel)
        last = 0 if above is None else len(names) - above
        for depth in range(len(names), last - 1, -1):
            self.sync("/".join(names[:depth]))

    def remove_partial_files(self) -> None:
        """Remove temporary files that a crash left. Nobody may be writing to the tree."""
        with suppress(Refused):  # a tree that is too large is left as it is
            for entry in self.tree(MOST_ENTRIES * _ENTRIES_PER_FILE, partial=True):
                *parents, name = entry.name.split("/")
                with self.sub("/".join(parents)) as folder, suppress(OSError):
                    os.unlink(name, dir_fd=folder._fd)

    def walk(self, *, limit: int = MOST_ENTRIES) -> list[Entry]:
        """Return all regular files below, sorted by path, no links; refuse more than `limit`."""
        files: list[Entry] = []
        for entry in self.tree(limit * _ENTRIES_PER_FILE):
            if entry.kind == "file":
                files.append(entry)
            if len(files) > limit:
                raise Refused(f"There are more than {limit:,} files in {self.called}.")
        return sorted(files, key=lambda entry: entry.name)

    def list(self, rel: str = "", *, limit: int = MOST_ENTRIES) -> list[Entry]:
        """Return the entries of a folder, sorted by name; refuse more than `limit`."""
        found = [e for e in self._scan(rel, limit) if not e.name.startswith(PARTIAL)]
        return sorted(found, key=lambda entry: entry.name)

    def tree(self, limit: int, *, partial: bool = False) -> Iterator[Entry]:
        """Yield all entries below this folder, depth first, without temporary files; with
        `partial`, only temporary files, which a crash may have left. Raises `Refused` if there are
        more than `limit` entries."""
        folders, seen = [""], 0
        while folders:
            at = folders.pop()
            for entry in self._scan(at, limit - seen):
                seen += 1
                is_partial = entry.name.startswith(PARTIAL)
                found = replace(entry, name=f"{at}/{entry.name}" if at else entry.name)
                if found.kind == "folder" and not is_partial:
                    folders.append(found.name)
                if is_partial == partial:
                    yield found

    def _scan(self, rel: str, limit: int) -> Iterator[Entry]:
        with self.sub(rel) as folder:
            try:
                yield from folder._entries(limit)
            except OSError as error:
                _explain(self, rel, error, "folder")

    def _entries(self, limit: int) -> Iterator[Entry]:
        with os.scandir(self._fd) as found:
            for count, item in enumerate(found, start=1):
                if count > limit:
                    raise Refused(f"There are too many files in {self.called} to list.")
                with suppress(FileNotFoundError):
                    yield _entry(item.name, item.stat(follow_symlinks=False))

    def _descend(self, names: tuple[str, ...], *, create: bool) -> int:
        try:
            return self._opener(self._fd, names, FOLDER)
        except FileNotFoundError:
            if not create:
                raise
        # Name by name, because openat2 creates no folders; `step` refuses links on the way.
        at = os.dup(self._fd)
        try:
            for name in names:
                _make_folder(at, name, mode=0o700 if self.is_private else 0o755)
                above, at = at, step(at, name, FOLDER)
                os.close(above)
        except BaseException:
            os.close(at)
            raise
        return at

    @contextmanager
    def _parent(
        self, names: tuple[str, ...], *, create: bool = False
    ) -> Generator[int, None, None]:
        """Yield the descriptor of the folder that contains the last of these names."""
        if not names:
            raise OSError(errno.EISDIR, "")
        if len(names) == 1:
            yield self._fd
            return
        fd = self._descend(names[:-1], create=create)
        try:
            yield fd
        finally:
            os.close(fd)

    @property
    def called(self) -> str:
        """Its name as error messages have it."""
        return repr(self.name) if self.name else "this folder"


def _explain(folder: Folder, rel: str, error: OSError, kind: str = "file") -> NoReturn:
    """Raise an error of ours for an OSError at this path; its message says what to do instead."""
    if isinstance(error, FileNotFoundError):
        where = f"It was looked for in {folder.called}; list_files shows what there is."
        raise NotFound(kind, rel, known=where) from error
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        raise StoreFull(f"There is no room on the disk for {rel!r}.") from error
    if error.errno in _REFUSALS:
        refusal, sentence = _REFUSALS[error.errno]
        raise refusal(sentence.format(rel)) from error
    raise error


def _make_folder(parent: int, name: str, *, mode: int = 0o700) -> bool:
    """Create a folder unless the name exists; return whether it was created."""
    try:
        os.mkdir(name, mode, dir_fd=parent)
    except FileExistsError:
        return False
    return True


def _begin(parent: int, name: str, data: bytes) -> bool:
    """Write a file unless it has content; return whether it was written."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        fd = os.open(name, flags, 0o600, dir_fd=parent)
    except OSError as error:
        if error.errno == errno.ELOOP:  # a link counts as missing, and is replaced
            _replace(parent, name, data, synced=False)
        elif error.errno != errno.EISDIR:
            raise
        return error.errno == errno.ELOOP
    try:
        found = os.fstat(fd)
        if found.st_size or not stat.S_ISREG(found.st_mode):
            return False
        fault("fx:before:begin")
        os.write(fd, data)
    finally:
        os.close(fd)
    fault("fx:after:begin")
    return True


def _replace(parent: int, name: str, data: bytes, *, synced: bool, private: bool = True) -> None:
    """Write a temporary file and rename it over `name`. The caller syncs the folder."""
    temporary = f"{PARTIAL}{secrets.token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(temporary, flags, 0o600, dir_fd=parent), "wb") as file:
            os.fchmod(file.fileno(), _mode(parent, name, private=private))
            file.write(data)
            file.flush()
            if synced:
                # Before the rename: else a power cut could leave the new name on an empty file.
                os.fsync(file.fileno())
        fault("fx:in:write")
        os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=parent)
        raise


def _mode(parent: int, name: str, *, private: bool) -> int:
    """Return the mode of a replacement: private, and executable if the old file was; or that of the
    old file, and the usual one of a new file."""
    with suppress(FileNotFoundError):
        old = os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode
        if stat.S_ISREG(old) and not private:
            return stat.S_IMODE(old) & 0o777
        if stat.S_ISREG(old) and old & stat.S_IXUSR:
            return 0o700
    return 0o600 if private else 0o644


def _entry(raw: str, found: os.stat_result) -> Entry:
    name = os.fsencode(raw).decode(errors="replace")
    kind: Kind = "other"
    if name == raw:  # a name that is not UTF-8 cannot be requested, so it is not offered
        kind = "file" if stat.S_ISREG(found.st_mode) else kind
        kind = "folder" if stat.S_ISDIR(found.st_mode) else kind
    # A command may set any mtime, even one outside the range of datetime.
    modified = datetime.fromtimestamp(min(max(found.st_mtime, 0), _LATEST), UTC)
    return Entry(name=name, kind=kind, size=found.st_size, modified=modified)
