"""Openers: two ways to open a path beneath a folder's handle, neither of which follows a link."""

import ctypes
import errno
import os
import stat
import sys
from collections.abc import Callable, Sequence
from functools import cache, lru_cache

from agiraph.domain.errors import OutOfScope

Opener = Callable[[int, Sequence[str], int], int]
"""Takes a folder's handle, the names on the way down and the flags; gives a new handle."""

PARTIAL = ".agiraph-part-"
"""How the names of files begin that are not whole yet: never listed, never opened by name."""

FOLDER = os.O_RDONLY | os.O_DIRECTORY

_LONGEST_NAME = 255
_LONGEST_PATH = 4095
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
    """The names in a relative path, or `OutOfScope`; doubled slashes and `.` say nothing."""
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
    """One `openat2`: the kernel itself refuses links and ways out."""
    path = os.fsencode("/".join(names) or ".")
    how = _OpenHow(flags | os.O_CLOEXEC, 0, _BENEATH_WITHOUT_LINKS)
    while True:
        fd = _syscall(_OPENAT2, folder, path, ctypes.byref(how), ctypes.sizeof(how))
        if fd >= 0:
            return fd
        match ctypes.get_errno():
            case errno.EINTR:
                continue
            case errno.EAGAIN:  # the tree moved under the kernel's eyes
                return by_walk(folder, names, flags)
            case number:
                raise OSError(number, os.strerror(number), os.fsdecode(path))


def by_walk(folder: int, names: Sequence[str], flags: int) -> int:
    """Name by name, where the kernel lacks `openat2` or a sandbox forbids it."""
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
    """Open one name in a folder, never what a link of that name points to."""
    try:
        return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    except NotADirectoryError:
        # Asked for a folder, the kernel calls a link "not a directory"; openat2 calls it a link.
        if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name) from None
        raise


@cache
def best_opener() -> Opener:
    """The kernel's way if it works here, asked once."""
    if not sys.platform.startswith("linux"):
        return by_walk
    here = os.open(".", FOLDER)
    try:
        os.close(by_kernel(here, (), FOLDER))
    except OSError:
        return by_walk
    finally:
        os.close(here)
    return by_kernel
