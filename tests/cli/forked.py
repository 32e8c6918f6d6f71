"""Forked: programs that run in a process forked by the forker."""

import asyncio
import atexit
import contextlib
import functools
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.cli import forker

PASSED_ON = ("PATH", "LANG", "PYTHONPATH", "TMPDIR")
"""The variables of the test run's environment that commands get."""


AGIRAPH = "agiraph.__main__:main"


@dataclass(slots=True)
class ForkedProcess:
    """A running program, with the names of `asyncio.subprocess.Process`."""

    pid: int
    _exit: asyncio.Task[int]

    @property
    def returncode(self) -> int | None:
        return self._exit.result() if self._exit.done() else None

    async def wait(self) -> int:
        return await asyncio.shield(self._exit)

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            os.kill(self.pid, number)


@asynccontextmanager
async def fork(
    program: Path,
    *arguments: str,
    environment: dict[str, str],
    streams: Sequence[int],
    has_terminal: bool = False,
    function: str = AGIRAPH,
    folder: Path | None = None,
) -> AsyncGenerator[ForkedProcess]:
    """Run a program with these three streams, which are closed; kill it at the end of the block.

    The function, `MODULE:NAME`, finds the name and the arguments of the program in `sys.argv`.
    """
    request = {
        "program": function,
        "arguments": [str(program), *arguments],
        "environment": environment,
        "folder": str(folder or Path.cwd()),
        "has_terminal": has_terminal,
    }
    reader, writer = os.pipe()
    socket.send_fds(forker_socket(), [json.dumps(request).encode()], [*streams, writer])
    for descriptor in {*streams, writer}:
        os.close(descriptor)
    with reading(reader) as report:
        pid = int(await report.readline())
        process = ForkedProcess(pid, asyncio.create_task(_exit_code(report)))
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGKILL)
            await process.wait()


async def _exit_code(report: asyncio.StreamReader) -> int:
    return int(await report.readline())


@contextlib.contextmanager
def reading(descriptor: int) -> Iterator[asyncio.StreamReader]:
    """Read a pipe or terminal during the block, and close it."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    loop.add_reader(descriptor, _feed, descriptor, reader)
    try:
        yield reader
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


def _feed(descriptor: int, reader: asyncio.StreamReader) -> None:
    try:
        data = os.read(descriptor, 65536)
    except OSError:  # on Linux, EIO means that the program has closed the terminal
        data = b""
    if data:
        reader.feed_data(data)
    else:
        asyncio.get_running_loop().remove_reader(descriptor)
        reader.feed_eof()


def place_of_homes() -> Path:
    """Return a folder on the file system where the homes of tests are."""
    return Path(os.environ.get("PYTEST_DEBUG_TEMPROOT") or tempfile.gettempdir())


@functools.cache
def forker_socket() -> socket.socket:
    """Start the forker of this test process; return the socket that takes its requests."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    process = subprocess.Popen(
        [sys.executable, forker.__file__, str(theirs.fileno()), str(place_of_homes())],
        env={name: os.environ[name] for name in PASSED_ON if name in os.environ}
        | {"PYTHONPATH": os.pathsep.join(sys.path)},
        pass_fds=[theirs.fileno()],
        stdin=subprocess.DEVNULL,
    )
    theirs.close()
    assert ours.recv(16) == b"ready", "the forker did not start"

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours
