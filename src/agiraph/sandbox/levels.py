"""Levels: chooses once how commands are confined on this machine, and reports what is not enforced.

Each level is tried with a real command: it must work in its folder, and must not read a file nor
connect to a socket outside. Only a definite refusal of the kernel makes the next level be tried. A
passing failure, such as a lack of memory, does not: a runtime must not lose its sandbox because the
machine was busy at its start.
"""

import asyncio
import contextlib
import errno
import logging
import os
import socket
import tempfile
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal

from agiraph.core.domain.value import dataclass
from agiraph.core.home.safe_folder import PARTIAL
from agiraph.sandbox import bubblewrap, cgroups, commands, sandbox
from agiraph.sandbox.commands import CommandResult
from agiraph.sandbox.inside import landlock
from agiraph.sandbox.sandbox import Level, Limits, Mount, Spec

log: logging.Logger = logging.getLogger("agiraph.commands")

Wanted = Literal["", "bubblewrap", "namespaces", "landlock", "none"]
"""The level that a person named; empty: the best one."""
KNOWN = ("bubblewrap", "namespaces", "landlock", "none")
TRIES = 3
PROBE_SECONDS = 30.0
PASSING = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EINTR, errno.ENOSPC)
"""Errors that say nothing about what the kernel allows. ENOSPC: too many namespaces exist."""
NO_NAMESPACES = ("/proc/sys/user/max_user_namespaces", "/proc/sys/user/max_pid_namespaces")

