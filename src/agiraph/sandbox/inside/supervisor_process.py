"""Supervisor process: the runtime's handle on the supervisor of one command."""

import asyncio
import contextlib
import fcntl
import importlib.util
import os
import signal
import socket
import struct
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from agiraph.core.domain.errors import Conflict
from agiraph.sandbox.command_output import OutputListener
from agiraph.sandbox.inside import supervisor

PATIENCE = 15.0
"""Seconds that a supervisor may take to end a command; after that the supervisor is killed."""
LOWEST = 10
"""A descriptor number above all those at which the supervisor expects its descriptors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildPipes:
    """Ends of two pipes that a command gets as its standard input and output."""

    stdin: int
    stdout: int
    close: Callable[[], None]
    """Closes the runtime's copies of both ends, once the command has its own. A second call does
    nothing."""


class SupervisorProcess:
    """A running supervisor, with its control pipe and a pidfd to wait on."""

    control: int
    """The pipe over which the runtime cancels the command or ends it at a limit."""
    ticks: int
    """The pipe that gets a byte for every piece of output."""
    channel: socket.socket
    """The socket over which the supervisor sends the listener of the command's gate."""
    counts: int
    """The in-memory file in which the supervisor reports what the command uses now."""
    pid: int
    descriptor: int
    """The pidfd of the supervisor."""
    let_go: Callable[[], None]
    """Closes all descriptors of this object."""

    def __init__(
        self,
        spool: Path,
        arguments: list[str],
        env: Mapping[str, str],
        pipes: ChildPipes | None = None,
    ) -> None:
        spool = spool.absolute()
        python = [sys.executable, "-I", "-S", script(), str(spool), str(os.getpid())]
        # `theirs` closes our copies of the child's ends. With them open, a write to a dead
        # supervisor would not fail, and its ticks would never reach their end.
        with contextlib.ExitStack() as theirs, contextlib.ExitStack() as ours:
            lock = open_directory(spool, theirs)
            if not lock_directory(lock):
                raise Conflict(f"The command of {str(spool)!r} is already running.")
            control, self.control = _pipe(theirs, ours)
            self.ticks, ticks = _pipe(ours, theirs)
            self.channel, channel = socket.socketpair()
            ours.enter_context(self.channel)
            theirs.enter_context(channel)
            self.counts = os.memfd_create("counts")
            ours.callback(os.close, self.counts)
            given = [control, ticks, lock, channel.fileno(), self.counts]
            if pipes is not None:
                given += [pipes.stdin, pipes.stdout]
                theirs.callback(pipes.close)
            self.pid = os.posix_spawn(
                sys.executable,
                python + arguments,
                env,
                file_actions=_numbered(given, theirs),
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
        """Close the pipes. A supervisor that still runs takes this for the death of the runtime,
        and ends."""
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


def script() -> str:
    """Return the path of the compiled supervisor if it is current; it starts a quarter faster."""
    source, compiled = Path(supervisor.__file__), Path(supervisor.__cached__)
    status = source.stat()
    made_from = struct.pack("<III", 0, int(status.st_mtime) & 0xFFFFFFFF, status.st_size)
    with contextlib.suppress(OSError), compiled.open("rb") as file:
        # Python runs a .pyc script without checking whether it is out of date.
        if file.read(16) == importlib.util.MAGIC_NUMBER + made_from:
            return str(compiled)
    return str(source)


def _numbered(given: list[int], theirs: contextlib.ExitStack) -> list[tuple[int, int, int]]:
    """Return the actions by which a supervisor gets these descriptors at its numbers."""
    # Moved out of the way: else one target could close a source that comes later.
    moved = [fcntl.fcntl(source, fcntl.F_DUPFD_CLOEXEC, LOWEST) for source in given]
    for descriptor in moved:
        theirs.callback(os.close, descriptor)
    targets = (*supervisor.DESCRIPTORS, *supervisor.PIPES)
    return [(os.POSIX_SPAWN_DUP2, *pair) for pair in zip(moved, targets, strict=False)]


def _pipe(reads: contextlib.ExitStack, writes: contextlib.ExitStack) -> tuple[int, int]:
    reader, writer = os.pipe()
    reads.callback(os.close, reader)
    writes.callback(os.close, writer)
    return reader, writer


def open_directory(path: Path, files: contextlib.ExitStack) -> int:
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    files.callback(os.close, directory)
    return directory


def lock_directory(directory: int) -> bool:
    try:
        fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
