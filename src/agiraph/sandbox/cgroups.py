"""Control groups: limits that the kernel keeps for a command, its team and all commands together.

The groups are nested: one for all commands of this process, in it one for each team, in it one for
each command. Linux has version 1 (a tree for each controller) and version 2 (one tree). A process
may create groups if it is root, or if systemd delegated its own group to it. Where it may not, the
warden and the watchdog count alone.
"""

import contextlib
import errno
import os
import re
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from itertools import count
from pathlib import Path

from agiraph.core.domain.value import dataclass
from agiraph.sandbox.inside import processes
from agiraph.sandbox.sandbox import THREADS_PER_PROCESS, Limits

CONTROLLERS = ("pids", "memory")
"""The controllers that agiraph uses. `cpu` is not one of them: with a small share of a busy
processor, a fork bomb and the warden that counts its processes run so slowly that it takes many
seconds to end. Without the limit it ends in less than one."""
MEMORY_FILE = {1: "memory.limit_in_bytes", 2: "memory.max"}
EVENTS_FILE = {1: "memory.oom_control", 2: "memory.events"}
"""The file that counts the processes which the kernel killed for lack of memory."""
HEADROOM = 1.125
"""The factor by which the kernel's memory limits exceed those of the warden. So the warden ends
a command that grows slowly, with all its processes and a reason, before the kernel kills single
ones."""
_OURS = re.compile(r"agiraph-(\d+)-(\d+)")
"""The name of a process's group: its pid and its start time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """The groups of one command."""

    procs: tuple[str, ...] = ()
    """The files by which a process joins them."""
    events: str = ""
    """The file that counts kills for lack of memory."""


NOWHERE = Placement()
_numbers = count()
"""Counts the commands of this process, for the names of their groups."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """A mounted hierarchy, and this process's own group in it."""

    folder: Path
    controllers: tuple[str, ...]


@dataclass(slots=True, kw_only=True)
class Groups:
    """The groups of this process's commands."""

    version: int
    bases: Mapping[Path, Sequence[str]]
    """The group of all commands in each tree, and the tree's controllers."""
    _running: Counter[str] = field(default_factory=Counter[str], init=False)
    _set: dict[Path, str] = field(default_factory=dict[Path, str], init=False)
    """The limits that were written already, by file."""

    @contextmanager
    def command(self, team: str, limits: Limits) -> Generator[Placement]:
        """Make the groups of a command for the time of the block; none if the kernel refuses.

        At the end no process of the command may be left.
        """
        number = f"command-{next(_numbers)}"
        name = f"team-{team}"
        self._running[name] += 1
        made: list[Path] = []
        try:
            events = ""
            for base, controllers in self.bases.items():
                made.append(self._make(base, name, number, limits))
                if "memory" in controllers:
                    events = str(made[-1] / EVENTS_FILE[self.version])
            procs = tuple(str(group / "cgroup.procs") for group in made)
            yield Placement(procs=procs, events=events)
        finally:
            self._running[name] -= 1
            if not self._running[name]:
                del self._running[name]
            for group in made:
                self._remove(group)
                if not self._running[name]:
                    self._remove(group.parent)
            if not self._running:
                self.close()

    def _make(self, base: Path, team: str, number: str, limits: Limits) -> Path:
        group = base / team / number
        group.parent.mkdir(parents=True, exist_ok=True)
        controllers = self.bases[base]
        if self.version == 2:
            for above in (base, base / team):
                self._write(above / "cgroup.subtree_control", _enabling(controllers))
        group.mkdir()
        for folder, most_processes, most_mib in (
            (base, limits.all_processes, limits.all_memory_mib),
            (base / team, limits.team_processes, limits.team_memory_mib),
            (group, limits.processes, limits.memory_mib),
        ):
            if "pids" in controllers:
                self._write(folder / "pids.max", str(most_processes * THREADS_PER_PROCESS))
            if "memory" in controllers:
                most_bytes = int(most_mib * HEADROOM) * processes.MIB
                self._write(folder / MEMORY_FILE[self.version], str(most_bytes))
        return group

    def _write(self, file: Path, value: str) -> None:
        if self._set.get(file) == value:
            return
        try:
            file.write_text(value)
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
            return  # more is in use than a lowered limit allows: the next command tries again
        self._set[file] = value

    def _remove(self, group: Path) -> None:
        _remove(group)
        for file in [file for file in self._set if file.parent == group]:
            del self._set[file]

    def close(self) -> None:
        """Remove the group of all commands, which have ended; the next command makes it anew."""
        for base in self.bases:
            self._remove(base)


_found: dict[int, Groups | None] = {}


def find() -> Groups | None:
    """Return the groups of this process; None if it cannot create any here."""
    if (pid := os.getpid()) not in _found:  # a forked process has its own
        _found[pid] = _create(trees())
    return _found[pid]


