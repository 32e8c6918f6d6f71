"""Server: runs the application on a socket with uvicorn."""

import asyncio
import contextlib
import socket
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any, cast

import uvicorn
from starlette.types import ASGIApp

from agiraph.api.connections import Connection, Connections, Limits, places
from agiraph.api.listening import HttpProtocol, Listener
from agiraph.domain.errors import Misconfigured

CLOSING_SECONDS = 3
SEND_BUFFER_BYTES = 256 * 1024


def bind(host: str, port: int) -> socket.socket:
    """Return a listening socket; raise `Misconfigured` if the address cannot be used."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        # A restart must not wait a minute for the TIME_WAIT of old connections.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Accepted sockets inherit the size. By default the kernel buffers up to 4 MiB for each slow
        # client, and a client that reads nothing is noticed only when that is full.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        sock.bind((host, port))
        sock.listen(1024)
    except OSError as error:
        sock.close()
        raise Misconfigured(
            f"Cannot listen on {host}:{port}: {error.strerror}. Set AGIRAPH_PORT to another port."
        ) from error
    return sock


class _Server(uvicorn.Server):
    connections: Connections

    async def startup(self, sockets: Sequence[socket.socket] | None = None) -> None:
        """Accept connections with our `Listener` instead of the event loop's server."""
        await self.lifespan.startup()
        listeners = [
            Listener(sock, self.connections, self._protocol, self.config.ssl)
            for sock in sockets or ()
        ]
        for listener in listeners:
            listener.start()
        self.servers = cast(Any, listeners)
        self.started = True

    def _protocol(self, connection: Connection) -> asyncio.Protocol:
        return HttpProtocol(self.config, self.server_state, self.connections, connection)

    def abort_open(self) -> None:
        for listener in cast(list[Listener], self.servers):
            listener.stop()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield  # the process handles signals, not the server


class Server:
    def __init__(
        self,
        app: ASGIApp,
        sock: socket.socket,
        *,
        certificate: Path | None = None,
        key: Path | None = None,
        limits: Limits | None = None,
    ) -> None:
        config = uvicorn.Config(
            app,
            ssl_certfile=certificate,
            ssl_keyfile=key,
            lifespan="off",
            log_config=None,
            # uvicorn's access log contains query strings, and with them sign-in codes;
            # `TracingMiddleware` logs requests without them.
            access_log=False,
            server_header=False,
            # A client sends nothing but one SubscribeFrame. Pings find clients that vanished
            # without a word.
            ws_max_size=2**20,
            ws_ping_interval=20,
            timeout_graceful_shutdown=CLOSING_SECONDS,
        )
        self._server = _Server(config)
        limits = limits or Limits()
        self.connections: Connections = Connections(limits, places(limits))
        self._server.connections = self.connections
        self._socket = sock
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = asyncio.create_task(self._server.serve([self._socket]), name="server")

    async def stop(self) -> None:
        """Finish the open requests, then close every connection."""
        self._server.should_exit = True
        if self._task is not None:
            await self._task
            self._server.abort_open()
