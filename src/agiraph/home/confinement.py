"""Confinement: limits what a command can see and do, by mount namespaces and capabilities.

Every command gets a mount namespace in which the home is hidden, except the files its node may
see, and drops the privileges that could undo this. It has a network only if its call names one. A
command of a thread that has read what strangers wrote is also `offline`: it has no network, sees
the file system read-only, and may write to its scratch folder and to a /tmp of its own. If the
kernel refuses any part, the command does not run.

The supervisor loads this file by its path, without the package. As a script it is a probe:

    python -I -S confinement.py EMPTY_FOLDER     exit code 0 if commands can be confined here
"""

# ruff: noqa: PTH101, PTH102, PTH103, PTH110, PTH112, PTH113, PTH114, PTH118, PTH120
# ruff: noqa: PTH123, PTH208, PTH211, SIM105
# pathlib takes too long to import.

import ctypes
import fcntl
import os
import stat
import sys

TYPE_CHECKING = False  # typing takes long to import
if TYPE_CHECKING:
    from typing import Any

CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
CLONE_NEWPID, CLONE_NEWNET = 0x20000000, 0x40000000
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REC = 0x2, 0x4, 0x8, 0x4000
MS_PRIVATE, MS_SLAVE = 0x40000, 0x80000
OPEN_TREE, MOVE_MOUNT, MOUNT_SETATTR = 428, 429, 442
AT_FDCWD, AT_RECURSIVE, AT_EMPTY_PATH, CLONE_TREE = -100, 0x8000, 0x1000, 0x1
RDONLY = 0x1
PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 4, 24, 38
SIOCSIFFLAGS, IFF_UP = 0x8914, 0x1
GATE = 4
"""The descriptor of the supervisor by which the listener of the network gate goes out."""
BACKLOG = 128
CAPABILITIES = 64
KEPT_OFFLINE = (0, 1, 3, 4)
"""Capabilities of root's offline commands: chown, dac_override, fowner, fsetid, for their files."""
KEPT = (*KEPT_OFFLINE, 5, 6, 7, 10, 18, 29, 31)
"""Capabilities of root's other commands: also kill, setgid, setuid, net_bind_service, sys_chroot,
audit_write, setfcap. They can install packages. They cannot mount, trace, read raw disks or sniff
the network: each of these would give access to the home."""
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
"""The harmless devices. Root could read the home through the device of its disk."""
ACCELERATORS = ("nvidia", "dri", "kfd", "kvm")
LINKS = {"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"}
FAILED = 125
"""The exit code when the command was not run at all."""
FLEETING = ("/tmp", "/var/tmp", "/run")
"""Offline commands get these folders empty and writable: they may contain others' sockets."""
KERNEL = ("/proc/sys", "/proc/sysrq-trigger", "/proc/bus", "/proc/fs", "/proc/irq")
"""With /sys, the files by which root could change the machine without any capability."""

libc: ctypes.CDLL = ctypes.CDLL(None, use_errno=True)


