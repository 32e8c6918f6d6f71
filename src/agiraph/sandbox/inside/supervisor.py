"""Supervisor: a small process that runs one command and records how it ended.

    runtime ── supervisor ── warden ── bash -c COMMAND ── whatever that starts

It starts for every command, so it imports little and nothing of the package:

    python -I -S supervisor.py SPOOL RUNTIME_PID TIMEOUT CWD COMMAND_SHA256 SPEC COMMAND

SPEC is a marshalled dict in hexadecimal digits: `limits`, and `spec` (see sandbox), which is None
for a command that is not confined.

Descriptor 0 is a pipe from the runtime: "c" cancels the command, the number of a limit ends it for
that limit, end of file means that the runtime is dead. Descriptor 1 gets a byte for every piece of
output. Descriptor 3 is the spool directory, locked until supervisor and warden have ended: a
process that gets the lock knows that nothing of the command runs any more. Descriptor 4 is a socket
for the listener of the command's gate, if it has one. Descriptor 5 is a file in memory with what
the command uses now. Descriptors 6 and 7 are the command's input and output, if the runtime talks
with it.

The warden is process 1 of a pid namespace, so killing it makes the kernel kill every process of the
command. Without namespaces the warden is a subreaper, which inherits orphans; if it dies, the
supervisor inherits them and kills them itself.
"""

# ruff: noqa: PTH100, PTH120, PTH208, SIM105 - pathlib and contextlib take too long to import

import os
import resource
import select
import sys
import time

TYPE_CHECKING = False  # typing, too, takes long to import
if TYPE_CHECKING:
    import signal
else:
    # The C module alone: `signal` imports enum, which takes as long as all the rest here.
    import _signal as signal

if TYPE_CHECKING or __package__:
    from agiraph.sandbox.inside import confinement, kernel
    from agiraph.sandbox.inside.processes import (
        boot,
        born,
        descendants,
        describe,
        has_children,
        kill,
    )
    from agiraph.sandbox.inside.warden import COUNTS, OVER_LIMIT, STDIN, STDOUT, Order, Warden
else:
    # Run as a script, compiled or not: load the files beside this one, without the package.
    folder = os.path.dirname(os.path.abspath(__file__))
    sys.path.append(folder.removesuffix("/__pycache__"))
    import confinement
    import kernel
    from processes import boot, born, descendants, describe, has_children, kill
    from warden import COUNTS, OVER_LIMIT, STDIN, STDOUT, Order, Warden

SPOOL_MARK = "AGIRAPH_SPOOL"
"""The environment variable with the spool's path that marks a command's processes where there is
no namespace. `commands` finds survivors of a dead supervisor by it."""

OUTPUT_CAP = 256 * 1024 * 1024
"""The most bytes of output that are kept, including its end; the rest is only counted."""
OUTPUT_END = 16 * 1024
SYNC_CAP = 1024 * 1024
"""Output up to this size is synced to disk; for more, the wait is not worth it."""
GRACE = 1.0
"""Seconds between SIGTERM and SIGKILL."""
STUBBORN = 5.0
"""Seconds to wait for a process that not even SIGKILL ends, such as one on a dead network disk."""

CONTROL, TICKS, SPOOL, CHANNEL = 0, 1, 3, confinement.CHANNEL
DESCRIPTORS = (CONTROL, TICKS, SPOOL, CHANNEL, COUNTS)
PIPES = (STDIN, STDOUT)
CHUNK = 64 * 1024
PIPE_MAX = 1024 * 1024
"""The largest buffer to which a command can set its pipe."""

CANCEL = b"c"
"""What the runtime writes to cancel the command; any other byte is the number of a limit."""


