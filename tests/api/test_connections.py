"""Connection limits: slow and half-sent requests are closed, signed-in clients are served."""

import asyncio
import contextlib
import resource
import socket
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from agiraph.api.connections import Connections, Limits
from tests.api.serving import TOKEN, Served, serving
from tests.api.test_live import create_team, emit_events
from tests.cli.shell import Process, Shell
from tests.providers.raw_server import until

HALF = b"GET /api/teams HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "
QUICK = Limits(headers_s=0.3, body_s=0.3, stalled_s=0.3, closing_s=0.3, sweep_s=0.05)


class Client:
    """A raw connection."""

    def __init__(self, port: int) -> None:
        self._port = port

    async def __aenter__(self) -> "Client":
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", self._port))
        self.reader, self.writer = await asyncio.open_connection(sock=sock, limit=1024)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.close()
        with contextlib.suppress(OSError):
            await self.writer.wait_closed()

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def is_closed(self) -> bool:
        """Wait until the server closes the connection; ignore the bytes that come before."""
        with contextlib.suppress(ConnectionError):
            while await self.reader.read(65536):
                pass
        return True

    async def ask(self, path: str, port: int) -> int:
        """Send a request with a token; return its status and keep the connection open."""
        self.send(request(path, port))
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = next(
            int(line.split(b":")[1])
            for line in head.lower().split(b"\r\n")
            if line.startswith(b"content-length")
        )
        await self.reader.readexactly(length)
        return int(head.split()[1])


def request(path: str, port: int, *more: str) -> bytes:
    lines = [
        f"GET {path} HTTP/1.1",
        f"Host: 127.0.0.1:{port}",
        f"Authorization: Bearer {TOKEN}",
        *more,
    ]
    return "\r\n".join([*lines, "", ""]).encode()


@asynccontextmanager
async def up_with_file_limit(home: Path, files: int) -> AsyncGenerator[tuple[Process, int]]:
    """Run `agiraph up` with a limit of open files; yield the process and its port."""
    environment = {"AGIRAPH_PORT": "0", "AGIRAPH_TOKEN": TOKEN, "FILES": str(files)}
    agiraph = Shell(home, environment, function="tests.api.few_files:main").prepared()
    async with agiraph.start("up") as process:
        await process.says("is up at")
        yield process, int(process.seen.split("is up at http://127.0.0.1:")[1].split()[0])


def open_files(process: Process) -> int:
    return len([*Path(f"/proc/{process.process.pid}/fd").iterdir()])


async def statuses_of_new_connections(port: int) -> list[int]:
    """Send five signed-in requests, each on a new connection; return their statuses."""
    found: list[int] = []
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with asyncio.timeout(30):
        for _ in range(5):
            async with (
                aiohttp.ClientSession(headers=headers) as http,
                http.get(f"http://127.0.0.1:{port}/api/teams") as answer,
            ):
                found.append(answer.status)
    return found


@pytest.mark.slow
async def test_half_sent_requests_are_closed_in_time_and_block_no_other_client(
    tmp_path: Path,
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        async with AsyncExitStack() as stack:
            process, port = await stack.enter_async_context(
                up_with_file_limit(tmp_path / "home", 1024)
            )
            assert await statuses_of_new_connections(port) == [200] * 5
            before = open_files(process)
            clients: list[Client] = []
            for _ in range(1500):
                clients.append(await stack.enter_async_context(Client(port)))
                clients[-1].send(HALF)
            assert await statuses_of_new_connections(port) == [200] * 5
            assert open_files(process) < 900
            async with asyncio.timeout(60):
                assert all(await asyncio.gather(*(client.is_closed() for client in clients)))
            # A few more files may be open than before: database readers are opened on demand.
            await until(lambda: open_files(process) <= before + 10)
            process.signal(15)
            said = (await process.ends()).out
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert said.count("half-read connection(s) to make room") == 1
    assert said.count("did not send a whole request in time") == 1


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET /",
        HALF,
        b"POST /api/hooks/x HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nContent-Length: 900\r\n\r\n{",
        b"POST /api/teams HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nContent-Type: application/json\r\n"
        b"Authorization: Bearer TOKEN\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n{",
        b"POST /api/teams HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nContent-Length: 99999\r\n\r\n{",
    ],
    ids=["nothing", "line", "headers", "body", "chunk", "answered before its end"],
)
async def test_a_connection_without_a_whole_request_is_closed(tmp_path: Path, sent: bytes) -> None:
    async with serving(tmp_path / "home", limits=QUICK) as served, Client(served.port) as slow:
        slow.send(sent.replace(b"PORT", b"%d" % served.port).replace(b"TOKEN", TOKEN.encode()))
        async with asyncio.timeout(20):
            assert await slow.is_closed()
        assert served.connections.closed == {"slow request": 1}
        assert (await served.ask("GET", "/teams"))[0] == 200