def check(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def call(number: int, what: str, *arguments: object) -> int:
    # The numbers of these calls are the same on all machines.
    return check(libc.syscall(ctypes.c_long(number), *arguments), what)


def close_others(kept: set[int]) -> None:
    """Close all descriptors of this process but these."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in kept:
            try:
                os.close(int(name))
            except OSError:
                pass  # the descriptor of the listing itself


def isolate(wanted: str) -> str:
    """Put future children into a new pid namespace; return which kind the kernel allows."""
    # Root may create a pid namespace directly. Other users need a user namespace around it, which
    # some distributions and containers forbid.
    if wanted in ("", "pid") and libc.unshare(CLONE_NEWPID) == 0:
        return "pid"
    uid, gid = os.geteuid(), os.getegid()
    if wanted in ("", "user") and libc.unshare(CLONE_NEWUSER | CLONE_NEWPID) == 0:
        map_user(uid, gid)
        return "user"
    return "plain"


def map_user(uid: int, gid: int) -> None:
    """Keep the user's ids in the new user namespace. `setgroups` must come before `gid_map`."""
    maps = {"setgroups": "deny", "uid_map": f"{uid} {uid} 1", "gid_map": f"{gid} {gid} 1"}
    try:
        for name, text in maps.items():
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
    except OSError:
        pass  # the namespace cannot be left; commands work, but run as "nobody"


def mount(kind: bytes, path: str, flags: int, options: bytes | None = None) -> int:
    return libc.mount(b"none", os.fsencode(path), kind, flags, options)


def show_own_processes() -> bool:
    """Mount a /proc of this pid namespace, so that ps and pkill use the same pids as kill."""
    # Slave: disks that a person mounts later still appear here, but our mounts do not appear
    # outside.
    is_private = libc.unshare(CLONE_NEWNS) == 0
    if not is_private or libc.mount(None, b"/", None, MS_REC | MS_SLAVE, None) != 0:
        return False
    # Some containers refuse a private /proc; the command then sees the outer pids.
    return mount(b"proc", "/proc", MS_NOSUID | MS_NODEV | MS_NOEXEC) == 0


def raise_loopback() -> None:
    """Bring up the loopback interface: tests that a command runs often connect to themselves."""
    import _socket

    own = _socket.socket(_socket.AF_INET, _socket.SOCK_DGRAM)
    fcntl.ioctl(
        own.fileno(), SIOCSIFFLAGS, b"lo".ljust(16, b"\0") + bytes([IFF_UP]).ljust(24, b"\0")
    )
    own.close()


def hand_out_listener(port: int, channel: int) -> None:
    """Open a listener on this network namespace's loopback and send it to the runtime.

    The runtime serves it from outside: it is the command's only way to the network. Commands that
    connect before the runtime accepts wait in the listener's backlog.
    """
    import _socket

    listener = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    listener.bind(("127.0.0.1", port))
    listener.listen(BACKLOG)
    runtime = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, channel)
    passed = listener.fileno().to_bytes(4, sys.byteorder)
    runtime.sendmsg([b"L"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, passed)])
    # Closed before the command starts: nothing in it may write to the runtime.
    runtime.close()
    listener.close()


def clone(path: str) -> int:
    """Return a detached mount of this file or folder, which must not be a symbolic link.

    An earlier command of this node may have put a link there, to have another folder mounted. The
    descriptor is checked and then cloned, so the path cannot change in between.
    """
    found = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if stat.S_ISLNK(os.fstat(found).st_mode):
            raise OSError(f"{path} is a symbolic link")
        flags = ctypes.c_uint(CLONE_TREE | AT_EMPTY_PATH | os.O_CLOEXEC)
        return call(OPEN_TREE, f"open_tree of {path}", ctypes.c_int(found), b"", flags)
    finally:
        os.close(found)


def freeze(where: int, path: str, flags: int) -> None:
    """Make a mount read-only."""
    attributes = (ctypes.c_uint64 * 4)(RDONLY, 0, 0, 0)
    size = ctypes.c_size_t(ctypes.sizeof(attributes))
    target = (ctypes.c_int(where), os.fsencode(path), ctypes.c_uint(flags))
    call(MOUNT_SETATTR, f"mount_setattr {path}", *target, ctypes.byref(attributes), size)


def place(source: int, path: str) -> None:
    # 0x4 is MOVE_MOUNT_F_EMPTY_PATH: the source is the descriptor itself, not a path that may
    # change.
    target = (ctypes.c_int(AT_FDCWD), os.fsencode(path), ctypes.c_uint(0x4))
    call(MOVE_MOUNT, f"move_mount to {path}", ctypes.c_int(source), b"", *target)
    os.close(source)


def empty(path: str, options: bytes = b"size=256m,mode=1777") -> None:
    """Mount an empty tmpfs, which the kernel removes with the namespace."""
    # The pages of a tmpfs belong to no process, so the memory limit does not see them: `size`
    # bounds them.
    check(mount(b"tmpfs", path, MS_NOSUID | MS_NODEV, options), f"tmpfs on {path}")


