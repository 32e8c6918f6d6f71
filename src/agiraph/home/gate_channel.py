"""Gate channel: receives the listener of a command's network gate from the warden."""

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable

from agiraph.home import confinement

Serve = Callable[[socket.socket], None]
"""Takes the listener on the loopback of a command's network namespace, on the event loop."""


class GateChannel:
    """A pair of sockets: the warden sends one descriptor by its end, and then closes it."""

    def __init__(
        self, serve: Serve, ours: contextlib.ExitStack, theirs: contextlib.ExitStack
    ) -> None:
        self._serve = serve
        self._ours, self._theirs = socket.socketpair()
        ours.callback(self._ours.close)
        theirs.callback(self._theirs.close)
        self._ours.setblocking(False)

    def file_actions(self) -> list[tuple[int, int, int]]:
        """Return what gives the supervisor its end of the pair."""
        return [(os.POSIX_SPAWN_DUP2, self._theirs.fileno(), confinement.GATE)]

    def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wait for the listener on this event loop."""
        loop.add_reader(self._ours, self._take, loop)

    def ignore(self, loop: asyncio.AbstractEventLoop) -> None:
        loop.remove_reader(self._ours)

    def _take(self, loop: asyncio.AbstractEventLoop) -> None:
        self.ignore(loop)  # there is one message; after it the channel is at its end
        with contextlib.suppress(OSError):  # the warden died; the command never starts
            _, descriptors, _, _ = socket.recv_fds(self._ours, 1, 1)
            for descriptor in descriptors:
                self._serve(socket.socket(fileno=descriptor))
