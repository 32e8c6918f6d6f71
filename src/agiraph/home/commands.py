"""Commands: runs a command under its supervisor, or reads from its spool how it ended.

A spool is the directory of one command. `started.json` is durable before the command starts,
`result.json` once no process of it is alive; `output` grows meanwhile. `resolve` is the only way to
learn how a command ended, and `run` uses it too, so recovery after a crash is no separate code.
"""

import asyncio
import contextlib
import fcntl
import hashlib
import importlib.util
import os
import shutil
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

import orjson

from agiraph.domain.errors import Conflict, Refused, StoreFull
from agiraph.faultpoints import fault
from agiraph.home import processes, sandbox, supervisor, watchdog
from agiraph.home.command_output import OutputListener, excerpt
from agiraph.home.gate_channel import Serve, receiving
from agiraph.home.sandbox import DEFAULT_LIMITS, Limits, Spec

INHERITED = ("PATH", "LANG", "LC_ALL", "TERM", "TMPDIR", "TZ")
"""The allow-list of variables that a command inherits. A deny-list would have gaps."""

COMMAND_MAX = 128 * 1024 - 1
"""The longest single argument that Linux passes to a process, in bytes."""

PATIENCE = 15.0
"""Seconds that a supervisor may take to end a command; after that the supervisor is killed."""

RESOLVE_MAX = 3.0
"""Seconds that `resolve` waits for processes to end; after half of them it kills them."""

LOWEST = 10
"""Above every descriptor that a supervisor is given by its number."""
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


async def run(
    spool: Path,
    *,
    command: str,
    cwd: Path,
    timeout: float,
    env: Mapping[str, str],
    spec: Spec | None = None,
    limits: Limits = DEFAULT_LIMITS,
    team: str = "",
    on_output: Callable[[bytes], None] | None = None,
    serve: Serve | None = None,
) -> CommandResult:
    """Run a command and return how it ended; if the spool has a result already, return that.

    Without a spec the command is not confined. If its network is "gate", `serve` gets a listener on
    its loopback before it starts, and owns that socket. If the runtime dies, no process of the
    command survives. Call this on a thread that lives as long as the runtime: PR_SET_PDEATHSIG
    fires when the thread that started the supervisor ends, not only when the process does.
    """
    _check(command, cwd)
    digest = hashlib.sha256(command.encode()).hexdigest()
    if (known := await asyncio.to_thread(_prepare, spool, digest)) is not None:
        return known
    fault("fx:before:spawn")
    try:
        spec, env = sandbox.with_temporary_folder(spec, env, spool)
        arguments = [str(timeout), str(cwd), digest, sandbox.encode(spec, limits), command]
        process = _Process(spool, arguments, env)
    except OSError as error:
        return _interrupted(spool, why=f"The command could not be started: {error}")
    usage = watchdog.Usage(process.counts, process.control, team, limits.for_machine())
    with contextlib.closing(process), watchdog.watching(usage):
        fault("fx:after:spawn")
        async with receiving(process.channel, serve):
            listener = OutputListener(spool / "output", on_output)
            cancelled = await process.end(timeout + PATIENCE, listener)
    result = await asyncio.to_thread(resolve, spool)
    # Only now, after `resolve`: when a caller sees the cancellation, no process of the command is
    # left.
    if cancelled is not None:
        raise cancelled
    fault("fx:after:command")
    if result is None and shutil.disk_usage(spool).free < LEAST_ROOM:
        # The supervisor could not write started.json, so the command did not start.
        raise StoreFull(f"There is no room on the disk for the output of a command in {spool}.")
    return result or _interrupted(spool, why="The command could not be started.")


