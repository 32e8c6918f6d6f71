"""Landlock: restricts a process to listed paths where the kernel allows no namespaces.

It needs no privilege. It hides no names: a path outside gives "permission denied". Files, TCP,
abstract sockets and signals are closed here, all else by the seccomp filter. The supervisor loads
this file by its path, without the package.
"""

# ruff: noqa: PTH114 - pathlib takes too long to import

import os
import struct

TYPE_CHECKING = False  # typing takes long to import
if TYPE_CHECKING or __package__:
    from agiraph.sandbox.inside import kernel
else:
    import kernel
if TYPE_CHECKING:
    from typing import Any

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
VERSION = 0x1
PATH_BENEATH = 1
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
MAKE_CHAR, MAKE_BLOCK = 1 << 6, 1 << 11
TRUNCATE, IOCTL_DEV = 1 << 14, 1 << 15
OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")
SYSTEM = (
    "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/proc/self", "/proc/cpuinfo", "/proc/meminfo",
    "/proc/stat", "/proc/filesystems",
)  # fmt: skip
LEAST_VERSION = 6
"""The first version that also closes abstract sockets and signals."""


def version() -> int:
    """Return the kernel's version of Landlock; 0 if it has none."""
    try:
        return kernel.call(CREATE_RULESET, "landlock", None, 0, VERSION)
    except OSError:
        return 0


def restrict(spec: "dict[str, Any]") -> None:
    """Restrict this process and its children to the paths of the spec, for good."""
    found = version()
    if found < LEAST_VERSION:
        raise OSError(f"the kernel's Landlock has version {found}, {LEAST_VERSION} is needed")
    files = (1 << 16) - 1
    network = 0 if spec["network"] == "open" else 3  # bind and connect TCP
    attributes = struct.pack("QQQ", files, network, 3)  # 3: abstract sockets and signals
    rules = kernel.call(CREATE_RULESET, "landlock", attributes, len(attributes), 0)
    for path in (*SYSTEM, *spec["system"], *spec["readable"]):
        allow(rules, path, EXECUTE | READ_FILE | READ_DIR)
    for path in DEVICES:
        allow(rules, path, WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV)
    frozen = [path for path, is_writable in spec["held"] if not is_writable]
    for source, _, is_writable in spec["mounts"]:
        if os.path.islink(source):
            # An earlier command of this node may have put it there, to get at another folder.
            if is_writable:
                raise OSError(f"{source} is a symbolic link")
            continue
        allow(rules, source, EXECUTE | READ_FILE | READ_DIR)
        for path in writable_parts(source, frozen) if is_writable else ():
            allow(rules, path, files & ~(MAKE_CHAR | MAKE_BLOCK), follows=False)
    kernel.refuse_new_privileges()
    kernel.call(RESTRICT_SELF, "landlock", rules, 0)
    os.close(rules)


def writable_parts(folder: str, frozen: list[str]) -> list[str]:
    """Return what of a folder can be allowed to be written so that nothing frozen is: the folder,
    or else its entries beside those that hold something frozen. In the folder itself nothing can be
    made or removed then, since a rule holds for all that lies below."""
    if folder in frozen:
        return []
    if not any(path.startswith(f"{folder}/") for path in frozen):
        return [folder]
    entries = [f"{folder}/{name}" for name in os.listdir(folder)]  # noqa: PTH208
    return [part for entry in entries for part in writable_parts(entry, frozen)]


def allow(rules: int, path: str, access: int, *, follows: bool = True) -> None:
    """Allow this access to a path and all below it. Without `follows` no link leads to another."""
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC) if follows else kernel.open_place(path)
    except OSError:
        return  # there is no such path on this machine
    kind = os.fstat(opened).st_mode & 0o170000
    if kind == 0o120000:
        return os.close(opened)
    if kind != 0o040000:
        access &= OF_FILES
    rule = struct.pack("=Qi", access, opened)
    kernel.call(ADD_RULE, f"landlock rule for {path}", rules, PATH_BENEATH, rule, 0)
    os.close(opened)
