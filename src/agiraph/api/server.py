"""Server: the application on a socket, begun and ended with the rest of the process."""

import asyncio
import contextlib
import socket
from collections.abc import Generator
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

from agiraph.domain.errors import Misconfigured

CLOSING_SECONDS = 3


def bind(host: str, port: int) -> socket.socket:
    """A listening socket, or `Misconfigured` with what to do instead."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
        sock.listen(1024)
    except OSError as error:
        sock.close()
        raise Misconfigured(
            f"Cannot listen on {host}:{port}: {error.strerror}. Set AGIRAPH_PORT to another port."
        ) from error
    return sock


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield  # signals are the whole process's business, not the server's


class Server:
    def __init__(
        self,
        app: ASGIApp,
        sock: socket.socket,
        *,
        certificate: Path | None = None,
        key: Path | None = None,
    ) -> None:
        config = uvicorn.Config(
            app,
            ssl_certfile=certificate,
            ssl_keyfile=key,
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            ws_max_size=2**20,
            ws_ping_interval=20,
            timeout_graceful_shutdown=CLOSING_SECONDS,
        )
        self._server = _Server(config)
        self._socket = sock
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = asyncio.create_task(self._server.serve([self._socket]), name="server")

    async def stop(self) -> None:
        """Answer what was begun, then close every line."""
        self._server.should_exit = True
        if self._task is not None:
            await self._task
