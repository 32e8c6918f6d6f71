"""Shell: runs `agiraph` commands in processes, with the home and environment of a test."""

import asyncio
import codecs
import os
import pty
import re
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from agiraph.testing.world import prepare_database
from tests.cli.forked import AGIRAPH, PASSED_ON, ForkedProcess, fork, reading

PROGRAM = Path(sys.executable).with_name("agiraph")
PIPE_BUFFER_BYTES = 1 << 16
AT_ONCE = {"AGIRAPH_DEMO_SECONDS": "0"}
"""The scripted demo takes its time for people who watch it."""
Running = asyncio.subprocess.Process | ForkedProcess
_STYLE = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True, slots=True)
class Ended:
    code: int
    out: str = ""
    err: str = ""


@dataclass(slots=True)
class Process:
    """A running command and its output so far."""

    process: Running
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
    is_forked: bool = True
    """Whether commands are forked from a process that has imported the program, or executed."""
    function: str = AGIRAPH
    """What a forked command runs, such as a test's own program around `agiraph`."""

    def prepared(self) -> "Shell":
        """Put an empty database where the first command would create one; return this shell.

        To create it takes a command longer than everything else that most commands do.
        """
        self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        if "AGIRAPH_DATABASE_URL" not in self.environment:
            prepare_database(self.home / "agiraph.db")
        return self

    @property
    def _environment(self) -> dict[str, str]:
        passed = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        # Tests put programs and pipes beside the home.
        places = {"AGIRAPH_HOME": str(self.home), "AGIRAPH_SANDBOX_READ": str(self.home.parent)}
        return passed | places | AT_ONCE | self.environment

    async def __call__(self, *arguments: str) -> Ended:
        """Run a command to its end, without a terminal."""
        return await self.piped(None, *arguments)

    async def piped(self, words: bytes | None, *arguments: str) -> Ended:
        """Run a command to its end, with this input on stdin."""
        reader, writer = os.pipe()
        with reading(reader) as errors:
            async with self._started(*arguments, words=words, errors=writer) as process:
                ended, err = await asyncio.gather(process.ends(), errors.read())
        return Ended(ended.code, ended.out, err.decode())

    @asynccontextmanager
    async def start(
        self, *arguments: str, errors: int = asyncio.subprocess.STDOUT
    ) -> AsyncGenerator[Process]:
        """Start a command whose output is read while it runs; kill it at the end of the block."""
        own = None if errors == asyncio.subprocess.STDOUT else os.dup(errors)
        async with self._started(*arguments, errors=own) as process:
            yield process

    @asynccontextmanager
    async def _started(
        self, *arguments: str, errors: int | None, words: bytes | None = None
    ) -> AsyncGenerator[Process]:
        reader, writer = os.pipe()
        streams = (_input(words), writer, writer if errors is None else errors)
        start = partial(fork, function=self.function) if self.is_forked else _execute
        with reading(reader) as output:
            async with start(
                PROGRAM, *arguments, environment=self._environment, streams=streams
            ) as process:
                yield Process(process, _read=output)

    @asynccontextmanager
    async def start_at_terminal(self, *arguments: str) -> AsyncGenerator[Process]:
        """Start a command in a terminal that the test can type into."""
        environment = self._environment | {"TERM": "xterm"}
        if not self.is_forked:
            async with at_terminal(environment, PROGRAM, *arguments) as process:
                yield process
            return
        ours, theirs = pty.openpty()
        with reading(ours) as output:
            async with fork(
                PROGRAM,
                *arguments,
                environment=environment,
                streams=(theirs,) * 3,
                has_terminal=True,
                function=self.function,
            ) as process:
                yield Process(process, ours, _read=output)


def _input(words: bytes | None) -> int:
    """Return a descriptor of a pipe with these words, or of /dev/null."""
    if words is None:
        return os.open(os.devnull, os.O_RDONLY)
    assert len(words) <= PIPE_BUFFER_BYTES
    reader, writer = os.pipe()
    os.write(writer, words)
    os.close(writer)
    return reader


@asynccontextmanager
async def at_terminal(
    environment: dict[str, str], program: Path | str, *arguments: str
) -> AsyncGenerator[Process]:
    """Run any program in a terminal; kill it at the end of the block."""
    ours, theirs = pty.openpty()
    # With its terminal it gets SIGINT when the test types Ctrl-C.
    line = ("setsid", "--ctty", str(program), *arguments)
    with reading(ours) as output:
        async with _execute(
            *line, environment=environment | {"TERM": "xterm"}, streams=(theirs,) * 3
        ) as process:
            yield Process(process, ours, _read=output)


@asynccontextmanager
async def _execute(
    program: Path | str, *arguments: str, environment: dict[str, str], streams: Sequence[int]
) -> AsyncGenerator[asyncio.subprocess.Process]:
    """Execute a program with these three streams, which are closed; kill it at the end."""
    stdin, stdout, stderr = streams
    process = await asyncio.create_subprocess_exec(
        program, *arguments, env=environment, stdin=stdin, stdout=stdout, stderr=stderr
    )
    for descriptor in {*streams}:
        os.close(descriptor)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
