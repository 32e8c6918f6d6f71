"""Shell: runs `agiraph` commands in processes, with the home and environment of a test."""

import asyncio
import codecs
import os
import pty
import re
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

PROGRAM = Path(sys.executable).with_name("agiraph")
PASSED_ON = ("PATH", "LANG", "PYTHONPATH", "TMPDIR")
_STYLE = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True, slots=True)
class Ended:
    code: int
    out: str = ""
    err: str = ""


@dataclass(slots=True)
class Process:
    """A running command and its output so far."""

    process: asyncio.subprocess.Process
    terminal: int | None = None
    seen: str = ""
    _read: asyncio.StreamReader = field(default_factory=asyncio.StreamReader)
    _decoder: codecs.IncrementalDecoder = field(
        default_factory=lambda: codecs.getincrementaldecoder("utf-8")(errors="replace")
    )
    """Decodes the output, whose chunks may end in the middle of a character."""

    def has_said(self, words: str) -> int:
        """Return how often this text was printed so far; ignore colours."""
        return _STYLE.sub("", self.seen).count(words)

    async def says(self, words: str, *, times: int = 1) -> None:
        """Wait until this text was printed `times` times in total."""
        while self.has_said(words) < times:
            more = await self._read.read(4096)
            assert more, (
                f"the command ended before it printed {words!r} {times} times:\n{self.seen}"
            )
            self.seen += self._decoder.decode(more)

    def types(self, line: bytes) -> None:
        assert self.terminal is not None
        os.write(self.terminal, line)

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    async def ends(self) -> Ended:
        while more := await self._read.read(4096):
            self.seen += self._decoder.decode(more)
        return Ended(await self.process.wait(), self.seen)


@dataclass(slots=True)
class Shell:
    home: Path
    environment: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def _environment(self) -> dict[str, str]:
        passed = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        return passed | {"AGIRAPH_HOME": str(self.home)} | self.environment

    async def __call__(self, *arguments: str) -> Ended:
        """Run a command to its end, without a terminal."""
        return await self.piped(None, *arguments)

    async def piped(self, words: bytes | None, *arguments: str) -> Ended:
        """Run a command to its end, with this input on stdin."""
        stdin = asyncio.subprocess.DEVNULL if words is None else asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            PROGRAM,
            *arguments,
            env=self._environment,
            stdin=stdin,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await process.communicate(words)
        assert process.returncode is not None
        return Ended(process.returncode, out.decode(), err.decode())

    @asynccontextmanager
    async def start(
        self, *arguments: str, errors: int = asyncio.subprocess.STDOUT
    ) -> AsyncGenerator[Process]:
        """Start a command whose output is read while it runs; kill it at the end of the block."""
        process = await asyncio.create_subprocess_exec(
            PROGRAM,
            *arguments,
            env=self._environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
        )
        assert process.stdout is not None
        try:
            yield Process(process, _read=process.stdout)
        finally:
            await _end(process)

    @asynccontextmanager
    async def start_at_terminal(self, *arguments: str) -> AsyncGenerator[Process]:
        """Start a command in a terminal that the test can type into."""
        async with at_terminal(self._environment, PROGRAM, *arguments) as process:
            yield process


@asynccontextmanager
async def at_terminal(
    environment: dict[str, str], program: Path | str, *arguments: str
) -> AsyncGenerator[Process]:
    """Run any program in a terminal; kill it at the end of the block."""
    ours, theirs = pty.openpty()
    process = await asyncio.create_subprocess_exec(
        *("setsid", "--ctty"),  # it gets SIGINT when the test types Ctrl-C
        program,
        *arguments,
        env=environment | {"TERM": "xterm"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    loop.add_reader(ours, _feed, ours, reader)
    try:
        yield Process(process, ours, _read=reader)
    finally:
        loop.remove_reader(ours)
        await _end(process)
        os.close(ours)


def _feed(terminal: int, reader: asyncio.StreamReader) -> None:
    try:
        data = os.read(terminal, 65536)
    except OSError:  # on Linux, EIO means that the program has closed the terminal
        data = b""
    if data:
        reader.feed_data(data)
    else:
        asyncio.get_running_loop().remove_reader(terminal)
        reader.feed_eof()


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.kill()
        await process.wait()