def resolve(spool: Path) -> CommandResult | None:
    """Return how the command of a spool ended; None if it never started.

    For a command that no runtime is running: its surviving processes are killed. Blocks for up to
    three seconds until they are gone.
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


class _Process:
    """A running supervisor, with its control pipe and a pidfd to wait on."""

    def __init__(self, spool: Path, arguments: list[str], env: Mapping[str, str]) -> None:
        spool = spool.absolute()
        python = [sys.executable, "-I", "-S", _script(), str(spool), str(os.getpid())]
        # `theirs` closes our copies of the child's ends. With them open, a write to a dead
        # supervisor would not fail, and its ticks would never reach their end.
        with contextlib.ExitStack() as theirs, contextlib.ExitStack() as ours:
            lock = _open_directory(spool, theirs)
            if not _lock(lock):
                raise Conflict(f"The command of {str(spool)!r} is already running.")
            control, self.control = _pipe(theirs, ours)
            self.ticks, ticks = _pipe(ours, theirs)
            self.channel, channel = socket.socketpair()
            ours.enter_context(self.channel)
            theirs.enter_context(channel)
            self.counts = os.memfd_create("counts")
            ours.callback(os.close, self.counts)
            sources = (control, ticks, lock, channel.fileno(), self.counts)
            # Moved out of the way: else one target could close a source that comes later.
            moved = [fcntl.fcntl(source, fcntl.F_DUPFD_CLOEXEC, LOWEST) for source in sources]
            for descriptor in moved:
                theirs.callback(os.close, descriptor)
            self.pid = os.posix_spawn(
                sys.executable,
                python + arguments,
                env,
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, source, target)
                    for source, target in zip(moved, supervisor.DESCRIPTORS, strict=True)
                ],
                # Ctrl-C in a terminal must reach only the runtime, which ends commands in order.
                setsid=True,
                setsigmask=(),
                setsigdef=signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP},
            )
            # Unlike a pid, a pidfd never comes to mean another process.
            self.descriptor = os.pidfd_open(self.pid)
            ours.callback(os.close, self.descriptor)
            self.let_go = ours.pop_all().close

    async def end(self, patience: float, listener: OutputListener) -> asyncio.CancelledError | None:
        """Wait until the supervisor is dead, even if cancelled; return the cancellation, if any.

        A cancellation is passed on to the command and does not end the wait: returning earlier
        would leave processes behind.
        """
        loop = asyncio.get_running_loop()
        dead = asyncio.Event()

        def give_up() -> None:
            signal.pidfd_send_signal(self.descriptor, signal.SIGKILL)
            # SIGKILL does not end a process that hangs in the kernel, such as one on a dead network
            # disk.
            dead.set()

        def hurry() -> None:
            nonlocal timer
            self.cancel()
            timer.cancel()
            timer = loop.call_later(PATIENCE, give_up)

        timer = loop.call_later(patience, give_up)
        loop.add_reader(self.descriptor, dead.set)
        loop.add_reader(self.ticks, listener.hear, self.ticks)
        try:
            cancelled = await _outlast(dead, hurry)
        finally:
            timer.cancel()
            loop.remove_reader(self.descriptor)
            loop.remove_reader(self.ticks)
        listener.catch_up()
        return cancelled

    def cancel(self) -> None:
        with contextlib.suppress(BrokenPipeError):
            os.write(self.control, supervisor.CANCEL)

    def close(self) -> None:
        """Close the pipes. A supervisor that still runs takes that for our death and ends."""
        self.let_go()
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, os.WNOHANG)


async def _outlast(
    event: asyncio.Event, on_cancel: Callable[[], None]
) -> asyncio.CancelledError | None:
    """Wait for the event even if cancelled; return the first cancellation, if any."""
    cancelled: asyncio.CancelledError | None = None
    while not event.is_set():
        try:
            await event.wait()
        except asyncio.CancelledError as error:
            # Swallowed on purpose: `run` raises it once all processes are gone. Later ones change
            # nothing.
            if cancelled is None:
                cancelled = error
                on_cancel()
    return cancelled


def _script() -> str:
    """Return the path of the compiled supervisor if it is current; it starts a quarter faster."""
    source, compiled = Path(supervisor.__file__), Path(supervisor.__cached__)
    status = source.stat()
    made_from = struct.pack("<III", 0, int(status.st_mtime) & 0xFFFFFFFF, status.st_size)
    with contextlib.suppress(OSError), compiled.open("rb") as file:
        # Python runs a .pyc script without checking whether it is out of date.
        if file.read(16) == importlib.util.MAGIC_NUMBER + made_from:
            return str(compiled)
    return str(source)


def _pipe(reads: contextlib.ExitStack, writes: contextlib.ExitStack) -> tuple[int, int]:
    reader, writer = os.pipe()
    reads.callback(os.close, reader)
    writes.callback(os.close, writer)
    return reader, writer


def _open_directory(path: Path, files: contextlib.ExitStack) -> int:
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    files.callback(os.close, directory)
    return directory


def _lock(directory: int) -> bool:
    try:
        fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


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
            os.fsync(_open_directory(path.parent, files))
    return None


def _see_it_end(spool: Path) -> bool:
    """Wait for the command's processes to end, then kill them; return whether none is left."""
    begun = time.monotonic()
    with contextlib.ExitStack() as files:
        directory = _open_directory(spool, files)
        while True:
            is_released = _lock(directory)
            survivors = _survivors(spool)
            if is_released and not survivors:
                return True
            waited = time.monotonic() - begun
            if waited > RESOLVE_MAX:
                return False
            if is_released or waited > RESOLVE_MAX / 2:
                processes.kill(survivors, signal.SIGKILL)
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
