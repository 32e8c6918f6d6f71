"""Confinement: makes a command see and do only what its spec says, by one of three levels.

The supervisor's warden calls `enter` between fork and exec. `namespaces` builds a root folder of
its own (root_folder), `bubblewrap` hands the spec to bwrap, `landlock` restricts the process where
the kernel allows no namespaces. All of them drop capabilities and install the seccomp filter. If
the kernel refuses any part, the command does not run.

The supervisor loads this file by its path, without the package.
"""

# ruff: noqa: PTH123 - pathlib takes too long to import

import os

TYPE_CHECKING = False  # typing takes long to import
if TYPE_CHECKING or __package__:
    from agiraph.sandbox.inside import kernel, root_folder
else:
    import kernel
    import root_folder
if TYPE_CHECKING:
    from typing import Any

GATE_PORT = 3128
"""The port on the command's own loopback behind which the runtime's gate listens."""
LEAST_PID_MAX = 301
"""The kernel accepts no smaller limit of the processes and threads of a pid namespace."""
CHANNEL = 4
"""The supervisor's descriptor of the socket on which it hands the gate's listener out."""


refusal: list[int] = []
"""The error with which the kernel refused a pid namespace, if it did."""


def isolate(wanted: str) -> str:
    """Put future children into a new pid namespace; return which kind the kernel allows."""
    # Root may create a pid namespace directly. Other users need a user namespace around it, which
    # some distributions and containers forbid.
    if wanted in ("", "pid") and kernel.libc.unshare(kernel.CLONE_NEWPID) == 0:
        return "pid"
    own = os.geteuid(), os.getegid()
    flags = kernel.CLONE_NEWUSER | kernel.CLONE_NEWPID
    if wanted in ("", "user") and kernel.libc.unshare(flags) == 0:
        try:
            with open("/proc/self/setgroups", "w") as file:  # must come before `gid_map`
                file.write("deny")
            kernel.map_user("self", own, own)
        except OSError:
            pass  # the namespace cannot be left; commands work, but run as "nobody"
        return "user"
    refusal.append(kernel.ctypes.get_errno())
    return "plain"


def id_maps(spec: "dict[str, Any]") -> dict[int, int]:
    """Return user namespaces that show the owners of the command's files as its spare user.

    Call this before `isolate`. Empty unless root runs the command as a spare user.
    """
    if not (spare := spec["uid"]):
        return {}
    owners: dict[int, int] = {}
    held = (path for path, _ in spec["held"])
    for source in (*spec["readable"], *(source for source, _, _ in spec["mounts"]), *held):
        try:
            found = os.lstat(source)
        except OSError:
            continue  # it has gone since the view was made
        owners.setdefault(found.st_uid, found.st_gid)
    return {
        uid: kernel.user_namespace((uid, gid), (spare, spare))
        for uid, gid in owners.items()
        if uid != spare
    }


def show_own_processes() -> bool:
    """Mount a /proc of this pid namespace, so that ps and pkill use the same pids as kill."""
    if kernel.libc.unshare(kernel.CLONE_NEWNS) != 0:
        return False
    try:
        kernel.make_mounts_private()
        # Some containers refuse a private /proc; the command then sees the outer pids.
        root_folder.show_processes("")
    except OSError:
        return False
    return True


def enter_namespaces(spec: "dict[str, Any]", maps: dict[int, int], cwd: str) -> None:
    """Confine this process (the command's warden) and its children; raise OSError if that fails.

    The order matters: detached mounts are cloned while the machine's files are visible; privileges
    are dropped last, since mounting needs them.
    """
    apart = kernel.CLONE_NEWNS | kernel.CLONE_NEWCGROUP | kernel.CLONE_NEWUTS | kernel.CLONE_NEWIPC
    kernel.unshare(apart)
    open_network(spec)
    kernel.make_mounts_private()
    root_folder.build(spec, root_folder.take(spec, maps))
    for descriptor in maps.values():
        os.close(descriptor)
    root_folder.show_processes(root_folder.PLACE)
    limit_pids(spec, root_folder.PLACE)
    root_folder.freeze_settings(root_folder.PLACE)
    kernel.change_root(root_folder.PLACE)
    kernel.freeze_mount("/")
    kernel.libc.sethostname(b"sandbox", 7)
    os.chdir(cwd)


def open_network(spec: "dict[str, Any]") -> None:
    """Give the command its network; hand a listener out if it is to have a gate."""
    if spec["network"] == "open":
        return
    # A new network namespace has only a loopback of its own: a page that took over the model cannot
    # have data sent anywhere, nor reach the API on this machine's loopback.
    kernel.unshare(kernel.CLONE_NEWNET)
    kernel.raise_loopback()
    if spec["network"] == "gate":
        hand_out_listener()


def hand_out_listener() -> None:
    """Listen on the command's loopback, and send the socket to the runtime, which accepts."""
    import _socket

    listener = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    listener.bind(("127.0.0.1", GATE_PORT))
    listener.listen(128)
    channel = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, CHANNEL)
    rights = listener.fileno().to_bytes(4, "little")
    channel.sendmsg([b"L"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)])
    listener.close()
    channel.close()


def limit_pids(spec: "dict[str, Any]", at: str) -> None:
    """Limit the processes and threads of this pid namespace, where the kernel can (Linux 6.14)."""
    try:
        with open(at + "/proc/sys/kernel/pid_max", "w") as file:
            file.write(str(max(LEAST_PID_MAX, spec["pids"])))
    except OSError:
        pass  # the guard counts, too


def give_up_power(spec: "dict[str, Any]") -> None:
    """Change to the spare user if there is one, and drop all privileges for good."""
    kernel.empty_bounding_set()
    if spec["uid"]:
        kernel.become(spec["uid"], spec["uid"])
        kernel.die_with_parent()  # the change of user has cleared it
    kernel.drop_capabilities()
    # Else a command could open the spool in the home through /proc/1/fd.
    kernel.hide_from_trace()
    kernel.install_filter(spec["filter"])
