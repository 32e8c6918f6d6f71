"""Live: what happens, told to everyone who watches, each at their own pace.

Whoever watches has a bounded queue. A slow one is closed and comes back with the number it got to;
nobody waits for it meanwhile. Words of a reply as they come are told live and never kept.
"""

import asyncio
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any

from agiraph.api.frames import event_json
from agiraph.domain.events import Event
from agiraph.domain.ids import AgentId, NodeId, TeamId, ThreadId
from agiraph.domain.work import Lane
from agiraph.store.tx import Aftermath

MOST_FRAMES = 1000
MOST_BYTES = 4 * 2**20
MOST_BYTES_IN_ALL = 64 * 2**20
"""Bytes that wait for all clients together. Beyond that, whoever is furthest behind is closed."""
MOST_SOCKETS = 1000
MOST_SOCKETS_PER_CALLER = 250
PAGES_IN_MEMORY = 64
"""Pages of history that are being sent at a time; further clients wait for their turn."""
_ENDS_A_DRAFT = frozenset({"turn.added", "node.completed", "node.failed", "node.cancelled"})


@dataclass(slots=True, kw_only=True)
class Draft:
    """A reply that is still being written."""

    team_id: TeamId
    agent_id: AgentId
    node_id: NodeId
    thread_id: ThreadId
    lane: Lane
    text: str = ""

    def about(self) -> dict[str, Any]:
        return {
            "team_id": self.team_id,
            "agent_id": self.agent_id,
            "node_id": self.node_id,
            "thread_id": self.thread_id,
            "lane": self.lane,
        }


@dataclass(slots=True, eq=False)
class Load:
    """Bytes that wait for clients. An event that several wait for is in memory once."""

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
class Watcher:
    """One client: what it has not been sent yet, up to a limit."""

    teams: set[TeamId] | None = field(default_factory=set[TeamId])
    """The teams it watches; None: all of them."""
    frames: deque[dict[str, Any]] = field(default_factory=deque[dict[str, Any]])
    size: int = 0
    is_lost: bool = False
    """It fell so far behind that it has to come again."""
    is_over: bool = False
    """The server stops; nothing more will come."""
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    load: Load = field(default_factory=Load)
    """What waits for all clients; it is the hub's."""

    def wants(self, team_id: TeamId) -> bool:
        return self.teams is None or team_id in self.teams

    def put(self, frame: dict[str, Any]) -> None:
        if self.is_lost:
            return
        last = self.frames[-1] if self.frames else {}
        if frame["op"] == last.get("op") == "delta" and frame["thread_id"] == last["thread_id"]:
            last["text"] += frame["text"]  # words nobody has seen yet go in one frame
            self.size += len(frame["text"])
            self.load.bytes += len(frame["text"])
        else:
            self.frames.append(frame)
            self.size += _weight(frame)
            self.load.add(frame)
        if len(self.frames) > MOST_FRAMES or self.size > MOST_BYTES:
            self.lose()
        self.ready.set()

    def lose(self) -> None:
        """Give it up; it comes again with the last number it got."""
        self.is_lost = True
        self.clear()
        self.ready.set()

    def clear(self) -> None:
        while self.frames:
            self.load.remove(self.frames.popleft())
        self.size = 0

    async def take(self) -> dict[str, Any] | None:
        """The next frame; None when it has fallen behind, or there is no next one."""
        while not (self.frames or self.is_lost or self.is_over):
            self.ready.clear()
            await self.ready.wait()
        if self.is_lost or not self.frames:
            return None
        frame = self.frames.popleft()
        self.load.remove(frame)
        self.size = 0 if not self.frames else self.size - _weight(frame)
        return frame


def _weight(frame: dict[str, Any]) -> int:
    """About how many bytes a frame takes."""
    return 200 + len(frame.get("text", "")) + frame.get("weight", 0)


class Hub:
    """Everyone who watches this server."""

    def __init__(self) -> None:
        self.watchers: set[Watcher] = set()
        self.drafts: dict[ThreadId, Draft] = {}
        self.lost = 0
        """Watchers that were closed for falling behind, since the start."""
        self.told = 0
        self.is_over = False
        self.load = Load()
        self.callers: Counter[str] = Counter()
        """Open WebSockets, by who opened them."""
        self.pages = asyncio.Semaphore(PAGES_IN_MEMORY)
        """Held while a page of history is in memory."""

    def enter(self, caller: str) -> bool:
        """Whether there is a place for one more WebSocket of this caller; it is taken then."""
        mine, all_ = self.callers[caller], self.callers.total()
        if mine >= MOST_SOCKETS_PER_CALLER or all_ >= MOST_SOCKETS:
            return False
        self.callers[caller] += 1
        return True

    def exit(self, caller: str) -> None:
        self.callers[caller] -= 1
        if not self.callers[caller]:
            del self.callers[caller]

    def _relieve(self) -> None:
        """Give up those who are furthest behind until what waits fits into memory."""
        while self.load.bytes > MOST_BYTES_IN_ALL:
            furthest = max(self.watchers, key=lambda watcher: watcher.size)
            if not furthest.frames:
                return
            furthest.lose()

    def notice(self, aftermath: Aftermath) -> None:
        """What a committed transaction brought about; for `store.subscribe`."""
        for event in aftermath.events:
            self.publish(event)

    def publish(self, event: Event) -> None:
        if event.type in _ENDS_A_DRAFT:
            node_id = event.data.get("node_id")
            for thread_id in [t for t, d in self.drafts.items() if d.node_id == node_id]:
                del self.drafts[thread_id]
        weight = sum(len(said) for said in event.data.values() if isinstance(said, str))
        frame = {"op": "event", "event": event_json(event), "weight": weight}
        for watcher in self.watchers:
            if watcher.wants(event.team_id):
                watcher.put(frame)
        self.told += 1
        self._relieve()

    def said(self, draft: Draft, words: str) -> None:
        """A few more words of a reply."""
        known = self.drafts.setdefault(draft.thread_id, draft)
        offset = len(known.text)
        known.text += words
        for watcher in self.watchers:
            if watcher.wants(draft.team_id):
                watcher.put({"op": "delta", **known.about(), "offset": offset, "text": words})
        self._relieve()

    def overheard(self, draft: Draft, words: str, offset: int) -> None:
        """Words from another process. Where some before them were lost, the rest is not shown."""
        if offset == 0:
            self.drafts.pop(draft.thread_id, None)
        known = self.drafts.get(draft.thread_id)
        if offset == (0 if known is None else len(known.text)):
            self.said(draft, words)

    def unfinished(self, teams: set[TeamId] | None) -> list[dict[str, Any]]:
        """Replies under way, for whoever has just come."""
        return [
            {"op": "draft", **draft.about(), "text": draft.text}
            for draft in self.drafts.values()
            if teams is None or draft.team_id in teams
        ]

    def join(self, watcher: Watcher) -> None:
        watcher.is_over = self.is_over
        watcher.load = self.load
        self.watchers.add(watcher)

    def close(self) -> None:
        """Let everyone have what is there for them, and go."""
        self.is_over = True
        for watcher in self.watchers:
            watcher.is_over = True
            watcher.ready.set()

    def leave(self, watcher: Watcher) -> None:
        self.watchers.discard(watcher)
        watcher.clear()
        self.lost += watcher.is_lost