def trees(mounts: str | None = None, own: str | None = None) -> tuple[int, tuple[Tree, ...]] | None:
    """Return the version and the trees that have the controllers; None if there are none.

    The arguments are the texts of /proc/self/mountinfo and /proc/self/cgroup.
    """
    mounts = Path("/proc/self/mountinfo").read_text() if mounts is None else mounts
    own = Path("/proc/self/cgroup").read_text() if own is None else own
    paths = {
        name: path
        for _, names, path in (line.split(":", 2) for line in own.splitlines())
        for name in names.split(",")  # several controllers may have one tree
    }
    one: dict[str, Tree] = {}
    for line in mounts.splitlines():
        where, _, kind = line.partition(" - ")
        root, point = where.split()[3:5]
        system, _, options = kind.split(" ", 2)
        if system == "cgroup2" and "" in paths:
            folder = _inside(point, root, paths[""])
            if set(CONTROLLERS) <= set(found := _controllers(folder)):
                return 2, (Tree(folder=folder, controllers=found),)
        for name in CONTROLLERS if system == "cgroup" else ():
            if name in options.split(",") and name in paths:
                one[name] = Tree(folder=_inside(point, root, paths[name]), controllers=(name,))
    return (1, tuple(one.values())) if set(CONTROLLERS) <= one.keys() else None


def _inside(point: str, root: str, path: str) -> Path:
    """Return the folder of a group; `root` is the group at which the tree is mounted."""
    return Path(point) / path.removeprefix(root if root != "/" else "").lstrip("/")


def _controllers(folder: Path) -> tuple[str, ...]:
    """Return which of the controllers that we use a control group (cgroup v2) offers."""
    with contextlib.suppress(OSError):
        known = (folder / "cgroup.controllers").read_text().split()
        return tuple(name for name in CONTROLLERS if name in known)
    return ()


def _enabling(controllers: Sequence[str]) -> str:
    return " ".join(f"+{name}" for name in controllers)


def _create(found: tuple[int, tuple[Tree, ...]] | None) -> Groups | None:
    """Try to create, in each hierarchy of control groups, the group that holds all commands."""
    if found is None:
        return None
    version, where = found
    name = f"agiraph-{os.getpid()}-{processes.born(os.getpid())}"
    made = Groups(version=version, bases={tree.folder / name: tree.controllers for tree in where})
    try:
        for tree in where:
            if version == 2:
                _leave(tree, name)
            _sweep(tree.folder)
        with made.command("probe", Limits().for_machine()):
            return made
    except OSError:
        made.close()
        return None


def _leave(tree: Tree, name: str) -> None:
    """Move this process into a group of its own, so that groups beside it can have limits.

    Version 2 limits only groups without processes of their own. Raise OSError if systemd has not
    delegated the group to us: then its processes are not ours to move.
    """
    folder = tree.folder
    if not any(_xattr(folder, f"{kind}.delegate") == b"1" for kind in ("user", "trusted")):
        raise PermissionError(f"{folder} is not delegated")
    own = folder / f"{name}-runtime"
    own.mkdir()
    (own / "cgroup.procs").write_text(str(os.getpid()))
    try:
        (folder / "cgroup.subtree_control").write_text(_enabling(tree.controllers))
    except OSError:
        (folder / "cgroup.procs").write_text(str(os.getpid()))
        _remove(own)
        raise


def _xattr(folder: Path, name: str) -> bytes:
    with contextlib.suppress(OSError):
        return os.getxattr(folder, name)
    return b""


def _sweep(folder: Path) -> None:
    """Remove groups that killed agiraph processes left behind."""
    for group in folder.glob("agiraph-*"):
        if (named := _OURS.match(group.name)) and processes.born(int(named[1])) != int(named[2]):
            for inner in (*group.glob("*/*/"), *group.glob("*/"), group):
                _remove(inner)


def _remove(group: Path) -> None:
    with contextlib.suppress(OSError):  # it is gone, or a process in it has not ended yet
        group.rmdir()


def move(placed: Placement, pid: int) -> None:
    """Move a process into a command's groups, with all its future children; it may have ended.

    The kernel takes about ten milliseconds for the first move after a pause: it waits until every
    processor has passed a quiet state. So the runtime moves the supervisor while Python starts in
    it. What the runtime could not move, the warden moves itself.
    """
    with contextlib.suppress(OSError):
        for procs in placed.procs:
            Path(procs).write_text(str(pid))


@contextmanager
def placing(team: str, limits: Limits) -> Generator[Placement]:
    """Make the groups of a command for the time of the block, where this process can.

    Raise OSError if the kernel refuses them to this command.
    """
    found = find()
    if found is None:
        yield NOWHERE
        return
    with found.command(team, limits) as placed:
        yield placed


def describe(found: Groups | None) -> str:
    return "" if found is None else f"cgroup v{found.version}"
