"""Listening goes on however the connection is lost, and stops when it is told to."""

import asyncio
import struct
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import psycopg
import pytest

from agiraph.store import notify
from agiraph.store.notify import Notification, listen
from tests.conftest import Server

CHANNELS = ("first", "second")
FIELDS = b"SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\0"
FAREWELL = b"E" + struct.pack("!i", 4 + len(FIELDS)) + FIELDS
"""What PostgreSQL says to a client whose connection it ends."""


class Cutter:
    """A way to PostgreSQL that ends each connection one message later than the one before."""

    def __init__(self, url: str) -> None:
        self._to = urlsplit(url)
        self.cuts = 0
        self._is_done = False
        self._open: set[asyncio.StreamWriter] = set()

    async def __aenter__(self) -> "Cutter":
        self._server = await asyncio.start_server(self._pass, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        self.url = f"postgresql://agiraph@127.0.0.1:{port}{self._to.path}?sslmode=disable"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for writer in self._open:
            writer.close()

    def spare(self) -> None:
        """From here on connections live."""
        self._is_done = True

    async def _pass(self, mine: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        theirs, to_server = await asyncio.open_connection(self._to.hostname, self._to.port)
        self._open |= {to_client, to_server}
        forth = asyncio.create_task(_copy(mine, to_server))
        try:
            await self._give(theirs, to_client)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            forth.cancel()
            to_client.close()
            to_server.close()

    async def _give(self, theirs: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        given = 0
        while self._is_done or given < self.cuts:
            head = await theirs.readexactly(5)
            to_client.write(head + await theirs.readexactly(struct.unpack("!i", head[1:])[0] - 4))
            given += 1
        self.cuts += 1
        to_client.write(FAREWELL)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)


class Ear:
    """What a listener looked for and took."""

    def __init__(self) -> None:
        self.looks = 0
        self.taken: list[Notification] = []
        self._moved = asyncio.Event()

    async def look(self) -> None:
        self.looks += 1
        self._moved.set()

    async def take(self, notice: Notification) -> None:
        self.taken.append(notice)
        self._moved.set()

    async def moves(self) -> None:
        async with asyncio.timeout(30):
            await self._moved.wait()
        self._moved.clear()


@pytest.fixture
async def cutter(postgres: Server) -> AsyncIterator[Cutter]:
    async with Cutter(postgres.fresh()) as cutter:
        yield cutter


async def test_a_connection_cut_at_any_message_of_its_beginning_is_made_again(
    cutter: Cutter, postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for pause in ("FIRST_PAUSE_S", "LONGEST_PAUSE_S"):
        monkeypatch.setattr(notify, pause, 0.0)
    ear = Ear()
    listener = asyncio.create_task(
        listen(cutter.url, CHANNELS, on_connect=ear.look, on_notification=ear.take), name="listener"
    )
    await ear.moves()  # the first that lived through its beginning; each before was cut in it
    cutter.spare()
    assert cutter.cuts > 10
    while not ear.taken:  # a connection cut after its look is made again, and looks again
        _say(postgres, cutter.url, [Notification("first", "Is anybody there?")])
        await ear.moves()
    said = [Notification(channel, str(number)) for number in range(3) for channel in CHANNELS]
    _say(postgres, cutter.url, said)
    while ear.taken[-1] != said[-1]:
        await ear.moves()
    assert ear.taken[-len(said) :] == said
    listener.cancel()
    with pytest.raises(asyncio.CancelledError):
        await listener


def _say(postgres: Server, url: str, notices: list[Notification]) -> None:
    database = urlsplit(url).path.lstrip("/")
    with psycopg.connect(postgres.url(database), autocommit=True) as connection:
        for notice in notices:
            connection.execute("select pg_notify(%s, %s)", notice)
