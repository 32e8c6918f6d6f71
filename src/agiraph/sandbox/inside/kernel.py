"""Kernel: calls for namespaces, mounts and privileges that Python's library lacks.

The supervisor loads this file by its path, without the package, and starts for every command: keep
imports few and fast.
"""

# ruff: noqa: PTH123 - pathlib takes too long to import

import ctypes
import os

CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS = 0x00020000, 0x02000000, 0x04000000
CLONE_NEWIPC, CLONE_NEWUSER = 0x08000000, 0x10000000
CLONE_NEWPID, CLONE_NEWNET = 0x20000000, 0x40000000
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REC, MS_PRIVATE = 0x2, 0x4, 0x8, 0x4000, 0x40000
READ_ONLY, NO_SETUID, NO_DEVICES, ID_MAPPED = 0x1, 0x2, 0x4, 0x100000
"""Attributes of a mount."""
OPEN_TREE, MOVE_MOUNT, MOUNT_SETATTR = 428, 429, 442
PIVOT_ROOT = {"aarch64": 41, "x86_64": 155}
AT_FDCWD, AT_RECURSIVE, AT_EMPTY_PATH, CLONE_TREE = -100, 0x8000, 0x1000, 0x1
MNT_DETACH = 2
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_CAPBSET_DROP = 1, 4, 22, 24
PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT = 36, 38, 47
SECCOMP_MODE_FILTER, CAP_AMBIENT_CLEAR_ALL = 2, 4
CAPABILITY_VERSION, CAPABILITIES = 0x20080522, 64
SIOCSIFFLAGS, IFF_UP = 0x8914, 0x1
SIGKILL = 9

libc: ctypes.CDLL = ctypes.CDLL(None, use_errno=True)


def check(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def call(number: int, what: str, *arguments: object) -> int:
    given = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    return check(libc.syscall(ctypes.c_long(number), *given), what)


def unshare(flags: int) -> None:
    check(libc.unshare(flags), "unshare")


def mount(kind: bytes, path: str, flags: int, options: bytes = b"") -> None:
    made = libc.mount(b"none", os.fsencode(path), kind, flags, options)
    check(made, f"{kind.decode()} on {path}")


def make_mounts_private() -> None:
    """Let no mount of ours appear outside, and none from outside appear here."""
    check(libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None), "private mounts")


def open_place(path: str) -> int:
    """Return a descriptor of a path, on whose way no link is followed."""
    at = os.open("/", os.O_PATH | os.O_CLOEXEC)
    for name in path.split("/"):
        if name:
            above, at = at, os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
            os.close(above)
    return at


def clone_tree(path: str, *, recursive: bool = False, is_held: bool = False) -> int:
    """Return a detached mount of a file or folder, which must not be a symbolic link; if it is to
    be held in its place, no folder around it may be one either.

    An earlier command of this node may have put a link there, to have another folder mounted. The
    descriptor is checked and then cloned, so the path cannot change in between.
    """
    flags = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
    found = open_place(path) if is_held else os.open(path, flags)
    try:
        if os.fstat(found).st_mode & 0o170000 == 0o120000:
            raise OSError(f"{path} is a symbolic link")
        flags = CLONE_TREE | AT_EMPTY_PATH | os.O_CLOEXEC | (AT_RECURSIVE if recursive else 0)
        return call(OPEN_TREE, f"open_tree of {path}", found, b"", flags)
    finally:
        os.close(found)


def set_attributes(tree: int, what: str, attributes: int, user_namespace: int = 0) -> None:
    """Set attributes of a detached mount: nobody can use it yet, so there is no race."""
    values = (ctypes.c_uint64 * 4)(attributes, 0, 0, user_namespace)
    flags = AT_EMPTY_PATH | (0 if attributes & ID_MAPPED else AT_RECURSIVE)
    size = ctypes.sizeof(values)
    call(MOUNT_SETATTR, f"mount_setattr of {what}", tree, b"", flags, ctypes.byref(values), size)


def place(tree: int, path: str) -> None:
    """Attach a detached mount to a path."""
    # 0x4 is MOVE_MOUNT_F_EMPTY_PATH: the source is the descriptor itself, not a path that may
    # change.
    target = (AT_FDCWD, os.fsencode(path), 0x4)
    call(MOVE_MOUNT, f"move_mount to {path}", tree, b"", *target)
    os.close(tree)


