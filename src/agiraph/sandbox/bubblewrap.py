"""Bubblewrap: the arguments by which `bwrap` confines a command.

The supervisor has made the pid and network namespaces already, where the kernel allows them: so the
gate's listener and the limit of processes are the same as with our own namespaces.
"""

import os
import shutil
from typing import Any

FILTER = 9
"""The descriptor from which it reads the seccomp filter."""
FLEETING = ("/tmp", "/run", "/var/tmp", "/dev/shm")


def is_installed() -> bool:
    return shutil.which("bwrap") is not None


def arguments(spec: dict[str, Any]) -> list[str]:
    """Return the whole command line up to the command itself. Later mounts lie over earlier ones.

    Raise OSError if a writable path is a symbolic link: an earlier command of this node may have
    put it there, to have another folder mounted.
    """
    made = ["bwrap", "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts"]
    made += ["--unshare-cgroup-try", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    made += ["--hostname", "sandbox"]
    system: list[str] = [*spec["system"], *spec["readable"]]
    around = [*system, *FLEETING]
    # What lies in a folder of the memory is bound once that folder is mounted.
    in_memory = tuple(f"{folder}/" for folder in FLEETING)
    for path in [path for path in system if not path.startswith(in_memory)]:
        made += _reading(path)
    for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        if os.path.islink(f"/{name}"):  # noqa: PTH114 - as in root_folder
            made += ["--symlink", os.readlink(f"/{name}"), f"/{name}"]  # noqa: PTH115
    made += ["--proc", "/proc", "--dev", "/dev"]
    if os.geteuid() == 0:  # root may write the kernel's settings without any capability
        made += ["--ro-bind", "/proc/sys", "/proc/sys"]
    for path in FLEETING:
        made += ["--size", str(spec["tmp_mib"] << 20), "--perms", "1777", "--tmpfs", path]
    for path in [path for path in system if path.startswith(in_memory)]:
        made += _reading(path)
    covered = [path for path in spec["masked"] if path.startswith(tuple(f"{f}/" for f in around))]
    folders = [path for path in covered if os.path.isdir(path)]  # noqa: PTH112
    for path in covered:
        made += ["--tmpfs", path] if path in folders else _covering(path)
    made += _binding(spec)
    for path in spec["hidden"]:
        made += _covering(path)
    for path, target in spec["links"].items():
        made += ["--symlink", target, path]
    for path in (*folders, "/dev", "/"):
        made += ["--remount-ro", path]
    made += ["--seccomp", str(FILTER)]
    return [*made, "--"]


def _binding(spec: dict[str, Any]) -> list[str]:
    """Return the mounts of the spec, outer ones first. Without one that is writable or held in its
    place the command must not run."""
    mounts = [
        (source, target, is_writable, is_writable) for source, target, is_writable in spec["mounts"]
    ]
    mounts += [(path, path, is_writable, True) for path, is_writable in spec["held"]]
    made: list[str] = []
    for source, target, is_writable, is_needed in sorted(mounts, key=lambda m: m[1].count("/")):
        if os.path.realpath(source) != source:
            if is_needed:
                raise OSError(f"{source} is a symbolic link")
            continue
        if is_needed or os.path.exists(source):  # noqa: PTH110
            made += ["--bind" if is_writable else "--ro-bind", source, target]
    return made


def _reading(path: str) -> list[str]:
    return ["--ro-bind", os.path.realpath(path), path] if os.path.exists(path) else []  # noqa: PTH110


def _covering(path: str) -> list[str]:
    if os.path.islink(path) or not os.path.lexists(path):  # noqa: PTH114
        return []
    if os.path.isdir(path):  # noqa: PTH112
        return ["--tmpfs", path, "--remount-ro", path]
    return ["--ro-bind", "/dev/null", path]
