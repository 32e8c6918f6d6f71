"""Dialogue: a confined process with which the runtime talks by its standard input and output.

It is for programs that answer requests as long as they run, such as servers of tools, and for
parsers of hostile files. It is a command like any other: confined, limited, and gone with the
runtime.
"""

import asyncio
import contextlib
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Unpack

from agiraph.core.domain.value import dataclass
from agiraph.sandbox import commands
from agiraph.sandbox.commands import Child, CommandResult
from agiraph.sandbox.gate_channel import Serve
from agiraph.sandbox.inside.supervisor_process import ChildPipes

FOREVER_S = 10 * 365 * 86_400.0
"""A timeout that no process reaches."""
LINE_BYTES = 4 * 1024 * 1024
"""The longest line that `stdout.readline` returns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialogue:
    """A running process, its input and its output. What it writes as errors is in its spool."""

    stdin: asyncio.StreamWriter
    stdout: asyncio.StreamReader
    ended: asyncio.Task[CommandResult]
    """Done when the process has ended, or could not be started."""


@asynccontextmanager
async def talking(
    spool: Path,
    *,
    serve: Serve | None = None,
    on_output: Callable[[bytes], None] | None = None,
    timeout: float = FOREVER_S,
    line_bytes: int = LINE_BYTES,
    **child: Unpack[Child],
) -> AsyncGenerator[Dialogue]:
    """Run a command for the time of the block, and end it with all its processes.

    The arguments are those of `commands.run`; `on_output` gets what the command writes as errors.
    A write to a process that has ended raises ConnectionError; a read returns nothing.
    """
    async with contextlib.AsyncExitStack() as ours:
        theirs = contextlib.ExitStack()
        ours.push(theirs)
        input_end, stdin = _pipe(theirs)
        stdout, output_end = _pipe(theirs, reads=False)
        writer = await _writer(stdin)
        ours.callback(writer.close)
        reader, transport = await _reader(stdout, line_bytes)
        ours.callback(transport.close)
        running = commands.run(
            spool,
            timeout=timeout,
            serve=serve,
            on_output=on_output,
            pipes=ChildPipes(stdin=input_end, stdout=output_end, close=theirs.close),
            **child,
        )
        task = asyncio.create_task(running, name="dialogue with a process")
        task.add_done_callback(lambda _: theirs.close())
        ours.push_async_callback(_end, task)
        yield Dialogue(stdin=writer, stdout=reader, ended=task)


def _pipe(theirs: contextlib.ExitStack, *, reads: bool = True) -> tuple[int, int]:
    """Return the read and the write end of a pipe; `theirs` closes the end of the process."""
    reader, writer = os.pipe()
    theirs.callback(os.close, reader if reads else writer)
    return reader, writer


async def _writer(descriptor: int) -> asyncio.StreamWriter:
    loop = asyncio.get_running_loop()
    unused = asyncio.StreamReader()
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(unused), os.fdopen(descriptor, "wb", 0)
    )
    return asyncio.StreamWriter(transport, protocol, None, loop)


async def _reader(
    descriptor: int, line_bytes: int
) -> tuple[asyncio.StreamReader, asyncio.ReadTransport]:
    reader = asyncio.StreamReader(limit=line_bytes)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb", 0)
    )
    return reader, transport


async def _end(task: asyncio.Task[CommandResult]) -> None:
    """End the process; return when none of its processes is left."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
