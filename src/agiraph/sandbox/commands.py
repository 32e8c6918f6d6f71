"""Commands: runs a command under its supervisor, or reads from its spool how it ended.

A spool is the directory of one command. `started.json` is durable before the command starts,
`result.json` once no process of it is alive; `output` grows meanwhile. `resolve` is the only way to
learn how a command ended, and `run` uses it too, so recovery after a crash is no separate code.
"""

import asyncio
import contextlib
import hashlib
import os
import re
import shutil
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict, Unpack, cast

import orjson

from agiraph.core.domain.errors import Conflict, Refused, StoreFull
from agiraph.core.domain.value import dataclass
from agiraph.faultpoints import fault
from agiraph.sandbox import cgroups, sandbox
from agiraph.sandbox.command_output import OutputListener, excerpt
from agiraph.sandbox.gate_channel import Serve, receiving
from agiraph.sandbox.inside import processes, supervisor
from agiraph.sandbox.inside.processes import (
    ALL_MEMORY,
    ALL_PROCESSES,
    COUNT_BYTES,
    MIB,
    TEAM_MEMORY,
    TEAM_PROCESSES,
)
from agiraph.sandbox.inside.supervisor_process import (
    PATIENCE,
    ChildPipes,
    SupervisorProcess,
    lock_directory,
    open_directory,
)
from agiraph.sandbox.sandbox import DEFAULT_LIMITS, Limits, Spec

PAUSE_S = 0.05
"""Seconds between two looks at all counts."""
IDLE_S = 5.0
"""Seconds after the last command until the thread ends."""


@dataclass(slots=True, eq=False)
class Usage:
    """A running command, its file of counts and the pipe by which it is ended."""

    counts: int
    control: int
    team: str
    limits: Limits
    processes: int = field(default=0, init=False)
    memory: int = field(default=0, init=False)
    is_ended: bool = field(default=False, init=False)

    def read(self) -> None:
        found = os.pread(self.counts, COUNT_BYTES, 0)
        self.processes = int.from_bytes(found[:8], "little")
        self.memory = int.from_bytes(found[8:], "little")

    def end(self, limit: int) -> None:
        """Have the supervisor end the command for this limit."""
        self.is_ended = True
        with contextlib.suppress(OSError):  # it has ended by itself
            os.write(self.control, bytes([limit]))


