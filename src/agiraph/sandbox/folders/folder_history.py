"""Folder history: keeps copies of what a given folder held, and tells what was changed in it.

A command may change any file of a folder that its team may change, so the folder is scanned before
and after each command. A scan looks at every file's inode and copies the files that changed since
the last one: what a command overwrites was copied before. The copies are named by their hash and
lie in the team's folder, where commands cannot reach them.
"""

import ctypes
import fcntl
import hashlib
import logging
import os
import secrets
import shutil
import stat
from collections.abc import Collection, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

import orjson

from agiraph.core.domain.agents import GivenFolder
from agiraph.core.domain.errors import NotFound, Refused
from agiraph.core.home.safe_folder import FOLDER, PARTIAL, open_real_folder
from agiraph.sandbox.folders import git_guard
from agiraph.sandbox.folders.git_guard import Guard

log: logging.Logger = logging.getLogger("agiraph.commands")

FILE_BYTES = 32 * 2**20
"""Larger files are not copied; that they changed is still noticed."""
SCAN_BYTES = 2**30
"""Bytes that one scan copies at most."""
MOST_FILES = 50_000
FREE_BYTES = 2**30
"""No copies are made if the disk would have less left."""
REGENERATED = frozenset(
    {"node_modules", "__pycache__", ".venv", "venv", ".tox", ".mypy_cache", ".pytest_cache",
     ".ruff_cache", ".cache", ".gradle"}
)  # fmt: skip
"""Folders that tools make again: they are neither scanned nor copied."""
_GIT_STORAGE = frozenset({"objects", "lfs"})
"""Folders in .git whose files git itself never changes."""

TOO_MANY = (
    f"folders/{{name}} holds more than {MOST_FILES:,} files, too many to keep copies of. The human "
    "can give a smaller folder, or this one to read only."
)

Version = str
"""What a path held: `file <mode> <hash>`, `link <target>`, or `uncopied <mode> <size>`."""


class Entry(NamedTuple):
    """What a scan knows of one path."""

    stamp: tuple[int, int, int, int]
    """Size, inode, mode and time of the last change of the inode, which no program can set back."""
    version: Version


class Change(NamedTuple):
    """A path that differs between two scans; None: there was nothing, or is nothing now."""

    path: str
    before: Version | None
    after: Version | None


Index = dict[str, Entry]