class Output:
    """The command's output on disk: all of it up to the cap, then a count and the end."""

    def __init__(self) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        self.file: int = os.open("output", flags, 0o600, dir_fd=SPOOL)
        self.bytes: int = 0
        self.room: int = OUTPUT_CAP - 2 * OUTPUT_END
        self.end: bytes = b""

    def take(self, pipe: int) -> int:
        """Move one piece from the pipe to the disk; return its size, 0 if there is none."""
        try:
            piece = os.read(pipe, CHUNK)
        except BlockingIOError:
            return 0
        self.bytes += len(piece)
        kept = self.keep(piece[: self.room])
        if kept < len(piece):
            self.end = (self.end + piece[kept:])[-OUTPUT_END:]
        try:
            os.write(TICKS, b".")
        except OSError:
            pass  # full: the runtime has ticks to read anyway; or the runtime is dead
        return len(piece)

    def keep(self, piece: bytes) -> int:
        try:
            kept = os.write(self.file, piece) if piece else 0
        except OSError:
            kept = 0
        # After a failed write nothing more is tried: the kept output must have no holes.
        self.room = self.room - kept if kept == len(piece) else 0
        return kept

    def finish(self, pipe: int) -> None:
        """Read the rest of the pipe, at most its capacity: an escaped process may still write."""
        limit = self.bytes + PIPE_MAX
        while self.bytes < limit and self.take(pipe):
            pass
        left_out = self.bytes - os.fstat(self.file).st_size - len(self.end)
        mark = f"\n… {left_out} bytes were not kept …\n".encode() if left_out else b""
        try:
            os.write(self.file, mark + self.end)
            if self.bytes <= SYNC_CAP:
                os.fdatasync(self.file)
        except OSError:
            pass  # the disk is full; result.json has its space already


def wake_up(number: int, frame: object) -> None:
    """Do nothing: the signal has already written a byte to the wake-up pipe."""


class Watch:
    """Waits until the command exits, is cancelled or signalled, or its deadline passes; meanwhile
    moves its output to disk."""

    def __init__(self, warden: Warden, output: Output, level: str) -> None:
        self.warden = warden
        self.output = output
        self.level = level
        self._stops, stop = os.pipe()
        os.set_blocking(stop, False)
        signal.set_wakeup_fd(stop, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, wake_up)
        self.poll: select.poll = select.poll()
        for pipe in (warden.report, CONTROL, self._stops, warden.output):
            self.poll.register(pipe, select.POLLIN)

    def wait(self, deadline: float) -> tuple[str, int | None]:
        """Move output to disk until an event or the deadline; return the event and its report.

        The event is `exited`, `over_limit`, `cancelled`, `interrupted`, `gone` or `timed_out`. The
        report is None if there is none.
        """
        while (left := deadline - time.monotonic()) > 0:
            for pipe, _ in self.poll.poll(min(left, 3600.0) * 1000):
                if pipe == self.warden.output:
                    self.output.take(pipe)
                else:
                    return self.read_event(pipe)
        return "timed_out", None

    def read_event(self, pipe: int) -> tuple[str, int | None]:
        if pipe != self.warden.report:
            said = os.read(pipe, 1) if pipe == CONTROL else b""
            if said and said != CANCEL:
                return "over_limit", said[0] << OVER_LIMIT
            return ("cancelled" if said else "interrupted"), None
        if not (report := os.read(pipe, 4)):
            return "gone", None
        said = int.from_bytes(report, "little")
        return ("over_limit" if said >> OVER_LIMIT else "exited"), said

    def ask_to_end(self) -> None:
        """Send SIGTERM to all processes and wait `GRACE` seconds, or until the runtime dies."""
        asked = descendants(self.warden.pid)
        # The first is bwrap itself: with it the command would end at once.
        kill(asked[1:] if self.level == "bubblewrap" else asked, signal.SIGTERM)
        deadline = time.monotonic() + GRACE
        while self.wait(deadline)[0] in ("exited", "cancelled"):
            pass  # its main process has ended, others may still be cleaning up

    def end(self, isolation: str) -> None:
        """Kill all processes; return when none is left, or after `STUBBORN` seconds."""
        kill([self.warden.pid], signal.SIGKILL)
        deadline = time.monotonic() + STUBBORN
        while has_children() and time.monotonic() < deadline:
            signal.sigtimedwait({signal.SIGCHLD}, 0.1)
            if isolation == "plain":
                # A process forked during one pass is our child in the next: we are its subreaper.
                kill(descendants(os.getpid()), signal.SIGKILL)