class Watchdog:
    """Watches all running commands of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[Usage] = set()
        self._thread: threading.Thread | None = None
        self._changed = threading.Event()

    def add(self, usage: Usage) -> None:
        with self._lock:
            self._running.add(usage)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._watch, name="watchdog of commands", daemon=True
                )
                self._thread.start()
        self._changed.set()

    def remove(self, usage: Usage) -> None:
        """Forget a command. Afterwards its descriptors are not used any more."""
        with self._lock:
            self._running.discard(usage)

    def _watch(self) -> None:
        while True:
            with self._lock:
                is_idle = not self._running
                check(self._running)
            if not is_idle:
                self._changed.clear()
                # Nothing sets the event of a busy watchdog: this is a pause.
                threading.Event().wait(PAUSE_S)
            elif self._changed.wait(IDLE_S):
                # Also here: a short command may have come and gone since the last look, and with
                # the event still set this loop would never wait again.
                self._changed.clear()
            elif self._may_end():
                return

    def _may_end(self) -> bool:
        with self._lock:
            if not self._running:
                self._thread = None
            return self._thread is None


def check(running: Iterable[Usage]) -> None:
    """Read all counts and end what uses most where a limit is exceeded."""
    live = [usage for usage in running if not usage.is_ended]
    for usage in live:
        usage.read()
    for team in {usage.team for usage in live}:
        mates = [usage for usage in live if usage.team == team]
        _end_largest(mates, lambda u: u.processes, lambda m: m.team_processes, TEAM_PROCESSES)
        _end_largest(mates, lambda u: u.memory, lambda m: m.team_memory_mib * MIB, TEAM_MEMORY)
    live = [usage for usage in live if not usage.is_ended]
    _end_largest(live, lambda u: u.processes, lambda m: m.all_processes, ALL_PROCESSES)
    _end_largest(live, lambda u: u.memory, lambda m: m.all_memory_mib * MIB, ALL_MEMORY)


def _end_largest(
    running: list[Usage],
    used: Callable[[Usage], int],
    most: Callable[[Limits], int],
    limit: int,
) -> None:
    """End the largest command if all together exceed the lowest limit among theirs.

    A single command is left to its own limit.
    """
    live = [usage for usage in running if not usage.is_ended]
    if len(live) > 1 and sum(map(used, live)) > min(most(usage.limits) for usage in live):
        max(live, key=used).end(limit)


_watchdog = Watchdog()


@contextmanager
def watching(usage: Usage) -> Generator[None]:
    """Watch a command for the time of the block."""
    _watchdog.add(usage)
    try:
        yield
    finally:
        _watchdog.remove(usage)


INHERITED = ("PATH", "LANG", "LC_ALL", "TERM", "TMPDIR", "TZ")
"""The allow-list of variables that a command inherits. A deny-list would have gaps."""

COMMAND_MAX = 128 * 1024 - 1
"""The longest single argument that Linux passes to a process, in bytes."""

RESOLVE_MAX = 3.0
"""Seconds that `resolve` waits for processes to end; after half of them it kills them."""

LEAST_KILLS = 50
"""How often `resolve` kills what is left, ten milliseconds apart, before it gives up."""

LEAST_ROOM = 64 * 1024
"""With fewer bytes free than this, a command that did not start had no space for its spool."""

Ended = Literal["exited", "timed_out", "cancelled", "interrupted", "over_limit"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """How a command ended, and its output."""

    exit_code: int | None
    """As in a shell: 128 + n after signal n. None if it did not end by itself."""
    ended: Ended
    """Interrupted: the runtime or the supervisor died while it ran."""
    output: str
    output_bytes: int
    output_path: Path
    seconds: float
    limit: str = ""
    """The limit it exceeded, as the rest of a sentence; empty if none."""


def child_environment(home: Path, extra: Mapping[str, str] = {}) -> dict[str, str]:
    """Return the environment of a command: the allow-list, HOME, and declared variables."""
    inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
    return inherited | {"HOME": str(home)} | dict(extra)


class Child(TypedDict):
    """What is run: a shell command, where, and how it is confined."""

    command: str
    cwd: Path
    env: Mapping[str, str]
    spec: NotRequired[Spec | None]
    """Without it the command is not confined."""
    limits: NotRequired[Limits]
    team: NotRequired[str]


async def run(
    spool: Path,
    *,
    timeout: float,
    on_output: Callable[[bytes], None] | None = None,
    serve: Serve | None = None,
    pipes: ChildPipes | None = None,
    **child: Unpack[Child],
) -> CommandResult:
    """Run a command and return how it ended; if the spool has a result already, return that.

    If its network is "gate", `serve` gets a listener on its loopback before it starts, and owns
    that socket. `pipes` are its input and its output;
    without them it has no input, and its output is kept in the spool. If the runtime dies, no
    process of the command survives. Call this on a thread that lives as long as the runtime:
    PR_SET_PDEATHSIG fires when the thread that started the supervisor ends, not only when the
    process does.
    """
    command, cwd, env = child["command"], child["cwd"], child["env"]
    limits, team = child.get("limits", DEFAULT_LIMITS), child.get("team", "")
    _check(command, cwd)
    digest = hashlib.sha256(command.encode()).hexdigest()
    if (known := await asyncio.to_thread(_prepare, spool, digest)) is not None:
        return known
    fault("fx:before:spawn")
    with contextlib.ExitStack() as groups:  # removed when no process of the command is left
        try:
            placed = groups.enter_context(cgroups.placing(team, limits.for_machine()))
            spec, env = sandbox.with_temporary_folder(child.get("spec"), env, spool)
            encoded = sandbox.encode(
                spec,
                limits,
                has_pipes=pipes is not None,
                groups=placed.procs,
                events=placed.events,
            )
            arguments = [str(timeout), str(cwd), digest, encoded, command]
            process = SupervisorProcess(spool, arguments, env, pipes)
        except OSError as error:
            return _interrupted(spool, why=f"The command could not be started: {error}")
        usage = Usage(process.counts, process.control, team, limits.for_machine())
        with contextlib.closing(process), watching(usage):
            fault("fx:after:spawn")
            moving = asyncio.ensure_future(asyncio.to_thread(cgroups.move, placed, process.pid))
            async with receiving(process.channel, serve):
                listener = OutputListener(spool / "output", on_output)
                cancelled = await process.end(timeout + PATIENCE, listener)
            # Before the process is reaped: its pid must not come to mean another one.
            await asyncio.wait([moving])
        result = await asyncio.to_thread(resolve, spool)
    # Only now, after `resolve`: when a caller sees the cancellation, no process of the command is
    # left.
    if cancelled is not None:
        raise cancelled
    fault("fx:after:command")
    return result or _not_started(spool)


def _not_started(spool: Path) -> CommandResult:
    """Return the result of a command whose supervisor could not start it."""
    if shutil.disk_usage(spool).free < LEAST_ROOM:
        # The supervisor could not write started.json, so the command did not start.
        raise StoreFull(f"There is no room on the disk for the output of a command in {spool}.")
    return _interrupted(spool, why="The command could not be started.")


def resolve(spool: Path) -> CommandResult | None:
    """Return how the command of a spool ended; None if it never started.

    For a command that no runtime is running: its surviving processes are killed. Blocks for about
    three seconds at most, until they are gone.
    """
    spool = spool.absolute()
    if not spool.is_dir():
        return None
    is_over = _see_it_end(spool)
    if (result := _read(spool / "result.json")) is None:
        never_began = is_over and not (spool / "started.json").exists()
        return None if never_began else _interrupted(spool)
    output_bytes = cast(int, result["output_bytes"])
    killed_by = cast(int | None, result["signal"])
    return CommandResult(
        exit_code=128 + killed_by if killed_by else result["exit_code"],
        ended=result["ended"],
        output=excerpt(spool / "output", output_bytes),
        output_bytes=output_bytes,
        output_path=spool / "output",
        seconds=result["seconds"],
        limit=result.get("limit", ""),
    )


def is_alive(spool: Path) -> bool:
    """Return whether a process of the spool's command is alive."""
    return bool(_survivors(spool.absolute()))