class FolderHistory:
    """The kept copies of earlier file versions, and their index, of one folder that a person gave
    to one team."""

    def __init__(self, team: Path, given: GivenFolder) -> None:
        self._given = given
        self._copies = team / "history" / "copies"
        self._index_path = team / "history" / f"{given.name}.json"
        self._lock_path = team / "history" / f"{given.name}.lock"
        self._frozen_path = team / "history" / f"{given.name}.frozen"
        self.left_out: list[str] = []
        """Folders that the last scan did not look into."""

    @contextmanager
    def _locked(self) -> Generator[None, None, None]:
        """Hold the lock of this folder's index against other threads and processes."""
        self._copies.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._lock_path.open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def scan(self) -> list[Change]:
        """Bring the index up to date; return what changed since the last scan.

        The first scan finds what the person has: no team has changed that.
        """
        with self._locked():
            found = self._read_index()
            after = self._scan(before := found or {})
            if found != after:
                self._write_index(after)
            return [
                Change(path, _version(before, path), _version(after, path))
                for path in sorted(before.keys() | after.keys())
                if found is not None and _version(before, path) != _version(after, path)
            ]

    def copy(self, path: str) -> Version | None:
        """Copy one file, so that it can be put back; return what it holds, None without one."""
        with self._locked(), _opened(self._given.path, path) as parent:
            if parent is None:
                return None
            with suppress(FileNotFoundError):
                name = path.rpartition("/")[2]
                found = os.stat(name, dir_fd=parent, follow_symlinks=False)
                return self._version_of(parent, name, found)
        return None

    def content(self, version: Version) -> bytes:
        """Return the content that was copied; `NotFound` if there is no copy."""
        kind, digest = version.split(" ")[0], version.rpartition(" ")[2]
        with suppress(OSError):
            data = (self._copies / digest[:2] / digest).read_bytes() if kind == "file" else None
            # A power cut may have left an empty copy.
            if data is not None and hashlib.sha256(data).hexdigest() == digest:
                return data
        raise NotFound("copy", version, known="Large files are not copied, old copies are removed.")

    def restore(self, path: str, version: Version | None) -> None:
        """Put back what a path held; None removes it. Raise `NotFound` if there is no copy."""
        data, target = b"", ""
        if version is not None and version.startswith("link "):
            target = version[len("link ") :]
        elif version is not None:
            data = self.content(version)
        name = path.rpartition("/")[2]
        with self._locked(), _opened(self._given.path, path, create=version is not None) as parent:
            if parent is None:
                return
            if version is None:
                with suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=parent)
                return
            temporary = f"{PARTIAL}{secrets.token_hex(8)}"
            if target:
                os.symlink(target, temporary, dir_fd=parent)
            else:
                _write_file(parent, temporary, data, mode=int(version.split(" ")[1], 8))
            try:
                os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
            except IsADirectoryError as error:
                os.unlink(temporary, dir_fd=parent)
                raise Refused(f"{path!r} is a folder now; move it away first.") from error

    @contextmanager
    def command(self, guard: Guard) -> Generator[None]:
        """Keep what no command can change in this folder, while one runs and if it is cut off.

        What was kept for an earlier command that still runs stays: a repository that is not in it
        was made since.
        """
        with self._locked():
            file = self._frozen_path.open("a+b")
            fcntl.flock(file, fcntl.LOCK_SH)  # ends with this process, however that dies
            if file.tell() == 0:
                paths = [guard.root, *(guard.frozen | guard.mounted)]
                file.write(b"\0".join(map(os.fsencode, paths)))
                file.flush()
                os.fsync(file.fileno())
        try:
            yield
        except BaseException:
            file.close()
            raise
        with self._locked():
            file.close()
            with self._unused_frozen() as kept:
                if kept is not None:
                    kept.truncate(0)

    @contextmanager
    def _unused_frozen(self) -> Generator[BinaryIO | None]:
        """Yield what is kept of commands; None while one runs. The caller holds the lock."""
        with self._frozen_path.open("a+b") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield None
            else:
                file.seek(0)
                yield file

    def switch_off_left(self) -> list[str]:
        """Switch off the git repositories of a command that was cut off; return their paths."""
        with self._locked(), self._unused_frozen() as kept:
            paths = [os.fsdecode(path) for path in kept.read().split(b"\0")] if kept else []
            if kept is None or not paths[0]:
                return []
            made = git_guard.switch_off(Guard(root=paths[0], frozen=frozenset(paths[1:])))
            kept.truncate(0)
            return made

    def remove_copies(self, *, used: Collection[str]) -> int:
        """Remove the copies that neither the index nor a change in `used` names; return how many.

        `used` are versions. Copies are shared by the folders of a team: pass what all of them use.
        """
        with self._locked():
            kept = {version.rpartition(" ")[2] for version in used}
            for index in self._copies.parent.glob("*.json"):
                entries = orjson.loads(index.read_bytes())
                kept |= {entry[1].rpartition(" ")[2] for entry in entries.values()}
            unused = [copy for copy in self._copies.glob("*/*") if copy.name not in kept]
            for copy in unused:
                copy.unlink(missing_ok=True)
            return len(unused)

    def _read_index(self) -> Index | None:
        """Return what the last scan found; None without one."""
        try:
            stored = orjson.loads(self._index_path.read_bytes())
        except FileNotFoundError:
            return None
        except orjson.JSONDecodeError:
            return None  # a power cut left half of it: everything is copied again
        return {path: Entry(tuple(stamp), version) for path, (stamp, version) in stored.items()}

    def _write_index(self, index: Mapping[str, Entry]) -> None:
        partial = self._index_path.with_suffix(".partial")
        partial.write_bytes(orjson.dumps({path: [*entry] for path, entry in index.items()}))
        _sync_disk(partial)  # copies and index alike, before the command may overwrite anything
        partial.replace(self._index_path)

    def _scan(self, before: Mapping[str, Entry]) -> Index:
        found: Index = {}
        copied = 0
        self.left_out = []
        root = open_real_folder(self._given.path)
        with _closed(root):
            for path, parent, name, status in _files(root, self.left_out):
                entry = self._entry(before.get(path), parent, name, status, copied=copied)
                if entry is None:
                    continue
                copied += status.st_size if entry is not before.get(path) else 0
                found[path] = entry
                if len(found) > MOST_FILES:
                    raise Refused(TOO_MANY.format(name=self._given.name))
        return found

    def _entry(
        self, known: Entry | None, parent: int, name: str, status: os.stat_result, *, copied: int
    ) -> Entry | None:
        """Return what is known of a file, after copying it if it has changed; None if it is gone.

        `copied` are the bytes that this scan has copied so far.
        """
        stamp = (status.st_size, status.st_ino, status.st_mode, status.st_ctime_ns)
        if known is not None and known.stamp == stamp:
            return known
        try:
            copies = copied + status.st_size <= SCAN_BYTES
            return Entry(stamp, self._version_of(parent, name, status, copies=copies))
        except FileNotFoundError:
            return None

    def _version_of(
        self, parent: int, name: str, status: os.stat_result, *, copies: bool = True
    ) -> Version:
        mode = f"{stat.S_IMODE(status.st_mode):o}"
        if stat.S_ISLNK(status.st_mode):
            return f"link {os.readlink(name, dir_fd=parent)}"
        if not stat.S_ISREG(status.st_mode) or status.st_size > FILE_BYTES or not copies:
            return f"uncopied {mode} {status.st_size}"
        # O_NONBLOCK: the file may have been replaced by a FIFO, whose opening would block.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            with os.fdopen(os.open(name, flags, dir_fd=parent), "rb") as file:
                data = file.read(FILE_BYTES + 1)
        except (PermissionError, OSError) as error:
            if isinstance(error, FileNotFoundError):
                raise
            return f"uncopied {mode} {status.st_size}"
        if len(data) > FILE_BYTES:
            return f"uncopied {mode} {len(data)}"
        digest = hashlib.sha256(data).hexdigest()
        copy = self._copies / digest[:2] / digest
        if not copy.exists() and not self._put_copy(copy, data):
            return f"uncopied {mode} {len(data)}"
        return f"file {mode} {digest}"

    def _put_copy(self, copy: Path, data: bytes) -> bool:
        """Write a copy; return False if the disk has too little room for it."""
        if shutil.disk_usage(self._copies).free < FREE_BYTES + len(data):
            return False
        copy.parent.mkdir(mode=0o700, exist_ok=True)
        partial = copy.with_suffix(".partial")
        partial.write_bytes(data)
        partial.replace(copy)
        return True