async def test_a_connection_that_sends_byte_by_byte_is_closed(tmp_path: Path) -> None:
    async with serving(tmp_path / "home", limits=QUICK) as served, Client(served.port) as slow:
        gone = asyncio.create_task(slow.is_closed())
        slow.send(HALF)
        while not gone.done():
            slow.send(b"x")
            await asyncio.sleep(0.02)  # one byte every 20 ms
    assert served.connections.closed == {"slow request": 1}


async def test_a_connection_with_endless_headers_is_closed(tmp_path: Path) -> None:
    async with serving(tmp_path / "home") as served, Client(served.port) as endless:
        gone = asyncio.create_task(endless.is_closed())
        endless.send(HALF)
        while not gone.done():
            endless.send(b"x" * 8192)
            await asyncio.sleep(0)
    assert served.connections.closed == {"slow request": 1}


@pytest.mark.slow
async def test_a_connection_whose_response_is_not_read_is_closed(tmp_path: Path) -> None:
    async with serving(tmp_path / "home", limits=QUICK) as served:
        watched = await create_team(served)
        await served.world.store.write(emit_events, watched, 300, 20_000)
        # It connects only now: a client that sends nothing while the events are written is closed.
        async with Client(served.port) as stalled:
            stalled.send(request(f"/api/teams/{watched}/events", served.port))
            await until(lambda: served.connections.closed.get("stalled") == 1)
        await until(lambda: all(c.state == "idle" for c in served.connections.open))


async def test_a_signed_in_connection_is_never_closed_to_make_room(tmp_path: Path) -> None:
    few = Limits(connections=16, per_address=6)
    async with AsyncExitStack() as stack:
        served = await stack.enter_async_context(serving(tmp_path / "home", limits=few))
        mine = await stack.enter_async_context(Client(served.port))
        assert await mine.ask("/api/teams", served.port) == 200
        crowd = [await stack.enter_async_context(Client(served.port)) for _ in range(40)]
        for client in crowd:
            client.send(HALF)
        assert (await served.ask("GET", "/teams"))[0] == 200
        assert await mine.ask("/api/teams", served.port) == 200
        assert len(served.connections.half_read) <= few.per_address
        async with asyncio.timeout(20):
            await asyncio.gather(*(client.is_closed() for client in crowd[:30]))


async def test_a_connection_beyond_the_limit_is_refused_and_the_others_continue(
    tmp_path: Path,
) -> None:
    async with AsyncExitStack() as stack:
        limits = Limits(connections=16)
        served = await stack.enter_async_context(serving(tmp_path / "home", limits=limits))
        lines = [
            await stack.enter_async_context(served.follow(ping_interval=None)) for _ in range(16)
        ]
        late = await stack.enter_async_context(Client(served.port))
        async with asyncio.timeout(20):
            assert await late.is_closed()
        assert served.connections.closed == {"no place": 1}
        await lines[0].send('{"op": "subscribe", "cursors": {}}')
        assert "hello" in str(await lines[0].recv())


def test_half_read_connections_are_limited_for_each_address_and_in_total() -> None:
    all_ = Connections(Limits(per_address=2), max_open=8)
    first, second = all_.admit("a"), all_.admit("a")
    assert first is not None
    assert second is not None
    third = all_.admit("a")
    assert [*all_.half_read] == [second, third]
    for address in "bcdefgh":
        all_.admit(address)
    assert [c.address for c in all_.half_read] == ["e", "f", "g", "h"]
    assert all_.open == set(all_.half_read)


def test_without_a_limit_for_each_address_half_of_all_connections_may_be_half_read() -> None:
    all_ = Connections(Limits(per_address=0), max_open=8)
    for _ in range(6):
        all_.admit("proxy")
    assert len(all_.half_read) == 4


async def test_a_connection_is_kept_and_used_again_after_a_response(served: Served) -> None:
    async with Client(served.port) as client:
        for _ in range(3):
            assert await client.ask("/api/teams", served.port) == 200
        [connection] = served.connections.open
        assert (connection.state, connection.is_signed_in) == ("idle", True)
    await until(lambda: not served.connections.open)