def make_room(path: str, *, is_folder: bool) -> None:
    """Create a mount point unless there is one."""
    if not os.path.lexists(path):
        os.makedirs(path if is_folder else os.path.dirname(path), exist_ok=True)
        if not is_folder:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))


def cover_path(path: str, blank: str) -> None:
    """Mount something empty over a file or folder inside the view; a link is left alone, since it
    leads to a path that is covered itself or not visible."""
    if os.path.islink(path) or not os.path.lexists(path):
        return
    if os.path.isdir(path):
        empty(path, b"size=4k,mode=0555")
        return freeze(AT_FDCWD, path, 0)
    cover = clone(blank)
    freeze(cover, "", AT_EMPTY_PATH)
    return place(cover, path)


def hide_home(view: "dict[str, Any]", sources: "list[tuple[str, int]]") -> None:
    """Mount an empty, read-only folder over the home, and the visible paths inside it."""
    home = view["home"]
    empty(home, b"size=4m,mode=0755")
    blank = os.path.join(home, ".hidden")
    os.close(os.open(blank, os.O_CREAT | os.O_EXCL, 0))
    for path in [path for path in view["masked"] if os.path.isfile(path)]:
        cover = clone(blank)
        freeze(cover, "", AT_EMPTY_PATH)
        place(cover, path)
    for path, source in sources:
        make_room(path, is_folder=stat.S_ISDIR(os.fstat(source).st_mode))
        place(source, path)
    for path in view["hidden"]:
        cover_path(path, blank)
    # Last, because the mount points above are created in it.
    freeze(AT_FDCWD, home, 0)


def visible(view: "dict[str, Any]") -> "list[tuple[str, int]]":
    """Return detached mounts of the visible paths, outer folders before inner ones.

    They are opened before the home is hidden: afterwards their paths lead to the empty folder.
    """
    modes = {path: False for path in view["readable"]} | {path: True for path in view["writable"]}
    found: list[tuple[str, int]] = []
    for path in sorted(modes, key=lambda path: path.count("/")):
        try:
            source = clone(path)
        except OSError:
            # A readable path may have gone since the view was made. Without its writable folder a
            # command would lose its work in the tmpfs that covers the home.
            if modes[path]:
                raise
            continue  # it is gone, or is a link
        if not modes[path]:
            freeze(source, "", AT_EMPTY_PATH)
        found.append((path, source))
    return found


def replace_devices(*, offline: bool) -> None:
    names = [*DEVICES]
    if not offline:
        names += [n for n in os.listdir("/dev") if n.startswith((*ACCELERATORS, "shm"))]
    # Cloned first: `empty` covers the old /dev.
    devices = {p: clone(p) for name in names if os.path.exists(p := f"/dev/{name}")}
    # Not sticky: in a sticky folder the kernel refuses O_CREAT on devices of other users.
    empty("/dev", b"size=256m,mode=0755")
    for path, device in devices.items():
        make_room(path, is_folder=stat.S_ISDIR(os.fstat(device).st_mode))
        place(device, path)
    for name, target in LINKS.items():
        os.symlink(target, f"/dev/{name}")
    if not os.path.isdir("/dev/shm"):
        os.mkdir("/dev/shm")
        os.chmod("/dev/shm", 0o1777)
    os.mkdir("/dev/pts")
    if mount(b"devpts", "/dev/pts", MS_NOSUID | MS_NOEXEC, b"newinstance,ptmxmode=0666") == 0:
        os.symlink("pts/ptmx", "/dev/ptmx")


def freeze_all() -> None:
    """Make the whole file system read-only, except the folders that are emptied."""
    # Keep the Python environment visible if it lies in an emptied folder: commands may need it.
    tools = os.path.dirname(os.path.dirname(sys.executable))
    kept = clone(tools) if tools.startswith(tuple(f"{path}/" for path in FLEETING)) else -1
    if kept >= 0:
        freeze(kept, "", AT_EMPTY_PATH)
    # Before the tmpfs mounts: they are the places that stay writable.
    freeze(AT_FDCWD, "/", AT_RECURSIVE)
    for path in FLEETING:
        if os.path.isdir(path) and not os.path.islink(path):
            empty(path)
    if kept >= 0:
        os.makedirs(tools, exist_ok=True)
        place(kept, tools)


