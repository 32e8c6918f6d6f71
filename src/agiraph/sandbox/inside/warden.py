"""Warden: process 1 of a command. It starts the command, reaps orphans and checks the limits.

It confines itself before the start. If it dies, the kernel kills every process of the command. The
supervisor loads this file by its path, without importing the package.
"""

# ruff: noqa: PTH123 - pathlib takes too long to import

import marshal
import os
import resource
import select
import sys

TYPE_CHECKING = False  # typing, too, takes long to import
if TYPE_CHECKING:
    import signal
    from typing import Any
else:
    # The C module alone: `signal` imports enum, which takes as long as all the rest here.
    import _signal as signal

if TYPE_CHECKING or __package__:
    from agiraph.sandbox.inside import confinement, kernel, root_folder
    from agiraph.sandbox.inside.processes import OUT_OF_MEMORY, Guard, read
else:
    import confinement
    import kernel
    import root_folder
    from processes import OUT_OF_MEMORY, Guard, read

ISOLATION = "AGIRAPH_ISOLATION"
"""Selects one kind of isolation (pid, user or plain), for tests; removed for the command."""
COUNTS = 5
"""The descriptor of the file in memory with what the command uses now."""
STDIN, STDOUT = 6, 7
"""The descriptors that the command gets as its input and output, if the runtime talks with it."""
FILTER = 9
"""The descriptor from which bubblewrap reads the seccomp filter."""
OVER_LIMIT = 24
"""A report of the warden is a wait status, or a limit's number shifted left by this many bits."""
WATCHED = ("/tmp", "/var/tmp")
"""Folders whose disks a command that is not confined must not fill, besides its working folder."""
MOST_EAGER = b"1000"
EAGERNESS = b"500"
"""The command's oom_score_adj: if memory runs out, the kernel kills it before the runtime."""


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
        self.spec: dict[str, Any] | None = given["spec"]
        self.has_pipes: bool = given["has_pipes"]
        self.groups: list[str] = given["groups"]
        """Files by which the warden joins the command's control groups."""
        self.events_file: str = given["events"]
        self.level: str = "none" if self.spec is None else self.spec["level"]
        self.parent: int = int(parent)
        self.timeout: float = float(timeout)
        # Not os.environ: Python may have added LC_CTYPE to it (PEP 538).
        entries = [e for e in read("/proc/self/environ").split(b"\0") if b"=" in e]
        self.environment: dict[bytes, bytes] = dict(entry.split(b"=", 1) for entry in entries)
        self.problem: OSError | None = None
        """The error of a step that failed before the sandbox was made; None: none failed."""
        self.isolation: str = self.environment.pop(ISOLATION.encode(), b"").decode()

    def map_ids(self) -> dict[int, int]:
        """Return user namespaces for the command's files. Call this before `isolate`."""
        try:
            return confinement.id_maps(self.spec) if self.spec else {}
        except OSError as error:
            self.problem = error
            return {}


