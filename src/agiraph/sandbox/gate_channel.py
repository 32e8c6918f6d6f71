"""Gate channel: receives the listener that a command's sandbox hands out, and has it served.

The listener was opened in the command's own network namespace, where nothing else can be reached.
The process that accepts on it decides what goes in and out.
"""

import array
import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

Serve = Callable[[socket.socket], None]
"""Begins to accept on a listening, non-blocking socket, which it owns."""


@asynccontextmanager
async def receiving(channel: socket.socket, serve: Serve | None) -> AsyncGenerator[None]:
    """Have the listener that comes through the channel served, for the time of the block.

    No listener comes if the sandbox could not be built; then the command did not start.
    """
    if serve is None:
        yield
        return
    task = asyncio.create_task(_receive(channel, serve), name="gate of a command")
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def _receive(channel: socket.socket, serve: Serve) -> None:
    loop = asyncio.get_running_loop()
    arrived = asyncio.Event()
    channel.setblocking(False)
    loop.add_reader(channel, arrived.set)
    try:
        await arrived.wait()
    finally:
        loop.remove_reader(channel)
    _, ancillary, _, _ = channel.recvmsg(1, socket.CMSG_SPACE(4))
    for level, kind, rights in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            listener = socket.socket(fileno=array.array("i", rights)[0])
            listener.setblocking(False)
            serve(listener)
