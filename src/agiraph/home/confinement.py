"""Confinement: a command that can reach nobody and change nothing but one folder.

It is for work that has read what strangers wrote. The command gets a network of its own with
nothing in it but itself, sees the file system read-only, a home with nothing in it but the nodes of
its team, and may write to its scratch folder and to a /tmp that is gone with it. It has no power
left to undo that. Where the kernel does not allow all of it, the command does not run.

Run as a script inside the command's own process tree:

    python -I -S confinement.py SCRATCH NODES HOME COMMAND
"""

# ruff: noqa: PTH102, PTH103, PTH110, PTH112, PTH114, PTH120, PTH123, PTH211
# pathlib takes too long to import.

import ctypes
import fcntl
import os
import sys

CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWNET = 0x00020000, 0x10000000, 0x40000000
MS_NOSUID, MS_NODEV, MS_REC, MS_PRIVATE = 0x2, 0x4, 0x4000, 0x40000
OPEN_TREE, MOVE_MOUNT, MOUNT_SETATTR = 428, 429, 442
AT_FDCWD, AT_RECURSIVE, AT_EMPTY_PATH, CLONE_TREE = -100, 0x8000, 0x1000, 0x1
RDONLY = 0x1
PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 24, 38
SIOCSIFFLAGS, IFF_UP = 0x8914, 0x1
CAPABILITIES = 64
KEPT = (0, 1, 3, 4)
"""Of a superuser's: chown, dac_override, fowner, fsetid. Where nothing else can be written they let
it handle its own files as it is used to, and no more."""
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
"""All that a command needs of /dev; a disk can be written to, however it is mounted."""
FAILED = 125
"""The exit code when the command was not run at all."""
FLEETING = ("/tmp", "/var/tmp", "/run")
"""Emptied, and writable: for what programs need for a moment. Others listen in some of them."""

libc = ctypes.CDLL(None, use_errno=True)


def wrapped(command: str, *, scratch: str, nodes: str, home: str) -> str:
    """The command as a shell runs it confined."""
    from shlex import join

    script = [sys.executable, "-I", "-S", __file__, scratch, nodes, home, command]
    return f"exec {join(script)}"


def is_possible() -> bool:
    """Whether this machine lets us confine a command; asked of it once."""
    global _possible
    if _possible is None:
        import subprocess
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            test = wrapped("true", scratch=folder, nodes=folder, home=folder)
            done = subprocess.run(["sh", "-c", test], capture_output=True, check=False, env={})
            _possible = done.returncode == 0
    return _possible


_possible: bool | None = None


def check(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def call(number: int, what: str, *arguments: object) -> int:
    # The numbers of these calls are the same on all machines.
    return check(libc.syscall(ctypes.c_long(number), *arguments), what)


def leave() -> None:
    """Into namespaces of our own, for mounts and network; as ourselves, if that needs no more."""
    if libc.unshare(CLONE_NEWNS | CLONE_NEWNET) == 0:
        return
    uid, gid = os.geteuid(), os.getegid()
    check(libc.unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET), "no namespaces")
    maps = {"setgroups": "deny", "uid_map": f"{uid} {uid} 1", "gid_map": f"{gid} {gid} 1"}
    for name, text in maps.items():
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def raise_loopback() -> None:
    """A command may talk to itself: tests often do."""
    import _socket

    own = _socket.socket(_socket.AF_INET, _socket.SOCK_DGRAM)
    fcntl.ioctl(
        own.fileno(), SIOCSIFFLAGS, b"lo".ljust(16, b"\0") + bytes([IFF_UP]).ljust(24, b"\0")
    )
    own.close()


def clone(path: str) -> int:
    flags = ctypes.c_uint(CLONE_TREE | os.O_CLOEXEC)
    return call(OPEN_TREE, "open_tree", ctypes.c_int(AT_FDCWD), os.fsencode(path), flags)


def freeze(mount: int, path: bytes, flags: int) -> None:
    """Let nobody write there."""
    attributes = (ctypes.c_uint64 * 4)(RDONLY, 0, 0, 0)
    size = ctypes.c_size_t(ctypes.sizeof(attributes))
    where = (ctypes.c_int(mount), path, ctypes.c_uint(flags), ctypes.byref(attributes), size)
    call(MOUNT_SETATTR, "mount_setattr", *where)


def place(mount: int, path: str) -> None:
    target = (ctypes.c_int(AT_FDCWD), os.fsencode(path), ctypes.c_uint(0x4))
    call(MOVE_MOUNT, "move_mount", ctypes.c_int(mount), b"", *target)


def empty(path: str) -> None:
    """A folder that is nobody's and goes with us."""
    flags, size = MS_NOSUID | MS_NODEV, b"size=256m,mode=1777"
    check(libc.mount(b"none", os.fsencode(path), b"tmpfs", flags, size), f"tmpfs on {path}")


def arrange(scratch: str, nodes: str, home: str) -> None:
    """The file system as the command is to see it."""
    check(libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None), "private mounts")
    own, others = clone(scratch), clone(nodes)
    # What we run from is kept, should it lie where everything else goes: commands may need it.
    tools = os.path.dirname(os.path.dirname(sys.executable))
    is_fleeting = tools.startswith(tuple(f"{path}/" for path in FLEETING))
    kept = clone(tools) if is_fleeting else -1
    devices = {path: clone(path) for name in DEVICES if os.path.exists(path := f"/dev/{name}")}
    for mount in (others, kept) if is_fleeting else (others,):
        freeze(mount, b"", AT_EMPTY_PATH)
    freeze(AT_FDCWD, b"/", AT_RECURSIVE)
    for path in FLEETING:
        if os.path.isdir(path) and not os.path.islink(path):
            empty(path)
    if os.path.isdir(home):  # unless it was in one of those
        empty(home)
    if is_fleeting:
        os.makedirs(tools, exist_ok=True)
        place(kept, tools)
    os.makedirs(nodes, exist_ok=True)
    place(others, nodes)
    place(own, scratch)
    empty("/dev")
    for path, device in devices.items():
        os.close(os.open(path, os.O_CREAT, 0o666))
        place(device, path)
    os.mkdir("/dev/shm")
    os.symlink("/proc/self/fd", "/dev/fd")
    os.chdir(scratch)


def give_up_power() -> None:
    """Nothing that is run from here on can undo any of it."""
    kept = KEPT if os.geteuid() == 0 else ()
    for capability in range(CAPABILITIES):
        if capability not in kept:
            libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    check(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    with open("/proc/self/status") as status:
        [bounds] = [line.split()[1] for line in status if line.startswith("CapBnd:")]
    if int(bounds, 16) & ~sum(1 << capability for capability in kept):
        raise OSError("capabilities cannot be given up")


def main() -> None:
    scratch, nodes, home, command = sys.argv[1:]
    try:
        leave()
        raise_loopback()
        arrange(scratch, nodes, home)
        give_up_power()
    except OSError as error:
        print(f"The command was not run: it cannot be confined here ({error}).", file=sys.stderr)
        os._exit(FAILED)
    for shell in ("bash", "sh"):
        try:
            os.execvp(shell, [shell, "-c", command])
        except FileNotFoundError:
            continue
    print("There is neither bash nor sh on the PATH.", file=sys.stderr)
    os._exit(127)


if __name__ == "__main__":
    main()