class Warden:
    """Process 1 of the command: starts it, reaps orphans, checks limits; its death kills all."""

    def __init__(self, order: Order, maps: dict[int, int]) -> None:
        self._may_start, go = os.pipe()
        report, self._reports = os.pipe()
        output, self._outputs = os.pipe()
        self.go: int = go
        self.report: int = report
        self.output: int = output
        self.pid: int = os.fork()
        if self.pid == 0:
            try:
                self.live(order, maps)
            except BaseException as error:
                sys.excepthook(type(error), error, error.__traceback__)
            finally:
                os._exit(1)
        for theirs in (self._may_start, self._reports, self._outputs):
            os.close(theirs)
        close_pipes(order)
        os.set_blocking(self.output, False)

    def live(self, order: Order, maps: dict[int, int]) -> None:
        """Run as the warden, in the child process."""
        # If the supervisor dies, the kernel kills the warden, and so the whole command.
        kernel.die_with_parent()
        kernel.libc.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        os.close(self.go)
        # Now, since it may take milliseconds, in which the supervisor syncs the spool to the disk.
        events = join_groups(order)
        if not os.read(self._may_start, 1):
            return  # the supervisor died before it gave the start signal
        try:
            alone = confine(order, maps)
            watched = [order.cwd] if order.spec else [order.cwd, *WATCHED]
            readable: list[str] = order.spec["readable"] if order.spec else []
            tmpfs = root_folder.in_memory(readable) if order.level == "namespaces" else ()
            guard = Guard(order.limits, watched, COUNTS, tmpfs=tmpfs, events=events, alone=alone)
            main = self.start(order)
            expose(main)
            close_pipes(order)
        except OSError as error:
            os.write(self._outputs, f"The command could not be started: {error}\n".encode())
            self.tell(127 << 8)
            return
        if self.is_orphan():
            return
        while not self.is_over(main, guard):
            if exceeded := guard.exceeded():
                self.tell(exceeded << OVER_LIMIT)
                guard.kill_all(signal.SIGKILL)
            signal.sigtimedwait({signal.SIGCHLD}, guard.pause)

    def is_orphan(self) -> bool:
        """Return whether the supervisor died while a change of user had cleared its death signal:
        then the pipe of the start signal has no writer left."""
        poll = select.poll()
        poll.register(self._may_start, select.POLLIN)
        return bool(poll.poll(0))

    def tell(self, report: int) -> None:
        os.write(self._reports, report.to_bytes(4, "little"))

    def is_over(self, main: int, guard: Guard) -> bool:
        """Reap ended children, report the command's status; return whether no process is left."""
        try:
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] == main:
                    is_killed = ended[1] != 0 and guard.was_out_of_memory()
                    self.tell(OUT_OF_MEMORY << OVER_LIMIT if is_killed else ended[1])
        except ChildProcessError:
            return True
        return False

    def start(self, order: Order) -> int:
        """Start the command's shell; return its pid."""
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, self._outputs, 1),
            (os.POSIX_SPAWN_DUP2, self._outputs, 2),
        ]
        if order.has_pipes:
            actions[:2] = [(os.POSIX_SPAWN_DUP2, STDIN, 0), (os.POSIX_SPAWN_DUP2, STDOUT, 1)]
        before: list[str] = []
        if order.spec is not None and order.level == "bubblewrap":
            before = order.spec["bubblewrap"]
            actions.append((os.POSIX_SPAWN_DUP2, filter_file(order.spec), FILTER))
        if order.spec is not None and order.level == "landlock":
            return self.start_restricted(order, order.spec)
        for shell in ("bash", "sh"):
            if before and not find_program(shell, order):
                continue
            argv = [*before, shell, "-c", order.command]
            try:
                return os.posix_spawnp(
                    argv[0],
                    argv,
                    order.environment,
                    file_actions=actions,
                    setsid=True,
                    setsigmask=(),
                    setsigdef=signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP},
                )
            except FileNotFoundError:
                continue
        raise FileNotFoundError(f"there is no {before[0] if before else 'bash nor sh'} on the PATH")

    def start_restricted(self, order: Order, spec: "dict[str, Any]") -> int:  # pyrefly: ignore[bad-return]
        """Start the shell in a process that Landlock restricts; the warden itself is free."""
        if TYPE_CHECKING or __package__:
            from agiraph.sandbox.inside import landlock
        else:
            import landlock

        shell = find_program("bash", order) or find_program("sh", order)
        if pid := os.fork():
            return pid
        try:
            os.setsid()
            signal.pthread_sigmask(signal.SIG_SETMASK, ())
            for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
                signal.signal(number, signal.SIG_DFL)
            os.dup2(STDIN if order.has_pipes else os.open("/dev/null", os.O_RDONLY), 0)
            os.dup2(STDOUT if order.has_pipes else self._outputs, 1)
            os.dup2(self._outputs, 2)
            kernel.empty_bounding_set()
            landlock.restrict(spec)
            kernel.drop_capabilities()
            kernel.install_filter(spec["filter"])
            # Not execvpe, which imports a module from a folder that is out of reach by now.
            os.execve(shell, [shell, "-c", order.command], order.environment)
        except OSError as error:
            os.write(self._outputs, f"The command could not be started: {error}\n".encode())
        finally:
            os._exit(127)