def _check(command: str, cwd: Path) -> None:
    if not cwd.is_dir():
        raise Refused(f"There is no folder {str(cwd)!r} to run the command in.")
    try:
        size = len(command.encode())
    except UnicodeEncodeError as error:
        raise Refused("The command is not valid text; write it again.") from error
    if "\0" in command:
        raise Refused("The command contains a NUL character; leave it out.")
    if size > COMMAND_MAX:
        raise Refused(
            f"The command has {size} bytes, at most {COMMAND_MAX} fit: run it from a file."
        )


def _prepare(spool: Path, digest: str) -> CommandResult | None:
    """Return the result of an earlier run of this call, so that a command never runs twice.

    If there is none, create the spool, the folder for the command's output and result, and sync
    it to the disk, so that a crash cannot lose it once the command runs.
    """
    if (known := resolve(spool)) is not None:
        started = _read(spool / "started.json")
        if started is not None and started["command_sha256"] != digest:
            raise Conflict(f"Another command was run in {str(spool)!r}; take a new spool.")
        return known
    missing = [path for path in (spool, *spool.parents) if not path.exists()]
    for path in reversed(missing or [spool]):
        path.mkdir(mode=0o700, exist_ok=True)
        with contextlib.ExitStack() as files:
            os.fsync(open_directory(path.parent, files))
    return None


def _see_it_end(spool: Path) -> bool:
    """Wait for the command's processes to end, then kill them; return whether none is left."""
    begun = time.monotonic()
    kills = 0
    with contextlib.ExitStack() as files:
        directory = open_directory(spool, files)
        while True:
            is_released = lock_directory(directory)
            survivors = _survivors(spool)
            if is_released and not survivors:
                return True
            now = time.monotonic()
            # If the machine stood still, the time was over before anything was killed or could end.
            if kills >= LEAST_KILLS and now - begun > RESOLVE_MAX:
                return False
            if is_released or now - begun > RESOLVE_MAX / 2:
                processes.kill(survivors, signal.SIGKILL)
                kills += 1
            time.sleep(0.01)