def place_over(tree: int, path: str) -> None:
    """Attach a detached mount of a file or folder to that very file or folder."""
    place_of_it = open_place(path)
    one, other = os.fstat(tree), os.fstat(place_of_it)
    if (one.st_dev, one.st_ino) != (other.st_dev, other.st_ino):
        raise OSError(f"{path} was replaced")
    # 0x44: neither source nor target is a path, which may change.
    call(MOVE_MOUNT, f"move_mount to {path}", tree, b"", place_of_it, b"", 0x44)
    os.close(place_of_it)
    os.close(tree)


def freeze(path: str) -> None:
    """Make a path read-only by a mount of it onto itself."""
    tree = clone_tree(path)
    set_attributes(tree, path, READ_ONLY)
    place(tree, path)


def freeze_mount(path: str) -> None:
    """Make the mount at this path read-only, without the mounts below it."""
    found = os.open(path, os.O_PATH | os.O_CLOEXEC)
    values = (ctypes.c_uint64 * 4)(READ_ONLY, 0, 0, 0)
    size = ctypes.sizeof(values)
    call(MOUNT_SETATTR, f"freeze {path}", found, b"", AT_EMPTY_PATH, ctypes.byref(values), size)
    os.close(found)


def change_root(path: str) -> None:
    """Make a mounted folder the root of this mount namespace and detach the old root."""
    os.chdir(path)
    # With both arguments "." the old root lies on top of the new one and can be detached at once.
    call(PIVOT_ROOT[os.uname().machine], "pivot_root", b".", b".")
    check(libc.umount2(b".", MNT_DETACH), "detach the old root")
    os.chdir("/")


def map_user(pid: int | str, inside: tuple[int, int], outside: tuple[int, int]) -> None:
    """Write the user and group maps of a process's user namespace, for one user and group."""
    for name, index in (("uid_map", 0), ("gid_map", 1)):
        with open(f"/proc/{pid}/{name}", "w") as file:
            file.write(f"{inside[index]} {outside[index]} 1")


def user_namespace(owner: tuple[int, int], shown: tuple[int, int]) -> int:
    """Return a descriptor of a user namespace that shows files of `owner` as those of `shown`.

    For mounts with mapped ids; needs root. A child process holds the namespace while it is set up:
    call this before `unshare(CLONE_NEWPID)`, after which the first child would be process 1.
    """
    ready, is_ready = os.pipe()
    go_on, is_done = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(is_done)
            libc.unshare(CLONE_NEWUSER)
            os.write(is_ready, b"x")
            os.read(go_on, 1)  # returns at the end of file, when the parent is done or dead
        finally:
            os._exit(0)
    os.close(is_ready)
    os.close(go_on)
    try:
        os.read(ready, 1)
        map_user(child, owner, shown)
        return os.open(f"/proc/{child}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.close(is_done)
        os.close(ready)
        os.waitpid(child, 0)


def raise_loopback() -> None:
    """Bring up the loopback interface: tests that a command runs often connect to themselves."""
    import _socket
    import fcntl

    own = _socket.socket(_socket.AF_INET, _socket.SOCK_DGRAM)
    request = b"lo".ljust(16, b"\0") + bytes([IFF_UP]).ljust(24, b"\0")
    fcntl.ioctl(own.fileno(), SIOCSIFFLAGS, request)
    own.close()


def die_with_parent() -> None:
    """Have the kernel kill this process when its parent ends. A change of user clears this."""
    check(libc.prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0), "parent death signal")


def become(uid: int, gid: int) -> None:
    """Change to another user for good. Needs root."""
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)


def empty_bounding_set() -> None:
    """Let no program that is started from here on get a capability."""
    for capability in range(CAPABILITIES):
        # Not checked one by one: numbers above the kernel's last capability fail.
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)


def drop_capabilities() -> None:
    """Give up all capabilities, for this process and its children."""
    libc.prctl(PR_CAP_AMBIENT, CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0)
    check(libc.capset(header, (ctypes.c_uint32 * 6)()), "capset")
    with open("/proc/self/status") as status:
        # Not the bounding set: without a privilege it cannot be emptied, and it gives nothing to a
        # process that can gain no privileges.
        held = [line.split() for line in status if line.startswith(("CapInh", "CapEff", "CapPrm"))]
    if any(int(value, 16) for _, value in held):
        raise OSError("capabilities cannot be given up")


def refuse_new_privileges() -> None:
    """Let setuid programs such as sudo give no privileges from here on."""
    check(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")


def hide_from_trace() -> None:
    """Keep other processes of this user off our memory and descriptors in /proc."""
    check(libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0), "dumpable")


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]


def install_filter(program: bytes) -> None:
    """Install a seccomp filter on this process and its children, for good."""
    refuse_new_privileges()
    given = _Program(len(program) // 8, program)
    made = libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(given), 0, 0)
    check(made, "seccomp filter")