def freeze_kernel() -> None:
    for path in filter(os.path.exists, KERNEL):
        # Only a mount can be read-only, so each of these paths is mounted onto itself.
        place(clone(path), path)
        freeze(AT_FDCWD, path, 0)
    if os.path.ismount("/sys"):
        freeze(AT_FDCWD, "/sys", AT_RECURSIVE)


def enter(view: "dict[str, Any]", cwd: str) -> None:
    """Confine this process (the warden) and all its children; raise OSError if that fails.

    The order matters: detached mounts are taken while the home is visible, capabilities are dropped
    last, since mounting needs them.
    """
    is_root, offline = os.geteuid() == 0, view["offline"]
    if offline or not view["network"]:
        # A new network namespace has only a loopback of its own: a page that took over the model
        # cannot have data sent anywhere, nor reach the API on this machine's loopback.
        check(libc.unshare(CLONE_NEWNET), "no network namespace")
        raise_loopback()
        if view.get("gate"):
            hand_out_listener(view["gate"], GATE)
    # A slave still receives mounts from outside; one on the path of the home would lie above the
    # cover.
    check(libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None), "private mounts")
    sources = visible(view)
    if offline:
        freeze_all()
    elif is_root:
        freeze_kernel()
    # Other users are kept off raw devices by the devices' own permissions.
    if offline or is_root:
        replace_devices(offline=offline)  # first: the home may lie in /dev/shm
    if not os.path.isdir(view["home"]):  # it lay in an emptied folder
        os.makedirs(view["home"])
    hide_home(view, sources)
    # The old working directory lies below the covering mount: from there `..` leads into the real
    # home. Entering it by its path again leads into the view.
    os.chdir(cwd)
    give_up_power((KEPT_OFFLINE if offline else KEPT) if is_root else ())


def give_up_power(kept: tuple[int, ...]) -> None:
    """Drop all capabilities but `kept`, for good: no child can regain them."""
    # Else a command could open the spool in the home through /proc/1/fd.
    check(libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0), "dumpable")
    # Results are not checked one by one, because numbers above the kernel's last capability fail.
    # The set is read back below. It takes effect at the next exec, which is the command's.
    for capability in range(CAPABILITIES):
        if capability not in kept:
            libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    # From here on setuid programs such as sudo and mount give no privileges.
    check(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    with open("/proc/self/status") as status:
        [bounds] = [line.split()[1] for line in status if line.startswith("CapBnd:")]
    if int(bounds, 16) & ~sum(1 << capability for capability in kept):
        raise OSError("capabilities cannot be given up")


def probe(folder: str) -> None:
    """Confine a process like an offline command and test it; exit 0 if the home is hidden."""
    home, scratch = os.path.join(folder, "home"), os.path.join(folder, "home", "scratch")
    secret = os.path.join(home, "secret")
    os.makedirs(scratch)
    os.close(os.open(secret, os.O_CREAT, 0o600))
    if isolate("") == "plain":
        sys.exit("the kernel allows no namespaces")
    # `unshare(CLONE_NEWPID)` concerns only children; this process stays in the old namespace.
    if pid := os.fork():
        os._exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    view = {"home": home, "masked": [], "readable": [], "writable": [scratch], "offline": True}
    view |= {"network": False, "hidden": []}
    try:
        if not show_own_processes():
            raise OSError("the kernel does not allow mounting /proc")
        enter(view, scratch)
        os.close(os.open("written", os.O_CREAT))
    except OSError as error:
        print(error, file=sys.stderr)
        os._exit(1)
    os._exit(1 if os.path.exists(secret) else 0)


if __name__ == "__main__":
    probe(sys.argv[1])
