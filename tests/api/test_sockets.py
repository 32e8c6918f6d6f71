"""Many or stalled WebSockets: bounded sockets and memory, and no lost event."""

import asyncio
import re
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path

import orjson
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from agiraph.api import live
from agiraph.api.connections import Limits
from agiraph.api.deps import Timeouts
from agiraph.api.live import Hub, Subscriber
from agiraph.testing import World
from tests.api.serving import TOKEN, serving
from tests.api.test_connections import Client, up_with_file_limit
from tests.api.test_live import create_team, emit_events, event_numbers, partial_reply
from tests.cli.shell import Process
from tests.providers.raw_server import until

EVENTS, SIZE = 500, 20_000
"""A history of 10 MB."""
CROWD = 100
MOST_MEMORY = 100 * 2**20
"""The limit for 100 replaying clients; with a copy of the history for each it was 1 GB."""


def upgrade(path: str, port: int) -> bytes:
    lines = [
        f"GET {path} HTTP/1.1",
        f"Host: 127.0.0.1:{port}",
        *("Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13"),
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        f"Authorization: Bearer {TOKEN}",
    ]
    return "\r\n".join([*lines, "", ""]).encode()


@pytest.mark.slow
async def test_sockets_of_stalled_clients_are_closed(tmp_path: Path) -> None:
    limits = Limits(sweep_s=0.05, closing_s=0.2)
    async with AsyncExitStack() as stack:
        served = await stack.enter_async_context(
            serving(tmp_path / "home", timeouts=Timeouts(send_s=0.2), limits=limits)
        )
        watched = await create_team(served)
        await served.world.store.write(emit_events, watched, EVENTS, SIZE)
        stalled = [await stack.enter_async_context(Client(served.port)) for _ in range(20)]
        for client in stalled:
            client.send(upgrade(f"/api/teams/{watched}/events", served.port))
            await client.reader.readexactly(1)  # connected; from now on this client reads nothing
        async with asyncio.timeout(30):
            await until(lambda: served.api.hub.lost == len(stalled))
            await until(lambda: not served.connections.open)
        assert (served.api.hub.callers, served.api.hub.queued.bytes) == ({}, 0)


async def event_numbers_read_slowly(line: ClientConnection, until_: int) -> list[int]:
    """Receive events up to this number, slowly; return their numbers."""
    got: list[int] = []
    while not got or got[-1] < until_:
        frame = orjson.loads(await line.recv())
        await asyncio.sleep(0.002)
        if frame["op"] == "event":
            got.append(frame["event"]["seq"])
    return got


def peak_memory_bytes(process: Process) -> int:
    """Return the peak memory of a process in bytes."""
    status = Path(f"/proc/{process.process.pid}/status").read_text()
    [peak] = re.findall(r"VmHWM:\s+(\d+) kB", status)
    return int(peak) * 1024


@pytest.mark.slow
async def test_100_clients_that_replay_a_long_history_take_little_memory(tmp_path: Path) -> None:
    async with World(tmp_path / "home", easy_endings=True) as world:
        world.script("ada")
        watched = (await world.found("Watch", start=False)).team.id
        await world.store.write(emit_events, watched, EVENTS, SIZE)
        head = len(await world.events(watched))
    async with AsyncExitStack() as stack:
        process, port = await stack.enter_async_context(up_with_file_limit(tmp_path / "home", 1024))
        path, before = f"/api/teams/{watched}/events", peak_memory_bytes(process)
        crowd = [await stack.enter_async_context(Client(port)) for _ in range(CROWD)]
        for client in crowd:
            client.send(upgrade(path, port))
        for client in crowd:
            await client.reader.readexactly(1)
        lively = [await stack.enter_async_context(open_websocket(port, path)) for _ in range(5)]
        async with asyncio.timeout(60):
            everything = await asyncio.gather(
                *(event_numbers_read_slowly(line, head) for line in lively)
            )
        assert everything == [[*range(1, head + 1)]] * len(lively)
        assert peak_memory_bytes(process) - before < MOST_MEMORY


def open_websocket(port: int, path: str) -> AbstractAsyncContextManager[ClientConnection]:
    return connect(
        f"ws://127.0.0.1:{port}{path}",
        additional_headers={"Authorization": f"Bearer {TOKEN}"},
        compression=None,
        max_queue=1,
    )


async def test_a_websocket_beyond_the_callers_limit_is_refused_until_another_closes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "MOST_SOCKETS_PER_CALLER", 3)
    async with AsyncExitStack() as stack:
        served = await stack.enter_async_context(serving(tmp_path / "home"))
        watched = await create_team(served)
        path = f"/teams/{watched}/events"
        lines = [await stack.enter_async_context(served.follow(path)) for _ in range(3)]
        async with served.follow(path) as refused:
            with pytest.raises(ConnectionClosed) as closed:
                await refused.recv()
        assert closed.value.rcvd is not None
        assert (closed.value.rcvd.code, "close some" in closed.value.rcvd.reason) == (4029, True)
        await lines[0].close()
        await until(lambda: served.api.hub.callers.total() == 2)
        async with served.follow(path) as line:
            assert (await event_numbers(line, 1))[0] == 1


async def test_the_bytes_queued_for_all_clients_are_limited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(live, "MOST_BYTES_IN_ALL", 10_000)
    hub, watchers = Hub(), [Subscriber(teams=None) for _ in range(4)]
    for watcher in watchers:
        hub.join(watcher)
    hub.publish_delta(partial_reply(), "x" * 1000)
    await watchers[0].take()
    hub.publish_delta(partial_reply("t_2"), "x" * 2000)

    # The first watcher has taken its first delta, so it is not the one that is furthest behind.
    assert [watcher.is_lost for watcher in watchers].count(True) == 1
    assert not watchers[0].is_lost
    assert 0 < hub.queued.bytes <= 10_000
    for watcher in watchers:
        hub.leave(watcher)
    assert hub.queued.bytes == 0
