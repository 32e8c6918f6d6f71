"""Server: runs the application on a socket with uvicorn, and accepts connections within limits.

uvicorn has no timeout for headers or bodies and no limit on half-read connections, so its protocols
are subclassed here. Sockets are accepted by our own listener, which also limits TLS handshakes: a
protocol is created only after its handshake.
"""

import asyncio
import contextlib
import errno
import functools
import socket
import ssl
import time
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any, cast

import uvicorn
from starlette.types import ASGIApp
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState

from agiraph.api.connections import Connection, Connections, Limits, places
from agiraph.core.domain.errors import Misconfigured

CLOSING_SECONDS = 3
SEND_BUFFER_BYTES = 256 * 1024
ABORT = "abort"
"""Key in a WebSocket's scope state of the function that closes its socket immediately."""
# Afterwards the event loop serves requests before it accepts more: a flood must not starve them.
ACCEPTED_AT_ONCE = 64
PAUSE_S = 0.1
"""How long accepting pauses when no file descriptor is free."""
_NONE_FREE = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


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


class _TracksStalls(asyncio.Protocol):
    """Records since when a client does not read. Comes before uvicorn's class in the bases."""

    _one: Connection

    def pause_writing(self) -> None:
        self._one.stalled_since = time.monotonic()
        super().pause_writing()

    def resume_writing(self) -> None:
        self._one.stalled_since = None
        super().resume_writing()


class HttpProtocol(_TracksStalls, HttpToolsProtocol):
    def __init__(
        self,
        config: Config,
        state: ServerState,
        connections: Connections,
        connection: Connection,
    ) -> None:
        super().__init__(config=config, server_state=state, app_state={})
        self._all = connections
        self._one = connection
        self._is_whole = True
        """Whether the request was read completely."""
        socket_protocol = functools.partial(
            WebSocketProtocol, all_connections=connections, connection=connection
        )
        self.ws_protocol_class: Any = cast(Any, socket_protocol)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._one.transport = transport
        if self._one not in self._all.open:
            transport.abort()  # the limits closed it during its TLS handshake
        super().connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._all.leave(self._one)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._one.state == "idle":
            self._all.enter(self._one, "headers")
        self._one.received += len(data)
        super().data_received(data)
        self._one.is_reading_paused = self.flow.read_paused
        if self._one.is_late(time.monotonic(), self._all.limits):
            self._all.drop(self._one, "slow request")

    def on_headers_complete(self) -> None:
        self._all.enter(self._one, "body")
        self._is_whole = False
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._is_whole = True
        cycle = cast(Any, self.cycle)  # None for a WebSocket upgrade
        is_answered = cycle is not None and cycle.response_complete
        self._all.enter(self._one, "idle" if is_answered else "answering")

    def on_response_complete(self) -> None:
        super().on_response_complete()
        # Access control puts the caller there once it has checked the token.
        if "caller" in self.scope.get("state", {}):
            self._one.is_signed_in = True
        if not self._is_whole:
            self._all.enter(self._one, "draining")
        elif not self.pipeline:
            self._all.enter(self._one, "idle")


class WebSocketProtocol(_TracksStalls, WebSocketsSansIOProtocol):
    def __init__(
        self, *, all_connections: Connections, connection: Connection, **more: Any
    ) -> None:
        super().__init__(**more)
        self._all = all_connections
        self._one = connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._all.enter(self._one, "websocket")
        abort = cast(asyncio.Transport, transport).abort
        self.app_state: dict[str, Any] = {**self.app_state, ABORT: abort}
        super().connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._all.leave(self._one)
        super().connection_lost(exc)


class Listener:
    """Accepts connections on a socket. Has the methods that uvicorn calls to stop a server."""

    def __init__(
        self,
        sock: socket.socket,
        connections: Connections,
        protocol: Callable[[Connection], asyncio.Protocol],
        trust: ssl.SSLContext | None,
    ) -> None:
        self._socket = sock
        self._connections = connections
        self._protocol = protocol
        self._trust = trust
        self._loop = asyncio.get_running_loop()
        self._sweeping: asyncio.TimerHandle | None = None
        self._is_closed = False

    def start(self) -> None:
        self._socket.setblocking(False)
        self._loop.add_reader(self._socket, self._accept)
        self._sweep()

    def close(self) -> None:
        self._is_closed = True
        self._loop.remove_reader(self._socket)

    async def wait_closed(self) -> None:
        """Do nothing: uvicorn calls this, but waits for open connections by itself."""

    def stop(self) -> None:
        """Abort the open connections and stop the periodic sweep."""
        if self._sweeping is not None:
            self._sweeping.cancel()
        for connection in [*self._connections.open]:
            connection.abort()

    def _sweep(self) -> None:
        self._connections.sweep()
        self._sweeping = self._loop.call_later(self._connections.limits.sweep_s, self._sweep)

    def _accept(self) -> None:
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                accepted, peer = self._socket.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                if error.errno in _NONE_FREE:
                    return self._pause()
                continue  # the client disconnected before it was accepted
            connection = self._connections.admit(str(peer[0]))
            if connection is None:
                accepted.close()
                continue
            # Frames are small: Nagle's algorithm would hold each back until the one before is
            # acknowledged.
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.opening = self._loop.create_task(self._open(accepted, connection))

    async def _open(self, accepted: socket.socket, connection: Connection) -> None:
        accepted.setblocking(False)
        seconds = None if self._trust is None else self._connections.limits.headers_s
        is_open = False
        try:
            with contextlib.suppress(OSError):  # the TLS handshake failed or took too long
                await self._loop.connect_accepted_socket(
                    lambda: self._protocol(connection),
                    accepted,
                    ssl=self._trust,
                    ssl_handshake_timeout=seconds,
                )
                is_open = True
        finally:
            # Also when `Connections.drop` cancels this task in the middle of a TLS handshake.
            connection.opening = None
            if not is_open:
                accepted.close()
                self._connections.leave(connection)

    def _pause(self) -> None:
        """Stop accepting for `PAUSE_S`: without a free file descriptor `accept` fails in a loop."""
        self._connections.note("no file descriptor", "")
        self._connections.drop_oldest()
        self._loop.remove_reader(self._socket)
        self._loop.call_later(PAUSE_S, self._resume)

    def _resume(self) -> None:
        if not self._is_closed:
            self._loop.add_reader(self._socket, self._accept)


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
