"""Safe open: opens a path relative to a directory descriptor without following any link.

A command of an agent may swap a folder for a symbolic link between a check and an open. So no path
is checked first and opened later: the kernel refuses links during the open itself.
"""

import ctypes
import errno
import os
import stat
import sys
from collections.abc import Callable, Sequence
from functools import cache, lru_cache

from agiraph.core.domain.errors import OutOfScope

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
    names = tuple(name for name in path.split("/") if name not in ("", "."))
    if ".." in names:
        raise OutOfScope(f"{path[:200]!r} goes up with '..'; name the file from its folder down.")
    if any(name.startswith(PARTIAL) for name in names):
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
