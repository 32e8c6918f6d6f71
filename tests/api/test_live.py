"""Live events: every client receives them in order and without a gap, at its own pace."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from pydantic import TypeAdapter
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from agiraph.api.deps import Timeouts
from agiraph.api.event_models import Frame
from agiraph.api.live import MOST_FRAMES, PAGES_IN_MEMORY, Hub, PartialReply, Subscriber
from agiraph.app import open_store
from agiraph.core.domain.events.work import NodeCheckpoint, TurnAdded
from agiraph.core.domain.ids import AgentId, NodeId, TeamId, ThreadId
from agiraph.core.domain.times.time import SystemClock
from agiraph.core.store import events
from agiraph.core.store.tx import Tx
from agiraph.testing import call, says
from tests.api.serving import Served, serving

FRAME: TypeAdapter[Any] = TypeAdapter(Frame)
SUBSCRIBE = '{"op": "subscribe", "cursors": {}}'


@pytest.fixture
async def on_each(tmp_path: Path, database_url: str) -> AsyncIterator[Served]:
    """A served world, once on each database."""
    async with serving(tmp_path / "home", database_url=database_url) as opened:
        opened.world.script("ada")
        yield opened


def emit_events(tx: Tx, team_id: TeamId, count: int = 1, size: int = 1) -> None:
    for _ in range(count):
        tx.emit(team_id, NodeCheckpoint(node_id="node_x", summary="x" * size))


async def next_frame(line: ClientConnection) -> dict[str, Any]:
    """Receive the next frame and check it against the schema."""
    said = orjson.loads(await line.recv())
    FRAME.validate_python(said)
    return said


async def event_numbers(line: ClientConnection, until: int) -> list[int]:
    """Receive events up to this number; return their numbers."""
    got: list[int] = []
    while not got or got[-1] < until:
        frame = await next_frame(line)
        if frame["op"] == "event":
            got.append(frame["event"]["seq"])
    return got


async def create_team(served: Served) -> TeamId:
    served.world.script("ada")
    return (await served.world.found("Watch", start=False)).team.id


async def test_stored_and_new_events_arrive_in_order_whenever_a_client_joins(
    on_each: Served,
) -> None:
    watched = await create_team(on_each)
    store, chance = on_each.world.store, random.Random(3)
    writers, each = 6, 40

    async def write() -> None:
        for _ in range(each):
            await store.write(emit_events, watched, chance.randrange(1, 3))

    async def watch(path: str) -> list[int]:
        for _ in range(chance.randrange(60)):
            await asyncio.sleep(0)  # join at a random time
        async with on_each.follow(path) as line:
            if path == "/events":
                await line.send(orjson.dumps({"op": "subscribe", "cursors": {watched: 0}}).decode())
            return await event_numbers(line, await asyncio.shield(last))

    last: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    paths = [f"/teams/{watched}/events", "/events"] * 4
    watching = [asyncio.create_task(watch(path)) for path in paths]
    await asyncio.gather(*(write() for _ in range(writers)))
    last.set_result((await on_each.world.events(watched))[-1].seq)
    for got in await asyncio.gather(*watching):
        assert got == list(range(1, last.result() + 1))


async def test_a_client_that_reconnects_with_its_cursor_misses_no_event(served: Served) -> None:
    watched = await create_team(served)
    head = len(await served.world.events(watched))
    got: list[int] = []
    for _ in range(5):
        await served.world.store.write(emit_events, watched, 7)
        head += 7
        after = got[-1] if got else 0
        async with served.follow(f"/teams/{watched}/events?after={after}") as line:
            hello = await next_frame(line)
            assert (hello["op"], hello["heads"]) == ("hello", {watched: head})
            got += await event_numbers(line, head - 3)  # disconnect before the last events
    async with served.follow(f"/teams/{watched}/events?after={got[-1]}") as line:
        got += await event_numbers(line, head)
    assert got == list(range(1, head + 1))


async def test_a_client_that_missed_more_than_2000_events_is_told_to_resync(served: Served) -> None:
    watched, near = await create_team(served), await create_team(served)
    for identity, missed in ((watched, 2001), (near, 2000)):
        await served.world.store.write(emit_events, identity, missed)
    heads = {t: len(await served.world.events(t)) for t in (watched, near)}
    cursors = {watched: heads[watched] - 2001, near: heads[near] - 2000}
    async with served.follow() as line:
        await line.send(orjson.dumps({"op": "subscribe", "cursors": cursors}).decode())
        frames = [await next_frame(line) for _ in range(2002)]
        await served.world.store.write(emit_events, watched)
        last = await next_frame(line)
    assert frames[0]["heads"] == heads
    resyncs = [f for f in frames if f["op"] == "resync"]
    assert resyncs == [{"op": "resync", "team_id": watched, "head": heads[watched]}]
    events = [f["event"] for f in frames if f["op"] == "event"]
    assert {e["team_id"] for e in events} == {near}
    assert [e["seq"] for e in events] == list(range(cursors[near] + 1, heads[near] + 1))
    assert last["event"]["seq"] == heads[watched] + 1


async def test_a_cursor_beyond_the_last_event_gets_a_resync(served: Served) -> None:
    watched = await create_team(served)
    head = len(await served.world.events(watched))
    async with served.follow(f"/teams/{watched}/events?after={head + 1000}") as line:
        assert [(await next_frame(line))["op"] for _ in range(2)] == ["hello", "resync"]


async def test_events_of_new_and_archived_teams_are_sent(served: Served) -> None:
    async with served.follow() as line:
        await line.send(SUBSCRIBE)
        assert (await next_frame(line))["heads"] == {}
        made = await create_team(served)
        assert (await next_frame(line))["event"]["team_id"] == made
    await served.ask("DELETE", f"/teams/{made}")
    head = len(await served.world.events(made))
    async with served.follow(f"/teams/{made}/events") as line:
        assert await event_numbers(line, head) == list(range(1, head + 1))


@pytest.mark.parametrize(
    "first",
    [
        *(
            "",
            "no json",
            "[]",
            "null",
            "{}",
            '{"op": "hello"}',
            '{"op": "subscribe", "cursors": 1}',
        ),
        *(
            '{"op": "subscribe", "cursors": {"t": -1}}',
            '{"op": "subscribe", "cursors": {"t": "x"}}',
        ),
        *("[" * 20_000, '{"op": "subscribe", "cursors": {"t": 1.5}}', b"\0"),
    ],
    ids=range(12),
)
async def test_an_invalid_first_frame_closes_the_websocket(
    first: str | bytes, served: Served
) -> None:
    async with served.follow() as line:
        await line.send(first)
        with pytest.raises(ConnectionClosed) as closed:
            await line.recv()
    assert closed.value.rcvd is not None
    assert (closed.value.rcvd.code, "subscribe" in closed.value.rcvd.reason) == (4400, True)


async def test_a_websocket_without_a_first_frame_is_closed(tmp_path: Path) -> None:
    async with (
        serving(tmp_path / "home", timeouts=Timeouts(send_s=0.01)) as served,
        served.follow() as line,
    ):
        with pytest.raises(ConnectionClosed) as closed:
            await line.recv()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 4400


@pytest.mark.parametrize("after", ["-1", "x", str(2**70)])
async def test_a_websocket_with_an_invalid_cursor_is_refused(after: str, served: Served) -> None:
    watched = await create_team(served)
    with pytest.raises(Exception, match="HTTP 403"):
        async with served.follow(f"/teams/{watched}/events?after={after}"):
            pass


def partial_reply(thread: str = "t_1", team_id: str = "team_1") -> PartialReply:
    return PartialReply(
        team_id=TeamId(team_id),
        agent_id=AgentId("agent_1"),
        node_id=NodeId(f"node_{thread}"),
        thread_id=ThreadId(thread),
        lane="reply",
    )


async def test_unread_deltas_of_one_thread_are_merged_into_one_frame() -> None:
    hub, slow = Hub(), Subscriber(teams=None)
    hub.join(slow)
    for word in ("a", "b", "c"):
        hub.publish_delta(partial_reply(), word)
    hub.publish_delta(partial_reply("t_2"), "x")
    hub.publish_delta(partial_reply(), "d")
    frames = [await slow.take() for _ in range(3)]
    assert [(f["thread_id"], f["offset"], f["text"]) for f in frames if f] == [
        ("t_1", 0, "abc"),
        ("t_2", 0, "x"),
        ("t_1", 3, "d"),
    ]
    assert slow.size == 0


async def test_a_slow_reader_of_deltas_is_not_disconnected() -> None:
    hub, slow = Hub(), Subscriber(teams=None)
    hub.join(slow)
    for _ in range(5 * MOST_FRAMES):
        hub.publish_delta(partial_reply(), "word ")
    assert (slow.is_lost, len(slow.frames)) == (False, 1)


async def test_a_partial_reply_is_streamed_and_sent_to_a_client_that_joins_late(
    served: Served,
) -> None:
    watched = await create_team(served)
    hub = served.api.hub
    async with served.follow(f"/teams/{watched}/events") as early:
        assert (await next_frame(early))["op"] == "hello"
        await event_numbers(early, len(await served.world.events(watched)))
        hub.publish_delta(partial_reply(team_id=watched), "Dear ")
        assert (await next_frame(early))["text"] == "Dear "
        async with served.follow(f"/teams/{watched}/events?after=100") as late:
            frames = [await next_frame(late) for _ in range(3)]
            assert [f["op"] for f in frames] == ["hello", "resync", "draft"]
            assert frames[2]["text"] == "Dear "
            hub.publish_delta(partial_reply(team_id=watched), "friend")
            for line in (early, late):
                more = await next_frame(line)
                assert (more["op"], more["offset"], more["text"]) == ("delta", 5, "friend")


async def test_a_complete_reply_is_no_longer_kept_as_a_partial_one(served: Served) -> None:
    served.world.script("ada", says("I am fine.", call("no_work_needed", reason="small talk")))
    founded = await served.world.found("Talk", start=False)
    async with served.follow(f"/teams/{founded.team.id}/events") as line:
        await next_frame(line)
        path = f"/agents/{founded.coordinator.id}/send"
        await served.ask("POST", path, {"message": "How are you?"})
        await served.world.settle()
        got = [await next_frame(line)]
        while got[-1].get("event", {}).get("type") != "node.completed":
            got.append(await next_frame(line))
    words = "".join(f["text"] for f in got if f["op"] == "delta")
    assert "I am fine." in words
    assert served.api.hub.replies == {}


def end_turn(tx: Tx, reply: PartialReply) -> None:
    ids = {"node_id": reply.node_id, "thread_id": reply.thread_id, "agent_id": reply.agent_id}
    tx.emit(reply.team_id, TurnAdded(**ids, seq=1, text="Dear all", calls=[], tokens=1, usd=None))


@pytest.mark.parametrize("cursor", [0, 3000, None], ids=["behind", "ahead", "none"])
async def test_text_of_a_reply_is_not_sent_if_its_end_is_stored_but_not_yet_published(
    served: Served, cursor: int | None
) -> None:
    watched = await create_team(served)
    hub, reply = served.api.hub, partial_reply(team_id=watched)
    hub.publish_delta(reply, "Dear ")
    # As another process does: the server is told of its commit later.
    other = await open_store(f"sqlite:///{served.world.path / 'agiraph.db'}", SystemClock())
    await other.write(end_turn, reply)
    await other.close()
    [end] = await served.world.store.read(events.after, watched, 0, like="turn.%")
    async with served.follow("/events") as line:
        said = {"op": "subscribe", "cursors": {} if cursor is None else {watched: cursor}}
        await line.send(orjson.dumps(said).decode())
        frames = [await next_frame(line)]
        [subscriber] = hub.subscribers
        subscriber.put({"op": "ping"})  # sent after the history and the unfinished replies
        while frames[-1]["op"] != "ping":
            frames.append(await next_frame(line))
        hub.publish(end)
        hub.publish_delta(reply, "And then")
        frames.append(await next_frame(line))
    assert [frame["text"] for frame in frames if "text" in frame] == ["And then"]


async def test_text_of_a_reply_is_not_sent_after_its_end_was_read_from_the_history(
    served: Served,
) -> None:
    watched = await create_team(served)
    hub, store, reply = served.api.hub, served.world.store, partial_reply(team_id=watched)
    for _ in range(PAGES_IN_MEMORY):  # the client subscribes, and has to wait for the history
        await hub.pages.acquire()
    async with served.follow(f"/teams/{watched}/events") as line:
        assert (await next_frame(line))["op"] == "hello"
        hub.publish_delta(reply, "Dear ")
        await store.write(end_turn, reply)
        hub.publish_delta(reply, "And then")  # the next turn of the same node
        await store.write(emit_events, watched)
        for _ in range(PAGES_IN_MEMORY):
            hub.pages.release()
        last = len(await served.world.events(watched))
        frames = [await next_frame(line)]
        while frames[-1]["op"] != "delta":
            frames.append(await next_frame(line))
    numbers = [frame["event"]["seq"] for frame in frames if frame["op"] == "event"]
    assert numbers == list(range(1, last + 1))
    assert [frame["text"] for frame in frames if "text" in frame] == ["And then"]


async def test_a_stalled_client_is_closed_and_delays_no_other_client(tmp_path: Path) -> None:
    async with serving(tmp_path / "home", timeouts=Timeouts(send_s=0.2)) as served:
        watched = await create_team(served)
        path = f"/teams/{watched}/events"
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port, limit=1)
        writer.write(
            f"GET /api{path} HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\nUpgrade: websocket\r\n"
            "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
            "Authorization: Bearer a-token-of-32-characters-for-test\r\n\r\n".encode()
        )
        await reader.read(1)  # connected; from now on this client reads nothing
        async with served.follow(path) as lively:
            head = await emit_until_a_client_is_lost(served, watched, lively)
            assert served.api.hub.lost == 1
            _, metrics = await served.ask("GET", "/metrics")
            assert "agiraph_watchers_lost_total 1" in metrics
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
        async with served.follow(f"{path}?after=1") as back:
            assert await event_numbers(back, head) == list(range(2, head + 1))


async def emit_until_a_client_is_lost(
    served: Served, watched: TeamId, lively: ClientConnection
) -> int:
    """Emit events, each read by the lively client, until the stalled one is dropped.

    Return the number of the last event.
    """
    got = [*await event_numbers(lively, len(await served.world.events(watched)))]
    while not served.api.hub.lost:
        await served.world.store.write(emit_events, watched, 1, 100_000)
        got += await event_numbers(lively, got[-1] + 1)
    assert got == list(range(1, got[-1] + 1))
    return got[-1]


async def test_a_subscriber_that_falls_behind_is_dropped_with_its_queue() -> None:
    watcher = Subscriber(teams=None)
    for number in range(MOST_FRAMES + 1):
        watcher.put({"op": "event", "event": {"seq": number}, "text": ""})
    assert (watcher.is_lost, len(watcher.frames)) == (True, 0)
    assert await watcher.take() is None
