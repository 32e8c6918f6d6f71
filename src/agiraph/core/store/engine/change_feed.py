"""Change feed: passes the events and reply texts of other processes to this one, over PostgreSQL.

Every commit with events sends a notification (`PostgresTx.finish`). The feed then reads the rows
after its cursor, so it delivers each event once and in order, even after a lost connection. The
text of a reply that is being written has a channel of its own, is stored nowhere and may be lost.
"""

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import asdict, replace

import orjson

from agiraph.core.domain.chat import ReplyDelta
from agiraph.core.domain.errors import StoreUnavailable
from agiraph.core.domain.events import Event
from agiraph.core.domain.events.work import NODE_ENDS
from agiraph.core.domain.ids import TeamId, ThreadId
from agiraph.core.store import events
from agiraph.core.store.database import Store
from agiraph.core.store.engine.notify import Notification, listen
from agiraph.core.store.engine.postgres import EVENTS_CHANNEL, REPLY_TEXT_CHANNEL
from agiraph.core.store.tx import Aftermath, Tx
from agiraph.logs import Streak

PAGE_EVENTS = 500
"""Events that one query reads."""
PIECE_CHARS = 1000
"""Characters in one notification: PostgreSQL allows 8,000 bytes, and one character takes up to six
of them as JSON."""
MAX_PENDING_CHARS = 256 * 1024
"""Characters that wait to be sent; further text is dropped."""
SEND_INTERVAL_S = 0.1
"""How long text is collected before it is sent."""
MAX_FINISHED = 2000
"""Threads and nodes whose end is remembered."""


class ChangeFeed:
    """Publishes every committed event of every process, in order and once."""

    def __init__(
        self,
        url: str,
        store: Store,
        *,
        publish: Callable[[Event], None],
        on_reply_text: Callable[[ReplyDelta], None],
        failures: Streak | None = None,
    ) -> None:
        self._url = url
        self._store = store
        self._publish = publish
        self._on_reply_text = on_reply_text
        self._failures = failures
        self._cursors: dict[TeamId, int] = {}
        """The number of the last published event of each team."""
        self._finished: OrderedDict[str, int] = OrderedDict()
        """The last published turn of each thread, and the nodes that have ended."""
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Publish the events that commit from now on. Readers fetch earlier ones themselves."""
        # Before LISTEN: `_catch_up_all` runs after it and finds the events that commit in between.
        self._cursors = await self._store.read(events.heads, archived=True)
        listening = listen(
            *(self._url, (EVENTS_CHANNEL, REPLY_TEXT_CHANNEL)),
            on_connect=self._catch_up_all,
            on_notification=self._on_notification,
            failures=self._failures,
        )
        self._task = asyncio.create_task(listening, name="change feed")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _on_notification(self, notification: Notification) -> None:
        if notification.channel == EVENTS_CHANNEL:
            team_id, _, seq = notification.payload.rpartition(" ")
            # One catch-up reads past many notifications; those that arrive for
            # the same events need no query.
            if int(seq) > self._cursors.get(TeamId(team_id), 0):
                await self._catch_up(TeamId(team_id))
            return
        words = ReplyDelta(**orjson.loads(notification.payload))
        last_turn = self._finished.get(words.thread_id, 0)
        if words.node_id not in self._finished and last_turn <= words.after:
            self._on_reply_text(words)

    async def _catch_up_all(self) -> None:
        for team_id, head in (await self._store.read(events.heads, archived=True)).items():
            if head > self._cursors.get(team_id, 0):
                await self._catch_up(team_id)

    async def _catch_up(self, team_id: TeamId) -> None:
        while True:
            cursor = self._cursors.get(team_id, 0)
            rows = await self._store.read(events.after, team_id, cursor, limit=PAGE_EVENTS)
            for event in rows:
                # The cursor moves before `publish`: an event that cannot be published is skipped
                # once and not retried for ever.
                self._cursors[team_id] = event.seq
                self._note_finished(event)
                self._publish(event)
            if len(rows) < PAGE_EVENTS:
                return

    def _note_finished(self, event: Event) -> None:
        """Remember ended turns and nodes: text that was sent before their end may arrive later."""
        if event.type == "turn.added":
            self._finished[event.data["thread_id"]] = event.data["seq"]
        elif event.type in NODE_ENDS:
            self._finished[event.data["node_id"]] = 0
        elif event.type == "node.assigned":  # the node is retried
            self._finished.pop(event.data["node_id"], None)
        # Oldest first. Without a limit, a process that serves for months
        # would remember every thread.
        while len(self._finished) > MAX_FINISHED:
            self._finished.popitem(last=False)


class ReplyTextSender:
    """Sends the text of replies under way to other processes, collected into larger pieces."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._pending: dict[ThreadId, ReplyDelta] = {}
        self._latest: dict[ThreadId, ReplyDelta] = {}
        """The last piece added to each reply under way, from which the next offset follows."""
        self._task: asyncio.Task[None] | None = None
        store.subscribe(self._on_commit)

    def add(self, words: ReplyDelta) -> None:
        """Add a piece to its reply. The sender computes `offset`; the caller's is ignored."""
        last = self._latest.get(words.thread_id)
        if last is not None and last.after == words.after:
            words = replace(words, offset=last.offset + len(last.text))
        # Also for text that is dropped below: the next offset then shows
        # readers that a piece is missing.
        self._latest[words.thread_id] = words
        pending = self._pending.get(words.thread_id)
        if not self._has_room(words):
            return
        if pending is None or pending.after != words.after:
            self._pending[words.thread_id] = words
        elif pending.offset + len(pending.text) == words.offset:
            # Only text that follows directly. After a dropped piece the rest of the reply is
            # dropped as well: readers refuse text with a hole.
            self._pending[words.thread_id] = replace(pending, text=pending.text + words.text)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._send_pending(), name="reply text sender")

    def _has_room(self, words: ReplyDelta) -> bool:
        pending_chars = sum(len(pending.text) for pending in self._pending.values())
        return pending_chars + len(words.text) <= MAX_PENDING_CHARS

    def _on_commit(self, aftermath: Aftermath) -> None:
        """Drop the text of replies that are committed: readers get them as events."""
        for event in aftermath.events:
            if event.type == "turn.added":
                self._drop(event.data["thread_id"])
            elif event.type in NODE_ENDS:
                node_id = event.data["node_id"]
                for thread_id in [t for t, w in self._latest.items() if w.node_id == node_id]:
                    self._drop(thread_id)

    def _drop(self, thread_id: ThreadId) -> None:
        self._pending.pop(thread_id, None)
        self._latest.pop(thread_id, None)

    async def _send_pending(self) -> None:
        while self._pending:
            await asyncio.sleep(SEND_INTERVAL_S)
            pending, self._pending = list(self._pending.values()), {}
            payloads = [payload for words in pending for payload in _payloads(words)]
            with contextlib.suppress(StoreUnavailable):  # text under way may be lost
                await self._store.write(send, payloads)

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)


def _payloads(words: ReplyDelta) -> list[str]:
    """Cut a text into pieces that fit into one notification each, as JSON."""
    pieces = [
        replace(words, offset=words.offset + at, text=words.text[at : at + PIECE_CHARS])
        for at in range(0, len(words.text), PIECE_CHARS)
    ]
    return [orjson.dumps(asdict(piece)).decode() for piece in pieces]


def send(tx: Tx, payloads: list[str]) -> None:
    """Notify every change feed of these pieces of text; PostgreSQL only."""
    for payload in payloads:
        tx.one("select pg_notify(:channel, :payload)", channel=REPLY_TEXT_CHANNEL, payload=payload)