def _survivors(spool: Path) -> list[int]:
    started = _read(spool / "started.json")
    if started is None or started["boot"] != processes.boot():
        return []
    recorded = ((started["pid"], started["born"]), (started["warden"], started["warden_born"]))
    alive = [pid for pid, born in recorded if born and processes.born(pid) == born]
    if started["isolation"] == "plain" and not (spool / "result.json").exists():
        alive += _marked(spool)
    return alive


def _marked(spool: Path) -> list[int]:
    """Return the processes with this spool's mark; needed if their supervisor died first."""
    mark = f"{supervisor.SPOOL_MARK}={spool}".encode()
    found: list[int] = []
    for process in Path("/proc").glob("[0-9]*") if processes.proc_is_ours() else ():
        with contextlib.suppress(OSError):
            if mark in (process / "environ").read_bytes().split(b"\0"):
                found.append(int(process.name))
    return found


def _read(path: Path) -> dict[str, Any] | None:
    try:
        return orjson.loads(path.read_bytes())
    except FileNotFoundError:
        return None


def _interrupted(spool: Path, *, why: str = "") -> CommandResult:
    """Return the result of a command whose end was not recorded."""
    path = spool / "output"
    started = _read(spool / "started.json")
    known = path.stat() if started is not None and path.exists() else None
    return CommandResult(
        exit_code=None,
        ended="interrupted",
        output=excerpt(path, known.st_size) if known else why,
        output_bytes=known.st_size if known else 0,
        output_path=path,
        seconds=max(0.0, known.st_mtime - started["at"]) if known and started else 0.0,
    )


LONGEST_BYTES = 130_000
"""Commands longer than this run as they are, without pipefail: with our addition they could exceed
the length that Linux allows for one argument."""
_READS_A_PART = re.compile(r"\|\s*(?:head\b|grep\s+(?:-\w+\s+)*-\w*[qm]|sed\s.*q\b)")
"""Stages that end before they have read everything, so that the stage before gets SIGPIPE."""
_ON_EXIT = """\
__c=$? __p=("${PIPESTATUS[@]}"); \
if [ "${#__p[@]}" -gt 1 ]; then \
__l=0 __n=0; \
for __s in "${__p[@]}"; do \
if [ "$__s" != 0 ]; then __l=$__s; fi; \
if [ "$__s" != 0 ] && [ "$__s" != 141 ]; then __n=$__s; fi; \
done; \
if [ "$__c$__s$__lax" = 001 ]; then __c=$__n __l=$__n; fi; \
if [ "$__l" = "$__c" ] && [ "$__c" != 0 ]; then \
if [ "$__c" = 141 ] && [ "$__s" = 0 ]; then __c=$__n; fi; \
if [ "$__c" != 0 ]; then echo "[exit codes of the pipe: ${__p[*]}]" >&2; fi; \
fi; fi; exit "$__c\""""


def reporting(command: str) -> str:
    """Return the command so that bash reports the failure of any stage of its last pipe.

    It stays on its line, so that the numbers in error messages are right. Another shell runs it as
    it is.
    """
    if len(command.encode(errors="replace")) > LONGEST_BYTES:
        return command
    lax = _may_be_misled(command)
    option = "" if lax else "set -o pipefail; "
    return (
        f"if [ -n \"$BASH_VERSION\" ]; then __lax={int(lax)}; trap '{_ON_EXIT}' EXIT; "
        f"{option}fi; {command}"
    )


def _may_be_misled(command: str) -> bool:
    """Whether `pipefail` could make the command take the wrong branch.

    In `yes | head -1 && make` the code 141 would keep `make` from running. Such a command runs
    without the option, and the codes of its last pipe alone are looked at.
    """
    last_branch = max(command.rfind(word) for word in ("&&", "||", "if ", "while ", "set -e"))
    return any(
        found.start() < last_branch or "if " in command or "while " in command
        for found in _READS_A_PART.finditer(command)
    ) or ("set -e" in command and _READS_A_PART.search(command) is not None)
