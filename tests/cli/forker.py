"""Forker: a process that has imported all of agiraph, and forks for each program of a test.

A program then costs a tenth of the CPU time that Python needs to import the program. It still has a
process, an environment, standard streams and a terminal of its own.
"""

import atexit
import contextlib
import fcntl
import gc
import importlib
import json
import os
import pkgutil
import selectors
import socket
import sys
import termios
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agiraph import config
from agiraph.testing.world import preload

LONGEST_REQUEST = 1 << 17


@dataclass(frozen=True, slots=True)
class Request:
    """A program to run, `MODULE:FUNCTION`. The streams are stdin, stdout and stderr."""

    program: str
    arguments: list[str]
    environment: dict[str, str]
    folder: str
    has_terminal: bool
    streams: list[int]


def import_program() -> None:
    import agiraph

    for module in pkgutil.walk_packages(agiraph.__path__, "agiraph."):
        if not module.name.startswith(("agiraph.testing", "agiraph.__main__")):
            importlib.import_module(module.name)
    assert threading.active_count() == 1, "a process with threads cannot be forked safely"


def import_module(name: str) -> None:
    """Import the module of a program before the fork: its next processes need not."""
    if name not in sys.modules:
        importlib.import_module(name)
        assert threading.active_count() == 1, f"{name} starts a thread, so it cannot be forked"
        _freeze()


def _freeze() -> None:
    gc.collect()
    gc.freeze()  # the collector of a forked process need not copy the pages of these objects


def serve(control: socket.socket) -> Request | None:
    """Fork for each request. Return the request in the new process, None when the test run ends."""
    running: dict[int, tuple[int, int]] = {}
    with selectors.DefaultSelector() as selector:
        selector.register(control, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fd in running:
                    selector.unregister(key.fd)
                    _report_exit(key.fd, *running.pop(key.fd))
                    continue
                data, received, _, _ = socket.recv_fds(control, LONGEST_REQUEST, 4)
                if not data:
                    return None
                *streams, report = received
                asked = Request(**json.loads(data), streams=streams)
                import_module(asked.program.partition(":")[0])
                if (pid := os.fork()) == 0:
                    for pidfd, (_, other_report) in running.items():
                        os.close(pidfd)
                        os.close(other_report)
                    os.close(report)
                    return asked
                for stream in streams:
                    os.close(stream)
                os.write(report, f"{pid}\n".encode())
                pidfd = os.pidfd_open(pid)
                running[pidfd] = pid, report
                selector.register(pidfd, selectors.EVENT_READ)


def _report_exit(pidfd: int, pid: int, report: int) -> None:
    _, status = os.waitpid(pid, 0)
    with contextlib.suppress(BrokenPipeError):  # the test does not wait for it any more
        os.write(report, f"{os.waitstatus_to_exitcode(status)}\n".encode())
    os.close(report)
    os.close(pidfd)


def become(request: Request) -> None:
    """Give this process what the command would have if it had been executed."""
    from agiraph.secret_variables import hand_over

    if request.has_terminal:
        os.setsid()
        fcntl.ioctl(request.streams[0], termios.TIOCSCTTY, 0)
    for number, stream in enumerate(request.streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin = sys.__stdin__ = _text(0, "r")
    sys.stdout = sys.__stdout__ = _text(1, "w")
    sys.stderr = sys.__stderr__ = _text(2, "w", buffering=1, errors="backslashreplace")
    os.chdir(request.folder)
    os.environ.clear()
    os.environ.update(hand_over(request.environment) or request.environment)
    sys.argv = request.arguments


def run(function: Callable[[], object]) -> None:
    """Run the program, and end this process as Python would, but without freeing its memory.

    To free it object by object would copy every page that this process shares with the forker,
    which takes longer than most commands.
    """
    code = 0
    try:
        function()
    except SystemExit as ended:
        if isinstance(ended.code, str):
            raise
        code = ended.code or 0
    threading._shutdown()  # pyright: ignore[reportAttributeAccessIssue]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code & 0xFF)


def _text(stream: int, mode: str, **options: Any) -> Any:
    return open(stream, mode, encoding="utf-8", closefd=False, **options)


def main() -> None:
    control = socket.socket(fileno=int(sys.argv[1]))
    import_program()
    folder = Path(sys.argv[2])
    preload(folder)
    config.load({"AGIRAPH_HOME": str(folder / "no-home")})  # builds what checks the settings
    _freeze()
    control.send(b"ready")
    request = serve(control)
    control.close()
    if request is not None:
        become(request)
        module, _, function = request.program.partition(":")
        run(getattr(sys.modules[module], function))


if __name__ == "__main__":
    main()