ALWAYS_OPEN = (
    "A kernel bug, and the load that other commands cause.",
    "What a host or a folder that a person granted is told or given.",
)
NOT_HELD: dict[Level, tuple[str, ...]] = {
    "bubblewrap": ALWAYS_OPEN,
    "namespaces": ALWAYS_OPEN,
    "landlock": (
        *ALWAYS_OPEN,
        "Names of files outside, and whether a process exists.",
        "Processes that detach are found by a mark in their environment, not by the kernel.",
        "There is no gate: a command has no network, or the machine's.",
    ),
    "none": ("Everything: a command can read and change all that your user can.",),
}
"""What each level does not hold, for people."""
LIMITED_BY: dict[Level, str] = {
    "bubblewrap": "pid_max, rlimits, sizes of tmpfs and a count every 20 to 50 ms",
    "namespaces": "pid_max, rlimits, sizes of tmpfs and a count every 20 to 50 ms",
    "landlock": "rlimits and a count every 250 ms",
    "none": "rlimits of file sizes and a count every 20 to 250 ms",
}
"""How the limits of processes, memory and disk are kept on each level."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Confinement:
    """How commands are confined on this machine."""

    level: Level
    has_spare_user: bool = False
    """Whether commands of root run as another user, one for each team."""
    reasons: tuple[str, ...] = ()
    """Why better levels were not taken, or why this one may fail."""
    groups: str = ""
    """The control groups that hold limits as well, such as "cgroup v2"; empty: none."""
    is_named: bool = False
    """Whether a person named the level in the settings."""

    @property
    def is_confined(self) -> bool:
        return self.level != "none"

    @property
    def has_gate(self) -> bool:
        return self.level in ("bubblewrap", "namespaces")

    @property
    def not_held(self) -> tuple[str, ...]:
        return NOT_HELD[self.level]

    @property
    def limited_by(self) -> str:
        """How the limits of processes, memory and disk are kept, as a part of a sentence."""
        return ", ".join(part for part in (self.groups, LIMITED_BY[self.level]) if part)

    def describe(self) -> str:
        """Say in one or two sentences how commands are confined."""
        if not self.is_confined:
            named = "agiraph.toml names it" if self.is_named else "; ".join(self.reasons)
            return (
                f"Commands are not confined ({named}): each one can read the token and the "
                "database of agiraph, and has all your permissions. Each asks unless you allow it."
            )
        user = ", as a spare user of its team" if self.has_spare_user else ""
        return f"Commands are confined by {self.level}{user}; limits by {self.limited_by}."


NOT_CONFINED = Confinement(level="none", is_named=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandRules:
    """Rules for every command of this runtime."""

    limits: Limits = Limits()
    masked: tuple[Path, ...] = ()
    """Files that no command may see: the database, if it lies outside of the home."""
    readable: tuple[Path, ...] = ()
    """Paths of the machine that a person lets every command read."""
    confinement: Confinement = field(default_factory=lambda: Confinement(level="namespaces"))
    """How commands are confined. Chosen when the runtime starts."""

    @classmethod
    def of(
        cls, limits: Limits | None, masked: tuple[Path, ...], readable: tuple[Path, ...]
    ) -> "CommandRules":
        return cls(limits=limits or Limits(), masked=masked, readable=readable)

    def confined(self, wanted: "Wanted", home: Path) -> "CommandRules":
        """Return these rules with the level that works in this home."""
        return replace(self, confinement=choose(wanted, home))


def choose(wanted: Wanted = "", home: Path | None = None) -> Confinement:
    """Return the level at which this runtime confines commands. Tried once per file system.

    A level that a person named is taken even if it does not work here: then commands fail with the
    reason, and are never run without it.
    """
    if wanted == "none":
        return replace(NOT_CONFINED, groups=cgroups.describe(cgroups.find()))
    place = Path(tempfile.gettempdir())
    with contextlib.suppress(OSError), tempfile.TemporaryDirectory(dir=home) as tried:
        # Where the home cannot be written, nothing runs; `doctor` still names the level.
        place = Path(tried).parent
    return _choose(wanted, place.stat().st_dev, str(place))


_chosen: dict[tuple[str, int], Confinement] = {}


def _choose(wanted: Wanted, device: int, place: str) -> Confinement:
    if (known := _chosen.get((wanted, device))) is not None:
        return known
    made = choose_by(partial(_try, place), wanted)
    made = replace(made, groups=cgroups.describe(cgroups.find()))
    _chosen[wanted, device] = made
    return made


def knows(home: Path) -> bool:
    """Return whether the best level for this file system is known."""
    return ("", home.stat().st_dev) in _chosen


def learn(home: Path, found: Confinement) -> None:
    """Take over what another process of this machine has chosen for this file system."""
    _chosen["", home.stat().st_dev] = found


def candidate_levels() -> list[tuple[Level, bool]]:
    """Return levels in the order of preference, and whether they use a spare user."""
    # Only our own namespaces can run root's command as another user. Root without capabilities
    # still has access that another user has not.
    if os.geteuid() == 0:
        return [
            ("namespaces", True), ("namespaces", False), ("bubblewrap", False), ("landlock", False)
        ]  # fmt: skip
    return [("bubblewrap", False), ("namespaces", False), ("landlock", False)]


Attempt = Callable[[Level, bool], tuple[int | None, str]]
"""Runs a probe at a level, with or without a spare user; returns its exit code and what it said."""


def choose_by(attempt: Attempt, wanted: Wanted = "") -> Confinement:
    """Return the best level at which an attempt succeeds."""
    reasons: list[str] = []
    candidates = [c for c in candidate_levels() if wanted in ("", c[0])]
    for level, has_spare_user in candidates:
        made = Confinement(level=level, has_spare_user=has_spare_user, is_named=bool(wanted))
        for number in range(1, TRIES + 1):
            code, said = attempt(level, has_spare_user)
            if code == 0:
                return replace(made, reasons=tuple(reasons))
            said = said or f"its probe ended with {code}"
            if code is not None and not _is_passing(said):
                reasons.append(f"{level}: {said}")
                break
            if number == TRIES:
                # The commands will fail with this reason until it passes.
                return replace(made, reasons=(*reasons, f"{level}: {said}"))
    if wanted:
        return Confinement(level=candidates[-1][0], reasons=tuple(reasons), is_named=True)
    return Confinement(level="none", reasons=tuple(reasons))


def _is_passing(said: str) -> bool:
    """Whether a failure says nothing about what the kernel allows."""
    if f"[Errno {errno.ENOSPC}]" in said and _has_no_namespaces():
        return False
    return any(f"[Errno {number}]" in said for number in PASSING)


def _try(place: str, level: Level, has_spare_user: bool) -> tuple[int | None, str]:
    """Run a command at this level that must fail to get out."""
    if level == "bubblewrap" and not bubblewrap.is_installed():
        return 1, "bwrap is not installed"
    if level == "landlock" and (found := landlock.version()) < landlock.LEAST_VERSION:
        return 1, f"the kernel has version {found} of it, {landlock.LEAST_VERSION} is needed"
    with (
        # Named like a file that is being written: no walk over the home, such as that of a backup,
        # looks into it.
        tempfile.TemporaryDirectory(prefix=f"{PARTIAL}probe-", dir=place) as name,
        socket.create_server(("127.0.0.1", 0)) as server,
    ):
        folder = Path(name).resolve()
        return _run_probe(level, has_spare_user, folder, server.getsockname()[1])


def _has_no_namespaces() -> bool:
    def read(path: str) -> str:
        with contextlib.suppress(OSError):
            return Path(path).read_text().strip()
        return ""

    return any(read(path) == "0" for path in NO_NAMESPACES)


PROBE = (
    "cat ../secret 2>/dev/null && exit 91; "
    "(echo > /dev/tcp/127.0.0.1/{port}) 2>/dev/null && exit 92; "
    "echo x > written || exit 93; exit 0"
)
_HELD_NOT = {91: "a file outside can be read", 92: "the machine's loopback is in reach"}


def _run_probe(
    level: Level, has_spare_user: bool, folder: Path, port: int
) -> tuple[int | None, str]:
    """Run the probe under a supervisor; return its exit code and the last line of its output."""
    scratch, spool = folder / "scratch", folder / "spool"
    scratch.mkdir()
    spool.mkdir()
    (folder / "secret").write_text("a secret")
    (folder / "secret").chmod(0o644)  # not the file's own permissions are to hide it
    spec = Spec(
        level=level,
        mounts=(Mount(source=scratch, target=scratch, is_writable=True),),
        user=sandbox.FIRST_SPARE_USER if has_spare_user else 0,
    )
    result = _run_in_thread(
        commands.run(
            spool,
            command=PROBE.format(port=port),
            cwd=scratch,
            timeout=PROBE_SECONDS,
            env=commands.child_environment(scratch),
            spec=spec,
        )
    )
    said = result.output.strip().splitlines()[-1:] or [""]
    reason = said[0].removeprefix("The command could not be started: ")
    return result.exit_code, _HELD_NOT.get(result.exit_code or 0, reason)


def _run_in_thread(command: Coroutine[Any, Any, CommandResult]) -> CommandResult:
    """Run a command to its end, whether or not the calling thread has an event loop."""
    with ThreadPoolExecutor(1, thread_name_prefix="probe") as thread:
        return thread.submit(asyncio.run, command).result()


@cache
def warn_if_not_confined(found: Confinement) -> None:
    """Log a warning, once, if commands are not confined."""
    if not found.is_confined:
        log.warning("%s", found.describe())
