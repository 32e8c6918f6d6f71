"""Following: what other processes commit and say, heard in this one, over PostgreSQL.

Every commit with events says so on a channel (`PostgresTx.finish`). Whoever follows reads the rows
after its cursor, so what a lost connection kept from it is read later: nothing is missed, nothing
told twice. Words of replies are told on a channel of their own and kept nowhere; they may be lost.
"""

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import asdict, replace

import orjson

from agiraph.domain.chat import Words
from agiraph.domain.errors import StoreUnavailable
from agiraph.domain.events import Event
from agiraph.domain.ids import TeamId, ThreadId
from agiraph.logs import Streak
from agiraph.store import events
from agiraph.store.database import Store
from agiraph.store.notify import Notice, listen
from agiraph.store.postgres import EVENTS, WORDS
from agiraph.store.tx import Aftermath, Tx

PAGE = 500
PIECE = 1000
"""Letters of one notice: PostgreSQL takes 8,000 bytes, and a letter may need six of them."""
MOST_HELD = 256 * 1024
"""Letters that wait to be told; what comes beyond them is not told."""
TELL_SECONDS = 0.1
"""How long words are gathered before they are told."""
MOST_OVER = 2000
_ENDS = frozenset({"node.completed", "node.failed", "node.cancelled"})


class Follower:
    """Tells of everything that is committed, whoever does it, in order and once."""

    def __init__(
        self,
        url: str,
        store: Store,
        *,
        publish: Callable[[Event], None],
        hear: Callable[[Words], None],
        streak: Streak | None = None,
    ) -> None:
        self._url = url
        self._store = store
        self._publish = publish
        self._hear = hear
        self._streak = streak
        self._cursors: dict[TeamId, int] = {}
        self._over: OrderedDict[str, int] = OrderedDict()
        """Threads by their last published reply, and nodes that have ended."""
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """From here on nothing is missed; what was before is for others to read."""
        self._cursors = await self._store.read(events.heads, archived=True)
        following = listen(
            *(self._url, (EVENTS, WORDS)),
            look=self._look_everywhere,
            take=self._take,
            streak=self._streak,
        )
        self._task = asyncio.create_task(following, name="following")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _take(self, notice: Notice) -> None:
        if notice.channel == EVENTS:
            team_id, _, seq = notice.payload.rpartition(" ")
            if int(seq) > self._cursors.get(TeamId(team_id), 0):
                await self._catch_up(TeamId(team_id))
            return
        words = Words(**orjson.loads(notice.payload))
        is_over = words.node_id in self._over or self._over.get(words.thread_id, 0) > words.after
        if not is_over:
            self._hear(words)

    async def _look_everywhere(self) -> None:
        for team_id, head in (await self._store.read(events.heads, archived=True)).items():
            if head > self._cursors.get(team_id, 0):
                await self._catch_up(team_id)

    async def _catch_up(self, team_id: TeamId) -> None:
        while True:
            cursor = self._cursors.get(team_id, 0)
            rows = await self._store.read(events.after, team_id, cursor, limit=PAGE)
            for event in rows:
                self._cursors[team_id] = event.seq
                self._remember(event)
                self._publish(event)
            if len(rows) < PAGE:
                return

    def _remember(self, event: Event) -> None:
        """What has ended: rows are read ahead of words that were said before them."""
        if event.type == "turn.added":
            self._over[event.data["thread_id"]] = event.data["seq"]
        elif event.type in _ENDS:
            self._over[event.data["node_id"]] = 0
        elif event.type == "node.assigned":  # tried again
            self._over.pop(event.data["node_id"], None)
        while len(self._over) > MOST_OVER:
            self._over.popitem(last=False)


class Speaker:
    """Tells other processes the words of replies as they come: gathered, and only so many."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._held: dict[ThreadId, Words] = {}
        self._said: dict[ThreadId, Words] = {}
        """Of each reply under way what was said last."""
        self._task: asyncio.Task[None] | None = None
        store.subscribe(self._notice)

    def say(self, words: Words) -> None:
        """A few more words; `offset` is for us to find out."""
        last = self._said.get(words.thread_id)
        if last is not None and last.after == words.after:
            words = replace(words, offset=last.offset + len(last.text))
        self._said[words.thread_id] = words
        held = self._held.get(words.thread_id)
        if not self._has_room(words):
            return
        if held is None or held.after != words.after:
            self._held[words.thread_id] = words
        elif held.offset + len(held.text) == words.offset:
            self._held[words.thread_id] = replace(held, text=held.text + words.text)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._tell(), name="telling")

    def _has_room(self, words: Words) -> bool:
        return sum(len(held.text) for held in self._held.values()) + len(words.text) <= MOST_HELD

    def _notice(self, aftermath: Aftermath) -> None:
        """A reply that is written down needs no telling any more."""
        for event in aftermath.events:
            if event.type == "turn.added":
                self._held.pop(event.data["thread_id"], None)
                self._said.pop(event.data["thread_id"], None)
            elif event.type in _ENDS:
                node_id = event.data["node_id"]
                for thread_id in [t for t, w in self._said.items() if w.node_id == node_id]:
                    self._held.pop(thread_id, None)
                    del self._said[thread_id]

    async def _tell(self) -> None:
        while self._held:
            await asyncio.sleep(TELL_SECONDS)
            held, self._held = list(self._held.values()), {}
            payloads = [piece for words in held for piece in _pieces(words)]
            with contextlib.suppress(StoreUnavailable):  # then nobody sees it being written
                await self._store.write(tell, payloads)

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)


def _pieces(words: Words) -> list[str]:
    return [
        orjson.dumps(
            asdict(
                replace(words, offset=words.offset + at, text=words.text[at : at + PIECE]),
            )
        ).decode()
        for at in range(0, len(words.text), PIECE)
    ]


def tell(tx: Tx, payloads: list[str]) -> None:
    """Say this to whoever follows, now; PostgreSQL only."""
    for payload in payloads:
        tx.one("select pg_notify(:channel, :payload)", channel=WORDS, payload=payload)
