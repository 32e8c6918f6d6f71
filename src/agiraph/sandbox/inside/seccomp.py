"""Seccomp: builds the filter of system calls that every confined command runs under.

The filter denies single calls, it does not list the allowed ones: a command may be any program. It
closes what namespaces leave open: the keyring, vsock, io_uring, new namespaces, setuid files. It is
written by hand, because Python has no module for it, for aarch64 and x86_64.
"""

import os
import struct
from collections.abc import Callable
from functools import cache

ARCHITECTURES: dict[str, int] = {"aarch64": 0xC00000B7, "x86_64": 0xC000003E}
"""The machines for which there is a filter, with the kernel's number of each."""

_ALLOW, _KILL = 0x7FFF0000, 0x80000000
_EPERM, _ENOSYS = 0x00050001, 0x00050026
_LOAD, _RETURN, _AND = 0x20, 0x06, 0x54
_IF_EQUAL, _IF_BITS, _IF_AT_LEAST = 0x15, 0x45, 0x35
_X32 = 0x40000000
"""Numbers from here on are calls of the x32 interface, which would go around the filter."""

_CLONE_NEW = 0x7E020080
"""The flags of clone for every kind of namespace."""
_UNIX, _NETLINK = 1, 16
_FAMILIES = (_UNIX, 2, 10, _NETLINK)
"""Socket families: Unix, IPv4, IPv6, netlink. Not vsock, which knows no namespaces, nor packet."""
_TERMINAL_INPUT = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX
_SET_ID_BITS = 0o6000
_CREATES = 0o20000100  # O_TMPFILE or O_CREAT: only then openat has a mode
_FAST_OPEN = 0x20000000

_Number = int | tuple[int | None, int]
"""The number of a call: on both machines, or on aarch64 and on x86_64."""

_DENIED: dict[str, _Number] = {
    "mount": (40, 165), "umount2": (39, 166), "pivot_root": (41, 155), "chroot": (51, 161),
    "unshare": (97, 272), "setns": (268, 308), "open_tree": 428, "move_mount": 429, "fsopen": 430,
    "fsconfig": 431, "fsmount": 432, "fspick": 433, "mount_setattr": 442, "open_tree_attr": 467,
    "add_key": (217, 248), "request_key": (218, 249), "keyctl": (219, 250),
    "bpf": (280, 321), "perf_event_open": (241, 298), "userfaultfd": (282, 323),
    "kexec_load": (104, 246), "kexec_file_load": (294, 320), "init_module": (105, 175),
    "finit_module": (273, 313), "delete_module": (106, 176), "reboot": (142, 169),
    "swapon": (224, 167), "swapoff": (225, 168), "acct": (89, 163), "quotactl": (60, 179),
    "quotactl_fd": 443, "syslog": (116, 103), "settimeofday": (170, 164),
    "clock_settime": (112, 227), "clock_adjtime": (266, 305), "adjtimex": (171, 159),
    "open_by_handle_at": (265, 304), "sethostname": (161, 170), "setdomainname": (162, 171),
    "vhangup": (58, 153), "fanotify_init": (262, 300), "kcmp": (272, 312), "pidfd_getfd": 438,
    "nfsservctl": (42, 180),
}  # fmt: skip
_MISSING: dict[str, _Number] = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "openat2": 437,
    "fchmodat2": 452, "memfd_create": (279, 319), "memfd_secret": 447,
}  # fmt: skip
"""Calls that are answered as by an older kernel, so that programs take another way: io_uring would
go around the filter, the arguments of others lie in memory, where no filter can look, and a file in
memory that is mapped nowhere is counted as nobody's memory."""
_CHECKED: dict[str, _Number] = {
    "clone": (220, 56), "clone3": 435, "socket": (198, 41), "ioctl": (29, 16),
    "fchmod": (52, 91), "fchmodat": (53, 268), "chmod": (None, 90), "mknodat": (33, 259),
    "mknod": (None, 133), "creat": (None, 85), "openat": (56, 257), "open": (None, 2),
    "personality": (92, 135), "prlimit64": (261, 302), "setpriority": (140, 141),
    "ioprio_set": (30, 251), "sched_setaffinity": (122, 203), "sendto": (206, 44),
    "sendmsg": (211, 46), "sendmmsg": (269, 307), "setsockopt": (208, 54),
}  # fmt: skip
_SHARED_MEMORY: dict[str, _Number] = {
    "shmget": (194, 29), "shmat": (196, 30), "msgget": (186, 68), "msgctl": (187, 71),
    "msgrcv": (188, 70), "msgsnd": (189, 69), "semget": (190, 64), "mq_open": (180, 240),
}  # fmt: skip


