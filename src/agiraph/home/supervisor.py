"""Supervisor: a small process that runs one command and records how it ended.

    runtime ── supervisor ── warden ── bash -c COMMAND ── whatever that starts

It starts for every command, so it imports little and nothing of the package:

    python -I -S supervisor.py SPOOL RUNTIME_PID TIMEOUT CWD COMMAND_SHA256 SPEC COMMAND

SPEC is a marshalled dict in hexadecimal digits: `limits`, and `view` (see confinement) or None.

Descriptor 0 is a pipe from the runtime: a byte cancels the command, end of file means that the
runtime is dead. Descriptor 1 gets a byte for every piece of output. Descriptor 3 is the spool
directory, locked until supervisor and warden have ended: a process that gets the lock knows that
nothing of the command runs any more. Descriptor 4 is for the listener of the network gate.

The warden is process 1 of a pid namespace, so killing it makes the kernel kill every process of the
command. Without namespaces the warden is a subreaper, which inherits orphans; if it dies, the
supervisor inherits them and kills them itself.
"""

# ruff: noqa: PTH100, PTH120, PTH123, SIM105 - pathlib and contextlib take too long to import

import ctypes
import marshal
import os
import resource
import select
import sys
import time

TYPE_CHECKING = False  # typing, too, takes long to import
if TYPE_CHECKING:
    import signal
    from typing import Any
else:
    # The C module alone: `signal` imports enum, which takes as long as all the rest here.
    import _signal as signal

if TYPE_CHECKING or __package__:
    from agiraph.home import confinement
    from agiraph.home.processes import (
        Guard,
        boot,
        born,
        descendants,
        describe,
        has_children,
        kill,
        read,
    )
else:
    # Run as a script, compiled or not: load the files beside this one, without the package.
    folder = os.path.dirname(os.path.abspath(__file__))
    sys.path.append(folder.removesuffix("/__pycache__"))
    import confinement
    from processes import Guard, boot, born, descendants, describe, has_children, kill, read

SPOOL_MARK = "AGIRAPH_SPOOL"
"""The environment variable with the spool's path that marks a command's processes where there is
no namespace. `commands` finds survivors of a dead supervisor by it."""
ISOLATION = "AGIRAPH_ISOLATION"
"""Selects one kind of isolation (pid, user or plain), for tests; removed for the command."""

OUTPUT_CAP = 256 * 1024 * 1024
"""The most bytes of output that are kept, including its end; the rest is only counted."""
OUTPUT_END = 16 * 1024
SYNC_CAP = 1024 * 1024
"""Output up to this size is synced to disk; for more, the wait is not worth it."""
GRACE = 1.0
"""Seconds between SIGTERM and SIGKILL."""
STUBBORN = 5.0
"""Seconds to wait for a process that not even SIGKILL ends, such as one on a dead network disk."""

CONTROL, TICKS, SPOOL = 0, 1, 3
CHUNK = 64 * 1024
PIPE_MAX = 1024 * 1024
"""The largest buffer to which a command can set its pipe."""

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
OVER_LIMIT = 24
"""A report of the warden is a wait status, or a limit's number shifted left by this many bits."""
WATCHED = ("/tmp", "/var/tmp")
"""Folders whose disks a command must not fill, besides its working folder."""
EAGERNESS = b"500"
"""The command's oom_score_adj: if memory runs out, the kernel kills it before the runtime."""

libc: ctypes.CDLL = ctypes.CDLL(None)


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


class Order:
    """The command line of the supervisor, decoded."""

    def __init__(self, arguments: list[str]) -> None:
        spool, parent, timeout, cwd, digest, spec, command = arguments
        self.spool: str = spool
        self.cwd: str = cwd
        self.digest: str = digest
        self.command: str = command
        given: dict[str, Any] = marshal.loads(bytes.fromhex(spec))
        self.limits: dict[str, int] = given["limits"]
        self.view: dict[str, Any] | None = given["view"]
        self.parent: int = int(parent)
        self.timeout: float = float(timeout)
        # Not os.environ: Python may have added LC_CTYPE to it (PEP 538).
        entries = [e for e in read("/proc/self/environ").split(b"\0") if b"=" in e]
        self.environment: dict[bytes, bytes] = dict(entry.split(b"=", 1) for entry in entries)
        self.isolation: str = self.environment.pop(ISOLATION.encode(), b"").decode()


