"""One PostgreSQL, an API process and two workers: a client receives every event once."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import openai
import orjson
import psycopg
import pytest
from openai import AsyncOpenAI

from agiraph.app import open_store
from agiraph.core.domain.chat import ReplyDelta
from agiraph.core.domain.events import Event
from agiraph.core.domain.ids import AgentId, NodeId, TeamId, ThreadId
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.times.time import SystemClock
from agiraph.core.services.lifecycle import teams
from agiraph.core.store import events
from agiraph.core.store.engine.change_feed import (
    MAX_PENDING_CHARS,
    PIECE_CHARS,
    ChangeFeed,
    ReplyTextSender,
)
from agiraph.testing import ModelServer, call, says
from agiraph.testing.script import Says, Seen
from tests.cli.shell import Process, Shell
from tests.postgres_server import Server, free_port

TOKEN = "a-token-of-32-characters-for-test"
STEPS = 12
TEAMS = 4


def writes_notes(seen: Seen) -> Says:
    if "You are talking with the human" in seen.system:
        return says("Twelve notes, as you wished.", call("no_work_needed"))
    done = sum(message.role == "assistant" for message in seen.messages)
    if done < STEPS:
        return says(f"Step {done} is done. " * 4, call("checkpoint", summary=f"note {done}"))
    return says("All is done.", call("finish", summary=f"{done} notes"))


@dataclass(slots=True)
class Watcher:
    """The events and reply text that one client received over its WebSockets."""

    events: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    words: list[dict[str, Any]] = field(default_factory=list)
    closes: list[tuple[int | None, str]] = field(default_factory=list)
    moved: asyncio.Event = field(default_factory=asyncio.Event)

    async def follow(self, origin: str) -> None:
        """Reconnect for ever, with the last event numbers as cursors."""
        async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {TOKEN}"}) as http:
            while True:
                try:
                    async with http.ws_connect(f"{origin}/api/events") as line:
                        cursors = {team: got[-1]["seq"] for team, got in self.events.items()}
                        await line.send_json({"op": "subscribe", "cursors": cursors})
                        async for message in line:
                            self.take(orjson.loads(message.data))
                        self.closes.append((line.close_code, ""))
                except aiohttp.ClientError:
                    await asyncio.sleep(0.05)

    def take(self, frame: dict[str, Any]) -> None:
        if frame["op"] == "event":
            self.events.setdefault(frame["event"]["team_id"], []).append(frame["event"])
        elif frame["op"] == "delta":
            self.words.append(frame)
        self.moved.set()

    async def until(self, claim: Any) -> None:
        async with asyncio.timeout(90):
            while not claim():
                self.moved.clear()
                await self.moved.wait()

    def count(self, type: str) -> int:
        return sum(event["type"] == type for got in self.events.values() for event in got)


class Installation:
    """The processes of one installation, and the address of its API."""

    def __init__(self, agiraph: Shell, stack: AsyncExitStack) -> None:
        self._agiraph = agiraph
        self._stack = stack
        port = free_port()
        self.origin = f"http://127.0.0.1:{port}"
        agiraph.environment |= {"AGIRAPH_PORT": str(port), "AGIRAPH_TOKEN": TOKEN}

    async def start(self, command: str, words: str) -> Process:
        process = await self._stack.enter_async_context(self._agiraph.start(command))
        await process.says(words)
        return process

    async def serve(self) -> Process:
        return await self.start("serve", "is up at")

    async def work(self) -> Process:
        return await self.start("work", "At work.")

    async def post(self, path: str, body: Any = None) -> Any:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with (
            aiohttp.ClientSession(headers=headers) as http,
            http.post(f"{self.origin}/api{path}", json=body) as response,
        ):
            assert response.status < 300, await response.text()
            return await response.json()


@pytest.fixture
async def installation(tmp_path: Path, postgres: Server) -> AsyncIterator[Installation]:
    async with AsyncExitStack() as stack, ModelServer(writes_notes) as models:
        environment = {
            "AGIRAPH_DATABASE_URL": postgres.fresh(),
            "OPENAI_API_KEY": "sk-canary-canary",
            "OPENAI_BASE_URL": models.openai_url,
            "AGIRAPH_MODEL": "openai/test",
        }
        yield Installation(Shell(tmp_path / "home", environment), stack)


async def test_every_event_arrives_once_through_a_worker_kill_and_an_api_restart(
    installation: Installation,
) -> None:
    serving, first, _ = (
        await installation.serve(),
        await installation.work(),
        await installation.work(),
    )
    watched = Watcher()
    following = asyncio.create_task(watched.follow(installation.origin))
    for number in range(TEAMS):
        await installation.post("/teams", {"goal": f"Notes of team {number}", "learns": False})
    await watched.until(lambda: watched.count("turn.added") >= TEAMS)
    first.signal(signal.SIGKILL)
    await watched.until(lambda: watched.count("turn.added") >= 2 * TEAMS)
    serving.signal(signal.SIGTERM)
    assert (await serving.ends()).code == 0
    await installation.serve()
    await watched.until(lambda: watched.count("node.completed") == TEAMS)
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    assert await asked_over_v1(installation.origin) == "Twelve notes, as you wished."

    assert len(watched.events) == TEAMS
    for got in watched.events.values():
        assert [event["seq"] for event in got] == list(range(1, len(got) + 1))
        assert [event["type"] for event in got].count("turn.added") >= STEPS + 1
    assert watched.closes[0][0] == 1012


async def asked_over_v1(origin: str) -> str:
    """Return what the OpenAI SDK is streamed by the API process; a worker writes it."""
    plain = openai.DefaultAsyncHttpxClient(trust_env=False)
    async with AsyncOpenAI(base_url=f"{origin}/v1", api_key=TOKEN, http_client=plain) as client:
        [first, *_] = [model.id async for model in client.models.list()]
        stream = await client.chat.completions.create(
            model=first, messages=[{"role": "user", "content": "How many?"}], stream=True
        )
        parts = [chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices]
    return "".join(parts)


async def test_reply_text_of_one_process_reaches_another_in_order(postgres: Server) -> None:
    url = postgres.fresh()
    store = await open_store(url, SystemClock())
    heard: list[ReplyDelta] = []
    published: list[Event] = []
    arrived = asyncio.Event()

    def hear(words: ReplyDelta) -> None:
        heard.append(words)
        arrived.set()

    feed = ChangeFeed(url, store, publish=published.append, on_reply_text=hear)
    sender = ReplyTextSender(store)
    await feed.start()
    try:
        long = "\N{SNOWMAN}\x01" * PIECE_CHARS  # characters that take the most bytes as JSON
        for text in (long, "and ", "some more"):
            sender.add(words(text))
        async with asyncio.timeout(30):
            while sum(len(piece.text) for piece in heard) < 2 * PIECE_CHARS + 13:
                arrived.clear()
                await arrived.wait()
        assert "".join(piece.text for piece in heard) == long + "and some more"
        assert [piece.offset for piece in heard] == [0, PIECE_CHARS, 2 * PIECE_CHARS]
    finally:
        await sender.stop()
        await feed.stop()
        await store.close()


async def test_reply_text_beyond_the_limit_is_dropped(postgres: Server) -> None:
    store = await open_store(postgres.fresh(), SystemClock())
    sender = ReplyTextSender(store)
    try:
        sender.add(words("x" * MAX_PENDING_CHARS))
        sender.add(words("y"))
        assert [len(held.text) for held in sender._pending.values()] == [MAX_PENDING_CHARS]
    finally:
        await sender.stop()
        await store.close()


async def test_events_committed_while_the_listen_connection_is_down_are_published_in_order(
    postgres: Server,
) -> None:
    url = postgres.fresh()
    store = await open_store(url, SystemClock())
    other = await open_store(url, SystemClock())
    published: list[Event] = []
    arrived = asyncio.Event()

    def publish(event: Event) -> None:
        published.append(event)
        arrived.set()

    founded = await other.write(
        teams.create, owner_id=OWNER, goal="Before", model="demo", start=False
    )
    before = await store.read(events.head, founded.team.id)
    feed = ChangeFeed(url, store, publish=publish, on_reply_text=lambda words: None)
    await feed.start()
    try:
        for verb in (teams.pause, teams.resume, teams.pause):
            await other.write(verb, founded.team.id)
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(
                    "select pg_terminate_backend(pid) from pg_stat_activity"
                    " where query ilike '%listen%' and pid <> pg_backend_pid()"
                )
        await other.write(teams.archive, founded.team.id)
        async with asyncio.timeout(30):
            while not published or published[-1].type != "team.archived":
                arrived.clear()
                await arrived.wait()
        rows = await store.read(events.after, founded.team.id, before)
        assert published == rows
    finally:
        await feed.stop()
        await store.close()
        await other.close()


def words(text: str) -> ReplyDelta:
    return ReplyDelta(
        team_id=TeamId("team_x"),
        agent_id=AgentId("agent_x"),
        node_id=NodeId("node_x"),
        thread_id=ThreadId("t_x"),
        lane="work",
        after=0,
        offset=0,
        text=text,
    )
