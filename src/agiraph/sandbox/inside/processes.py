"""Processes: reads a command's processes from /proc and checks their limits.

The supervisor loads this file by its path, without the package, and starts for every command: keep
imports few and fast.
"""

# ruff: noqa: PTH112, PTH115, PTH123, PTH208, SIM105 - pathlib and contextlib take too long to import

import os

PROCESSES, MEMORY, DISK = 1, 2, 3
TEAM_PROCESSES, TEAM_MEMORY, ALL_PROCESSES, ALL_MEMORY = 4, 5, 6, 7
OUT_OF_MEMORY, FILES = 8, 9
"""Numbers of the limits: the warden reports the first three and the last two, the runtime orders
the others."""
FREE_FILES = 10_000
"""How many more files the disk must have room for, unless it had less when the command began."""
COUNT_BYTES = 16
"""The size of a command's counts in its file: processes and bytes of memory, 8 bytes each."""
MIB = 1024 * 1024
SLOW, FAST, CROWDED = 0.05, 0.02, 0.25
"""Seconds between two checks of what a command uses: fast once it uses an eighth of a limit. Where
/proc shows all processes of the machine, a check is slow and done less often."""


def read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def proc_is_ours() -> bool:
    """Return whether /proc belongs to our pid namespace; in a container it may be the outer one."""
    return os.readlink("/proc/self") == str(os.getpid())


def born(pid: int) -> int | None:
    """Return the start time of a process in ticks since boot; None if it is gone or a zombie.

    A pid alone is not enough to kill by: the kernel reuses pids. Pid and start time are unique.
    """
    try:
        # From the last ")": before it is the program's name, which a command chooses and which may
        # contain spaces, ")" and numbers.
        state, *fields = read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    except OSError:
        return None
    return None if state in (b"Z", b"X") or not proc_is_ours() else int(fields[18])


def boot() -> str:
    """Return the kernel's boot id: pids and ticks are meaningless after a reboot."""
    return read("/proc/sys/kernel/random/boot_id").decode().strip()


def descendants(root: int) -> list[int]:
    """Return all descendants of a process."""
    children: dict[int, list[int]] = {}
    for name in filter(str.isdigit, os.listdir("/proc") if proc_is_ours() else ()):
        try:
            parent = int(read(f"/proc/{name}/stat").rpartition(b")")[2].split()[1])
        except OSError:
            continue  # it has ended meanwhile
        children.setdefault(parent, []).append(int(name))
    found = [root]
    for pid in found:
        found += children.get(pid, [])
    return found[1:]