def switch_off_left(teams: Path) -> None:
    """Switch off the git repositories of all commands that a crash of the runtime cut off."""
    for path in teams.glob("*/history/*.frozen"):
        given = GivenFolder(name=path.stem, path="", access="rw")
        try:
            FolderHistory(path.parent.parent, given).switch_off_left()
        except OSError as error:
            log.warning("%s cannot be looked through for git repositories: %s", path.stem, error)


def is_same_content(one: Version | None, other: Version | None) -> bool:
    """Whether two versions differ at most in their mode."""
    if one is None or other is None:
        return one is other
    return one.split(" ")[::2] == other.split(" ")[::2] and one[:1] == other[:1]


def _version(index: Mapping[str, Entry], path: str) -> Version | None:
    return index[path].version if path in index else None


def _files(root: int, left_out: list[str]) -> Iterator[tuple[str, int, str, os.stat_result]]:
    """Yield path, open parent folder, name and status of each file and link below a folder.

    Folders that are not looked into are added to `left_out`. No link is followed and no other file
    system is entered. Names that are not UTF-8 are left out, since neither a row nor a model can
    name them.
    """
    device = os.fstat(root).st_dev
    folders = [""]
    while folders:
        at = folders.pop()
        for parent, name, status in _listed(root, at, device):
            path = f"{at}/{name}" if at else name
            if not stat.S_ISDIR(status.st_mode):
                yield path, parent, name, status
                continue
            (left_out if _is_left_out(path) else folders).append(path)


@contextmanager
def _closed(fd: int) -> Generator[None, None, None]:
    """Close a descriptor at the end."""
    try:
        yield
    finally:
        os.close(fd)


def _listed(root: int, path: str, device: int) -> Iterator[tuple[int, str, os.stat_result]]:
    """Yield the names in a folder that lie on this device, with the open folder and their status.

    Nothing is yielded of a folder that was removed or replaced since it was listed.
    """
    try:
        folder = _descend(root, path)
    except OSError:
        return
    with _closed(folder), os.scandir(folder) as entries:
        for entry in entries:
            status = _status(entry)
            if status is not None and status.st_dev == device and entry.name.isprintable():
                yield folder, entry.name, status


def _status(entry: os.DirEntry[str]) -> os.stat_result | None:
    try:
        return entry.stat(follow_symlinks=False)
    except OSError:
        return None


def _is_left_out(path: str) -> bool:
    *parents, name = path.split("/")
    return name in REGENERATED or (name in _GIT_STORAGE and parents[-1:] == [".git"])


def _descend(root: int, path: str, *, create: bool = False) -> int:
    """Open a folder below another one, name by name, so that no link leads out."""
    at = os.dup(root)
    for name in path.split("/") if path else ():
        with _closed(at):
            if create:
                _make_folder(at, name)
            at = os.open(name, FOLDER | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
    return at


def _make_folder(parent: int, name: str) -> None:
    with suppress(FileExistsError):
        os.mkdir(name, dir_fd=parent)


@contextmanager
def _opened(root: str, path: str, *, create: bool = False) -> Generator[int | None, None, None]:
    """Yield the open folder that a file lies in; None if there is no such folder."""
    top = open_real_folder(root)
    try:
        parent = _descend(top, path.rpartition("/")[0], create=create)
    except (FileNotFoundError, NotADirectoryError) as error:
        if create:
            raise Refused(
                f"{path!r} cannot be put back: a folder of its path is a link or a file now. Move "
                "that away first."
            ) from error
        yield None
        return
    finally:
        os.close(top)
    try:
        yield parent
    finally:
        os.close(parent)


def _write_file(parent: int, name: str, data: bytes, *, mode: int) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(name, flags, 0o600, dir_fd=parent), "wb") as file:
        os.fchmod(file.fileno(), mode & 0o777)
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


_syncfs = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)


def _sync_disk(file: Path) -> None:
    """Write everything of the file's disk out: one call instead of one for each copy."""
    if _syncfs is None:  # not Linux
        return os.sync()
    fd = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _syncfs(fd)
    finally:
        os.close(fd)