def expose(pid: int) -> None:
    """Make the kernel end the command's processes before the warden, if memory runs out: the
    warden is the one that says why."""
    try:
        with open(f"/proc/{pid}/oom_score_adj", "wb") as file:
            file.write(MOST_EAGER)
    except OSError:
        pass  # it has ended, or changed its user


def join_groups(order: Order) -> int:
    """Move this process into the command's control groups, with all its future children, unless
    the runtime has moved it already: a move takes milliseconds.

    Return a descriptor of the file that counts kills for lack of memory; -1 if there is none.
    """
    try:
        with open("/proc/self/cgroup") as file:
            joined = [line.rstrip("\n") for line in file]
        names = [
            path.split("/agiraph-", 1)[-1].removesuffix("/cgroup.procs") for path in order.groups
        ]
        is_moved = all(sum(line.endswith(name) for line in joined) >= len(names) for name in names)
        for path in () if is_moved else order.groups:
            with open(path, "w") as file:
                file.write("0")
        return os.open(order.events_file, os.O_RDONLY) if order.events_file else -1
    except OSError as error:
        order.problem = error
        return -1


def close_pipes(order: Order) -> None:
    """Close this process's copies of the command's input and output: else the runtime would not
    see that the command closed its own."""
    for descriptor in (STDIN, STDOUT) if order.has_pipes else ():
        os.close(descriptor)


def find_program(name: str, order: Order) -> str:
    """Return the path of a program; empty if there is none on the command's PATH."""
    folders = order.environment.get(b"PATH", b"/usr/bin:/bin").decode().split(":")
    found = (path for folder in folders if os.access(path := f"{folder}/{name}", os.X_OK))
    return next(found, "")


def filter_file(spec: "dict[str, Any]") -> int:
    """Return a descriptor of a file in memory from which bubblewrap reads the filter."""
    file = os.memfd_create("filter")
    os.write(file, spec["filter"])
    os.lseek(file, 0, os.SEEK_SET)
    return file


def confine(order: Order, maps: dict[int, int]) -> bool:
    """Confine this process as the order says and limit it, for the command that inherits it.

    Return whether /proc shows only the command's own processes.
    """
    os.chdir(order.cwd)
    with open("/proc/self/oom_score_adj", "wb") as file:
        file.write(EAGERNESS)
    spec, is_plain = order.spec, order.isolation == "plain"
    if order.problem is not None:
        raise order.problem
    if spec is None or order.level == "landlock":
        set_limits(order)
        return not is_plain and confinement.show_own_processes()
    if is_plain and (order.level == "namespaces" or spec["network"] == "gate"):
        why = "it cannot be confined here; see `agiraph doctor`"
        raise OSError(confinement.refusal[0], why) if any(confinement.refusal) else OSError(why)
    if order.level == "bubblewrap":
        alone = not is_plain and confinement.show_own_processes()
        if not is_plain:
            confinement.open_network(spec)
            confinement.limit_pids(spec, "")
        set_limits(order)
        kernel.hide_from_trace()
        return alone
    confinement.enter_namespaces(spec, maps, order.cwd)
    set_limits(order)
    confinement.give_up_power(spec)
    return True


def set_limits(order: Order) -> None:
    """Set the limits of each process that the kernel knows; no child can raise them."""
    mib = 1024 * 1024
    wanted = {resource.RLIMIT_FSIZE: order.limits["file_mib"] * mib}
    if order.spec is not None:
        wanted[resource.RLIMIT_AS] = order.spec["address_mib"] * mib
        wanted[resource.RLIMIT_NPROC] = order.spec["pids"]
        wanted[resource.RLIMIT_MEMLOCK] = 8 * mib
    for limit, most in wanted.items():
        _, hardest = resource.getrlimit(limit)
        if hardest == resource.RLIM_INFINITY or most < hardest:
            resource.setrlimit(limit, (most, most))
