"""Landlock: restricts a process to listed paths where the kernel allows no namespaces.

It needs no privilege. It hides no names: a path outside gives "permission denied". Files, TCP,
abstract sockets and signals are closed here, all else by the seccomp filter. The supervisor loads
this file by its path, without the package.
"""

# ruff: noqa: PTH112, PTH114 - pathlib takes too long to import

import os
import struct

TYPE_CHECKING = False  # typing takes long to import
if TYPE_CHECKING or __package__:
    from agiraph.home import kernel
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
    for source, _, is_writable in spec["mounts"]:
        if os.path.islink(source):
            # An earlier command of this node may have put it there, to get at another folder.
            if is_writable:
                raise OSError(f"{source} is a symbolic link")
            continue
        all_of_it = files & ~(MAKE_CHAR | MAKE_BLOCK)
        allow(rules, source, all_of_it if is_writable else EXECUTE | READ_FILE | READ_DIR)
    kernel.refuse_new_privileges()
    kernel.call(RESTRICT_SELF, "landlock", rules, 0)
    os.close(rules)


def allow(rules: int, path: str, access: int) -> None:
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # there is no such path on this machine
    if not os.path.isdir(path):
        access &= OF_FILES
    rule = struct.pack("=Qi", access, opened)
    kernel.call(ADD_RULE, f"landlock rule for {path}", rules, PATH_BENEATH, rule, 0)
    os.close(opened)