def write_down(name: str, text: str) -> None:
    """Write a file of the spool atomically and durably: fsync, rename, fsync of the folder."""
    file = os.open(name + ".tmp", os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=SPOOL)
    if os.write(file, text.encode()) < len(text.encode()):
        raise OSError(f"no room for {name}")
    os.ftruncate(file, len(text.encode()))
    os.fsync(file)
    os.close(file)
    os.rename(name + ".tmp", name, src_dir_fd=SPOOL, dst_dir_fd=SPOOL)
    os.fsync(SPOOL)


def write_start(order: Order, warden: Warden) -> None:
    # Reserve space for the result now: the command may fill the disk.
    file = os.open("result.json.tmp", os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=SPOOL)
    os.posix_fallocate(file, 0, 512)
    os.close(file)
    write_down(
        "started.json",
        f"""{{"pid": {os.getpid()}, "born": {born(os.getpid()) or "null"},
 "warden": {warden.pid}, "warden_born": {born(warden.pid) or "null"}, "boot": "{boot()}",
 "isolation": "{order.isolation}", "command_sha256": "{order.digest}", "at": {time.time()}}}
""",
    )


def write_result(
    order: Order, ended: str, status: int | None, output: Output, seconds: float
) -> None:
    limit, code = "", None
    if ended == "over_limit" and status is not None:
        limit = describe(order.limits, status >> OVER_LIMIT)
    elif status is not None:
        code = os.waitstatus_to_exitcode(status)
    if code in (-signal.SIGXFSZ, 128 + signal.SIGXFSZ):
        limit = f"a file of it would have had more than {order.limits['file_mib']} MiB"
    exit_code = "null" if code is None or code < 0 else code
    killed_by = -code if code is not None and code < 0 else "null"
    write_down(
        "result.json",
        f"""{{"ended": "{ended}", "exit_code": {exit_code}, "signal": {killed_by},
 "limit": "{limit}", "output_bytes": {output.bytes}, "seconds": {seconds:.6f}}}
""",
    )


def keep_only(descriptors: tuple[int, ...]) -> None:
    """Close all descriptors but these and the errors'; no command inherits any of them."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) > descriptors[-1]:
            try:
                os.close(int(name))
            except OSError:
                pass  # the descriptor of the listing itself
    # Only the warden, which is forked, keeps the lock.
    for ours in descriptors[2:]:
        os.set_inheritable(ours, False)


def main() -> None:
    order = Order(sys.argv[1:])
    keep_only(DESCRIPTORS + (PIPES if order.has_pipes else ()))
    os.set_blocking(TICKS, False)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core dump may fill the disk
    # The runtime raises its own limit. Programs that use select() break above 1,024, and some
    # close every descriptor up to the limit at start; a program that needs more can raise it.
    files, most_files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(files, 1024), most_files))
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})  # for `sigtimedwait`
    maps = order.map_ids()
    order.isolation = confinement.isolate(order.isolation)
    if order.isolation == "plain":
        order.environment[SPOOL_MARK.encode()] = os.fsencode(order.spool)
    kernel.libc.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
    warden = Warden(order, maps)
    watch = Watch(warden, Output(), order.level)
    kernel.libc.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGTERM)
    # The runtime may have died before prctl: then no signal ever comes.
    if os.getppid() != order.parent:
        return
    # Durable before the command starts: a spool without it proves that nothing ran.
    write_start(order, warden)
    begun = time.monotonic()
    os.write(warden.go, b"g")
    ended, status = watch.wait(begun + order.timeout)
    if ended in ("timed_out", "cancelled"):
        watch.ask_to_end()
    watch.end(order.isolation)
    watch.output.finish(warden.output)
    ended = "interrupted" if ended == "gone" else ended
    write_result(order, ended, status, watch.output, time.monotonic() - begun)


if __name__ == "__main__":
    main()
    os._exit(0)  # skips the interpreter's slow shutdown; nothing needs cleanup
