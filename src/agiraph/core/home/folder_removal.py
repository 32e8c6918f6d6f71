"""Folder removal: deletes a folder with all it contains, also what a command made read-only."""

import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path


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