class _Filter:
    """A filter under construction: every rule begins and ends with the call's number loaded."""

    def __init__(self, machine: str) -> None:
        self.column = list(ARCHITECTURES).index(machine)
        self.instructions: list[tuple[int, int, int, int]] = []
        self.add(_LOAD, 4)
        self.add(_IF_EQUAL, ARCHITECTURES[machine], 1, 0)
        self.add(_RETURN, _KILL)
        self.add(_LOAD, 0)
        if machine == "x86_64":
            self.add(_IF_AT_LEAST, _X32, 0, 1)
            self.add(_RETURN, _KILL)

    def add(self, code: int, value: int, if_true: int = 0, if_false: int = 0) -> None:
        self.instructions.append((code, if_true, if_false, value & 0xFFFFFFFF))

    def load_argument(self, index: int) -> None:
        # The low word: the machines are little-endian, and these arguments have 32 bits.
        self.add(_LOAD, 16 + 8 * index)

    def number(self, number: _Number) -> int | None:
        return number if isinstance(number, int) else number[self.column]

    def deny(self, calls: dict[str, _Number], answer: int = _EPERM) -> None:
        for number in calls.values():
            self.add(_IF_EQUAL, self.number(number) or 0, 0, 1)
            self.add(_RETURN, answer)

    def on(self, name: str, rule: Callable[[], None]) -> None:
        """Add a rule for one call; the machine may lack the call."""
        if (number := self.number(_CHECKED[name])) is None:
            return
        start = len(self.instructions)
        self.add(_IF_EQUAL, number)
        rule()
        self.add(_LOAD, 0)
        self.instructions[start] = (_IF_EQUAL, 0, len(self.instructions) - start - 1, number)

    def deny_bits(self, index: int, bits: int) -> None:
        self.load_argument(index)
        self.add(_IF_BITS, bits, 0, 1)
        self.add(_RETURN, _EPERM)

    def allow_only(self, index: int, values: tuple[int, ...]) -> None:
        self.load_argument(index)
        for place, value in enumerate(values):
            self.add(_IF_EQUAL, value, len(values) - place, 0)
        self.add(_RETURN, _EPERM)

    def packed(self) -> bytes:
        self.add(_RETURN, _ALLOW)
        return b"".join(struct.pack("HBBI", *each) for each in self.instructions)


@cache
def program(*, unix: bool, alone: bool = False, network: bool = True) -> bytes:
    """Return the filter's instructions for the kernel.

    Without `unix` no Unix socket can be created, though a pair can. `alone` is for commands without
    namespaces: shared memory and the limits of other processes are closed here, too, and without
    `network` every socket but TCP, which Landlock closes.
    """
    made = _Filter(os.uname().machine)
    made.deny(_DENIED)
    made.deny(_MISSING, _ENOSYS)
    made.on("clone", lambda: made.deny_bits(0, _CLONE_NEW))
    # The flags of clone3 lie in memory; C libraries fall back to clone.
    made.on("clone3", lambda: made.add(_RETURN, _ENOSYS))
    families = tuple(family for family in _FAMILIES if unix or family != _UNIX)
    made.on("socket", lambda: made.allow_only(0, families))
    made.on("ioctl", lambda: _deny_terminal_input(made))
    made.on("personality", lambda: made.allow_only(0, (0, 0x20008, 0xFFFFFFFF)))
    _deny_set_id(made)
    if alone:
        _deny_what_namespaces_would(made, network=network)
    return made.packed()


def _deny_terminal_input(made: _Filter) -> None:
    made.load_argument(1)
    made.add(_IF_EQUAL, _TERMINAL_INPUT[0], 1, 0)
    made.add(_IF_EQUAL, _TERMINAL_INPUT[1], 0, 1)
    made.add(_RETURN, _EPERM)


def _deny_set_id(made: _Filter) -> None:
    """Let no command create a setuid or setgid file: its folder is mounted elsewhere, too."""
    modes = {"fchmod": 1, "fchmodat": 2, "chmod": 1, "mknodat": 2, "mknod": 1, "creat": 1}
    for name, index in modes.items():
        made.on(name, lambda index=index: made.deny_bits(index, _SET_ID_BITS))
    for name, flags, mode in (("openat", 2, 3), ("open", 1, 2)):
        made.on(name, lambda flags=flags, mode=mode: _deny_set_id_at_creation(made, flags, mode))


def _deny_set_id_at_creation(made: _Filter, flags: int, mode: int) -> None:
    made.load_argument(flags)
    made.add(_IF_BITS, _CREATES, 0, 3)  # else the register of the mode holds anything
    made.deny_bits(mode, _SET_ID_BITS)


def _deny_what_namespaces_would(made: _Filter, *, network: bool) -> None:
    made.deny(_SHARED_MEMORY)
    of_process = {"prlimit64": 0, "setpriority": 1, "ioprio_set": 1, "sched_setaffinity": 0}
    for name, index in of_process.items():
        made.on(name, lambda index=index: made.allow_only(index, (0,)))
    if network:
        return
    made.on("socket", lambda: _allow_tcp_only(made))
    # These connect without a call of connect, which is all that Landlock sees.
    for name, index in (("sendto", 3), ("sendmsg", 2), ("sendmmsg", 3)):
        made.on(name, lambda index=index: made.deny_bits(index, _FAST_OPEN))
    made.on("setsockopt", lambda: _deny_fast_open(made))


def _allow_tcp_only(made: _Filter) -> None:
    """Deny UDP, MPTCP and SCTP; Unix and netlink sockets were decided on before."""
    made.load_argument(0)
    made.add(_IF_EQUAL, _NETLINK, 8, 0)
    made.add(_IF_EQUAL, _UNIX, 7, 0)
    made.load_argument(1)
    made.add(_AND, 0xF)
    made.add(_IF_EQUAL, 1, 0, 3)
    made.load_argument(2)
    made.add(_IF_EQUAL, 0, 2, 0)
    made.add(_IF_EQUAL, 6, 1, 0)
    made.add(_RETURN, _EPERM)


def _deny_fast_open(made: _Filter) -> None:
    made.load_argument(1)
    made.add(_IF_EQUAL, 6, 0, 3)
    made.load_argument(2)
    made.add(_IF_EQUAL, 30, 0, 1)
    made.add(_RETURN, _EPERM)
