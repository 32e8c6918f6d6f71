"""Piped commands: runs a long-lived command whose standard input and output are pipes to us.

The command runs under the same supervisor as every other one (`commands`), so it is confined in
the same way and no process of it outlives the runtime. Its input and output are two FIFOs in a
folder of its own. We open both before the command starts, so whatever it does to the folder later
leads us to no other file.
"""

import asyncio
import contextlib
import os
import secrets
import shlex
import shutil
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from agiraph.domain.errors import Refused
from agiraph.home import commands
from agiraph.home.commands import CommandResult
from agiraph.home.gate_channel import Serve
from agiraph.home.layout import Home
from agiraph.home.sandbox import DEFAULT_LIMITS, Limits, Mount, Spec

CHUNK_BYTES = 64 * 1024
MOST_LOG_BYTES = 8 * 2**20
"""Bytes on standard error after which a command is ended."""
LONGEST_S = 30 * 24 * 3600.0
SPOOL = "mcp-"
"""Spools of piped commands begin with this; those that a crash left are removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A command to run, and what it sees."""

    name: str
    """For the name of its spool: letters, digits, '-' and '_'."""
    words: Sequence[str]
    cwd: Path
    env: Mapping[str, str]
    spec: Spec | None
    limits: Limits = DEFAULT_LIMITS
    serve: Serve | None = None


_Add = Callable[[int, Callable[[], None]], object]
_Remove = Callable[[int], object]


class Pipes:
    """The two ends of a running command that we hold. One task reads, one task writes."""

    def __init__(self, source: int, target: int) -> None:
        self._source = source
        self._target = target
        self._ended = asyncio.Event()
        self.result: CommandResult | None = None
        """How the command ended; None while it runs."""

    async def read(self) -> bytes:
        """Return the next bytes of the command's output; nothing once it has ended."""
        loop = asyncio.get_running_loop()
        while True:
            with contextlib.suppress(BlockingIOError):
                return os.read(self._source, CHUNK_BYTES)
            if self._ended.is_set():
                return b""
            await self._ready(loop.add_reader, loop.remove_reader, self._source)

    async def write(self, data: bytes) -> None:
        """Write all bytes to the command's input; raise `BrokenPipeError` if it has ended."""
        loop, left = asyncio.get_running_loop(), memoryview(data)
        while left:
            if self._ended.is_set():
                raise BrokenPipeError
            with contextlib.suppress(BlockingIOError):
                left = left[os.write(self._target, left) :]
                continue
            await self._ready(loop.add_writer, loop.remove_writer, self._target)

    async def ended(self) -> None:
        """Wait until the command has ended."""
        await self._ended.wait()

    def end(self, result: CommandResult | None) -> None:
        self.result = result
        self._ended.set()

    async def _ready(self, add: _Add, remove: _Remove, descriptor: int) -> None:
        """Wait until the descriptor is ready, or the command has ended."""
        ready = asyncio.Event()
        add(descriptor, ready.set)
        waits = {asyncio.ensure_future(ready.wait()), asyncio.ensure_future(self._ended.wait())}
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            remove(descriptor)
            for wait in waits:
                wait.cancel()


@contextlib.asynccontextmanager
async def running(home: Home, launch: Launch) -> AsyncGenerator[Pipes]:
    """Run the command for the time of the block; at its end no process of it is left."""
    spool = await asyncio.to_thread(home.spool, f"{SPOOL}{launch.name}-{secrets.token_hex(6)}")
    folder = spool / "pipes"
    with contextlib.ExitStack() as files:
        files.callback(shutil.rmtree, spool, ignore_errors=True)
        # Read and write: opening does not wait for the command, and neither end ever closes early.
        # That the command has ended, its supervisor says.
        opened = [_fifo(folder, name, files) for name in ("in", "out")]
        pipes = Pipes(opened[1], opened[0])
        task = asyncio.create_task(_run(spool, folder, launch, pipes), name=f"mcp {launch.name}")
        try:
            yield pipes
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def remove_spools(home: Home) -> None:
    """Remove the spools of piped commands that a crash left; those that run are left alone."""
    for spool in (home.path / "spool").glob(f"{SPOOL}*"):
        if not commands.is_alive(spool):
            shutil.rmtree(spool, ignore_errors=True)


async def _run(spool: Path, folder: Path, launch: Launch, pipes: Pipes) -> None:
    """Run the command to its end, and say so to whoever reads and writes."""
    spec, result, logged = launch.spec, None, 0
    own = asyncio.current_task()
    assert own is not None
    if spec is not None:
        folder = folder.resolve()
        given = Mount(source=folder, target=folder, is_writable=True)
        spec = replace(spec, mounts=(*spec.mounts, given))
    said, heard = (shlex.quote(str(folder / name)) for name in ("in", "out"))

    def count(piece: bytes) -> None:
        nonlocal logged
        logged += len(piece)
        if logged > MOST_LOG_BYTES:
            own.cancel()

    try:
        result = await commands.run(
            spool,
            command=f"exec <{said} >{heard}; exec {shlex.join(launch.words)}",
            cwd=launch.cwd,
            timeout=LONGEST_S,
            env=launch.env,
            spec=spec,
            limits=launch.limits,
            team=f"mcp:{launch.name}",
            on_output=count,
            serve=launch.serve,
        )
    except Refused as refused:
        result = _not_started(spool, str(refused))
    except asyncio.CancelledError:
        result = await asyncio.to_thread(commands.resolve, spool)
        raise
    finally:
        pipes.end(result)


def _not_started(spool: Path, why: str) -> CommandResult:
    return CommandResult(
        exit_code=None,
        ended="interrupted",
        output=why,
        output_bytes=len(why),
        output_path=spool / "output",
        seconds=0.0,
    )


def _fifo(folder: Path, name: str, files: contextlib.ExitStack) -> int:
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / name
    os.mkfifo(path, 0o600)
    descriptor = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    files.callback(os.close, descriptor)
    return descriptor
