"""Histories: a team's timeline and past boards, computed from its events and kept in memory.

Each request adds only the events since the last one. Events never change and are numbered without
gaps, so it does not matter which process wrote them.
"""

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field

from agiraph.core.domain.events import Event
from agiraph.core.domain.ids import TeamId
from agiraph.core.store import events
from agiraph.core.store.database import Store
from agiraph.features.history.boards import BoardFold
from agiraph.features.history.spans import SpanFold

MOST_TEAMS = 8
"""The number of histories in memory; the least recently used one is dropped."""
MOST_EVENTS = 200_000
"""A new history is computed from at most this many of a team's newest events (about 100 MB). When
it has grown by a quarter, it is dropped and computed anew."""
PAGE = 500
"""Events that one query reads."""


@dataclass(slots=True)
class TeamHistory:
    """The folds of one team's events up to `last`."""

    first: int = 1
    """The number of the first event that is folded."""
    last: int = 0
    spans: SpanFold = field(default_factory=SpanFold)
    boards: BoardFold = field(default_factory=BoardFold)

    def is_outdated(self, head: int) -> bool:
        """Return whether the events up to `head` need a new history: too many have been added, or a
        backup with fewer of them has replaced the database."""
        most = MOST_EVENTS if self.last < self.first else MOST_EVENTS * 5 // 4
        return self.last > head or head - self.first >= most

    def add(self, event: Event) -> None:
        """Fold the next event."""
        self.last = event.seq  # first: an event that cannot be folded is not tried again
        self.spans.add(event)
        self.boards.add(event)


@dataclass(slots=True)
class _Slot:
    history: TeamHistory = field(default_factory=TeamHistory)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Histories:
    """The histories of the teams that clients look at."""

    def __init__(self) -> None:
        self._slots: OrderedDict[TeamId, _Slot] = OrderedDict()

    async def of(self, store: Store, team_id: TeamId) -> TeamHistory:
        """Return what is folded from a team's events, continued up to its newest event."""
        slot = self._slots.setdefault(team_id, _Slot())
        self._slots.move_to_end(team_id)
        while len(self._slots) > MOST_TEAMS:
            self._slots.popitem(last=False)
        async with slot.lock:
            # Read the newest event number under the lock. A request that waited for it would
            # otherwise use a number older than the history that another request has just built.
            head = await store.read(events.head, team_id)
            if slot.history.is_outdated(head):
                first = max(1, head - MOST_EVENTS + 1)
                slot.history = TeamHistory(first=first, last=first - 1)
            history = slot.history
            while history.last < head:
                # Page by page: other requests are served in between.
                read = await store.read(events.after, team_id, history.last, limit=PAGE)
                if not read:
                    break
                for event in read:
                    history.add(event)
        return history
