"""Listening reconnects whenever the connection is lost, and ends when it is cancelled."""

import asyncio
import struct
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import psycopg
import pytest

from agiraph.core.store.engine import notify
from agiraph.core.store.engine.notify import Notification, listen
from tests.postgres_server import Server

CHANNELS = ("first", "second")
FIELDS = b"SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\0"
TERMINATION = b"E" + struct.pack("!i", 4 + len(FIELDS)) + FIELDS
"""The message that PostgreSQL sends to a client whose connection it terminates."""


class CuttingProxy:
    """A proxy to PostgreSQL that cuts each connection one message later than the one before."""

    def __init__(self, url: str) -> None:
        self._to = urlsplit(url)
        self.cuts = 0
        self._is_done = False
        self._open: set[asyncio.StreamWriter] = set()

    async def __aenter__(self) -> "CuttingProxy":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        self.url = f"postgresql://agiraph@127.0.0.1:{port}{self._to.path}?sslmode=disable"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for writer in self._open:
            writer.close()

    def stop_cutting(self) -> None:
        """Cut no connection from now on."""
        self._is_done = True

    async def _serve(self, mine: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        theirs, to_server = await asyncio.open_connection(self._to.hostname, self._to.port)
        self._open |= {to_client, to_server}
        forth = asyncio.create_task(_copy(mine, to_server))
        try:
            await self._forward_until_cut(theirs, to_client)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            forth.cancel()
            to_client.close()
            to_server.close()

    async def _forward_until_cut(
        self, theirs: asyncio.StreamReader, to_client: asyncio.StreamWriter
    ) -> None:
        given = 0
        while self._is_done or given < self.cuts:
            head = await theirs.readexactly(5)
            to_client.write(head + await theirs.readexactly(struct.unpack("!i", head[1:])[0] - 4))
            given += 1
        self.cuts += 1
        to_client.write(TERMINATION)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)


class Recorder:
    """Counts a listener's connects and records its notifications."""

    def __init__(self) -> None:
        self.connects = 0
        self.notifications: list[Notification] = []
        self._changed = asyncio.Event()

    async def on_connect(self) -> None:
        self.connects += 1
        self._changed.set()

    async def on_notification(self, notice: Notification) -> None:
        self.notifications.append(notice)
        self._changed.set()

    async def changed(self) -> None:
        async with asyncio.timeout(30):
            await self._changed.wait()
        self._changed.clear()


@pytest.fixture
async def proxy(postgres: Server) -> AsyncIterator[CuttingProxy]:
    async with CuttingProxy(postgres.fresh()) as proxy:
        yield proxy


async def test_a_connection_cut_at_any_message_of_its_handshake_is_made_again(
    proxy: CuttingProxy, postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for pause in ("FIRST_PAUSE_S", "LONGEST_PAUSE_S"):
        monkeypatch.setattr(notify, pause, 0.0)
    recorder = Recorder()
    listener = asyncio.create_task(
        listen(
            proxy.url,
            CHANNELS,
            on_connect=recorder.on_connect,
            on_notification=recorder.on_notification,
        ),
        name="listener",
    )
    await recorder.changed()  # the first complete handshake; all earlier ones were cut
    proxy.stop_cutting()
    assert proxy.cuts > 10
    while not recorder.notifications:  # a connection cut after its handshake is made again
        _notify(postgres, proxy.url, [Notification("first", "Is anybody there?")])
        await recorder.changed()
    said = [Notification(channel, str(number)) for number in range(3) for channel in CHANNELS]
    _notify(postgres, proxy.url, said)
    while recorder.notifications[-1] != said[-1]:
        await recorder.changed()
    assert recorder.notifications[-len(said) :] == said
    listener.cancel()
    with pytest.raises(asyncio.CancelledError):
        await listener


def _notify(postgres: Server, url: str, notices: list[Notification]) -> None:
    database = urlsplit(url).path.lstrip("/")
    with psycopg.connect(postgres.url(database), autocommit=True) as connection:
        for notice in notices:
            connection.execute("select pg_notify(%s, %s)", notice)