class Warden:
    """Process 1 of the command: starts it, reaps orphans, checks limits; its death kills all."""

    def __init__(self, order: Order) -> None:
        self._may_start, go = os.pipe()
        report, self._reports = os.pipe()
        output, self._outputs = os.pipe()
        self.go: int = go
        self.report: int = report
        self.output: int = output
        self.pid: int = os.fork()
        if self.pid == 0:
            try:
                self.live(order)
            except BaseException as error:
                sys.excepthook(type(error), error, error.__traceback__)
            finally:
                os._exit(1)
        for theirs in (self._may_start, self._reports, self._outputs):
            os.close(theirs)
        os.set_blocking(self.output, False)

    def live(self, order: Order) -> None:
        """Run as the warden, in the child process."""
        # If the supervisor dies, the kernel kills the warden, and so the whole command.
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        os.close(self.go)
        if not os.read(self._may_start, 1):
            return  # the supervisor died before it gave the start signal
        alone = order.isolation != "plain" and confinement.show_own_processes()
        try:
            restrict(order, alone=alone)
            guard = Guard(order.limits, [order.cwd, *WATCHED], alone=alone)
            main = self.start(order)
        except OSError as error:
            os.write(self._outputs, f"The command could not be started: {error}\n".encode())
            self.tell(127 << 8)
            return
        while not self.is_over(main):
            if exceeded := guard.exceeded():
                self.tell(exceeded << OVER_LIMIT)
                guard.kill_all(signal.SIGKILL)
            signal.sigtimedwait({signal.SIGCHLD}, guard.pause)

    def tell(self, report: int) -> None:
        os.write(self._reports, report.to_bytes(4, "little"))

    def is_over(self, main: int) -> bool:
        """Reap ended children, report the command's status; return whether no process is left."""
        try:
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] == main:
                    self.tell(ended[1])
        except ChildProcessError:
            return True
        return False

    def start(self, order: Order) -> int:
        for shell in ("bash", "sh"):
            try:
                return os.posix_spawnp(
                    shell,
                    [shell, "-c", order.command],
                    order.environment,
                    file_actions=[
                        (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
                        (os.POSIX_SPAWN_DUP2, self._outputs, 1),
                        (os.POSIX_SPAWN_DUP2, self._outputs, 2),
                    ],
                    setsid=True,
                    setsigmask=(),
                    setsigdef=signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP},
                )
            except FileNotFoundError:
                continue
        raise FileNotFoundError("there is neither bash nor sh on the PATH")


def restrict(order: Order, *, alone: bool) -> None:
    """Limit file sizes and, if confined, hide the home and the network; the command inherits it."""
    os.chdir(order.cwd)
    with open("/proc/self/oom_score_adj", "wb") as file:
        file.write(EAGERNESS)
    most = order.limits["file_mib"] * 1024 * 1024
    _, hardest = resource.getrlimit(resource.RLIMIT_FSIZE)
    if hardest == resource.RLIM_INFINITY or most < hardest:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    if order.view is None:
        return
    if not alone:
        raise OSError("it cannot be confined here; see `agiraph doctor`")
    confinement.enter(order.view, order.cwd)


def wake_up(number: int, frame: object) -> None:
    """Do nothing: the signal has already written a byte to the wake-up pipe."""


class Watch:
    """Waits for the end, a cancel, a signal or the deadline, and moves output to disk meanwhile."""

    def __init__(self, warden: Warden, output: Output) -> None:
        self.warden = warden
        self.output = output
        self._stops, stop = os.pipe()
        os.set_blocking(stop, False)
        signal.set_wakeup_fd(stop, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, wake_up)
        self.poll: select.poll = select.poll()
        for pipe in (warden.report, CONTROL, self._stops, warden.output):
            self.poll.register(pipe, select.POLLIN)

    def wait(self, deadline: float) -> tuple[str, int | None]:
        """Return what happened, and the warden's report if it sent one."""
        while (left := deadline - time.monotonic()) > 0:
            for pipe, _ in self.poll.poll(min(left, 3600.0) * 1000):
                if pipe == self.warden.output:
                    self.output.take(pipe)
                else:
                    return self.read_event(pipe)
        return "timed_out", None

    def read_event(self, pipe: int) -> tuple[str, int | None]:
        if pipe != self.warden.report:
            is_cancel = pipe == CONTROL and os.read(pipe, 1)
            return ("cancelled" if is_cancel else "interrupted"), None
        if not (report := os.read(pipe, 4)):
            return "gone", None
        said = int.from_bytes(report, "little")
        return ("over_limit" if said >> OVER_LIMIT else "exited"), said

    def ask_to_end(self) -> None:
        """Send SIGTERM to all processes and wait `GRACE` seconds, or until the runtime dies."""
        kill(descendants(self.warden.pid), signal.SIGTERM)
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


def main() -> None:
    order = Order(sys.argv[1:])
    has_gate = bool(order.view and order.view.get("gate"))
    confinement.close_others({CONTROL, TICKS, 2, SPOOL, *([confinement.GATE] if has_gate else [])})
    os.set_inheritable(SPOOL, False)  # only the warden, which is forked, keeps the lock
    os.set_blocking(TICKS, False)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core dump may fill the disk
    # The runtime raises its own limit. Programs that use select() break above 1,024, and some
    # close every descriptor up to the limit at start; a program that needs more can raise it.
    files, most_files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(files, 1024), most_files))
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})  # for `sigtimedwait`
    order.isolation = confinement.isolate(order.isolation)
    if order.isolation == "plain":
        order.environment[SPOOL_MARK.encode()] = os.fsencode(order.spool)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
    warden = Warden(order)
    if has_gate:
        os.close(confinement.GATE)
    watch = Watch(warden, Output())
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
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
