"""Histories: what is folded from teams' events, kept in memory and continued at each request.

Events never change and are numbered without gaps, so a history is continued by the events after
its last one, whichever process wrote them.
"""

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field

from agiraph.domain.ids import TeamId
from agiraph.services.history.boards import BoardFold
from agiraph.services.history.spans import SpanFold
from agiraph.store import events
from agiraph.store.database import Store

MOST_TEAMS = 8
"""So many histories are kept; the one that was not asked for longest is dropped."""
MOST_EVENTS = 200_000
"""A longer history begins later: so many events fit into some 100 MB."""
PAGE = 500


@dataclass(slots=True)
class TeamHistory:
    """The folds of one team's events up to `last`."""

    first: int = 1
    """The number of the first event that is folded."""
    last: int = 0
    spans: SpanFold = field(default_factory=SpanFold)
    boards: BoardFold = field(default_factory=BoardFold)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Histories:
    """The histories of the teams that clients look at."""

    def __init__(self) -> None:
        self._kept: OrderedDict[TeamId, TeamHistory] = OrderedDict()

    async def of(self, store: Store, team_id: TeamId) -> TeamHistory:
        """Return what is folded from a team's events, continued up to its newest event."""
        head = await store.read(events.head, team_id)
        history = self._kept.get(team_id)
        # Fewer events than we know of: a backup has replaced the database.
        if history is None or history.last > head:
            first = max(1, head - MOST_EVENTS + 1)
            history = self._kept[team_id] = TeamHistory(first=first, last=first - 1)
        self._kept.move_to_end(team_id)
        while len(self._kept) > MOST_TEAMS:
            self._kept.popitem(last=False)
        async with history.lock:
            while history.last < head:
                # Page by page: other requests are served in between.
                read = await store.read(events.after, team_id, history.last, limit=PAGE)
                if not read:
                    break
                for event in read:
                    history.spans.add(event)
                    history.boards.add(event)
                history.last = read[-1].seq
        return history