def kill(pids: list[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except OSError:
            pass  # it has ended, or the pid is another user's by now


def has_children() -> bool:
    """Reap ended children; return whether any child is left."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def describe(limits: dict[str, int], exceeded: int) -> str:
    """Return which limit was exceeded, as the rest of a sentence about the command."""
    return {
        PROCESSES: f"it had more than {limits['processes']} processes at a time",
        MEMORY: f"its processes used more than {limits['memory_mib']} MiB of memory",
        DISK: f"it left less than {limits['free_disk_mib']} MiB of the disk free",
        FILES: f"it left room for fewer than {FREE_FILES:,} more files on the disk",
        TEAM_PROCESSES: (
            f"the commands of this team had more than {limits['team_processes']} processes, and "
            "this one the most"
        ),
        TEAM_MEMORY: (
            f"the commands of this team used more than {limits['team_memory_mib']} MiB of memory, "
            "and this one the most"
        ),
        ALL_PROCESSES: (
            f"all commands had more than {limits['all_processes']} processes, and this one the most"
        ),
        ALL_MEMORY: (
            f"all commands used more than {limits['all_memory_mib']} MiB of memory, and this one "
            "the most"
        ),
        OUT_OF_MEMORY: (
            f"memory ran out: it may use {limits['memory_mib']} MiB, all commands of this team "
            f"{limits['team_memory_mib']} MiB, all together {limits['all_memory_mib']} MiB"
        ),
    }[exceeded]


class Guard:
    """Measures what all processes of a command use together. Runs in the command's warden."""

    def __init__(
        self,
        limits: dict[str, int],
        folders: list[str],
        counts: int,
        *,
        tmpfs: tuple[str, ...] = (),
        events: int = -1,
        alone: bool,
    ) -> None:
        self.limits = limits
        self.counts = counts
        """The descriptor of the file from which the runtime reads what the command uses."""
        self.tmpfs = tmpfs
        """Folders in memory: what lies in them counts as the command's memory."""
        self.events = events
        """The descriptor of the file in which the kernel counts its kills; -1: there is none."""
        self.alone = alone
        """Whether this is process 1 of a pid namespace: then /proc shows this command alone."""
        self.pause: float = SLOW
        floor = limits["free_disk_mib"] * MIB
        # On a disk that is full already the command may still use half of what is left.
        self.floors: dict[str, int] = {
            folder: floor if floor < left else left // 2
            for folder in folders
            if os.path.isdir(folder)
            for left in (free(folder),)
        }
        self.file_floors: dict[str, int] = {
            folder: min(FREE_FILES, free_files(folder) // 2) for folder in self.floors
        }
        """How many more files the disk of each folder must have room for."""

    def exceeded(self) -> int:
        """Return the number of the limit that the command exceeds now; 0 if none."""
        pids = self.pids()
        stored = sum(stored_bytes(folder) for folder in self.tmpfs)
        if self.alone:
            stored += system_v_bytes()
        used = stored + sum(own_bytes(pid) for pid in pids)
        os.pwrite(self.counts, len(pids).to_bytes(8, "little") + used.to_bytes(8, "little"), 0)
        most, most_bytes = self.limits["processes"], self.limits["memory_mib"] * MIB
        is_busy = len(pids) * 8 > most or used * 8 > most_bytes
        self.pause = (FAST if is_busy else SLOW) if self.alone else CROWDED
        if self.was_out_of_memory():
            return OUT_OF_MEMORY
        if len(pids) > most:
            return PROCESSES
        # The first sum counts shared pages once per process; the exact sum is slow.
        if used > most_bytes and stored + sum(map(exact_bytes, pids)) > most_bytes:
            return MEMORY
        if any(free(folder) < floor for folder, floor in self.floors.items()):
            return DISK
        return FILES if any(free_files(f) < floor for f, floor in self.file_floors.items()) else 0

    def was_out_of_memory(self) -> bool:
        """Return whether the kernel has ended a process of the command for lack of memory."""
        counts = os.pread(self.events, 4096, 0) if self.events >= 0 else b""
        return any(
            line.startswith(b"oom_kill ") and line.split()[1] != b"0"
            for line in counts.splitlines()
        )

    def pids(self) -> list[int]:
        if not self.alone:
            return descendants(os.getpid())
        return [int(name) for name in os.listdir("/proc") if name.isdigit() and name != "1"]

    def kill_all(self, number: int) -> None:
        """Send a signal to every process of the command; in a namespace none can escape it."""
        if self.alone:
            # -1 means all processes of the namespace but process 1, which is this one. The kernel
            # goes through them in one step, so a fork bomb cannot outrun it.
            kill([-1], number)
        else:
            kill(self.pids(), number)


def free(folder: str) -> int:
    try:
        found = os.statvfs(folder)
    except OSError:
        # A folder that is gone cannot be filled.
        return 2**63
    return found.f_bavail * found.f_frsize


def free_files(folder: str) -> int:
    """Return how many files can still be made; file systems without a fixed number tell none."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return 2**63
    return found.f_favail if found.f_files else 2**63


def stored_bytes(folder: str) -> int:
    found = os.statvfs(folder)
    return (found.f_blocks - found.f_bfree) * found.f_frsize


def own_bytes(pid: int) -> int:
    """Return the memory of a process without the files that it has mapped.

    Memory that processes share counts for each of them.
    """
    try:
        text = read(f"/proc/{pid}/status")
    except OSError:
        return 0  # it has ended meanwhile
    return sum(_kilobytes(text, name) for name in (b"\nRssAnon:", b"\nRssShmem:")) * 1024


def _kilobytes(text: bytes, name: bytes) -> int:
    """Return a number of /proc/PID/status; 0 if it is not there, as of a process that ends."""
    _, found, rest = text.partition(name)
    return int(rest.split(maxsplit=1)[0]) if found else 0


def system_v_bytes() -> int:
    """Return the memory of the System V segments that were made in our pid namespace.

    They may be attached to no process, and outlive the one that made them.
    """
    try:
        names, *rows = [line.split() for line in read("/proc/sysvipc/shm").splitlines()]
    except (OSError, ValueError):
        return 0  # the kernel has none
    made_by, used = names.index(b"cpid"), names.index(b"rss")
    # The creator of a segment from outside of our pid namespace is shown as 0.
    return sum(int(row[used]) for row in rows if row[made_by] != b"0")


def exact_bytes(pid: int) -> int:
    """Return the proportional set size: a page shared by n processes counts as 1/n."""
    try:
        for line in read(f"/proc/{pid}/smaps_rollup").splitlines():
            if line.startswith(b"Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return own_bytes(pid)
