"""Live: sends committed events and unfinished replies to all subscribed clients.

Each subscriber has a bounded queue. A slow client is closed and connects again with the number of
its last event; it never delays the others. Text of unfinished replies is sent live and not stored.
"""

import asyncio
from collections import Counter, deque
from dataclasses import field
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from agiraph.core.domain.events import Event
from agiraph.core.domain.ids import AgentId, NodeId, TeamId, ThreadId
from agiraph.core.domain.value import dataclass
from agiraph.core.domain.work import Lane
from agiraph.core.store.tx import Aftermath

MOST_FRAMES = 1000
MOST_BYTES = 4 * 2**20
MOST_BYTES_IN_ALL = 64 * 2**20
"""Bytes queued for all clients. Above this limit, the client with the longest queue is closed."""
MOST_SOCKETS = 1000
MOST_SOCKETS_PER_CALLER = 250
PAGES_IN_MEMORY = 64
"""History pages in memory at a time; further clients wait."""
ENDS_A_REPLY = frozenset(
    {"turn.added", "node.completed", "node.partial", "node.failed", "node.cancelled"}
)


class SubscribeFrame(BaseModel):
    """The first frame that a client sends on `/api/events`."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        defer_build=True,
        json_schema_extra={"example": {"op": "subscribe", "cursors": {"team_1m7e": 41}}},
    )

    op: Literal["subscribe"]
    cursors: dict[str, Annotated[int, Field(ge=0)]] = Field(
        default_factory=dict[str, int],
        description="By team, the number of the last event you have.",
    )


def event_json(event: Event) -> dict[str, Any]:
    """Return an event as the JSON object that clients get."""
    return {
        "team_id": event.team_id,
        "seq": event.seq,
        "type": event.type,
        "at": event.at.isoformat(),
        "data": event.data,
    }


@dataclass(slots=True, kw_only=True)
class PartialReply:
    """A reply that a model is still writing."""

    team_id: TeamId
    agent_id: AgentId
    node_id: NodeId
    thread_id: ThreadId
    lane: Lane
    text: str = ""

    def ids(self) -> dict[str, Any]:
        return {
            "team_id": self.team_id,
            "agent_id": self.agent_id,
            "node_id": self.node_id,
            "thread_id": self.thread_id,
            "lane": self.lane,
        }


@dataclass(slots=True, eq=False)
class QueuedBytes:
    """Bytes queued for all clients. An event in several queues is in memory once."""

    bytes: int = 0

    def add(self, frame: dict[str, Any]) -> None:
        holders = frame.get("holders", 0)
        if frame["op"] == "event":
            frame["holders"] = holders + 1
        self.bytes += _weight(frame) if holders == 0 else 0

    def remove(self, frame: dict[str, Any]) -> None:
        if frame["op"] == "event":
            frame["holders"] -= 1
        self.bytes -= _weight(frame) if frame.get("holders", 0) == 0 else 0


@dataclass(slots=True, eq=False)
class Subscriber:
    """One client and its queue of unsent frames."""

    teams: set[TeamId] | None = field(default_factory=set[TeamId])
    """The teams it subscribed to; None: all teams."""
    frames: deque[dict[str, Any]] = field(default_factory=deque[dict[str, Any]])
    size: int = 0
    is_lost: bool = False
    """Its queue overflowed: it has to connect again."""
    is_over: bool = False
    """The server is stopping: no further frames will come."""
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    queued: QueuedBytes = field(default_factory=QueuedBytes)
    """Shared with the hub: what is queued for all clients."""

    def wants(self, team_id: TeamId) -> bool:
        return self.teams is None or team_id in self.teams

    def put(self, frame: dict[str, Any]) -> None:
        if self.is_lost:
            return
        # A delta may be changed, since every subscriber has its own. Event frames are shared by all
        # queues.
        last = self.frames[-1] if self.frames else {}
        if frame["op"] == last.get("op") == "delta" and frame["thread_id"] == last["thread_id"]:
            last["text"] += frame["text"]  # merge text that is still in the queue into one frame
            self.size += len(frame["text"])
            self.queued.bytes += len(frame["text"])
        else:
            self.frames.append(frame)
            self.size += _weight(frame)
            self.queued.add(frame)
        if len(self.frames) > MOST_FRAMES or self.size > MOST_BYTES:
            self.lose()
        self.ready.set()

    def lose(self) -> None:
        """Drop the queue and close the client, which connects again with its last number."""
        self.is_lost = True
        self.clear()
        self.ready.set()

    def clear(self) -> None:
        while self.frames:
            self.queued.remove(self.frames.popleft())
        self.size = 0

    async def take(self) -> dict[str, Any] | None:
        """Wait for the next frame and return it; None if the client is lost or the server stops."""
        while not (self.frames or self.is_lost or self.is_over):
            # No wake-up is lost: `put` runs on this event loop, and nothing is awaited since the
            # queue was empty.
            self.ready.clear()
            await self.ready.wait()
        if self.is_lost or not self.frames:
            return None
        frame = self.frames.popleft()
        self.queued.remove(frame)
        self.size = 0 if not self.frames else self.size - _weight(frame)
        return frame


def _weight(frame: dict[str, Any]) -> int:
    """Return about how many bytes a frame takes."""
    return 200 + len(frame.get("text", "")) + frame.get("weight", 0)


class Hub:
    """Sends events and streamed reply text to the WebSocket clients of this server."""

    def __init__(self) -> None:
        self.subscribers: set[Subscriber] = set()
        self.replies: dict[ThreadId, PartialReply] = {}
        self.lost: int = 0
        """Clients that were closed because they were too slow, since the start."""
        self.events_published: int = 0
        self.published: dict[TeamId, int] = {}
        """The highest number of a published event of each team."""
        self.is_over: bool = False
        self.queued: QueuedBytes = QueuedBytes()
        self.callers: Counter[str] = Counter()
        """Open WebSockets by caller."""
        self.pages: asyncio.Semaphore = asyncio.Semaphore(PAGES_IN_MEMORY)
        """Acquired while a page of history is in memory."""

    def enter(self, caller: str) -> bool:
        """Count one more WebSocket of this caller; return False if the limit is reached."""
        mine, all_ = self.callers[caller], self.callers.total()
        if mine >= MOST_SOCKETS_PER_CALLER or all_ >= MOST_SOCKETS:
            return False
        self.callers[caller] += 1
        return True

    def exit(self, caller: str) -> None:
        self.callers[caller] -= 1
        if not self.callers[caller]:
            del self.callers[caller]

    def _limit_memory(self) -> None:
        """Close the clients with the longest queues until the limit of memory is met."""
        while self.queued.bytes > MOST_BYTES_IN_ALL:
            furthest = max(self.subscribers, key=lambda subscriber: subscriber.size)
            # The longest queue is empty, so the count is wrong. Without this the loop would never
            # end.
            if not furthest.frames:
                return
            furthest.lose()

    def publish_commit(self, aftermath: Aftermath) -> None:
        """Publish the events of a committed transaction; a listener for `store.subscribe`."""
        for event in aftermath.events:
            self.publish(event)

    def publish(self, event: Event) -> None:
        self.published[event.team_id] = max(event.seq, self.published.get(event.team_id, 0))
        if event.type in ENDS_A_REPLY:
            node_id = event.data.get("node_id")
            for thread_id in [t for t, d in self.replies.items() if d.node_id == node_id]:
                del self.replies[thread_id]
        weight = sum(len(said) for said in event.data.values() if isinstance(said, str))
        # One object for all subscribers; `QueuedBytes` counts it once.
        frame = {"op": "event", "event": event_json(event), "weight": weight}
        for subscriber in self.subscribers:
            if subscriber.wants(event.team_id):
                subscriber.put(frame)
        self.events_published += 1
        self._limit_memory()

    def publish_delta(self, reply: PartialReply, words: str) -> None:
        """Publish the next characters of a reply."""
        known = self.replies.setdefault(reply.thread_id, reply)
        offset = len(known.text)
        known.text += words
        for subscriber in self.subscribers:
            if subscriber.wants(reply.team_id):
                subscriber.put({"op": "delta", **known.ids(), "offset": offset, "text": words})
        self._limit_memory()

    def publish_remote_delta(self, reply: PartialReply, words: str, offset: int) -> None:
        """Publish text from another process. After a gap the rest of the reply is dropped:
        PostgreSQL notifications may be lost, and text with a hole would be wrong."""
        if offset == 0:
            self.replies.pop(reply.thread_id, None)
        known = self.replies.get(reply.thread_id)
        if offset == (0 if known is None else len(known.text)):
            self.publish_delta(reply, words)

    def partial_replies(self, teams: set[TeamId] | None) -> list[dict[str, Any]]:
        """Return the unfinished replies as frames for a client that has just connected."""
        return [
            {"op": "draft", **reply.ids(), "text": reply.text}
            for reply in self.replies.values()
            if teams is None or reply.team_id in teams
        ]

    def join(self, subscriber: Subscriber) -> None:
        subscriber.is_over = self.is_over
        subscriber.queued = self.queued
        self.subscribers.add(subscriber)

    def close(self) -> None:
        """Stop: each client gets its queued frames and is then closed."""
        self.is_over = True
        for subscriber in self.subscribers:
            subscriber.is_over = True
            subscriber.ready.set()

    def leave(self, subscriber: Subscriber) -> None:
        self.subscribers.discard(subscriber)
        subscriber.clear()
        self.lost += subscriber.is_lost
