"""Workers: processes that run the tests, forked from the process that has collected them.

`pytest --workers=4`. To collect all tests takes seconds of each process that does it; here one
process does it for all. A worker runs the tests of a file in a row; when no file is left, it takes
half of what another worker has left. It knows the test that follows, as pytest keeps a fixture that
the next test uses, too. A worker that dies is replaced, and the test that it ran has failed.
"""

import contextlib
import faulthandler
import os
import signal
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from typing import Any, Literal

import pytest

from tests import parts

HARD_LIMIT_S = 600.0
"""Ten times as long as any test takes on a busy machine."""
STDERR = pytest.StashKey[int]()
GOODBYE_S = 20.0
"""How long workers may take to stop their servers when a run is cut short."""


def pytest_addoption(parser: pytest.Parser) -> None:
    many = "run the tests in this many processes (%(default)s: in this one)"
    parser.addoption("--workers", type=int, default=0, help=many)
    longest = "end the process of a test after this many seconds (%(default)s), with all stacks"
    parser.addoption("--hard-limit", type=float, default=HARD_LIMIT_S, help=longest)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Let no test hang for ever. What is marked `long` has a time box of its own."""
    is_long = item.get_closest_marker("long") is not None
    if not is_long:
        stderr = item.config.stash[STDERR]
        limit = float(str(item.config.getoption("--hard-limit")))
        faulthandler.dump_traceback_later(limit, exit=True, file=stderr)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[STDERR] = os.dup(2)  # pytest catches what is written to the other one
    if (count := config.option.workers) > 1:
        config.pluginmanager.register(Workers(count), "workers")


def pieces(files: list[Path], *, singly: bool = False) -> Iterator[list[int]]:
    """Yield numbers of tests that one worker runs in a row, given the file of each test.

    Crash sweeps go one by one: each takes as long as hundreds of others, and they share nothing.
    With `singly`, all tests do.
    """
    for file, numbered in groupby(enumerate(files), key=lambda pair: pair[1]):
        numbers = [number for number, _ in numbered]
        if singly or parts.part_of(file) == "faults":
            yield from ([number] for number in numbers)
        else:
            yield numbers


@dataclass(slots=True, eq=False)
class Worker:
    """A process that runs tests, as its parent sees it."""

    pid: int
    line: Connection
    piece: deque[int] = field(default_factory=deque[int])
    """Tests that it will be given next."""
    given: deque[int] = field(default_factory=deque[int])
    """The test that it runs, and the one after it."""
    is_told_to_end: bool = False


@dataclass(slots=True, eq=False)
class Workers:
    """A pytest plugin that runs the tests in forked processes, and reports them in this one."""

    count: int
    _session: Any = field(default=None, init=False)
    _waiting: deque[list[int]] = field(default_factory=deque[list[int]])
    _running: dict[Connection, Worker] = field(default_factory=dict[Connection, Worker])

    def pytest_runtestloop(self, session: Any) -> bool | None:
        if session.testsfailed or session.config.option.collectonly or len(session.items) < 2:
            return None  # pytest's own loop says what is wrong, or runs the one test
        self._session = session
        is_long = bool(session.config.getoption("--long", False))
        self._waiting.extend(pieces([item.path for item in session.items], singly=is_long))
        session.config._tmp_path_factory.getbasetemp()  # the workers' folders are inside
        try:
            for _ in range(min(self.count, len(session.items))):
                self._start()
            while self._running:
                for line in wait(list(self._running)):
                    self._hear(self._running[line])  # type: ignore[index]
        finally:
            self._end_all()
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
        return True

    # ---- in the process that started the run ----------------------------------------------------

    def _start(self) -> None:
        """Fork a worker, and give it two tests."""
        ours, theirs = Pipe()
        capturing = self._session.config.pluginmanager.getplugin("capturemanager")
        capturing.suspend_global_capture(in_=True)
        sys.stdout.flush()
        # A lock that another thread holds at the fork is held for ever in the worker.
        assert threading.active_count() == 1, threading.enumerate()
        if (pid := os.fork()) == 0:
            for other in (ours, *self._running):
                other.close()  # or this worker would keep the line of a dead one open
            os._exit(_work(self._session, theirs))
        theirs.close()
        capturing.resume_global_capture()
        worker = self._running[ours] = Worker(pid, ours)
        self._give(worker)
        self._give(worker)

    def _give(self, worker: Worker) -> None:
        """Send the worker its next test, or that there is none."""
        is_over = self._session.shouldfail or self._session.shouldstop
        if not worker.piece and not is_over:
            worker.piece.extend(self._next_piece())
        number = worker.piece.popleft() if worker.piece and not is_over else None
        if number is None and worker.is_told_to_end:
            return
        worker.is_told_to_end = number is None
        if number is not None:
            worker.given.append(number)
        with contextlib.suppress(BrokenPipeError):  # its end is noticed when it is heard
            worker.line.send(number)

    def _next_piece(self) -> list[int]:
        """Take the tests of the next file, or half of the most that a worker has left."""
        if self._waiting:
            return self._waiting.popleft()
        most = max((worker.piece for worker in self._running.values()), key=len)
        return [most.pop() for _ in range((len(most) + 1) // 2)][::-1]

    def _hear(self, worker: Worker) -> None:
        """Handle one message of a worker, or its end."""
        hook, config = self._session.config.hook, self._session.config
        try:
            kind, said = worker.line.recv()
        except (EOFError, OSError):
            self._bury(worker)
            return
        match kind:
            case "report":
                report = hook.pytest_report_from_serializable(config=config, data=said)
                hook.pytest_runtest_logreport(report=report)
            case "warning":
                hook.pytest_warning_recorded.call_historic(kwargs=said)
            case _:
                item = self._session.items[worker.given.popleft()]
                hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
                self._give(worker)

    def _bury(self, worker: Worker) -> None:
        """Remove a worker that has ended; if it died, report its test and start another one."""
        del self._running[worker.line]
        worker.line.close()
        code = os.waitstatus_to_exitcode(os.waitpid(worker.pid, 0)[1])
        if worker.given:
            item = self._session.items[worker.given.popleft()]
            self._session.config.hook.pytest_runtest_logreport(report=_died(item, code))
        elif code != 0:
            raise RuntimeError(f"a worker ended with {code} after its last test")
        if left := [*worker.given, *worker.piece]:
            self._waiting.appendleft(left)
        if self._waiting and not (self._session.shouldfail or self._session.shouldstop):
            self._start()

    def _end_all(self) -> None:
        """Wait for workers that a cut run left; end those that take too long."""
        for worker in self._running.values():
            worker.line.close()
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker.pid, signal.SIGINT)
        deadline = time.monotonic() + GOODBYE_S
        for worker in self._running.values():
            while os.waitpid(worker.pid, os.WNOHANG) == (0, 0):
                if time.monotonic() > deadline:
                    os.kill(worker.pid, signal.SIGKILL)
                time.sleep(0.05)
        self._running.clear()


def _died(item: pytest.Item, code: int) -> pytest.TestReport:
    """Return the report of a test during which its process ended."""
    return pytest.TestReport(
        item.nodeid,
        item.location,
        dict.fromkeys(item.keywords, 1),
        "failed",
        f"{item.nodeid}: its process ended with {code}",
        "call",
    )


# ---- in a worker --------------------------------------------------------------------------------


class Sender:
    """A pytest plugin that sends what happens to a test to the process that started the run."""

    def __init__(self, config: pytest.Config, line: Connection) -> None:
        self.config = config
        self.line = line

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        hook = self.config.hook.pytest_report_to_serializable
        self.line.send(("report", hook(config=self.config, report=report)))

    def pytest_warning_recorded(
        self, warning_message: Any, when: str, nodeid: str, location: Any
    ) -> None:
        said = {"when": when, "nodeid": nodeid, "location": location}
        self.line.send(("warning", {"warning_message": warning_message} | said))


def _work(session: Any, line: Connection) -> Literal[0, 3]:
    """Run the tests whose numbers come over the line; return the exit code of the process."""
    _become_worker(session, line)
    try:
        number = line.recv()
        while number is not None:
            item, number = session.items[number], line.recv()
            following = None if number is None else session.items[number]
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            line.send(("done", None))
    except BaseException as error:
        if not isinstance(error, KeyboardInterrupt | EOFError):  # the run was not cut short
            traceback.print_exc(file=sys.__stderr__)
        # Servers and browsers of fixtures must not outlive this process.
        with contextlib.suppress(BaseException):
            session._setupstate.teardown_exact(None)
        return 3
    return 0


def _become_worker(session: Any, line: Connection) -> None:
    """Give this process its own output, folder and plugins."""
    config = session.config
    capturing = config.pluginmanager.getplugin("capturemanager")
    # Its files are the parent's, too. It is kept: pytest warns of files that were not closed.
    session.parents_capturing, capturing._global_capturing = capturing._global_capturing, None
    capturing.start_global_capturing()
    capturing.suspend_global_capture()
    # Pytest and its plug-ins ask for the terminal even where nobody reads it.
    config.get_terminal_writer()._file = Path(os.devnull).open("w")  # noqa: SIM115
    factory = config._tmp_path_factory
    factory._basetemp = factory.getbasetemp() / f"worker-{os.getpid()}"
    factory._basetemp.mkdir(mode=0o700)
    config.pluginmanager.register(Sender(config, line))
